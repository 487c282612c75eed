#pragma once

#include "../../dispatch/invoke.h"
#include "../../kernels/normalise.h"

// Common parts of the ops that normalise rows.

namespace reel::detail {

void row_norm_forward(Call& call);
void row_norm_gradient(Gradient& g);
Joining joining_of_row_norm(const Call& call);

/// y = x̂ w + b, x̂ = (x − mean) / √(variance + ε) along rows;
/// dx = (w d − mean(w d) − x̂ mean(w d x̂)) / √(variance + ε), dw = Σ d x̂, db = Σ d over the rows
/// Rows are those of x in row-major order; w and b hold one or more rows, and are repeated.
constexpr OpInfo row_norm_op(const char* name) {
  return {.name = name,
          .forward = row_norm_forward,
          .gradient = row_norm_gradient,
          .saves_input_for = {inputs({0, 1}), inputs({0, 1})},
          .saves_output_for = {0, inputs({0, 1}), inputs({0, 1})},
          .precision = Precision::full,
          .joining = joining_of_row_norm};
}

extern const OpInfo row_norm_gradient_op;

/// Runs a row normalisation. w and b are of `wide_dtype`; for an op without a bias, b is null.
Tensor run_row_norm(const OpInfo& op, const Arg& x, std::int64_t rows, const Tensor& w, const Tensor* b, RowForm form);

/// The dtype in which a normalisation of an x of this dtype is computed.
inline DType wide_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

/// A weight or bias; if `given` is null, filled with `otherwise`. Throws: ShapeError unless it has the shape;
/// DTypeError; DeviceError.
Tensor norm_parameter(const char* op, const char* name, const Arg* given, const Arg& x, const Shape& shape,
                      double otherwise);

/// Throws: Error for a negative epsilon or NaN.
void check_epsilon(const char* op, double epsilon, Location where);

}  // namespace reel::detail
