#include <reel/ops/matmul.h>

#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include <algorithm>

#include "../../core/op_error.h"
#include "../if_needed.h"

// Products of tensors that are composed of matmul and mul.

namespace reel {

using namespace detail;

namespace {

Tensor contracted(const Tensor& a, const Tensor& b, const Shape& axes_a, const Shape& axes_b, Location where) {
  const char* name = "tensordot";
  if (axes_a.rank() != axes_b.rank())
    fail<ShapeError>(name, where, "{} axes of a cannot be summed with {} of b: {}, {}", axes_a.rank(), axes_b.rank(),
                     to_string(axes_a), to_string(axes_b));
  unsigned set_a = check_axes(name, axes_a, a, where), set_b = check_axes(name, axes_b, b, where);
  check_same_device(name, a, b, where);
  if (a.rank() + b.rank() - 2 * axes_a.rank() > max_rank)
    fail<ShapeError>(name, where, "the result has {} axes, of a {} and b {}: there can be 8",
                     a.rank() + b.rank() - 2 * axes_a.rank(), to_string(a.shape()), to_string(b.shape()));
  std::int64_t inner = 1, rows = 1, columns = 1;
  Shape order_a, order_b, shape;
  for (int i = 0; i < a.rank(); ++i) {
    if (set_a >> i & 1) continue;
    order_a.push_back(i);
    shape.push_back(a.body().dims[i]);
    rows *= a.body().dims[i];
  }
  for (int k = 0; k < axes_a.rank(); ++k) {
    int of_a = static_cast<int>(axes_a[k]), of_b = static_cast<int>(axes_b[k]);
    if (a.size(of_a) != b.size(of_b))
      fail<ShapeError>(name, where, "axis {} of a {} and axis {} of b {} have different sizes", of_a,
                       to_string(a.shape()), of_b, to_string(b.shape()));
    inner *= a.size(of_a);
    order_a.push_back(of_a < 0 ? of_a + a.rank() : of_a);
    order_b.push_back(of_b < 0 ? of_b + b.rank() : of_b);
  }
  for (int i = 0; i < b.rank(); ++i) {
    if (set_b >> i & 1) continue;
    order_b.push_back(i);
    shape.push_back(b.body().dims[i]);
    columns *= b.body().dims[i];
  }
  OpScope caller(where, name);
  return reshape(matmul(reshape(permute(a, order_a), {rows, inner}), reshape(permute(b, order_b), {inner, columns})),
                 shape);
}

}  // namespace

Tensor tensordot(const Arg& a, const Arg& b, int count) {
  const Tensor &x = tensor_of("tensordot", a), &y = tensor_of("tensordot", b);
  if (count < 0 || count > x.rank() || count > y.rank())
    fail<ShapeError>("tensordot", a.location(), "{} axes cannot be summed over, of a {} and b {}", count,
                     to_string(x.shape()), to_string(y.shape()));
  Shape last, first;
  for (int k = 0; k < count; ++k) {
    last.push_back(x.rank() - count + k);
    first.push_back(k);
  }
  return contracted(x, y, last, first, a.location());
}

Tensor tensordot(const Arg& a, const Arg& b, const Shape& axes_a, const Shape& axes_b) {
  return contracted(tensor_of("tensordot", a), tensor_of("tensordot", b), axes_a, axes_b, a.location());
}

Tensor kron(const Arg& a, const Arg& b) {
  const Tensor &x = tensor_of("kron", a), &y = tensor_of("kron", b);
  check_same_device("kron", x, y, a.location());
  int rank = std::max(x.rank(), y.rank());
  if (2 * rank > max_rank)
    fail<ShapeError>("kron", a.location(), "takes up to {} axes, not a {} and b {}", max_rank / 2, to_string(x.shape()),
                     to_string(y.shape()));
  OpScope caller(a.location(), "kron");
  Shape left, right, shape;
  for (int i = 0; i < rank; ++i) {
    int of_x = i - (rank - x.rank()), of_y = i - (rank - y.rank());
    std::int64_t size_x = of_x < 0 ? 1 : x.size(of_x), size_y = of_y < 0 ? 1 : y.size(of_y);
    for (std::int64_t size : {size_x, std::int64_t{1}}) left.push_back(size);
    for (std::int64_t size : {std::int64_t{1}, size_y}) right.push_back(size);
    shape.push_back(size_x * size_y);
  }
  DType dtype = promote(x.dtype(), y.dtype());
  // Row-major operands, so that the product is row-major, too.
  auto factor = [&](const Tensor& t, const Shape& to) {
    return to_if_needed(reshape(contiguous_if_needed(t), to), dtype);
  };
  return reshape(factor(x, left) * factor(y, right), shape);
}

Tensor cross(const Arg& a, const Arg& b, int axis) {
  const Tensor &x = tensor_of("cross", a), &y = tensor_of("cross", b);
  Location where = a.location();
  check_same_device("cross", x, y, where);
  if (x.dtype() == DType::boolean && y.dtype() == DType::boolean)
    fail<DTypeError>("cross", where, "takes numbers, not bools; convert them with to(x, i32)");
  Shape shape;
  if (!broadcast(x.shape(), y.shape(), shape))
    fail<ShapeError>("cross", where, "shapes do not broadcast: a {}, b {}", to_string(x.shape()), to_string(y.shape()));
  OpScope caller(where, "cross");
  Tensor left = expand_if_needed(x, shape), right = expand_if_needed(y, shape);
  axis = check_axis("cross", axis, left, where);
  int behind = axis - shape.rank();
  bool fits = x.rank() >= -behind && y.rank() >= -behind;
  if (!fits || x.size(behind) != 3 || y.size(behind) != 3)
    fail<ShapeError>("cross", where, "a {} and b {} do not both have 3 elements along axis {}", to_string(x.shape()),
                     to_string(y.shape()), axis);
  return roll(left, -1, axis) * roll(right, -2, axis) - roll(left, -2, axis) * roll(right, -1, axis);
}

}  // namespace reel
