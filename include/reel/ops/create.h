#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include <reel/tensor.h>

namespace reel {

struct TensorOptions {
  DType dtype = DType::f32;
  Device device = cpu;
};

/// A tensor of zeros.
Tensor zeros(const Shape& shape, TensorOptions options = {}, Location where = Location::here());
/// A tensor of ones.
Tensor ones(const Shape& shape, TensorOptions options = {}, Location where = Location::here());
/// A tensor with every element `value`, a plain number.
Tensor full(const Shape& shape, const Arg& value, TensorOptions options = {});
/// 0, 1, …, count − 1.
Tensor arange(std::int64_t count, TensorOptions options = {.dtype = DType::i64}, Location where = Location::here());

/// Zeros in the shape, dtype and device of another tensor.
Tensor zeros_like(const Arg& x);
/// Ones in the shape, dtype and device of another tensor.
Tensor ones_like(const Arg& x);

namespace detail {
Tensor copy_in(const void* elements, std::size_t count, DType dtype, const Shape& shape, Location where);
template <class T>
Tensor copy_in(const std::vector<T>& elements, const Shape& shape, Location where) {
  return copy_in(elements.data(), elements.size(), dtype_of<T>(), shape, where);
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
  requires(!std::is_same_v<T, bool>)
Tensor tensor(const std::vector<T>& values, Location where = Location::here()) {
  return detail::copy_in(values, {static_cast<std::int64_t>(values.size())}, where);
}
template <Element T>
  requires(!std::is_same_v<T, bool>)
Tensor tensor(const std::vector<T>& values, const Shape& shape, Location where = Location::here()) {
  return detail::copy_in(values, shape, where);
}
/// `tensor({1.f, 2.f})`: a vector.
template <Element T>
Tensor tensor(std::initializer_list<T> values, Location where = Location::here()) {
  return detail::copy_in(values.begin(), values.size(), dtype_of<T>(), {static_cast<std::int64_t>(values.size())},
                         where);
}
/// `tensor({{1.f, 2.f}, {3.f, 4.f}})`: a matrix, by rows. Throws: ShapeError unless the rows are equally long.
template <Element T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows, Location where = Location::here()) {
  std::size_t columns = rows.size() == 0 ? 0 : rows.begin()->size();
  std::vector<T> values;
  for (const auto& row : rows) {
    if (row.size() != columns) throw ShapeError("tensor: the rows are not equally long", where);
    values.insert(values.end(), row.begin(), row.end());
  }
  return detail::copy_in(values, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)}, where);
}

}  // namespace reel
