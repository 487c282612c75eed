#include <reel/ops/matmul.h>

#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include <cmath>

#include "../../core/parameter_version.h"
#include "../../dispatch/autocast.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../kernels/linear_algebra.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../operand.h"
#include "../registry.h"
#include "multiplications.h"
#include "transposed_matrix.h"
#include "transposed_product.h"

namespace reel {

using namespace detail;

namespace {

// a bᵀ of matrices, for gradients that are not differentiated: it needs no tensor for bᵀ.
constexpr OpInfo matmul_transposed_op{
    .name = "matmul_transposed",
    .forward =
        [](Call& call) {
          const Body& b = call.input(1);
          count_products(call.output(), b.dims[1]);
          kernels(call.output().device).matmul(call.output(), call.input(0), TransposedMatrix(b).view(), version_of(b));
        },
    .internal = true,
};

}  // namespace

Tensor detail::times_transposed(const Gradient& g, const Tensor& a, const Tensor& b) {
  if (g.recording() || a.rank() != 2 || b.rank() != 2) return matmul(a, transpose(b));
  const Body &x = a.body(), &y = b.body();
  return invoke(matmul_transposed_op, {&a, &b}, {{x.dims[0], y.dims[0]}, x.dtype, x.device}, g.where());
}

namespace {

// Accumulates the gradients of the factors a and b, which are the inputs `a` and `a` + 1.
void accumulate_matrix_factors(Gradient& g, int a) {
  const Tensor& d = g.output();
  auto left = static_cast<std::size_t>(a), right = left + 1;
  // A weight on the left, W x, is often multiplied by few columns.
  if (g.wants(left) && d.rank() == 2 && g.defers(left, d.size(1)))
    g.accumulate_transposed_product(left, transpose(d), transpose(g.saved_input(a + 1)));
  else if (g.wants(left))
    g.accumulate(left, times_transposed(g, d, g.saved_input(a + 1)));
  if (g.wants(right)) g.accumulate_transposed_product(right, g.saved_input(a), d);
}

}  // namespace

namespace {

// Rows of several calls times one matrix are one product; other matrices are stacked.
Joining joining_of_product(const Call& call) {
  int rank = call.input(0).rank;
  if (rank != call.input(1).rank || rank == max_rank) return {};
  if (rank > 2) return {.by = Joining::By::stacked, .broadcasts = true};
  return {.by = Joining::By::rows, .shared = inputs({1}), .or_stacked = true, .broadcasts = true};
}

}  // namespace

// y = a b;  da = d bᵀ,  db = aᵀ d;  the backward pass sums broadcast leading axes

constexpr OpInfo matmul_op{
    .name = "matmul",
    .forward =
        [](Call& call) {
          const Body& b = call.input(1);
          count_products(call.output(), b.dims[b.rank - 2]);
          kernels(call.output().device).matmul(call.output(), call.input(0), b, version_of(b));
        },
    .gradient = [](Gradient& g) { accumulate_matrix_factors(g, 0); },
    .saves_input_for = {inputs({1}), inputs({0})},
    .precision = Precision::low,
    .joining = joining_of_product,
    .shares_weight = true,
};

namespace {

[[noreturn]] void fail_inner(const char* op, const Tensor& a, const Tensor& b, Location where) {
  fail<ShapeError>(op, where, "inner sizes differ: a {}, b {}", to_string(a.shape()), to_string(b.shape()));
}

// Multiplies two tensors of rank 2 or more and of one dtype.
Tensor product(const Tensor& a, const Tensor& b, Location where) {
  const Body &x = a.body(), &y = b.body();
  if (x.dims[x.rank - 1] != y.dims[y.rank - 2]) fail_inner("matmul", a, b, where);
  if (x.rank == 2 && y.rank == 2) [[likely]]
    return invoke(matmul_op, {&a, &b}, {{x.dims[0], y.dims[1]}, x.dtype, x.device}, where);
  // Many rows times one matrix are a single product. A copy of the rows takes little time beside eight columns.
  if (x.rank > 2 && y.rank == 2 && (x.contiguous || y.dims[1] >= 8) && x.numel != 0) {
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

// If an operand is f64 the product is: autocast rounds nothing beforehand.
Precision precision_for(std::initializer_list<const Arg*> operands) {
  for (const Arg* operand : operands)
    if (operand->is_tensor() && operand->tensor()->defined() && operand->tensor()->dtype() == DType::f64)
      return Precision::promoted;
  return Precision::low;
}

Tensor matmul_general(const Arg& given_a, const Arg& given_b) {
  Precision precision = precision_for({&given_a, &given_b});
  const AutocastArg a(precision, given_a), b(precision, given_b);
  Location where = given_a.location();
  DType dtype = promote(tensor_of("matmul", a).dtype(), tensor_of("matmul", b).dtype());
  Operand x("matmul", a, dtype, b), y("matmul", b, dtype, a);
  if (x->rank() == 0 || y->rank() == 0)
    fail<ShapeError>("matmul", where, "takes vectors and matrices: a {}, b {}; multiply by a number with *",
                     to_string(x->shape()), to_string(y->shape()));
  check_same_device("matmul", *x, *y, where);
  bool row = x->rank() == 1, column = y->rank() == 1;
  if (x->size(-1) != y->size(column ? 0 : -2)) fail_inner("matmul", *x, *y, where);
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

// bmm: matmul with stricter checks

Tensor bmm(const Arg& a, const Arg& b) {
  const Tensor &x = tensor_of("bmm", a), &y = tensor_of("bmm", b);
  Location where = a.location();
  if (x.rank() != 3 || y.rank() != 3)
    fail<ShapeError>("bmm", where, "takes tensors of rank 3, not a {}, b {}; matmul takes any", to_string(x.shape()),
                     to_string(y.shape()));
  if (x.size(0) != y.size(0))
    fail<ShapeError>("bmm", where, "batch sizes differ: a {}, b {}; matmul broadcasts", to_string(x.shape()),
                     to_string(y.shape()));
  if (x.size(2) != y.size(1)) fail_inner("bmm", x, y, where);
  check_same_device("bmm", x, y, where);
  return matmul(a, b);
}

// addmm: y = beta c + alpha a b, composed of cheap ops unless both factors are 1, as in a linear layer, and where the CPU
// multiplies halves: its kernels would round the product before the sum. An activation is not fused with it, which would
// gain 0.2 % at most: see "Products" in tools/benchmark/README.md.

constexpr OpInfo addmm_op{
    .name = "addmm",
    .forward =
        [](Call& call) {
          const Body &y = call.output(), &c = call.input(0);
          const KernelTable& table = kernels(y.device);
          std::int64_t strides[2] = {};
          for (int i = 0; i < c.rank; ++i)
            if (c.dims[i] != 1) strides[2 - c.rank + i] = c.strides[i];
          View repeated = y;
          repeated.data = c.data;
          repeated.strides = strides;
          repeated.contiguous = strides[0] == y.strides[0] && strides[1] == y.strides[1];
          count_products(y, call.input(2).dims[0]);
          if (table.linear_algebra->addmm)
            return table.linear_algebra->addmm(y, repeated, call.input(1), call.input(2));
          table.matmul(y, call.input(1), call.input(2), version_of(call.input(2)));
          table.binary[binary_place<formulas::Add>](y, y, repeated);
        },
    .gradient =
        [](Gradient& g) {
          if (g.wants(0)) g.accumulate(0, g.output());
          accumulate_matrix_factors(g, 1);
        },
    .saves_input_for = {0, inputs({2}), inputs({1})},
    .joining = [](const Call& call) -> Joining {
      const Body &c = call.input(0), &a = call.input(1);
      if (c.rank == 2 && c.dims[0] == a.dims[0]) return {.by = Joining::By::rows, .shared = inputs({2})};
      if (c.rank == 1 && a.dims[0] == 1) return {.by = Joining::By::rows, .shared = inputs({2}), .single = inputs({0})};
      return {.by = Joining::By::rows, .shared = inputs({0, 2})};
    },
    .shares_weight = true,
};

namespace {

void check_factor(double factor, DType dtype, Location where) {
  if (is_floating(dtype) || factor == 1) return;
  if (dtype == DType::boolean)
    fail<DTypeError>("addmm", where, "bools are not multiplied by {}; convert them with to(x, i64)", factor);
  // Beyond 2^53 every double is a whole number, whatever was meant.
  if (factor != std::trunc(factor) || std::abs(factor) > 0x1p53)
    fail<DTypeError>("addmm", where, "{} is no whole number, which {} operands need", factor, name_of(dtype));
  check_fits("addmm", Arg(static_cast<std::int64_t>(factor), where.file, where.line), dtype);
}

Tensor scaled(const Tensor& x, double factor) {
  if (factor == 1) return x;
  return is_floating(x.dtype()) ? mul(x, factor) : mul(x, static_cast<std::int64_t>(factor));
}

}  // namespace

Tensor addmm(const Arg& given_c, const Arg& given_a, const Arg& given_b, AddmmOptions options) {
  Precision precision = precision_for({&given_c, &given_a, &given_b});
  const AutocastArg c(precision, given_c), a(precision, given_a), b(precision, given_b);
  const Tensor &z = tensor_of("addmm", c), &x = tensor_of("addmm", a), &y = tensor_of("addmm", b);
  Location where = given_c.location();
  if (x.rank() != 2 || y.rank() != 2)
    fail<ShapeError>("addmm", where, "a and b must be matrices: a {}, b {}", to_string(x.shape()),
                     to_string(y.shape()));
  if (x.size(1) != y.size(0)) fail_inner("addmm", x, y, where);
  Shape shape{x.size(0), y.size(1)}, met;
  if (!broadcast(shape, z.shape(), met) || !(met == shape))
    fail<ShapeError>("addmm", where, "c {} does not broadcast to {}, the shape of a {} times b {}",
                     to_string(z.shape()), to_string(shape), to_string(x.shape()), to_string(y.shape()));
  check_same_device("addmm", x, y, where);
  check_same_device("addmm", x, z, where);
  DType dtype = promote(promote(x.dtype(), y.dtype()), z.dtype());
  check_factor(options.alpha, dtype, where);
  check_factor(options.beta, dtype, where);
  bool is_op = dtype == DType::f32 || dtype == DType::f64 || (is_floating(dtype) && x.device() != cpu),
       alike = x.dtype() == y.dtype() && x.dtype() == z.dtype();
  if (is_op && alike && options.alpha == 1 && options.beta == 1)
    return invoke(addmm_op, {&z, &x, &y}, {shape, dtype, x.device()}, where);
  OpScope caller(where, "addmm");
  Tensor product = matmul(to_if_needed(x, dtype), to_if_needed(y, dtype));
  if (options.beta == 0) return scaled(product, options.alpha);
  // Halves are scaled and added in f32, so that the sum is rounded once.
  DType wide = is_half(dtype) && (options.alpha != 1 || options.beta != 1) ? DType::f32 : dtype;
  Tensor sum = scaled(to_if_needed(product, wide), options.alpha) + scaled(to_if_needed(z, wide), options.beta);
  return to_if_needed(sum, dtype);
}

// outer: y = a bᵀ of flattened operands, by broadcasting

Tensor outer(const Arg& a, const Arg& b) {
  const Tensor &x = tensor_of("outer", a), &y = tensor_of("outer", b);
  check_same_device("outer", x, y, a.location());
  DType dtype = promote(x.dtype(), y.dtype());
  OpScope caller(a.location(), "outer");
  return mul(to_if_needed(reshape(x, {x.numel(), 1}), dtype), to_if_needed(reshape(y, {1, y.numel()}), dtype));
}

// dot: matmul with stricter checks

Tensor dot(const Arg& a, const Arg& b) {
  const Tensor &x = tensor_of("dot", a), &y = tensor_of("dot", b);
  if (x.rank() != 1 || y.rank() != 1 || x.size(0) != y.size(0))
    fail<ShapeError>("dot", a.location(), "takes two vectors of one size, not a {}, b {}", to_string(x.shape()),
                     to_string(y.shape()));
  check_same_device("dot", x, y, a.location());
  return matmul(a, b);
}

OpList detail::matmul_ops() {
  static constexpr const OpInfo* ops[] = {&matmul_op, &matmul_transposed_op, &addmm_op};
  return ops;
}

}  // namespace reel
