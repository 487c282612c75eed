#include "row_norm.h"

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>

#include "../../core/op_error.h"
#include "../../dispatch/autocast.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../reduce/reduction.h"

namespace reel::detail {

void row_norm_forward(Call& call) {
  const View* bias = call.inputs.size() > 2 ? &call.input(2) : nullptr;
  kernels(call.output().device)
      .normalise->rows(call.output(0), call.output(1), call.output(2), call.input(0), call.input(1), bias,
                       call.attributes<RowForm>());
}

// The weights are shared, or belong to all rows of one call.
Joining joining_of_row_norm(const Call& call) {
  const Body &x = call.input(0), &w = call.input(1);
  // The statistics are one for each row, in the form of x's axes before the row's.
  bool rows = x.dims[0] == call.specs[1].dims[0];
  if (!rows && x.rank == max_rank) return {};
  return {.by = rows ? Joining::By::rows : Joining::By::stacked,
          .shared = inputs({1, 2}),
          .or_stacked = x.rank < max_rank && w.numel == x.numel,
          .dropped_outputs = 1 << 1 | 1 << 2};
}

// Fused; runs when nothing records.

const OpInfo row_norm_gradient_op{
    .name = "row_norm_gradient",
    .forward =
        [](Call& call) {
          kernels(call.output().device)
              .normalise->rows_gradient(call.output(0), call.output(1), call.output(2), call.input(0), call.input(1),
                                        call.input(2), call.input(3), call.input(4), call.attributes<RowForm>());
        },
    .internal = true,
};

namespace {

bool wants_bias(const Gradient& g) { return g.input_count() > 2 && g.wants(2); }

// The views of gradients that are not needed are empty.
void accumulate_fused(Gradient& g) {
  enum { in_x, in_w, in_b };
  enum { out_y, out_mean, out_variance };
  const Tensor &x = g.saved_input(in_x), &mean = g.saved_output(out_mean), &variance = g.saved_output(out_variance);
  Tensor d = contiguous_if_needed(g.output()), w = contiguous_if_needed(g.saved_input(in_w));
  const Tensor* inputs[] = {&d, &x, &w, &mean, &variance};
  const Shape none{0};
  Shape x_shape = g.wants(in_x) ? x.shape() : none, w_shape = g.wants(in_w) ? w.shape() : none,
        b_shape = wants_bias(g) ? w.shape() : none;
  const OutputSpec specs[] = {
      {x_shape, x.dtype(), x.device()}, {w_shape, w.dtype(), x.device()}, {b_shape, w.dtype(), x.device()}};
  Tensor outputs[3];
  Call call{row_norm_gradient_op, inputs, g.attribute_bytes(), specs, outputs, g.where()};
  invoke(call);
  for (std::size_t i = 0; i < g.input_count(); ++i)
    if (g.wants(i)) g.accumulate(i, std::move(outputs[i]));
}

void accumulate_composed(Gradient& g) {
  enum { in_x, in_w, in_b };
  enum { out_y, out_mean, out_variance };
  const RowForm& form = g.attributes<RowForm>();
  const Tensor &x = g.saved_input(in_x), &w = g.saved_input(in_w);
  std::int64_t rows = g.saved_output(out_mean).numel(), repeat = form.length == 0 ? 1 : w.numel() / form.length;
  Shape folded{rows / repeat, repeat, form.length}, folded_w{repeat, form.length};
  Tensor given = reshape(widened(g.output()), folded), centred = reshape(widened(x), folded);
  auto mean_of_row = [](const Tensor& a) { return mean(a, {-1}, {.keepdims = true}); };
  if (form.centred) centred = centred - mean_of_row(centred);
  Tensor inverse = rsqrt(mean_of_row(square(centred)) + static_cast<double>(form.epsilon));
  Tensor normalised = centred * inverse;
  if (g.wants(in_x)) {
    Tensor weighted = given * reshape(w, folded_w), rest = weighted - normalised * mean_of_row(weighted * normalised);
    if (form.centred) rest = rest - mean_of_row(weighted);
    g.accumulate(in_x, to_if_needed(reshape(rest * inverse, x.shape()), x.dtype()));
  }
  if (g.wants(in_w)) g.accumulate(in_w, reshape(sum(given * normalised, {0}), w.shape()));
  if (wants_bias(g)) g.accumulate(in_b, reshape(sum(given, {0}), w.shape()));
}

}  // namespace

void row_norm_gradient(Gradient& g) {
  enum { in_x, in_w, in_b };
  if (!g.wants(in_x) && !g.wants(in_w)) {
    // The gradient of the bias alone needs no saved values.
    std::int64_t width = g.input_shape(in_b).numel();
    Tensor given = widened(g.output());
    return g.accumulate(
        in_b, reshape(sum(reshape(given, {width == 0 ? 0 : given.numel() / width, width}), {0}), g.input_shape(in_b)));
  }
  return g.recording() ? accumulate_composed(g) : accumulate_fused(g);
}

Tensor run_row_norm(const OpInfo& op, const Arg& x, std::int64_t rows, const Tensor& w, const Tensor* b, RowForm form) {
  Tensor packed = contiguous_if_needed(x);
  const Tensor* inputs[] = {&packed, &w, b};
  Shape statistics{rows};
  if (std::int64_t first = packed.body().dims[0]; first > 0 && rows % first == 0) statistics = {first, rows / first};
  const OutputSpec specs[] = {{packed.body(), packed.dtype()},
                              {statistics, DType::f64, packed.device()},
                              {statistics, DType::f64, packed.device()}};
  Tensor outputs[3];
  Call call{op, std::span(inputs, b ? 3 : 2), bytes_of(form), specs, outputs, x.location()};
  invoke(call);
  return std::move(outputs[0]);
}

Tensor norm_parameter(const char* op, const char* name, const Arg* given, const Arg& x, const Shape& shape,
                      double otherwise) {
  const Tensor& like = *x.tensor();
  Location where = x.location();
  DType dtype = wide_dtype(like.dtype());
  if (!given) return full(shape, Arg(otherwise), {.dtype = dtype, .device = like.device()});
  const Tensor parameter = autocast_operand(Precision::full, tensor_of(op, *given), where);
  check_same_device(op, like, parameter, where);
  if (parameter.dtype() != like.dtype() && parameter.dtype() != dtype)
    fail<DTypeError>(op, where, "{} {} beside x {}; convert it with to({}, {})", name, describe(parameter),
                     describe(like), name, name_of(dtype));
  if (parameter.shape() != shape)
    fail<ShapeError>(op, where, "{} {} wants the shape {} for x {}", name, describe(parameter), to_string(shape),
                     describe(like));
  return contiguous_if_needed(to_if_needed(parameter, dtype));
}

void check_epsilon(const char* op, double epsilon, Location where) {
  if (!(epsilon >= 0)) fail<Error>(op, where, "epsilon is {}, not a number of at least 0", epsilon);
}

}  // namespace reel::detail
