#include "webhook/json_edit.hpp"

#include <string>
#include <vector>

namespace muster::webhook {
namespace {

using kube::Json;

std::string escape_pointer(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

Json operation(std::string_view op, const std::string& path, const Json& value) {
  return Json::object({{"op", Json::string(op)}, {"path", Json::string(path)}, {"value", value}});
}

bool is_prefix(const Json& shorter, const Json& longer) {
  if (shorter.size() > longer.size()) return false;
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    if (!(shorter.at(i) == longer.at(i))) return false;
  }
  return true;
}

/// Depth is bounded by what parsing allowed.
void append_difference(const std::string& path, const Json& before, const Json& after,
                       std::vector<Json>& operations) {
  if (before == after) return;
  if (before.is_object() && after.is_object()) {
    for (const auto& [key, value] : before.members()) {
      const std::string member = path + "/" + escape_pointer(key);
      const Json now = after.get(key);
      if (!now.present())
        operations.push_back(operation("remove", member, Json()));
      else
        append_difference(member, value, now, operations);
    }
    for (const auto& [key, value] : after.members()) {
      if (before.get(key).present()) continue;
      operations.push_back(operation("add", path + "/" + escape_pointer(key), value));
    }
    return;
  }
  if (before.is_array() && after.is_array() && is_prefix(before, after)) {
    for (std::size_t i = before.size(); i < after.size(); ++i) {
      operations.push_back(operation("add", path + "/-", after.at(i)));
    }
    return;
  }
  operations.push_back(operation("replace", path, after));
}

}  // namespace

Json get_path(const Json& root, std::span<const std::string_view> path) {
  Json value = root;
  for (const std::string_view key : path) value = value.get(key);
  return value;
}

Json with_path(const Json& root, std::span<const std::string_view> path, const Json& value) {
  if (path.empty()) return value;
  if (!value.present() && !get_path(root, path).present()) return root;
  return root.with(path.front(), with_path(root.get(path.front()), path.subspan(1), value));
}

Json make_patch(const Json& before, const Json& after) {
  std::vector<Json> operations;
  append_difference("", before, after, operations);
  return Json::array(operations);
}

}  // namespace muster::webhook
