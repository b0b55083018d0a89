#pragma once
// What is wrong with an object, one entry per field. Spelled as the API server spells its own.

#include <string>
#include <string_view>
#include <vector>

namespace muster::webhook {

enum class FieldErrorCode { kRequired, kInvalid, kDuplicate, kNotSupported, kTooMany, kForbidden };

struct FieldError {
  std::string path;  ///< `spec.resourceGroups[0].flavors[1].name`.
  FieldErrorCode code = FieldErrorCode::kInvalid;
  std::string message;  ///< What came, what was wanted, and what the user can do.
  bool operator==(const FieldError&) const = default;
};
using FieldErrors = std::vector<FieldError>;

/// The reason of a StatusCause: `FieldValueRequired`.
[[nodiscard]] std::string_view cause_reason(FieldErrorCode code);
/// `spec.x: Invalid value: …`.
[[nodiscard]] std::string to_string(const FieldError& error);

}  // namespace muster::webhook
