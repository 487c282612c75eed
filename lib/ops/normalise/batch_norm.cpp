#include <reel/ops/normalise.h>

#include <reel/no_record.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/in_place.h>
#include <reel/ops/reduce.h>

#include "../../record/gradient.h"
#include "../convolution/channels.h"
#include "../if_needed.h"
#include "../reduce/reduction.h"
#include "../registry.h"
#include "row_norm.h"

namespace reel {

using namespace detail;

// Fused; runs when nothing records.

constexpr OpInfo batch_norm_gradient_op{
    .name = "batch_norm_gradient",
    .forward =
        [](Call& call) {
          kernels(call.output().device)
              .normalise->channels_gradient(call.output(0), call.output(1), call.output(2), call.input(0),
                                            call.input(1), call.input(2), call.input(3), call.input(4),
                                            call.attributes<ChannelForm>());
        },
    .internal = true,
};

namespace {

// The views of gradients that are not needed are empty.
void accumulate_fused(Gradient& g, const Tensor& mean, const Tensor& variance) {
  enum { in_x, in_w, in_b };
  const Tensor &x = g.saved_input(in_x), &w = g.saved_input(in_w);
  Tensor d = contiguous_if_needed(g.output());
  const Tensor* inputs[] = {&d, &x, &w, &mean, &variance};
  const Shape none{0};
  Shape x_shape = g.wants(in_x) ? x.shape() : none, w_shape = g.wants(in_w) ? w.shape() : none,
        b_shape = g.wants(in_b) ? w.shape() : none;
  const OutputSpec specs[] = {
      {x_shape, x.dtype(), x.device()}, {w_shape, w.dtype(), x.device()}, {b_shape, w.dtype(), x.device()}};
  Tensor outputs[3];
  Call call{batch_norm_gradient_op, inputs, g.attribute_bytes(), specs, outputs, g.where()};
  invoke(call);
  for (std::size_t i = 0; i < 3; ++i)
    if (g.wants(i)) g.accumulate(i, std::move(outputs[i]));
}

// x as (N, C, elements of a channel).
Tensor folded(const Tensor& x) {
  std::int64_t size = 1;
  for (int axis = 2; axis < x.rank(); ++axis) size *= x.size(axis);
  return reshape(widened(x), {x.size(0), x.size(1), size});
}
Tensor mean_by_channel(const Tensor& x) { return mean(x, {0, 2}, {.keepdims = true}); }
Tensor at_channels(const Tensor& x) { return unsqueeze(x, 1); }

// Statistics as the kernels read them, converted within the op so that its calls share the tensor.
Tensor in_double(const Tensor& statistics, const Call& call) {
  if (statistics.dtype() == DType::f64 && statistics.is_contiguous()) return statistics;
  Tensor made = allocate(context(), {statistics.shape(), DType::f64, statistics.device()}, call.op.name, call.where);
  kernels(made.device()).copy(made.body(), statistics.body());
  return made;
}

}  // namespace

// y = x̂ w + b, x̂ = (x − mean) / √(variance + ε) of each channel's elements;
// dx = (w d − mean(w d) − x̂ mean(w d x̂)) / √(variance + ε), dw = Σ d x̂, db = Σ d

constexpr OpInfo batch_norm_op{
    .name = "batch_norm",
    .forward =
        [](Call& call) {
          kernels(call.output().device)
              .normalise->channels(call.output(0), call.output(1), call.output(2), call.input(0), call.input(1),
                                   call.input(2), call.attributes<ChannelForm>());
        },
    .gradient =
        [](Gradient& g) {
          enum { in_x, in_w, in_b };
          enum { out_y, out_mean, out_variance };
          if (!g.recording()) return accumulate_fused(g, g.saved_output(out_mean), g.saved_output(out_variance));
          const Tensor &x = g.saved_input(in_x), &w = g.saved_input(in_w);
          Tensor d = folded(g.output()), all = folded(x), centred = all - mean_by_channel(all);
          Tensor inverse =
              rsqrt(mean_by_channel(square(centred)) + static_cast<double>(g.attributes<ChannelForm>().epsilon));
          Tensor normalised = centred * inverse;
          if (g.wants(in_x)) {
            Tensor rest = d - mean_by_channel(d) - normalised * mean_by_channel(d * normalised);
            g.accumulate(in_x, to_if_needed(reshape(rest * inverse * at_channels(w), x.shape()), x.dtype()));
          }
          if (g.wants(in_w)) g.accumulate(in_w, sum(d * normalised, {0, 2}));
          if (g.wants(in_b)) g.accumulate(in_b, sum(d, {0, 2}));
        },
    .saves_input_for = {inputs({0, 1, 2}), inputs({0, 1, 2})},
    .saves_output_for = {0, inputs({0, 1, 2}), inputs({0, 1, 2})},
    .precision = Precision::full,
};

// y = x̂ w + b, x̂ = (x − mean) / √(variance + ε) with mean and variance given;
// dx = w d / √(variance + ε), dw = Σ d x̂, db = Σ d, dmean = −w Σ d / √(variance + ε), dvariance = −w Σ d x̂ / (2
// (variance + ε))

constexpr OpInfo batch_norm_evaluation_op{
    .name = "batch_norm_evaluation",
    .forward =
        [](Call& call) {
          Tensor mean = in_double(*call.inputs[3], call), variance = in_double(*call.inputs[4], call);
          kernels(call.output().device)
              .normalise->channels(call.output(), mean.body(), variance.body(), call.input(0), call.input(1),
                                   call.input(2), call.attributes<ChannelForm>());
        },
    .gradient =
        [](Gradient& g) {
          enum { in_x, in_w, in_b, in_mean, in_variance };
          const Tensor &x = g.saved_input(in_x), &w = g.saved_input(in_w), &mean = g.saved_input(in_mean),
                       &variance = g.saved_input(in_variance);
          if (!g.recording() && !g.wants(in_mean) && !g.wants(in_variance)) return accumulate_fused(g, mean, variance);
          Tensor d = folded(g.output()), all = folded(x);
          Tensor variation = variance + static_cast<double>(g.attributes<ChannelForm>().epsilon);
          Tensor inverse = to_if_needed(rsqrt(variation), w.dtype()), slope = w * inverse;
          Tensor normalised =
              to_if_needed(to_if_needed(all, DType::f64) - at_channels(mean), w.dtype()) * at_channels(inverse);
          if (g.wants(in_x)) g.accumulate(in_x, to_if_needed(reshape(d * at_channels(slope), x.shape()), x.dtype()));
          if (g.wants(in_w)) g.accumulate(in_w, sum(d * normalised, {0, 2}));
          if (g.wants(in_b)) g.accumulate(in_b, sum(d, {0, 2}));
          if (g.wants(in_mean)) g.accumulate(in_mean, to_if_needed(-slope * sum(d, {0, 2}), DType::f64));
          if (g.wants(in_variance))
            g.accumulate(in_variance, to_if_needed(-0.5 * w * sum(d * normalised, {0, 2}), DType::f64) / variation);
        },
    .saves_input_for = {inputs({0, 1, 2, 3, 4}), inputs({0, 1, 2, 3, 4}), 0, inputs({0, 1, 2, 3, 4}),
                        inputs({0, 1, 2, 3, 4})},
    .precision = Precision::full,
    .joining = [](const Call&) -> Joining {
      return {.by = Joining::By::rows, .shared = inputs({1, 2, 3, 4})};
    },
    .internal = true,
};

namespace {

constexpr const char* name = batch_norm_op.name;

// Throws: as norm_parameter; ShapeError if an element to be overwritten is shared by several indices.
void check_running(const char* what, const Arg& running, const Arg& x, std::int64_t channels, bool training) {
  NoRecord pause;
  static_cast<void>(norm_parameter(name, what, &running, x, {channels}, 0));
  if (training && channels > 1 && running.tensor()->strides()[0] == 0)
    fail<ShapeError>(name, x.location(), "{} {} repeats one element for all channels; give a copy", what,
                     describe(*running.tensor()));
}

// running = (1 − momentum) running + momentum batch
void update(const Arg& running, const Tensor& batch, double momentum, Location where) {
  NoRecord pause;
  Tensor before = to_if_needed(*running.tensor(), DType::f64);
  copy_(Destination(*running.tensor(), where), before * (1 - momentum) + batch * momentum);
}

Tensor train(const Arg& x, const Tensor& batch, const Tensor& w, const Tensor& b, const Arg& running_mean,
             const Arg& running_variance, const BatchNormOptions& options) {
  std::int64_t count = batch.size(1) == 0 ? 2 : batch.numel() / batch.size(1);
  if (count < 2)
    fail<ShapeError>(name, x.location(), "x {} has {} a channel in training, which have no variance",
                     describe(*x.tensor()), count == 0 ? "no elements" : "one element");
  const Tensor* inputs[] = {&batch, &w, &b};
  const Shape channels{batch.size(1)};
  const OutputSpec specs[] = {
      {batch.body(), batch.dtype()}, {channels, DType::f64, batch.device()}, {channels, DType::f64, batch.device()}};
  Tensor outputs[3];
  ChannelForm form{options.epsilon, true};
  Call call{batch_norm_op, inputs, bytes_of(form), specs, outputs, x.location()};
  invoke(call);
  NoRecord pause;
  auto n = static_cast<double>(count);
  update(running_mean, outputs[1], options.momentum, x.location());
  update(running_variance, outputs[2] * (n / (n - 1)), options.momentum, x.location());
  return std::move(outputs[0]);
}

Tensor evaluate(const Arg& x, const Tensor& batch, const Tensor& w, const Tensor& b, const Arg& running_mean,
                const Arg& running_variance, const BatchNormOptions& options) {
  // A tape keeps copies, because training overwrites the statistics.
  auto kept = [recording = context().has(Context::recording)](const Arg& running) {
    if (!recording) return *running.tensor();
    return running.tensor()->dtype() == DType::f64 ? copy(running) : contiguous_if_needed(to(running, DType::f64));
  };
  Tensor mean = kept(running_mean), variance = kept(running_variance);
  ChannelForm form{options.epsilon, false};
  return invoke(batch_norm_evaluation_op, {&batch, &w, &b, &mean, &variance}, {batch.body(), batch.dtype()},
                x.location(), bytes_of(form));
}

Tensor batch_norm_with(const Arg& x, const Arg* weight, const Arg* bias, const Arg& running_mean,
                       const Arg& running_variance, const BatchNormOptions& options) {
  const Tensor& tensor = tensor_of(name, x);
  Location where = x.location();
  OpScope caller(where, name);
  check_floating(name, tensor, where);
  check_epsilon(name, options.epsilon, where);
  check_layout(name, options.layout, where);
  if (tensor.rank() < 2)
    fail<ShapeError>(name, where, "x {} has a rank below 2: it wants examples and channels", describe(tensor));
  std::int64_t channels = tensor.size(options.layout == Layout::nchw ? 1 : -1);
  Tensor w = norm_parameter(name, "weight", weight, x, {channels}, 1);
  Tensor b = norm_parameter(name, "bias", bias, x, {channels}, 0);
  check_running("running_mean", running_mean, x, channels, options.training);
  check_running("running_variance", running_variance, x, channels, options.training);
  std::int64_t others = 1;
  for (int axis = 0; axis < tensor.rank(); ++axis)
    if (axis != (options.layout == Layout::nchw ? 1 : tensor.rank() - 1)) others *= tensor.size(axis);
  // If channels are last, but for axes of one element, the batch is treated as rows of channels.
  bool last = others == tensor.size(0) || options.layout == Layout::nhwc;
  // Without a gradient, which adds up channels, nothing is gained by reading them one after the other.
  if (last && !options.training && tensor.device() == cpu && !context().has(Context::recording)) {
    Tensor y = evaluate(x, contiguous_if_needed(reshape(tensor, {others, channels})), w, b, running_mean,
                        running_variance, options);
    return tensor.rank() == 2 ? y : reshape(y, tensor.shape());
  }
  Tensor batch = contiguous_if_needed(last ? unsqueeze(transpose(reshape(tensor, {others, channels})), 0) : tensor);
  Tensor y = (options.training ? train : evaluate)(x, batch, w, b, running_mean, running_variance, options);
  return last ? reshape(transpose(squeeze(y, 0)), tensor.shape()) : y;
}

}  // namespace

Tensor batch_norm(const Arg& x, const Arg& weight, const Arg& bias, const Arg& running_mean,
                  const Arg& running_variance, BatchNormOptions options) {
  return batch_norm_with(x, &weight, &bias, running_mean, running_variance, options);
}

Tensor batch_norm(const Arg& x, const Arg& running_mean, const Arg& running_variance, BatchNormOptions options) {
  return batch_norm_with(x, nullptr, nullptr, running_mean, running_variance, options);
}

OpList detail::batch_norm_ops() {
  static constexpr const OpInfo* ops[] = {&batch_norm_op, &batch_norm_evaluation_op, &batch_norm_gradient_op};
  return ops;
}

}  // namespace reel
