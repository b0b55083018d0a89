#include "webhook/review.hpp"

#include "kube/codec/base64.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace muster::webhook {
namespace {

using kube::Json;

constexpr std::size_t kWarningBytes = 256;    // Of one warning, before the API server cuts it.
constexpr std::size_t kWarningsBytes = 4096;  // Of all of them.

Result<Operation> decode_operation(const Json& value) {
  const auto text = value.as_string();
  if (!text) return fail(text.error().with_context("request.operation"));
  if (*text == "CREATE") return Operation::kCreate;
  if (*text == "UPDATE") return Operation::kUpdate;
  if (*text == "DELETE") return Operation::kDelete;
  if (*text == "CONNECT") return Operation::kConnect;
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("request.operation: got \"{}\" (want CREATE, UPDATE, DELETE or CONNECT)",
                          text->substr(0, 64)));
}

/// At most `bytes` of `text`, not cutting a UTF-8 sequence in two.
std::string_view cut(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U) --bytes;
  return text.substr(0, bytes);
}

Json encode_status(const FieldErrors& errors) {
  // Something that nobody but muster may do is 403; an object that cannot work is 422.
  const bool forbidden = std::all_of(errors.begin(), errors.end(), [](const FieldError& e) {
    return e.code == FieldErrorCode::kForbidden;
  });
  std::string message;
  std::vector<Json> causes;
  for (const FieldError& error : errors) {
    if (!message.empty()) message += "; ";
    message += to_string(error);
    causes.push_back(Json::object({{"reason", Json::string(cause_reason(error.code))},
                                   {"message", Json::string(error.message)},
                                   {"field", Json::string(error.path)}}));
  }
  return Json::object({{"code", Json::number(std::int64_t{forbidden ? 403 : 422})},
                       {"reason", Json::string(forbidden ? "Forbidden" : "Invalid")},
                       {"message", Json::string(message)},
                       {"details", Json::object({{"causes", Json::array(causes)}})}});
}

Json encode_warnings(const std::vector<std::string>& warnings) {
  if (warnings.empty()) return {};
  std::vector<Json> list;
  std::size_t left = kWarningsBytes;
  for (const std::string& warning : warnings) {
    const std::string_view text = cut(warning, kWarningBytes);
    if (text.size() > left) break;
    left -= text.size();
    list.push_back(Json::string(text));
  }
  return Json::array(list);
}

}  // namespace

std::string find_request_uid(const Json& review) {
  return std::string(review.get("request", "uid").string_or(""));
}

Result<AdmissionRequest> decode_review(const Json& review) {
  const Json request = review.get("request");
  if (!request.is_object()) {
    return fail(ErrorCode::kInvalidArgument, "request: missing (want an object)");
  }
  AdmissionRequest decoded;
  const auto uid = request.get("uid").as_string();
  if (!uid) return fail(uid.error().with_context("request.uid"));
  decoded.uid = *uid;
  const auto kind = request.get("kind", "kind").as_string();
  if (!kind) return fail(kind.error().with_context("request.kind.kind"));
  decoded.kind =
      GroupKind{std::string(request.get("kind", "group").string_or("")), std::string(*kind)};
  decoded.resource = request.get("resource", "resource").string_or("");
  decoded.sub_resource = request.get("subResource").string_or("");
  decoded.ns = Namespace(request.get("namespace").string_or(""));
  decoded.name = request.get("name").string_or("");
  auto operation = decode_operation(request.get("operation"));
  if (!operation) return fail(operation.error());
  decoded.operation = *operation;
  const Json user = request.get("userInfo");
  decoded.username = user.get("username").string_or("");
  const Json groups = user.get("groups");
  for (std::size_t i = 0; i < groups.size(); ++i) {
    decoded.groups.emplace_back(groups.at(i).string_or(""));
  }
  decoded.object = request.get("object");
  decoded.old_object = request.get("oldObject");
  decoded.dry_run = request.get("dryRun").bool_or(false);
  const bool needs_object =
      decoded.operation == Operation::kCreate || decoded.operation == Operation::kUpdate;
  if (needs_object && !decoded.object.is_object()) {
    return fail(ErrorCode::kInvalidArgument, "request.object: missing (want an object)");
  }
  if (decoded.operation == Operation::kUpdate && !decoded.old_object.is_object()) {
    return fail(ErrorCode::kInvalidArgument, "request.oldObject: missing (want an object)");
  }
  return decoded;
}

std::string encode_response(std::string_view uid, const AdmissionResponse& response) {
  const bool patched = response.allowed && response.patch.size() > 0;
  const Json answer = Json::object(
      {{"uid", Json::string(uid)},
       {"allowed", Json::boolean(response.allowed)},
       {"status", response.allowed ? Json() : encode_status(response.errors)},
       {"patchType", patched ? Json::string("JSONPatch") : Json()},
       {"patch", patched ? Json::string(kube::base64_encode(response.patch.dump())) : Json()},
       {"warnings", encode_warnings(response.warnings)}});
  return Json::object({{"apiVersion", Json::string("admission.k8s.io/v1")},
                       {"kind", Json::string("AdmissionReview")},
                       {"response", answer}})
      .dump();
}

}  // namespace muster::webhook
