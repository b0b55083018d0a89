// Metadata, conditions, and the kinds that are little more than that.

#include "kube/codec/object_parts.hpp"

#include <algorithm>

namespace muster::kube {
namespace {

const std::string* find_in(const LabelMap& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

OwnerReference read_owner(const Reader& owner) {
  OwnerReference result;
  result.api_version = owner.get("apiVersion").string();
  result.kind = owner.get("kind").string();
  result.name = owner.get("name").string();
  result.uid = Uid(owner.get("uid").string());
  result.controller = owner.get("controller").boolean(false);
  return result;
}

Condition read_condition(const Reader& condition) {
  Condition result;
  result.type = condition.get("type").string();
  result.status = condition.get("status").string();
  result.reason = condition.get("reason").string();
  result.message = condition.get("message").string();
  result.observed_generation = condition.get("observedGeneration").integer(0, Reader::kInt64Max, 0);
  result.last_transition = condition.get("lastTransitionTime").time();
  return result;
}

}  // namespace

const OwnerReference* ObjectMeta::controller_owner() const {
  const auto found = std::find_if(owners.begin(), owners.end(),
                                  [](const OwnerReference& owner) { return owner.controller; });
  return found == owners.end() ? nullptr : &*found;
}
const std::string* ObjectMeta::find_label(const std::string& key) const {
  return find_in(labels, key);
}
const std::string* ObjectMeta::find_annotation(const std::string& key) const {
  return find_in(annotations, key);
}

const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type) {
  const auto found = std::find_if(conditions.begin(), conditions.end(),
                                  [type](const Condition& each) { return each.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}
bool is_true(const std::vector<Condition>& conditions, std::string_view type) {
  const Condition* const condition = find_condition(conditions, type);
  return condition != nullptr && condition->status == "True";
}

ObjectMeta read_meta(const Reader& object) {
  const Reader meta = object.get("metadata");
  ObjectMeta result;
  result.name = meta.get("name").string();
  result.generate_name = meta.get("generateName").string();
  result.ns = Namespace(meta.get("namespace").string());
  result.uid = Uid(meta.get("uid").string());
  result.resource_version = meta.get("resourceVersion").string();
  result.generation = meta.get("generation").integer(0, Reader::kInt64Max, 0);
  result.created = meta.get("creationTimestamp").time();
  result.deleted = meta.get("deletionTimestamp").time();
  result.labels = meta.get("labels").string_map();
  result.annotations = meta.get("annotations").string_map();
  const Reader owners = meta.get("ownerReferences");
  owners.each([&](const Reader& owner) { result.owners.push_back(read_owner(owner)); });
  result.finalizers = meta.get("finalizers").strings();
  return result;
}

std::vector<Condition> read_conditions(const Reader& conditions) {
  std::vector<Condition> result;
  conditions.each([&](const Reader& each) { result.push_back(read_condition(each)); });
  return result;
}

Result<ObjectMeta> decode_meta(const Json& object) {
  return decode_with(object, read_meta);
}

Result<Namespace_> decode_namespace(const Json& object) {
  return decode_with(object, [](const Reader& root) { return Namespace_{read_meta(root)}; });
}

Result<PriorityClass> decode_priority_class(const Json& object) {
  return decode_with(object, [](const Reader& root) {
    PriorityClass result;
    result.meta = read_meta(root);
    result.value = root.get("value").priority().value_or(0);
    result.global_default = root.get("globalDefault").boolean(false);
    result.preemption_policy = root.get("preemptionPolicy").string();
    return result;
  });
}

Result<WorkloadPriorityClass> decode_workload_priority_class(const Json& object) {
  return decode_with(object, [](const Reader& root) {
    WorkloadPriorityClass result;
    result.meta = read_meta(root);
    result.value = root.get("value").priority().value_or(0);
    return result;
  });
}

Json encode_condition(const Condition& condition) {
  return Json::object(
      {{"type", Json::string(condition.type)},
       {"status", Json::string(condition.status)},
       {"observedGeneration",
        condition.observed_generation > 0 ? Json::number(condition.observed_generation) : Json()},
       {"lastTransitionTime", condition.last_transition
                                  ? Json::string(format_rfc3339(*condition.last_transition))
                                  : Json()},
       {"reason", Json::string(condition.reason)},
       {"message", Json::string(condition.message)}});
}

}  // namespace muster::kube
