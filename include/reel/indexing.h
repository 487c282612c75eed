#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include <reel/tensor.h>

/// \file
/// The indices that `Tensor::operator()` takes, and the part that it returns: x(2, slice(1, -1), newaxis, ellipsis),
/// x(mask), x(i, j).

namespace reel {

/// A range of an axis: the elements start, start + step, … before `stop`. Made by `slice`.
struct Slice {
  std::optional<std::int64_t> start = {},  ///< default: the first element, or the last for a negative step
      stop = {};                           ///< default: the end of the axis, or its beginning for a negative step
  std::int64_t step = 1;                   ///< not 0; negative: backwards
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

/// A range of an axis: `slice(1, -1)`, `slice(0, 9, 2)`, `slice(1)` from 1 on, `slice()` all, `slice(std::nullopt,
/// std::nullopt, -1)` backwards. Negative ends count from the end; ends beyond the axis are cut.
/// Source: Python's start:stop:step.
template <detail::SliceEnd Start = std::nullopt_t, detail::SliceEnd Stop = std::nullopt_t,
          detail::IndexInteger Step = int>
constexpr Slice slice(Start start = std::nullopt, Stop stop = std::nullopt, Step step = 1) {
  return {detail::slice_end(start), detail::slice_end(stop), detail::index_number(step)};
}

/// The type of `newaxis`, an index that adds an axis of size 1.
inline constexpr struct NewAxis {
  /// Only `newaxis` is made by it.
  explicit NewAxis() = default;
} newaxis{};  ///< the index that adds an axis of size 1

/// The type of `ellipsis`, an index that stands for the remaining axes, which are kept whole.
inline constexpr struct Ellipsis {
  /// Only `ellipsis` is made by it.
  explicit Ellipsis() = default;
} ellipsis{};  ///< the index that stands for the remaining axes, which are kept whole

/// One of the indices between the parentheses of `x(…)`: an integer, which drops its axis, a slice, `newaxis`,
/// `ellipsis`, a mask or a tensor of indices.
class Index {
 public:
  /// The kind of an index; `missing` for an argument of `x(…)` that is not given.
  enum class Kind : std::uint8_t { missing, integer, slice, newaxis, ellipsis, tensor };

  /// An index that is not given.
  constexpr Index() = default;
  /// An integer, which selects one element of its axis and drops the axis; negative ones count from the end.
  template <detail::IndexInteger T>
  constexpr Index(T number) : kind_(Kind::integer), slice_{.start = detail::index_number(number)} {}
  /// A range of the axis.
  constexpr Index(const Slice& range) : kind_(Kind::slice), slice_(range) {}
  /// A new axis of size 1.
  constexpr Index(NewAxis) : kind_(Kind::newaxis) {}
  /// The remaining axes, whole.
  constexpr Index(Ellipsis) : kind_(Kind::ellipsis) {}
  /// A mask, a bool tensor over as many axes as it has, or indices of one axis, i32 or i64. The tensor must outlive the
  /// call of `x(…)`.
  constexpr Index(const Tensor& tensor) : kind_(Kind::tensor), tensor_(&tensor) {}

  /// The kind of the index.
  Kind kind() const { return kind_; }
  /// The integer; 0 for an index without one.
  std::int64_t number() const { return slice_.start.value_or(0); }
  /// The range; meaningless unless the index is a slice.
  const Slice& slice() const { return slice_; }
  /// The mask or the tensor of indices; null for another kind.
  const Tensor* tensor() const { return tensor_; }

 private:
  Kind kind_ = Kind::missing;
  const Tensor* tensor_ = nullptr;
  Slice slice_;  // an integer is its start
};

class Indexed;

namespace detail {

/// The part that an index takes of one axis, or an axis that it adds.
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

/// The elements that masks and tensors of indices select.
struct Selection;

void assign(const Indexed& part, const Arg& y);

}  // namespace detail

/// The part that `x(…)` returns, a view, or with masks or tensors of indices a copy, which also keeps the tensor x, so
/// that it can be assigned to.
class Indexed : public Tensor {
 public:
  /// A view of a part of `base`, or a copy of the elements of the selection in that part; for the library's own use.
  Indexed(Tensor elements, Tensor base, const detail::AxisParts& parts,
          std::shared_ptr<const detail::Selection> selection = {})
      : Tensor(std::move(elements)), base_(std::move(base)), parts_(parts), selection_(std::move(selection)) {}
  /// Another handle of the view.
  Indexed(const Indexed&) = default;
  /// Takes over the handle.
  Indexed(Indexed&&) = default;

  /// Writes y, a tensor or a number that broadcasts, into x: `x(1, slice(2)) = y`, `x(mask) = 0`, `x(i, j) = y`.
  /// Gradients then flow through x to y; see copy_. The last of several values for one position, in row-major order, is
  /// taken. A named part cannot be assigned to, since that could also mean to rebind the name: write with copy_(part,
  /// y).
  /// Throws: ShapeError unless y broadcasts to the part; DTypeError for a plain integer that x cannot hold; DeviceError
  /// for operands on different devices; TapeError for a parameter, while a tape records.
  void operator=(const Arg& y) && {  // NOLINT(readability-make-member-function-const): writes into the elements
    detail::assign(*this, y);
  }
  /// Deleted: write into a named part with copy_(part, y).
  Indexed& operator=(const Arg& y) & = delete;
  /// Deleted: write into a named part with copy_(part, y).
  Indexed& operator=(const Indexed& other) & = delete;

  /// The tensor of which this is a part.
  const Tensor& base() const { return base_; }
  /// The part of each axis of the base; for the library's own use.
  const detail::AxisParts& parts() const { return parts_; }
  /// The elements of the part that masks and tensors of indices select; null for a view; for the library's own use.
  const detail::Selection* selection() const { return selection_.get(); }

 private:
  Tensor base_;
  detail::AxisParts parts_;
  std::shared_ptr<const detail::Selection> selection_;
};

}  // namespace reel
