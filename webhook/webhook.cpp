#include "webhook/webhook.hpp"

#include "kube/codec/json_text.hpp"
#include "webhook/json_edit.hpp"
#include "webhook/mutate.hpp"
#include "webhook/review.hpp"
#include "webhook/validate.hpp"

namespace muster::webhook {
namespace {

using kube::Json;

Answer bad_request(const Error& error) {
  std::string body = R"({"error":)";
  kube::append_json_string(body, error.message);
  body += '}';
  return Answer{400, std::move(body)};
}

AdmissionResponse refuse(const Error& error) {
  AdmissionResponse response;
  response.allowed = false;
  response.errors.push_back({"request", FieldErrorCode::kInvalid, error.message});
  return response;
}

AdmissionResponse run_mutate(const AdmissionRequest& request, const engine::Snapshot& snapshot,
                             const WebhookOptions& options) {
  auto mutation = mutate(request, snapshot, options);
  if (!mutation) return refuse(mutation.error());
  AdmissionResponse response;
  response.warnings = std::move(mutation->warnings);
  response.patch = make_patch(request.object, mutation->object);
  return response;
}

AdmissionResponse run_validate(const AdmissionRequest& request, const engine::Snapshot& snapshot,
                               const WebhookOptions& options) {
  Validation validation = validate(request, snapshot, options);
  AdmissionResponse response;
  response.allowed = validation.errors.empty();
  response.errors = std::move(validation.errors);
  response.warnings = std::move(validation.warnings);
  return response;
}

}  // namespace

Answer answer(std::string_view path, std::string_view body, const engine::Snapshot& snapshot,
              const WebhookOptions& options) {
  const bool mutates = path == "/mutate";
  if (!mutates && path != "/validate") return Answer{404, R"({"error":"no such path"})"};
  const auto review = Json::parse(body);
  if (!review) return bad_request(review.error());
  const std::string uid = find_request_uid(*review);
  const auto request = decode_review(*review);
  if (!request) {
    if (uid.empty()) return bad_request(request.error());
    return Answer{200, encode_response(uid, refuse(request.error()))};
  }
  return Answer{200, encode_response(uid, mutates ? run_mutate(*request, snapshot, options)
                                                  : run_validate(*request, snapshot, options))};
}

}  // namespace muster::webhook
