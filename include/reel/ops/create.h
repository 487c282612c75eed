#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include <reel/tensor.h>

namespace reel {

/// Options of functions that create a tensor.
struct TensorOptions {
  DType dtype = DType::f32;          ///< default f32
  Device device = default_device();  ///< default: default_device()
};

/// A tensor of zeros.
/// Throws: ShapeError for a negative size.
Tensor zeros(const Shape& shape, TensorOptions options = {}, Location where = Location::here());
/// A tensor of ones.
/// Throws: ShapeError for a negative size.
Tensor ones(const Shape& shape, TensorOptions options = {}, Location where = Location::here());
/// A tensor with every element `value`, a plain number.
/// Throws: ShapeError for a negative size; DTypeError if `value` is a tensor, or the dtype cannot hold it.
Tensor full(const Shape& shape, const Arg& value, TensorOptions options = {});
/// Options of `arange`.
struct RangeOptions {
  /// The dtype; by default i64, or f32 if a given number is floating.
  std::optional<DType> dtype;
  Device device = default_device();  ///< default: default_device()
};

/// The numbers start, start + step, … before `stop`: ⌈(stop − start) / step⌉ of them, none if that is negative.
/// Floating ones are computed in f64 as start + i step, and rounded once; integers wrap around.
/// Throws: ShapeError for a step of 0, numbers that are not finite, or more than fit any memory; DTypeError for
/// tensors, for bool, or for floating numbers in an integer dtype.
/// Source: NumPy's arange.
Tensor arange(const Arg& start, const Arg& stop, const Arg& step = 1, RangeOptions options = {});
/// The numbers 0, 1, … before `stop`: ⌈stop⌉ of them.
/// Throws: ShapeError for a negative integer, a number that is not finite, or more numbers than fit any memory;
/// DTypeError for a tensor, for bool, or for a floating number in an integer dtype.
/// Source: NumPy's arange.
Tensor arange(const Arg& stop, RangeOptions options = {});
/// `count` evenly spaced numbers from start to stop; both ends are hit exactly. A single number is `start`.
/// Throws: ShapeError for a negative count or ends that are not finite; DTypeError unless the dtype is floating.
/// Source: NumPy's linspace.
Tensor linspace(double start, double stop, std::int64_t count, TensorOptions options = {},
                Location where = Location::here());

/// Options of `logspace`.
struct LogspaceOptions {
  double base = 10;                  ///< the base of the powers; default 10
  DType dtype = DType::f32;          ///< default f32
  Device device = default_device();  ///< default: default_device()
};

/// The powers base^e for `count` evenly spaced exponents e from start to stop, computed in f64 and rounded once. A
/// single number is base^start.
/// Throws: ShapeError for a negative count or ends that are not finite; DTypeError unless the dtype is floating.
/// Source: NumPy's logspace.
Tensor logspace(double start, double stop, std::int64_t count, LogspaceOptions options = {},
                Location where = Location::here());

/// Options of `eye` and `tri`.
struct DiagonalOptions {
  /// The number of columns; −1 (default): that of the rows.
  std::int64_t columns = -1;
  /// The index of the diagonal: 0 (default) is the main one, 1 the one above it, −1 the one below.
  std::int64_t diagonal = 0;
  DType dtype = DType::f32;          ///< default f32
  Device device = default_device();  ///< default: default_device()
};

/// A matrix (rows, columns) with ones on a diagonal, zeros elsewhere.
/// Throws: ShapeError for a negative size.
/// Source: NumPy's eye.
Tensor eye(std::int64_t rows, DiagonalOptions options = {}, Location where = Location::here());
/// A matrix (rows, columns) with ones on and below a diagonal, zeros above.
/// Throws: ShapeError for a negative size.
/// Source: NumPy's tri.
Tensor tri(std::int64_t rows, DiagonalOptions options = {}, Location where = Location::here());

/// y[…, c] = 1 where indices[…] = c, else 0; indices (…) of i32 or i64 → (…, classes), of `dtype`, by default i64.
/// Throws: IndexError for an index outside [0, classes); ShapeError for a negative number of classes, or indices of 8
/// axes; DTypeError for other indices.
/// Source: PyTorch's one_hot.
Tensor one_hot(const Arg& indices, std::int64_t classes, DType dtype = DType::i64);

/// Zeros in the shape and dtype, and on the device, of x.
Tensor zeros_like(const Arg& x);
/// Ones in the shape and dtype, and on the device, of x.
Tensor ones_like(const Arg& x);
/// A tensor in the shape and dtype, and on the device, of x with every element `value`, a plain number.
/// Throws: DTypeError if `value` is a tensor, or the dtype cannot hold it.
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

/// A number, or a list of numbers or lists, in braces: what `tensor({{1, 2.5}, {3, 4}})` is given.
class NestedNumbers {
 public:
  /// A number.
  template <class T>
    requires std::is_arithmetic_v<T>
  NestedNumbers(T number)
      : floating_(static_cast<double>(number)), integer_(integer_of(number)), dtype_(dtype_of_number<T>()) {}
  /// A list.
  NestedNumbers(std::initializer_list<NestedNumbers> parts) : parts_(parts), is_list_(true) {}

 private:
  friend struct NestedNumbersReader;
  template <class T>
  static std::int64_t integer_of(T number) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<std::int64_t>(number);
    else
      return 0;
  }
  template <class T>
  static constexpr DType dtype_of_number() {
    if constexpr (std::is_floating_point_v<T>)
      return std::is_same_v<T, float> ? DType::f32 : DType::f64;
    else if constexpr (std::is_same_v<T, bool>)
      return DType::boolean;
    else
      return sizeof(T) > 4 || (sizeof(T) == 4 && std::is_unsigned_v<T>) ? DType::i64 : DType::i32;
  }

  std::vector<NestedNumbers> parts_;
  double floating_ = 0;
  std::int64_t integer_ = 0;
  DType dtype_ = DType::f32;
  bool is_list_ = false;
};

/// Options of `tensor`.
struct LiteralOptions {
  /// The dtype; by default that of the numbers, as C++ converts them to one type.
  std::optional<DType> dtype = {};
  Device device = default_device();  ///< default: default_device()
};

namespace detail {
Tensor with_options(const Tensor& values, const LiteralOptions& options, Location where);
}  // namespace detail

/// A tensor of the numbers in braces, nested to any depth up to 8: `tensor({{1, 2.5}, {3, 4}})` is f64 of shape (2, 2),
/// since 2.5 is a double, and `tensor({1, 2}, {.dtype = bf16})` has the dtype that is given. A single number gives a
/// tensor without axes.
/// Throws: ShapeError unless lists beside each other have one shape, and for more than 8 axes; DTypeError for floating
/// numbers in an integer dtype.
/// Source: PyTorch's torch.tensor.
Tensor tensor(const NestedNumbers& numbers, const LiteralOptions& options = {}, Location where = Location::here());

/// A tensor on the default device with a copy of `values`, in row-major order, in the given shape. The dtype is that of
/// T.
/// Throws: ShapeError unless there are as many values as elements.
template <Element T>
Tensor tensor(std::span<const T> values, const Shape& shape, Location where = Location::here()) {
  return detail::copy_in(values.data(), values.size(), dtype_of<T>(), shape, where);
}
/// A vector on the default device with a copy of `values`. The dtype is that of T.
template <Element T>
Tensor tensor(std::span<const T> values, Location where = Location::here()) {
  return tensor(values, {static_cast<std::int64_t>(values.size())}, where);
}
/// A tensor on the default device with a copy of `values`, in row-major order, in the given shape. The dtype is that of
/// T.
/// Throws: ShapeError unless there are as many values as elements.
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
/// A vector on the default device with a copy of `values`. The dtype is that of T.
template <Element T>
Tensor tensor(const std::vector<T>& values, Location where = Location::here()) {
  return tensor(values, {static_cast<std::int64_t>(values.size())}, where);
}
/// A tensor with a copy of `values`, in row-major order, in the given shape and, unless none is given, dtype.
/// Throws: ShapeError unless there are as many values as elements; DTypeError for floating values in an integer dtype.
template <Element T>
Tensor tensor(const std::vector<T>& values, const Shape& shape, const LiteralOptions& options,
              Location where = Location::here()) {
  return detail::with_options(tensor(values, shape, where), options, where);
}
/// A vector with a copy of `values`, in the dtype that is given.
/// Throws: DTypeError for floating values in an integer dtype.
template <Element T>
Tensor tensor(const std::vector<T>& values, const LiteralOptions& options, Location where = Location::here()) {
  return detail::with_options(tensor(values, where), options, where);
}
/// A vector on the default device: `tensor({1.f, 2.f})`. The dtype is that of T.
template <Element T>
Tensor tensor(std::initializer_list<T> values, Location where = Location::here()) {
  return tensor(std::span<const T>(values.begin(), values.size()), where);
}
/// A matrix on the default device, by rows: `tensor({{1.f, 2.f}, {3.f, 4.f}})`. The dtype is that of T.
/// Throws: ShapeError unless the rows are equally long.
template <Element T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows, Location where = Location::here()) {
  std::vector<T> values;
  std::int64_t columns = detail::append_rows(values, rows, where);
  return tensor(values, {static_cast<std::int64_t>(rows.size()), columns}, where);
}
/// A tensor of rank 3 on the default device, by matrices: `tensor({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}})`. The dtype is
/// that of T.
/// Throws: ShapeError unless the matrices have one shape.
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
