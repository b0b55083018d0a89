// Block-style YAML as kubectl prints it.

#include "kube/codec/json_text.hpp"
#include "kube/codec/yaml.hpp"
#include "kube/codec/yaml_scalar.hpp"

#include <fmt/format.h>

namespace muster::kube {
namespace {

/// Line breaks and characters that some YAML readers do not print or fold are escaped beyond what
/// JSON asks for.
void append_quoted(std::string& out, std::string_view text) {
  std::string json;
  append_json_string(json, text);
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string_view rest = std::string_view(json).substr(i);
    const auto byte = static_cast<unsigned char>(rest[0]);
    const auto next = static_cast<unsigned char>(rest.size() > 1 ? rest[1] : '\0');
    if (byte == 0x7F) {
      out += "\\x7f";
    } else if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {
      out += fmt::format("\\x{:02x}", next);
      i += 1;
    } else if (rest.starts_with("\xE2\x80\xA8") || rest.starts_with("\xE2\x80\xA9")) {
      out += rest[2] == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else if (rest.starts_with("\xEF\xBB\xBF")) {
      out += "\\ufeff";
      i += 2;
    } else {
      out.push_back(rest[0]);
    }
  }
}

void append_text(std::string& out, std::string_view text) {
  if (safe_as_plain_scalar(text))
    out += text;
  else
    append_quoted(out, text);
}

bool is_block(const Json& value) {
  return (value.is_object() || value.is_array()) && value.size() > 0;
}

void append_inline(std::string& out, const Json& value) {
  if (value.is_string())
    append_text(out, value.string_or(""));
  else if (value.is_object() || value.is_array())
    out += value.is_object() ? "{}" : "[]";
  else
    out += value.dump();
}

/// A key and its colon. YAML ends a simple key after 1024 characters; a longer one is written in
/// the explicit form, on a line of its own, and true returned.
bool append_key(std::string& out, std::string_view key, std::size_t indent) {
  constexpr std::size_t kLongestSimpleKey = 1000;
  std::string text;
  append_text(text, key);
  const bool is_long = text.size() > kLongestSimpleKey;
  if (is_long) {
    out += "? " + text + "\n";
    out.append(indent, ' ');
  } else {
    out += text;
  }
  out.push_back(':');
  return is_long;
}

/// A non-empty object or array. The caller has already indented the first line; the others are
/// indented by `indent` here.
void append_block(std::string& out, const Json& value, std::size_t indent) {
  bool first = true;
  const auto start_line = [&] {
    if (!first) out.append(indent, ' ');
    first = false;
  };
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      start_line();
      out += "- ";
      const Json element = value.at(i);
      if (is_block(element)) {
        append_block(out, element, indent + 2);
      } else {
        append_inline(out, element);
        out.push_back('\n');
      }
    }
    return;
  }
  for (const auto& [key, member] : value.members()) {
    start_line();
    const bool long_key = append_key(out, key, indent);
    if (!is_block(member)) {
      out.push_back(' ');
      append_inline(out, member);
      out.push_back('\n');
      continue;
    }
    // As kubectl does: a list under a key is not indented further, a mapping is.
    const std::size_t inner = member.is_array() && !long_key ? indent : indent + 2;
    out.push_back('\n');
    out.append(inner, ' ');
    append_block(out, member, inner);
  }
}

}  // namespace

std::string to_yaml(const Json& value) {
  std::string out;
  if (is_block(value)) {
    append_block(out, value, 0);
  } else {
    append_inline(out, value);
    out.push_back('\n');
  }
  return out;
}

}  // namespace muster::kube
