#include "cli/report_yaml.hpp"

#include "kube/codec/yaml.hpp"

#include <map>
#include <vector>

namespace muster::cli {
namespace {

using kube::Json;

Json gone(const Json& pod, const std::string& reason) {
  return kube::merge_patch(
      pod, Json::object({{"status", Json::object({{"phase", Json::string("Failed")},
                                                  {"reason", Json::string(reason)}})}}));
}

}  // namespace

std::string to_yaml_list(const World& world, const Outcome& outcome) {
  std::map<std::size_t, const Entry*> entries;
  for (const Entry& entry : world.entries) entries.emplace(entry.position, &entry);
  std::vector<Json> items;
  for (std::size_t i = 0; i < world.input.objects.size(); ++i) {
    const Json& object = world.input.objects[i].object;
    const auto found = entries.find(i);
    const Entry* entry = found == entries.end() ? nullptr : found->second;
    const auto left = outcome.pods_gone.find(i);
    if (entry != nullptr && !entry->generated) {
      items.push_back(entry->object);
    } else if (left != outcome.pods_gone.end()) {
      items.push_back(gone(object, left->second));
    } else {
      items.push_back(object);
    }
    if (entry != nullptr && entry->generated && entry->object.present()) {
      items.push_back(entry->object);
    }
  }
  return kube::to_yaml(Json::object({{"apiVersion", Json::string("v1")},
                                     {"kind", Json::string("List")},
                                     {"items", Json::array(items)}}));
}

}  // namespace muster::cli
