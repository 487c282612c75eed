#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include <reel/tensor.h>

// x(2, slice(1, -1), newaxis, ellipsis): what `Tensor::operator()` takes and returns.

namespace reel {

/// Elements start, start + step, … before `stop` of an axis; an end that is left out is that of the axis.
struct Slice {
  std::optional<std::int64_t> start = {}, stop = {};
  std::int64_t step = 1;
};

namespace detail {

template <class T>
concept IndexInteger = std::integral<T> && !std::same_as<T, bool>;
template <class T>
concept SliceEnd = IndexInteger<T> || std::same_as<T, std::nullopt_t>;

/// Integers beyond std::int64_t are cut to its largest: beyond every axis.
template <IndexInteger T>
constexpr std::int64_t index_number(T number) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  return std::cmp_greater(number, most) ? most : static_cast<std::int64_t>(number);
}
constexpr std::optional<std::int64_t> slice_end(std::nullopt_t) { return {}; }
constexpr std::optional<std::int64_t> slice_end(IndexInteger auto number) { return index_number(number); }

}  // namespace detail

/// `slice(1, -1)`, `slice(0, 9, 2)`, `slice(1)` from 1 on, `slice()` all, `slice(std::nullopt, std::nullopt, -1)`
/// backwards: as Python's start:stop:step. Negative ends count from the end; ends beyond the axis are cut.
template <detail::SliceEnd Start = std::nullopt_t, detail::SliceEnd Stop = std::nullopt_t,
          detail::IndexInteger Step = int>
constexpr Slice slice(Start start = std::nullopt, Stop stop = std::nullopt, Step step = 1) {
  return {detail::slice_end(start), detail::slice_end(stop), detail::index_number(step)};
}

/// A new axis of size 1.
inline constexpr struct NewAxis {
  explicit NewAxis() = default;
} newaxis{};

/// As many whole axes as the other indices leave over.
inline constexpr struct Ellipsis {
  explicit Ellipsis() = default;
} ellipsis{};

/// One of the indices between the parentheses of `x(…)`: an integer, which drops its axis, a slice, `newaxis` or
/// `ellipsis`.
class Index {
 public:
  enum class Kind : std::uint8_t { missing, integer, slice, newaxis, ellipsis };

  constexpr Index() = default;
  template <detail::IndexInteger T>
  constexpr Index(T number) : kind_(Kind::integer), slice_{.start = detail::index_number(number)} {}
  constexpr Index(const Slice& range) : kind_(Kind::slice), slice_(range) {}
  constexpr Index(NewAxis) : kind_(Kind::newaxis) {}
  constexpr Index(Ellipsis) : kind_(Kind::ellipsis) {}

  Kind kind() const { return kind_; }
  /// Of an integer.
  std::int64_t number() const { return slice_.start.value_or(0); }
  /// Of a slice.
  const Slice& slice() const { return slice_; }

 private:
  Kind kind_ = Kind::missing;
  Slice slice_;  // an integer is its start
};

class Indexed;

namespace detail {

/// What becomes of one axis, or a new one.
struct AxisPart {
  enum Kind : std::int64_t { range, picked, added };
  std::int64_t kind, start, count, step;
};

/// One for each axis, up to the last that is not kept whole.
struct AxisParts {
  AxisParts() = default;
  AxisParts(const AxisParts& other) : count(other.count) {
    for (int i = 0; i < count; ++i) parts[i] = other.parts[i];
  }
  AxisParts& operator=(const AxisParts&) = delete;

  static constexpr int most = 2 * max_rank;
  AxisPart parts[most];
  int count = 0;
};

void assign(const Indexed& part, const Arg& y);

}  // namespace detail

/// What `x(…)` gives: a view, which also keeps the tensor that it shows a part of.
class Indexed : public Tensor {
 public:
  Indexed(Tensor view, Tensor base, const detail::AxisParts& parts)
      : Tensor(std::move(view)), base_(std::move(base)), parts_(parts) {}
  Indexed(const Indexed&) = default;
  Indexed(Indexed&&) = default;

  /// `x(1, slice(2)) = y` writes y, a tensor or a number that broadcasts, into x, through which gradients then flow to
  /// y: see copy_. Assigning to a named part could as well mean to name another one: copy_(part, y) writes, another
  /// name names.
  void operator=(const Arg& y) && { detail::assign(*this, y); }
  Indexed& operator=(const Arg& y) & = delete;
  Indexed& operator=(const Indexed& other) & = delete;

  const Tensor& base() const { return base_; }
  /// What the part is of the base; for the library's own use.
  const detail::AxisParts& parts() const { return parts_; }

 private:
  Tensor base_;
  detail::AxisParts parts_;
};

}  // namespace reel
