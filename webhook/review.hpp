#pragma once
// AdmissionReview of admission.k8s.io/v1: the question and the answer.

#include "base/ids.hpp"
#include "base/result.hpp"
#include "kube/codec/json.hpp"
#include "webhook/field_error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace muster::webhook {

struct GroupKind {
  std::string group;  ///< Empty for core.
  std::string kind;
  bool operator==(const GroupKind&) const = default;
};

enum class Operation { kCreate, kUpdate, kDelete, kConnect };

struct AdmissionRequest {
  std::string uid;
  GroupKind kind;
  std::string resource;      ///< Plural: `pods`.
  std::string sub_resource;  ///< `status`, `resize`; empty for the object itself.
  Namespace ns;              ///< Empty for cluster-scoped objects.
  std::string name;          ///< Empty while the API server has not generated it.
  Operation operation = Operation::kCreate;
  std::string username;
  std::vector<std::string> groups;
  kube::Json object;      ///< Missing with kDelete.
  kube::Json old_object;  ///< Missing with kCreate.
  bool dry_run = false;
};

struct AdmissionResponse {
  bool allowed = true;
  FieldErrors errors;                 ///< Why not.
  std::vector<std::string> warnings;  ///< Shown to the user, allowed or not.
  kube::Json patch;                   ///< RFC 6902; absent or empty: nothing changes.
};

/// The uid of the request inside, as far as one can be found: an answer without it is none.
[[nodiscard]] std::string find_request_uid(const kube::Json& review);

/// Errors name the field and what was wanted.
[[nodiscard]] Result<AdmissionRequest> decode_review(const kube::Json& review);

/// The bytes of the answering AdmissionReview. Warnings are cut to what the API server passes on.
[[nodiscard]] std::string encode_response(std::string_view uid, const AdmissionResponse& response);

}  // namespace muster::webhook
