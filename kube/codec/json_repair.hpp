#pragma once
// JSON text that is bad for what it says, not for its syntax, made good in place. Text keeps its
// length; bad syntax stays bad.

#include <span>

namespace muster::kube {

/// Every byte that belongs to no well-formed character becomes '?'.
void repair_utf8(std::span<char> text);

/// The escape of half a surrogate pair becomes that of '?'.
void repair_surrogates(std::span<char> text);

/// Every number out of a double's range becomes null.
void repair_numbers(std::span<char> text);

}  // namespace muster::kube
