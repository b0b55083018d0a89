#pragma once
// A value that is read in many places and changed in none.

#include <memory>
#include <utility>

namespace muster {

/// Copies share the value, which nobody changes any more. Safe to copy from any thread. A default
/// one is T().
template <class T>
class Shared {
 public:
  Shared() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): it stands for the value.
  Shared(T value) : value_(std::make_shared<const T>(std::move(value))) {}

  [[nodiscard]] const T& operator*() const {
    static const T kDefault;
    return value_ ? *value_ : kDefault;
  }
  [[nodiscard]] const T* operator->() const { return &**this; }
  friend bool operator==(const Shared& a, const Shared& b) {
    return a.value_ == b.value_ || *a == *b;
  }

 private:
  std::shared_ptr<const T> value_;
};

}  // namespace muster
