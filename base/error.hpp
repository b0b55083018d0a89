#pragma once
// Operating errors: anything that input, the network or the API server can cause.
// A domain outcome (a workload that does not fit) is a value of its own, never an Error.

#include <string>
#include <string_view>

namespace muster {

/// What kind of failure it is; callers branch on this, people read the message.
enum class ErrorCode {
  kInvalidArgument,  ///< Malformed input: bytes, JSON, YAML, a quantity, a flag.
  kNotFound,         ///< HTTP 404, or a file that does not exist.
  kConflict,         ///< HTTP 409: a stale resourceVersion, or the object exists already.
  kGone,             ///< HTTP 410: the watch position is too old; list again.
  kForbidden,        ///< HTTP 401 or 403.
  kTooLarge,         ///< A body, header or nesting above its limit.
  kTooManyRequests,  ///< HTTP 429; retry after the server's hint.
  kUnavailable,      ///< Connection refused, reset, TLS failure, HTTP 5xx.
  kDeadline,         ///< No answer within the time limit.
  kInternal,         ///< A fault of ours.
};

[[nodiscard]] std::string_view to_string(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  /// Lower case, the place first, what came and what was wanted:
  /// `nodes[3].status.capacity.cpu: bad quantity "1O" (want e.g. "500m")`.
  std::string message;

  /// The same error with a place in front: `<where>: <message>`.
  [[nodiscard]] Error with_context(std::string_view where) const {
    return Error{code, std::string(where) + ": " + message};
  }
  bool operator==(const Error&) const = default;
};

[[nodiscard]] inline Error invalid_argument(std::string message) {
  return Error{ErrorCode::kInvalidArgument, std::move(message)};
}

}  // namespace muster
