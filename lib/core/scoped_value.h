#pragma once

#include <utility>

#include <reel/detail/immovable.h>

namespace reel::detail {

/// Gives a variable another value while it lives.
template <class T>
class ScopedValue : Immovable {
 public:
  /// Only restores the value that the variable has now.
  explicit ScopedValue(T& variable) : variable_(variable), before_(variable) {}
  ScopedValue(T& variable, T value) : variable_(variable), before_(std::exchange(variable, value)) {}
  ~ScopedValue() { variable_ = before_; }

 private:
  T& variable_;
  T before_;
};

}  // namespace reel::detail
