#include <reel/ops/matmul.h>

#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include "../core/invoke.h"
#include "../core/kernel_table.h"
#include "../tape/gradient.h"
#include "operand.h"
#include "registry.h"

namespace reel {

using namespace detail;

// y = a b;  da = d bᵀ,  db = aᵀ d;  the walk sums broadcast leading axes

constexpr OpInfo matmul_op{
    .name = "matmul",
    .arity = 2,
    .batching = Batching::stack,
    .forward = [](Call& call) { kernels(call.output().device).matmul(call.output(), call.input(0), call.input(1)); },
    .gradient =
        [](Gradient& g) {
          const Tensor& d = g.output();
          if (g.wants(0)) g.give(0, matmul(d, transpose(g.saved_input(1))));
          if (g.wants(1)) g.give(1, matmul(transpose(g.saved_input(0)), d));
        },
    .saves_input_for = {inputs({1}), inputs({0})},
};

namespace {

[[noreturn]] void fail_inner(const Tensor& a, const Tensor& b, Location where) {
  fail<ShapeError>("matmul", where, "inner sizes differ: a {}, b {}", to_string(a.shape()), to_string(b.shape()));
}

// Both of rank 2 or more and of one dtype.
Tensor product(const Tensor& a, const Tensor& b, Location where) {
  const Body &x = a.body(), &y = b.body();
  if (x.dims[x.rank - 1] != y.dims[y.rank - 2]) fail_inner(a, b, where);
  // Many rows times one matrix are a single product.
  if (x.rank > 2 && y.rank == 2 && x.contiguous && x.numel != 0) {
    Shape shape = a.shape();
    Tensor rows = reshape(Arg(a, where), {-1, shape[x.rank - 1]});
    shape[x.rank - 1] = y.dims[1];
    return reshape(Arg(product(rows, b, where), where), shape);
  }
  Shape batch_a({x.dims, static_cast<std::size_t>(x.rank - 2)}),
      batch_b({y.dims, static_cast<std::size_t>(y.rank - 2)});
  Shape shape;
  if (!broadcast(batch_a, batch_b, shape))
    fail<ShapeError>("matmul", where, "leading axes do not broadcast: a {}, b {}", to_string(a.shape()),
                     to_string(b.shape()));
  shape.push_back(x.dims[x.rank - 2]);
  shape.push_back(y.dims[y.rank - 1]);
  return invoke(matmul_op, {&a, &b}, {shape, x.dtype, x.device}, where);
}

Tensor matmul_general(const Arg& a, const Arg& b) {
  Location where = a.location();
  DType dtype = promote(tensor_of("matmul", a).dtype(), tensor_of("matmul", b).dtype());
  Operand x("matmul", a, dtype, b), y("matmul", b, dtype, a);
  if (x->rank() == 0 || y->rank() == 0)
    fail<ShapeError>("matmul", where, "takes vectors and matrices: a {}, b {}; multiply by a number with *",
                     to_string(x->shape()), to_string(y->shape()));
  check_same_device("matmul", *x, *y, where);
  bool row = x->rank() == 1, column = y->rank() == 1;
  if (x->size(-1) != y->size(column ? 0 : -2)) fail_inner(*x, *y, where);
  Tensor left = row ? unsqueeze(Arg(*x, where), 0) : *x;
  Tensor right = column ? unsqueeze(Arg(*y, where), 1) : *y;
  Tensor result = product(left, right, where);
  if (column) result = squeeze(Arg(result, where), -1);
  if (row) result = squeeze(Arg(result, where), column ? -1 : -2);
  return result;
}

}  // namespace

Tensor matmul(const Arg& a, const Arg& b) {
  if (a.is_tensor() && b.is_tensor() && a.tensor()->defined() && b.tensor()->defined()) [[likely]] {
    const Body &x = a.tensor()->body(), &y = b.tensor()->body();
    if (x.dtype == y.dtype && x.rank >= 2 && y.rank >= 2 && x.device == y.device) [[likely]]
      return product(*a.tensor(), *b.tensor(), a.location());
  }
  return matmul_general(a, b);
}

std::span<const RegisteredOp> detail::matmul_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "matmul", .info = &matmul_op},
  };
  return ops;
}

}  // namespace reel
