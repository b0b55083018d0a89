#include "webhook/field_error.hpp"

#include <fmt/format.h>

namespace muster::webhook {
namespace {

struct Words {
  std::string_view reason;
  std::string_view title;
};

Words words(FieldErrorCode code) {
  switch (code) {
    case FieldErrorCode::kRequired:
      return {"FieldValueRequired", "Required value"};
    case FieldErrorCode::kInvalid:
      return {"FieldValueInvalid", "Invalid value"};
    case FieldErrorCode::kDuplicate:
      return {"FieldValueDuplicate", "Duplicate value"};
    case FieldErrorCode::kNotSupported:
      return {"FieldValueNotSupported", "Unsupported value"};
    case FieldErrorCode::kTooMany:
      return {"FieldValueTooMany", "Too many"};
    case FieldErrorCode::kForbidden:
      return {"FieldValueForbidden", "Forbidden"};
  }
  return {"FieldValueInvalid", "Invalid value"};
}

}  // namespace

std::string_view cause_reason(FieldErrorCode code) {
  return words(code).reason;
}

std::string to_string(const FieldError& error) {
  return fmt::format("{}: {}: {}", error.path, words(error.code).title, error.message);
}

}  // namespace muster::webhook
