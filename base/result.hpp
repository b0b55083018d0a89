#pragma once
// The only place that names tl::expected; std::expected needs C++23.

#include "base/error.hpp"

#include <tl/expected.hpp>

namespace muster {

/// A value or an operating error.
template <class T>
using Result = tl::expected<T, Error>;

/// An error on its way into any Result: `return fail(ErrorCode::kGone, "…");`
[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}
[[nodiscard]] inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace muster
