#include "kube/codec/list.hpp"

#include <fmt/format.h>

namespace muster::kube {
namespace {

constexpr std::string_view kListSuffix = "List";

Error at_place(const std::string& place, Error error) {
  return place.empty() ? error : error.with_context(place);
}

/// The depth of nested lists is bounded by that of the document.
Result<void> collect(const Json& object, const std::string& place,
                     std::vector<ListedObject>& into) {
  if (!object.is_object()) {
    return fail(at_place(place, invalid_argument("got " + describe(object) + ", want an object")));
  }
  const std::string_view kind = object.get("kind").string_or("");
  const Json items = object.get("items");
  if (!kind.ends_with(kListSuffix) || !items.present()) {
    into.push_back({place, object});
    return {};
  }
  if (items.missing()) return {};
  if (!items.is_array()) {
    return fail(
        at_place(place, invalid_argument("items: got " + describe(items) + ", want an array")));
  }
  const std::string_view item_kind = kind.substr(0, kind.size() - kListSuffix.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    Json item = items.at(i);
    if (item.is_object() && !item_kind.empty() && !item.get("kind").present()) {
      item =
          item.with("kind", Json::string(item_kind)).with("apiVersion", object.get("apiVersion"));
    }
    const std::string inner = fmt::format("{}{}items[{}]", place, place.empty() ? "" : ".", i);
    if (const auto done = collect(item, inner, into); !done) return done;
  }
  return {};
}

}  // namespace

Result<std::vector<ListedObject>> split_list(const Json& document) {
  std::vector<ListedObject> objects;
  if (const auto done = collect(document, "", objects); !done) return fail(done.error());
  return objects;
}

}  // namespace muster::kube
