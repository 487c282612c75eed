#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <reel/tensor.h>

namespace reel {

struct TensorOptions {
  DType dtype = DType::f32;
  Device device = default_device();
};

/// A tensor of zeros.
Tensor zeros(const Shape& shape, TensorOptions options = {}, Location where = Location::here());
/// A tensor of ones.
Tensor ones(const Shape& shape, TensorOptions options = {}, Location where = Location::here());
/// A tensor with every element `value`, a plain number.
Tensor full(const Shape& shape, const Arg& value, TensorOptions options = {});
struct RangeOptions {
  /// By default i64, or f32 if a number that is given is floating.
  std::optional<DType> dtype;
  Device device = default_device();
};

/// start, start + step, … before `stop`: ⌈(stop − start) / step⌉ numbers, none if that is negative. Floating ones are
/// worked out in f64 as start + i step, and rounded once; integers wrap around.
/// Throws: ShapeError for a step of 0, numbers that are not finite, or more than fit any memory; DTypeError for bool, or
/// floating numbers in an integer dtype. Source: NumPy's arange.
Tensor arange(const Arg& start, const Arg& stop, const Arg& step = 1, RangeOptions options = {});
/// 0, 1, … before `stop`. Throws: ShapeError for a negative integer.
Tensor arange(const Arg& stop, RangeOptions options = {});
/// `count` numbers, evenly apart, from start to stop; both ends are hit exactly. Of one number there is `start`.
/// Throws: ShapeError for a negative count or ends that are not finite; DTypeError unless floating.
Tensor linspace(double start, double stop, std::int64_t count, TensorOptions options = {},
                Location where = Location::here());

struct DiagonalOptions {
  /// −1: as many as rows.
  std::int64_t columns = -1;
  /// 0 is the main diagonal, 1 the one above it, −1 the one below.
  std::int64_t diagonal = 0;
  DType dtype = DType::f32;
  Device device = default_device();
};

/// A matrix with ones on a diagonal, zeros elsewhere. Throws: ShapeError for a negative size.
Tensor eye(std::int64_t rows, DiagonalOptions options = {}, Location where = Location::here());
/// A matrix with ones on and below a diagonal, zeros above. Throws: ShapeError for a negative size. Source: NumPy's tri.
Tensor tri(std::int64_t rows, DiagonalOptions options = {}, Location where = Location::here());

/// y[…, c] = 1 where indices[…] = c, else 0; indices (…) of i32 or i64 → (…, classes).
/// Throws: IndexError for an index outside [0, classes); ShapeError for a negative number of classes.
/// Source: PyTorch's one_hot.
Tensor one_hot(const Arg& indices, std::int64_t classes, DType dtype = DType::i64);

// In the shape, dtype and device of another tensor.

/// Zeros.
Tensor zeros_like(const Arg& x);
/// Ones.
Tensor ones_like(const Arg& x);
/// Every element `value`, a plain number.
Tensor full_like(const Arg& x, const Arg& value);

namespace detail {
Tensor copy_in(const void* elements, std::size_t count, DType dtype, const Shape& shape, Location where);
template <class T>
Tensor copy_in(const std::vector<T>& elements, const Shape& shape, Location where) {
  return copy_in(elements.data(), elements.size(), dtype_of<T>(), shape, where);
}
/// Adds the rows to `values`; returns how long each is.
template <class T>
std::int64_t append_rows(std::vector<T>& values, std::initializer_list<std::initializer_list<T>> rows, Location where) {
  std::size_t columns = rows.size() == 0 ? 0 : rows.begin()->size();
  for (const auto& row : rows) {
    if (row.size() != columns) throw ShapeError("tensor: the rows are not equally long", where);
    values.insert(values.end(), row.begin(), row.end());
  }
  return static_cast<std::int64_t>(columns);
}
}  // namespace detail

/// A copy of `values`, in row-major order, in the given shape. The dtype is that of T.
/// Throws: ShapeError unless the counts agree.
template <Element T>
Tensor tensor(std::span<const T> values, const Shape& shape, Location where = Location::here()) {
  return detail::copy_in(values.data(), values.size(), dtype_of<T>(), shape, where);
}
/// A copy of `values`: a vector, or in the given shape.
template <Element T>
Tensor tensor(std::span<const T> values, Location where = Location::here()) {
  return tensor(values, {static_cast<std::int64_t>(values.size())}, where);
}
template <Element T>
Tensor tensor(const std::vector<T>& values, const Shape& shape, Location where = Location::here()) {
  if constexpr (std::is_same_v<T, bool>) {
    // Its bools are packed.
    auto unpacked = std::make_unique<bool[]>(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) unpacked[i] = values[i];
    return tensor(std::span<const bool>(unpacked.get(), values.size()), shape, where);
  } else {
    return detail::copy_in(values, shape, where);
  }
}
template <Element T>
Tensor tensor(const std::vector<T>& values, Location where = Location::here()) {
  return tensor(values, {static_cast<std::int64_t>(values.size())}, where);
}
/// `tensor({1.f, 2.f})`: a vector.
template <Element T>
Tensor tensor(std::initializer_list<T> values, Location where = Location::here()) {
  return tensor(std::span<const T>(values.begin(), values.size()), where);
}
/// `tensor({{1.f, 2.f}, {3.f, 4.f}})`: a matrix, by rows. Throws: ShapeError unless the rows are equally long.
template <Element T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows, Location where = Location::here()) {
  std::vector<T> values;
  std::int64_t columns = detail::append_rows(values, rows, where);
  return tensor(values, {static_cast<std::int64_t>(rows.size()), columns}, where);
}
/// `tensor({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}})`: matrices, one behind the other. Throws: ShapeError unless they are of
/// one shape.
template <Element T>
Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> matrices,
              Location where = Location::here()) {
  std::vector<T> values;
  Shape shape{static_cast<std::int64_t>(matrices.size()), 0, 0};
  for (const auto& rows : matrices) {
    Shape one{shape[0], static_cast<std::int64_t>(rows.size()), detail::append_rows(values, rows, where)};
    if (&rows != matrices.begin() && one != shape) throw ShapeError("tensor: the matrices are not of one shape", where);
    shape = one;
  }
  return tensor(values, shape, where);
}

}  // namespace reel
