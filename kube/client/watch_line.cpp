#include "kube/client/watch_line.hpp"

namespace muster::kube {
namespace {

constexpr std::size_t kMaxListBytes = 512U << 20U;

ObjectIdentity read_meta(const Json& object) {
  const Json metadata = object.get("metadata");
  return {.ns = std::string(metadata.get("namespace").string_or("")),
          .name = std::string(metadata.get("name").string_or("")),
          .uid = std::string(metadata.get("uid").string_or("")),
          .resource_version = std::string(metadata.get("resourceVersion").string_or(""))};
}

WatchLine::Type read_type(std::string_view text) {
  if (text == "ADDED") return WatchLine::Type::kAdded;
  if (text == "MODIFIED") return WatchLine::Type::kModified;
  if (text == "DELETED") return WatchLine::Type::kDeleted;
  if (text == "BOOKMARK") return WatchLine::Type::kBookmark;
  if (text == "ERROR") return WatchLine::Type::kError;
  return WatchLine::Type::kUnknown;
}

}  // namespace

Result<WatchLine> parse_watch_line(std::string_view text) {
  const Result<Json> parsed = Json::parse(text, {.lenient = true});
  if (!parsed) return fail(parsed.error().with_context("watch line"));
  const Result<std::string_view> type = parsed->get("type").as_string();
  if (!type) return fail(type.error().with_context("watch line: type"));
  WatchLine line;
  line.type = read_type(*type);
  line.object = parsed->get("object");
  if (!line.object.is_object()) return fail(invalid_argument("watch line: no object"));
  if (line.type == WatchLine::Type::kError) {
    line.error_code = static_cast<int>(line.object.get("code").int_or(0));
    line.error_message = line.object.get("message").string_or("");
    return line;
  }
  line.meta = read_meta(line.object);
  if (line.type == WatchLine::Type::kBookmark) {
    const Json mark = line.object.get("metadata", "annotations", "k8s.io/initial-events-end");
    line.initial_events_end = mark.string_or("") == "true";
  } else if (line.type != WatchLine::Type::kUnknown && line.meta.name.empty()) {
    return fail(invalid_argument("watch line: object.metadata.name is missing"));
  }
  return line;
}

Result<ListPage> parse_list_page(std::string_view body) {
  const Result<Json> parsed = Json::parse(body, {.bytes = kMaxListBytes, .lenient = true});
  if (!parsed) return fail(parsed.error().with_context("list"));
  const Json metadata = parsed->get("metadata");
  ListPage page;
  page.resource_version = metadata.get("resourceVersion").string_or("");
  page.continue_token = metadata.get("continue").string_or("");
  const Json items = parsed->get("items");
  if (page.resource_version.empty() || !(items.is_array() || items.missing()))
    return fail(invalid_argument("list: not a list (want metadata.resourceVersion and items)"));
  page.items.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    ListItem item{.meta = read_meta(items.at(i)), .object = items.at(i)};
    if (item.meta.name.empty())
      ++page.unreadable;
    else
      page.items.push_back(std::move(item));
  }
  return page;
}

}  // namespace muster::kube
