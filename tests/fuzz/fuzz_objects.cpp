// JSON, strict and lenient, to every object decoder, and what was decoded to its encoders.

#include "kube/codec/list.hpp"
#include "kube/codec/objects.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using muster::fuzz::require;
using namespace muster::kube;

void decode_all(const Json& object) {
  static_cast<void>(decode_meta(object));
  static_cast<void>(decode_node(object));
  static_cast<void>(decode_namespace(object));
  static_cast<void>(decode_priority_class(object));
  static_cast<void>(decode_resource_flavor(object));
  static_cast<void>(decode_cluster_queue(object));
  static_cast<void>(decode_cohort(object));
  static_cast<void>(decode_local_queue(object));
  static_cast<void>(decode_workload_priority_class(object));
  static_cast<void>(decode_topology(object));
  if (const auto pod = decode_pod(object)) {
    static_cast<void>(pod->rank());
    for (const auto& [name, amount] : node_charge(pod->spec)) require(!amount.is_negative());
  }
  if (const auto job = decode_job(object)) {
    require(job->pod_count() >= 0 && job->pod_count() <= job->parallelism);
    for (const Condition& condition : job->conditions)
      require(encode_condition(condition).is_object());
  }
  if (const auto workload = decode_workload(object)) {
    if (!workload->admission) return;
    // What we write of an admission reads back as the same admission.
    const Json encoded = encode_admission(*workload->admission);
    const Json status = Json::object({{"admission", encoded}});
    const auto again = decode_workload(Json::object({{"status", status}}));
    require(again.has_value() && again->admission.has_value());
    require(encode_admission(*again->admission) == encoded);
  }
}

/// What is read leniently can be read strictly from then on, and lacks nothing that was fine.
void read_leniently(std::string_view text, const muster::Result<Json>& strict) {
  const auto json = Json::parse(text, {.lenient = true});
  require(json.has_value() || !strict.has_value());
  if (!json) return;
  const auto again = Json::parse(json->dump());
  require(again.has_value() && again->dump() == json->dump());
  if (strict && strict->dump().find("managedFields") == std::string::npos)
    require(json->dump() == strict->dump());
  decode_all(*json);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto json = Json::parse(muster::fuzz::as_text(data, size));
  read_leniently(muster::fuzz::as_text(data, size), json);
  if (!json) {
    require(!json.error().message.empty());
    return 0;
  }
  const auto again = Json::parse(json->dump());
  require(again.has_value() && again->dump() == json->dump());
  static_cast<void>(merge_patch(*json, *again));
  decode_all(*json);
  if (const auto objects = split_list(*json)) {
    for (const ListedObject& each : *objects) decode_all(each.object);
  }
  return 0;
}
