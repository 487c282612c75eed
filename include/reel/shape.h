#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include <reel/location.h>

namespace reel {

/// The most axes that a tensor can have.
inline constexpr int max_rank = 8;

/// A short list of integers held inline: sizes of a tensor, strides, or axes. At most 8 of them.
class Shape {
 public:
  /// An empty list: the shape of a tensor of rank 0.
  Shape() = default;
  /// A list of the given numbers: `Shape{2, 3}`. Throws: Error if there are more than 8.
  Shape(std::initializer_list<std::int64_t> sizes, Location where = Location::here())
      : Shape(std::span(sizes.begin(), sizes.size()), where) {}
  /// A list of the given numbers. Throws: Error if there are more than 8.
  Shape(std::span<const std::int64_t> sizes, Location where = Location::here());

  /// The count of numbers, in [0, 8].
  int rank() const { return static_cast<int>(rank_); }
  /// True if there is no number.
  bool empty() const { return rank_ == 0; }
  /// The product of the numbers; 1 for an empty list.
  std::int64_t numel() const;

  /// Number i; a negative index counts from the end. Throws: IndexError for an index out of range.
  std::int64_t operator[](int i) const { return sizes_[place(i)]; }
  /// Number i, to change it; a negative index counts from the end. Throws: IndexError for an index out of range.
  std::int64_t& operator[](int i) { return sizes_[place(i)]; }
  /// Adds a number at the end. Throws: Error if there are 8 already.
  void push_back(std::int64_t size, Location where = Location::here());

  /// A pointer to the first number.
  const std::int64_t* data() const { return sizes_; }
  /// A pointer to the first number.
  const std::int64_t* begin() const { return sizes_; }
  /// A pointer behind the last number.
  const std::int64_t* end() const { return sizes_ + rank_; }
  /// A pointer to the first number, to change it.
  std::int64_t* begin() { return sizes_; }
  /// A pointer behind the last number, to change those before.
  std::int64_t* end() { return sizes_ + rank_; }

  /// True if both lists have equal numbers in one order.
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

/// The shape as text: "(2, 3)", "(4,)", "()".
std::string to_string(const Shape& shape);

/// Broadcasts two shapes into `result`: sizes are aligned at the right, a size of 1 stretches. Returns false, with
/// `result` unspecified, if they do not broadcast.
/// Source: NumPy's broadcasting rules.
bool broadcast(const Shape& a, const Shape& b, Shape& result);

}  // namespace reel
