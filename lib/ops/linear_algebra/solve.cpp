#include <reel/ops/linear_algebra.h>

#include <reel/ops/elementwise.h>
#include <reel/ops/matmul.h>
#include <reel/ops/shape.h>
#include <reel/ops/stop_gradient.h>

#include "../../kernels/kernel_table.h"
#include "../../kernels/linear_algebra.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../joining.h"
#include "../registry.h"
#include "linear_algebra_checks.h"

namespace reel {

using namespace detail;

const Tensor& detail::matrices_of(const char* op, const Arg& a) {
  const Tensor& tensor = tensor_of(op, a);
  if (tensor.dtype() != DType::f32 && tensor.dtype() != DType::f64)
    fail<DTypeError>(op, a.location(), "takes matrices of f32 or f64, not {}; convert them with to(x, f32)",
                     describe(tensor));
  if (tensor.rank() < 2)
    fail<ShapeError>(op, a.location(), "takes matrices, in the last two axes, not {}", describe(tensor));
  return tensor;
}

const Tensor& detail::square_matrices_of(const char* op, const Arg& a) {
  const Tensor& tensor = matrices_of(op, a);
  if (tensor.size(-1) != tensor.size(-2))
    fail<ShapeError>(op, a.location(), "takes square matrices, not {}", describe(tensor));
  return tensor;
}

void detail::check_matrix(const Call& call, std::int64_t number, const char* fault) {
  if (number < 0) return;
  const Tensor& a = *call.inputs[0];
  if (a.rank() == 2) fail<Error>(call.op.name, call.where, "the matrix {}", fault);
  Shape place = with_batch(a, {});
  for (int axis = place.rank(); axis-- > 0; number /= a.size(axis)) place[axis] = number % a.size(axis);
  fail<Error>(call.op.name, call.where, "matrix {} of {} {}", to_string(place), describe(a), fault);
}

Shape detail::with_batch(const Tensor& a, std::initializer_list<std::int64_t> sizes) {
  Shape shape;
  for (int axis = 0; axis < a.rank() - 2; ++axis) shape.push_back(a.size(axis));
  for (std::int64_t size : sizes) shape.push_back(size);
  return shape;
}

namespace {

Tensor per_matrix(const Tensor& number) { return unsqueeze(number, {-2, -1}); }

constexpr const char* singular = "is singular";

// Runs an op on matrices and right-hand sides with equal batch axes.
Tensor run_solver(const OpInfo& op, const Tensor& a, const Tensor& b, Location where,
                  std::span<const std::byte> attributes = {}) {
  Tensor matrices = contiguous_if_needed(Arg(a, where)), right = contiguous_if_needed(Arg(b, where));
  return invoke(op, {&matrices, &right}, {right.body(), right.dtype()}, where, attributes);
}

// Broadcasts both to one batch, and converts a vector to a column.
template <class Solve>
Tensor solve_broadcast(const char* name, const Arg& matrices, const Arg& right, Solve run) {
  const Tensor &a = square_matrices_of(name, matrices), &b = tensor_of(name, right);
  Location where = matrices.location();
  OpScope caller(where, name);
  if (b.dtype() != a.dtype())
    fail<DTypeError>(name, where, "the matrices {} and the right side {} have different dtypes", describe(a),
                     describe(b));
  check_same_device(name, a, b, where);
  bool vector = b.rank() == 1;
  if (b.rank() == 0 || b.size(vector ? 0 : -2) != a.size(-1))
    fail<ShapeError>(name, where, "the right side {} does not fit the matrices {}: it needs {} rows", describe(b),
                     describe(a), a.size(-1));
  Tensor columns = vector ? unsqueeze(b, 1) : b;
  Shape batch;
  if (!broadcast(with_batch(a, {}), with_batch(columns, {}), batch))
    fail<ShapeError>(name, where, "leading axes do not broadcast: matrices {}, right side {}", to_string(a.shape()),
                     to_string(b.shape()));
  Shape shape_a = batch, shape_b = batch;
  for (int axis : {-2, -1}) {
    shape_a.push_back(a.size(axis));
    shape_b.push_back(columns.size(axis));
  }
  Tensor x = run(expand_if_needed(a, shape_a), expand_if_needed(columns, shape_b), where);
  return vector ? squeeze(x, -1) : x;
}

}  // namespace

// solve: a y = b;  db = a⁻ᵀ d,  da = −db yᵀ

constexpr OpInfo solve_op{
    .name = "solve",
    .forward =
        [](Call& call) {
          check_matrix(call, linear_algebra_kernels(call).solve(call.output(), call.input(0), call.input(1)), singular);
        },
    .gradient =
        [](Gradient& g) {
          Tensor db = solve(transpose(g.saved_input(0)), g.output());
          if (g.wants(0)) g.accumulate(0, -matmul(db, transpose(g.saved_output())));
          g.accumulate(1, db);
        },
    .saves_input_for = {inputs({0, 1})},
    .saves_output_for = {inputs({0})},
    .joining = by_matrices,
    .accepts_elements = refuses_some,
};

Tensor solve(const Arg& a, const Arg& b) {
  return solve_broadcast(solve_op.name, a, b, [](const Tensor& matrices, const Tensor& right, Location where) {
    return run_solver(solve_op, matrices, right, where);
  });
}

// triangular_solve: a y = b;  db = a⁻ᵀ d,  da = −db yᵀ in the triangle;
// transposed: aᵀ y = b;  db = a⁻¹ d,  da = −y dbᵀ

constexpr OpInfo triangular_solve_op{
    .name = "triangular_solve",
    .forward =
        [](Call& call) {
          auto triangle = call.attributes<TriangleAttributes>();
          check_matrix(
              call,
              linear_algebra_kernels(call).triangular_solve(call.output(), call.input(0), call.input(1), triangle),
              "is singular: it has a 0 on its diagonal");
        },
    .gradient =
        [](Gradient& g) {
          auto triangle = g.attributes<TriangleAttributes>();
          bool upper = triangle.upper != 0, transposed = triangle.transposed != 0, unit = triangle.unit_diagonal != 0;
          Tensor db = triangular_solve(g.saved_input(0), g.output(),
                                       {.upper = upper, .transposed = !transposed, .unit_diagonal = unit});
          if (g.wants(0)) {
            const Tensor& y = g.saved_output();
            Tensor da = -(transposed ? matmul(y, transpose(db)) : matmul(db, transpose(y)));
            g.accumulate(0, upper ? triu(da, unit ? 1 : 0) : tril(da, unit ? -1 : 0));
          }
          g.accumulate(1, db);
        },
    .saves_input_for = {inputs({0, 1})},
    .saves_output_for = {inputs({0})},
    .joining = by_matrices,
    .accepts_elements = refuses_some,
};

Tensor triangular_solve(const Arg& a, const Arg& b, TriangularSolveOptions options) {
  TriangleAttributes triangle{options.upper, options.transposed, options.unit_diagonal};
  return solve_broadcast(triangular_solve_op.name, a, b,
                         [&](const Tensor& matrices, const Tensor& right, Location where) {
                           return run_solver(triangular_solve_op, matrices, right, where, bytes_of(triangle));
                         });
}

// inv: y = a⁻¹;  da = −yᵀ d yᵀ

constexpr OpInfo inv_op{
    .name = "inv",
    .forward =
        [](Call& call) {
          check_matrix(call, linear_algebra_kernels(call).invert(call.output(), call.input(0)), singular);
        },
    .gradient =
        [](Gradient& g) {
          Tensor y_transposed = transpose(g.saved_output());
          g.accumulate(0, -matmul(y_transposed, matmul(g.output(), y_transposed)));
        },
    .saves_output_for = {inputs({0})},
    .joining = by_matrices,
    .accepts_elements = refuses_some,
};

Tensor inv(const Arg& a) {
  Tensor matrices = contiguous_if_needed(Arg(square_matrices_of(inv_op.name, a), a.location()));
  return invoke(inv_op, {&matrices}, {matrices.body(), matrices.dtype()}, a.location());
}

// det: da = d det(a) a⁻ᵀ

constexpr OpInfo det_op{
    .name = "det",
    .forward = [](Call& call) { linear_algebra_kernels(call).determinant(call.output(), call.input(0)); },
    .gradient =
        [](Gradient& g) {
          g.accumulate(0, per_matrix(g.output() * g.saved_output()) * transpose(inv(g.saved_input(0))));
        },
    .saves_input_for = {inputs({0})},
    .saves_output_for = {inputs({0})},
    .joining = by_matrices,
};

Tensor det(const Arg& a) {
  Tensor matrices = contiguous_if_needed(Arg(square_matrices_of(det_op.name, a), a.location()));
  return invoke(det_op, {&matrices}, {with_batch(matrices, {}), matrices.dtype(), matrices.device()}, a.location());
}

// slogdet: da = d a⁻ᵀ, for the d of the logarithm; the sign is constant

constexpr OpInfo slogdet_op{
    .name = "slogdet",
    .forward =
        [](Call& call) { linear_algebra_kernels(call).log_determinant(call.output(0), call.output(1), call.input(0)); },
    .gradient =
        [](Gradient& g) {
          if (g.has_output(1)) g.accumulate(0, per_matrix(g.output(1)) * transpose(inv(g.saved_input(0))));
        },
    .saves_input_for = {inputs({0})},
    .joining = by_matrices,
};

SignAndLogDet slogdet(const Arg& a) {
  Tensor matrices = contiguous_if_needed(Arg(square_matrices_of(slogdet_op.name, a), a.location()));
  Shape batch = with_batch(matrices, {});
  OutputSpec spec(batch, matrices.dtype(), matrices.device()), specs[] = {spec, spec};
  const Tensor* inputs[] = {&matrices};
  Tensor outputs[2];
  Call call{slogdet_op, inputs, {}, specs, outputs, a.location()};
  invoke(call);
  return {std::move(outputs[0]), std::move(outputs[1])};
}

Tensor logdet(const Arg& a) {
  const Tensor& matrices = square_matrices_of("logdet", a);
  OpScope caller(a.location(), "logdet");
  auto [sign, logabsdet] = slogdet(matrices);
  return log(stop_gradient(sign)) + logabsdet;
}

OpList detail::solve_ops() {
  static constexpr const OpInfo* ops[] = {&solve_op, &triangular_solve_op, &inv_op, &det_op, &slogdet_op};
  return ops;
}

}  // namespace reel
