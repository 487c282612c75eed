#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <reel/detail/immovable.h>

namespace reel::detail {

/// A list of fixed length that allocates memory only for more than nine elements.
template <class T>
class Few : Immovable {
 public:
  explicit Few(std::size_t size) : many_(size > room ? std::make_unique<T[]>(size) : nullptr), size_(size) {
    if (!many_) std::uninitialized_value_construct_n(few_, size);
  }
  ~Few() {
    if (!many_) std::destroy_n(few_, size_);
  }

  T* begin() { return many_ ? many_.get() : few_; }
  T* end() { return begin() + size_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return begin()[i]; }
  operator std::span<const T>() { return {begin(), size_}; }

 private:
  static constexpr std::size_t room = 9;
  union {
    T few_[room];  // the first `size_` are constructed, unless there are more
  };
  std::unique_ptr<T[]> many_;
  std::size_t size_;
};

}  // namespace reel::detail
