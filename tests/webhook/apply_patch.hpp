#pragma once
// A small RFC 6902 applier, written apart from the maker of patches so that it can judge it.

#include "kube/codec/json.hpp"

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::testing {

namespace patch_detail {

inline std::vector<std::string> split_pointer(std::string_view pointer) {
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      tokens.emplace_back();
    } else if (pointer[i] == '~' && i + 1 < pointer.size()) {
      tokens.back() += pointer[++i] == '1' ? '/' : '~';
    } else {
      tokens.back() += pointer[i];
    }
  }
  return tokens;
}

/// Nothing when the operation does not apply.
inline std::optional<kube::Json> apply_at(const kube::Json& target,
                                          const std::vector<std::string>& tokens, std::size_t depth,
                                          std::string_view op, const kube::Json& value) {
  if (depth == tokens.size()) {
    if (op == "remove") return std::nullopt;  // Nobody removes a whole document.
    return value;
  }
  const std::string& token = tokens[depth];
  const bool last = depth + 1 == tokens.size();
  if (target.is_object()) {
    const kube::Json member = target.get(token);
    if (!member.present() && !(last && op == "add")) return std::nullopt;
    if (last) return target.with(token, op == "remove" ? kube::Json() : value);
    const auto changed = apply_at(member, tokens, depth + 1, op, value);
    if (!changed) return std::nullopt;
    return target.with(token, *changed);
  }
  if (!target.is_array()) return std::nullopt;
  std::vector<kube::Json> elements;
  for (std::size_t i = 0; i < target.size(); ++i) elements.push_back(target.at(i));
  if (token == "-") {
    if (!last || op != "add") return std::nullopt;
    elements.push_back(value);
    return kube::Json::array(elements);
  }
  std::size_t index = 0;
  std::from_chars(token.data(), token.data() + token.size(), index);
  if (index >= elements.size()) return std::nullopt;
  const auto at = elements.begin() + static_cast<std::ptrdiff_t>(index);
  if (!last) {
    const auto changed = apply_at(*at, tokens, depth + 1, op, value);
    if (!changed) return std::nullopt;
    *at = *changed;
  } else if (op == "remove") {
    elements.erase(at);
  } else if (op == "replace") {
    *at = value;
  } else {
    elements.insert(at, value);
  }
  return kube::Json::array(elements);
}

}  // namespace patch_detail

/// The document with the patch applied; nothing when it does not apply.
inline std::optional<kube::Json> apply_patch(const kube::Json& document, const kube::Json& patch) {
  kube::Json result = document;
  for (std::size_t i = 0; i < patch.size(); ++i) {
    const kube::Json operation = patch.at(i);
    const std::string_view op = operation.get("op").string_or("");
    if (op != "add" && op != "remove" && op != "replace") return std::nullopt;
    if (op != "remove" && !operation.get("value").present()) return std::nullopt;
    const auto changed = patch_detail::apply_at(
        result, patch_detail::split_pointer(operation.get("path").string_or("")), 0, op,
        operation.get("value"));
    if (!changed) return std::nullopt;
    result = *changed;
  }
  return result;
}

}  // namespace muster::testing
