#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include <reel/location.h>

namespace reel {

/// The most dimensions a tensor can have.
inline constexpr int max_rank = 8;

/// A short list of integers held inline: sizes of a tensor, strides, or axes. At most 8 long.
class Shape {
 public:
  Shape() = default;
  /// Throws: Error if there are more than 8.
  Shape(std::initializer_list<std::int64_t> sizes, Location where = Location::here())
      : Shape(std::span(sizes.begin(), sizes.size()), where) {}
  Shape(std::span<const std::int64_t> sizes, Location where = Location::here());

  int rank() const { return static_cast<int>(rank_); }
  bool empty() const { return rank_ == 0; }
  /// The product of the sizes; 1 for rank 0.
  std::int64_t numel() const;

  /// Negative numbers count from the end. Throws: IndexError for one out of range.
  std::int64_t operator[](int i) const { return sizes_[place(i)]; }
  std::int64_t& operator[](int i) { return sizes_[place(i)]; }
  /// Adds one size at the end. Throws: Error if there are 8 already.
  void push_back(std::int64_t size, Location where = Location::here());

  const std::int64_t* data() const { return sizes_; }
  const std::int64_t* begin() const { return sizes_; }
  const std::int64_t* end() const { return sizes_ + rank_; }
  std::int64_t* begin() { return sizes_; }
  std::int64_t* end() { return sizes_ + rank_; }

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::int64_t place(int i) const {
    if (i < 0) i += static_cast<int>(rank_);
    if (i < 0 || i >= rank_) throw_index();
    return i;
  }
  [[noreturn]] void throw_index() const;

  std::int64_t sizes_[max_rank] = {};
  std::int64_t rank_ = 0;
};

/// "(2, 3)", "(4,)", "()".
std::string to_string(const Shape& shape);

/// NumPy's broadcasting: sizes are aligned at the right, a size of 1 stretches. Returns false if they do not fit.
bool broadcast(const Shape& a, const Shape& b, Shape& result);

}  // namespace reel
