#include <reel/ops/pooling.h>

#include <reel/ops/create.h>
#include <reel/ops/index.h>
#include <reel/ops/shape.h>

#include <limits>

#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/pooling.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../index/index_checks.h"
#include "../joining.h"
#include "../registry.h"
#include "channels.h"

namespace reel {

using namespace detail;

namespace {

// The shape of a batch with its spatial sizes replaced.
Shape resized(const Shape& batch, const std::int64_t (&sizes)[3], bool channels_last) {
  Shape shape = batch;
  int spatial = batch.rank() - 2;
  for (int i = 0; i < spatial; ++i) shape[(channels_last ? 1 : 2) + i] = sizes[3 - spatial + i];
  return shape;
}

Tensor run_linear(const OpInfo& op, const Tensor& x, const Tensor* indices, const std::int64_t (&sizes)[3],
                  const Pooling& pooling, Location where) {
  Tensor packed = contiguous_if_needed(Arg(x, where));
  Shape shape = resized(x.shape(), sizes, pooling.channels_last);
  const OutputSpec spec(shape, x.dtype(), x.device());
  return indices ? invoke(op, {&packed, indices}, spec, where, bytes_of(pooling))
                 : invoke(op, {&packed}, spec, where, bytes_of(pooling));
}

void scatter_gradient(Gradient& g);

}  // namespace

// y = x at the indices;  dx = d at the indices, zeros elsewhere

constexpr OpInfo pool_gather_op{
    .name = "pool_gather",
    .forward =
        [](Call& call) {
          kernels(call.output().device)
              .pooling->gather(call.output(), call.input(0), call.input(1), call.attributes<Pooling>());
        },
    .gradient = scatter_gradient,
    .saves_input_for = {0, inputs({0})},
    .internal = true,
};

// y = x at the indices, zeros elsewhere;  dx = d at the indices

constexpr OpInfo pool_scatter_op{
    .name = "pool_scatter",
    .forward =
        [](Call& call) {
          kernels(call.output().device)
              .pooling->scatter(call.output(), call.input(0), call.input(1), call.attributes<Pooling>());
        },
    .gradient =
        [](Gradient& g) {
          const auto& pooling = g.attributes<Pooling>();
          g.accumulate(0,
                       run_linear(pool_gather_op, g.output(), &g.saved_input(1), pooling.results, pooling, g.where()));
        },
    .saves_input_for = {0, inputs({0})},
    .internal = true,
};

namespace {

void scatter_gradient(Gradient& g) {
  const auto& pooling = g.attributes<Pooling>();
  g.accumulate(0, run_linear(pool_scatter_op, g.output(), &g.saved_input(1), pooling.size, pooling, g.where()));
}

// y_o = max x_k over window o, at k_o;  dx_k = Σ d_o where k_o = k

// `dropped`: outputs that the calling function drops, as bits.
template <std::uint8_t dropped = 1 << 1>
constexpr OpInfo max_pool_op(const char* name) {
  return {
      .name = name,
      .forward =
          [](Call& call) {
            kernels(call.output().device)
                .pooling->max(call.output(0), call.output(1), call.input(0), call.attributes<Pooling>());
          },
      .gradient =
          [](Gradient& g) {
            const auto& pooling = g.attributes<Pooling>();
            g.accumulate(0,
                         run_linear(pool_scatter_op, g.output(), &g.saved_output(1), pooling.size, pooling, g.where()));
          },
      .saves_output_for = {0, inputs({0})},
      .joining = [](const Call&) -> Joining { return {.by = Joining::By::rows, .dropped_outputs = dropped}; },
  };
}

void average_gradient(Gradient& g);

// y_o = Σ x_k / count_o over window o;  dx_k = Σ d_o / count_o over the windows of k

constexpr OpInfo pool_average_op(const char* name) {
  return {
      .name = name,
      .forward =
          [](Call& call) {
            kernels(call.output().device).pooling->average(call.output(), call.input(0), call.attributes<Pooling>());
          },
      .gradient = average_gradient,
      .joining = by_rows,
  };
}

}  // namespace

constexpr OpInfo avg_pool_ops[] = {pool_average_op("avg_pool1d"), pool_average_op("avg_pool2d"),
                                   pool_average_op("avg_pool3d")};
constexpr OpInfo adaptive_avg_pool_ops[] = {pool_average_op("adaptive_avg_pool1d"),
                                            pool_average_op("adaptive_avg_pool2d"),
                                            pool_average_op("adaptive_avg_pool3d")};
constexpr OpInfo max_pool_ops[] = {max_pool_op("max_pool1d"), max_pool_op("max_pool2d"), max_pool_op("max_pool3d")};
constexpr OpInfo max_pool_with_indices_ops[] = {max_pool_op<0>("max_pool1d_with_indices"),
                                                max_pool_op<0>("max_pool2d_with_indices"),
                                                max_pool_op<0>("max_pool3d_with_indices")};
constexpr OpInfo adaptive_max_pool_ops[] = {max_pool_op("adaptive_max_pool1d"), max_pool_op("adaptive_max_pool2d"),
                                            max_pool_op("adaptive_max_pool3d")};
constexpr OpInfo adaptive_max_pool_with_indices_ops[] = {max_pool_op<0>("adaptive_max_pool1d_with_indices"),
                                                         max_pool_op<0>("adaptive_max_pool2d_with_indices"),
                                                         max_pool_op<0>("adaptive_max_pool3d_with_indices")};

// The transpose of the average, so its gradient is the average.

constexpr OpInfo pool_spread_op{
    .name = "pool_spread",
    .forward =
        [](Call& call) {
          kernels(call.output().device)
              .pooling->average_gradient(call.output(), call.input(0), call.attributes<Pooling>());
        },
    .gradient =
        [](Gradient& g) {
          const auto& pooling = g.attributes<Pooling>();
          const auto& ops = pooling.adaptive ? adaptive_avg_pool_ops : avg_pool_ops;
          g.accumulate(
              0, run_linear(ops[g.output().rank() - 3], g.output(), nullptr, pooling.results, pooling, g.where()));
        },
    .internal = true,
};

namespace {

void average_gradient(Gradient& g) {
  const auto& pooling = g.attributes<Pooling>();
  g.accumulate(0, run_linear(pool_spread_op, g.output(), nullptr, pooling.size, pooling, g.where()));
}

// Sizes up to this limit can be added and doubled without overflow.
constexpr std::int64_t largest = std::int64_t{1} << 60;

// The checked parameters of one call.
struct Pool {
  const char* name;
  const Tensor& x;
  int spatial;
  Location where;
  Pooling pooling;

  Pool(const char* name, int spatial, const Arg& x, Layout layout)
      : name(name), x(tensor_of(name, x)), spatial(spatial), where(x.location()), pooling{} {
    check_floating(name, this->x, where);
    check_layout(name, layout, where);
    if (this->x.rank() != spatial + 2)
      fail<ShapeError>(name, where, "x {} must have rank {}: examples, channels and {} spatial {}", describe(this->x),
                       spatial + 2, spatial, spatial == 1 ? "axis" : "axes");
    pooling.channels_last = layout == Layout::nhwc;
    for (int axis = 0; axis < 3; ++axis) {
      pooling.size[axis] = pooling.results[axis] = pooling.window[axis] = 1;
      pooling.stride[axis] = pooling.dilation[axis] = 1;
    }
    for (int i = 0; i < spatial; ++i) {
      size(i) = this->x.size((layout == Layout::nhwc ? 1 : 2) + i);
      if (size(i) == 0)
        fail<ShapeError>(name, where, "x {} has no elements along spatial axis {}", describe(this->x), i);
    }
  }

  std::int64_t& size(int i) { return pooling.size[3 - spatial + i]; }

  std::int64_t number(const AxisNumbers& numbers, int i, const char* what, std::int64_t least) const {
    const Shape& given = numbers.given();
    if (given.rank() != 1 && given.rank() != spatial)
      fail<ShapeError>(name, where, "{} {} must be one number or one for each of {} spatial axes of x {}", what,
                       to_string(given), spatial, describe(x));
    std::int64_t one = given[given.rank() == 1 ? 0 : i];
    if (one < least || one > largest)
      fail<ShapeError>(name, where, "{} {} must be at least {}, and of any use (x {})", what, to_string(given), least,
                       describe(x));
    return one;
  }

  void set_windows(const AxisNumbers& window, const AxisNumbers& stride, const ConvolutionPadding& padding,
                   const AxisNumbers& dilation, bool ceil_mode) {
    for (int i = 0; i < spatial; ++i) {
      int own = 3 - spatial + i;
      std::int64_t length = pooling.window[own] = number(window, i, "window", 1);
      std::int64_t step = number(stride, i, "stride", 0);
      step = pooling.stride[own] = step == 0 ? length : step;
      std::int64_t gap = pooling.dilation[own] = number(dilation, i, "dilation", 1), extent;
      if (__builtin_mul_overflow(length - 1, gap, &extent) || ++extent > largest)
        fail<ShapeError>(name, where, "a window of {} with dilation {} goes beyond any size", length, gap);
      pooling.results[own] = padding.by_number() ? results_of_numbers(i, extent, padding.numbers(), ceil_mode)
                                                 : results_of_rule(i, extent, padding.rule(), ceil_mode);
      check_windows(i);
    }
  }

  Shape result() const { return resized(x.shape(), pooling.results, pooling.channels_last); }

 private:
  std::int64_t results_of_numbers(int i, std::int64_t extent, const AxisNumbers& padding, bool ceil_mode) {
    int own = 3 - spatial + i;
    std::int64_t before = pooling.padding[own] = number(padding, i, "padding", 0), stride = pooling.stride[own];
    if (before > extent / 2)
      fail<ShapeError>(name, where, "padding {} is more than half of the window, which spans {} (x {})", before, extent,
                       describe(x));
    return results_within(i, size(i) + 2 * before, extent, stride, before, ceil_mode);
  }

  std::int64_t results_of_rule(int i, std::int64_t extent, Padding rule, bool ceil_mode) {
    int own = 3 - spatial + i;
    std::int64_t stride = pooling.stride[own];
    if (rule != Padding::same) return results_within(i, size(i), extent, stride, 0, ceil_mode);
    std::int64_t results = (size(i) - 1) / stride + 1;
    pooling.padding[own] = std::max<std::int64_t>((results - 1) * stride + extent - size(i), 0) / 2;
    return results;
  }

  std::int64_t results_within(int i, std::int64_t padded, std::int64_t extent, std::int64_t stride, std::int64_t before,
                              bool ceil_mode) {
    if (extent > padded && !(ceil_mode && extent - padded < stride))
      fail<ShapeError>(name, where,
                       "the window spans {} elements along spatial axis {}, but x {} has {} there with its padding",
                       extent, i, describe(x), padded);
    std::int64_t room = padded - extent + (ceil_mode ? stride - 1 : 0), results = room / stride + 1;
    // The last window must start within x or the padding before it.
    if (ceil_mode && (results - 1) * stride >= size(i) + before) --results;
    return results;
  }

  // A dilated window may cover nothing but padding.
  void check_windows(int i) const {
    int own = 3 - spatial + i;
    if (pooling.padding[own] == 0) return;
    for (std::int64_t o = 0; o < pooling.results[own]; ++o)
      if (pooling.span(own, o).count < 1)
        fail<ShapeError>(name, where, "window {} along spatial axis {} meets no element of x {}", o, i, describe(x));
  }
};

ValuesAndIndices run_max(const OpInfo& op, const Pool& pool, bool wants_indices) {
  // Indices within a plane are computed in 32 bits.
  if (pool.pooling.size[0] * pool.pooling.size[1] * pool.pooling.size[2] > std::numeric_limits<std::int32_t>::max())
    fail<ShapeError>(op.name, pool.where, "x {} has more than 2^31 − 1 places along its spatial axes",
                     describe(pool.x));
  Tensor packed = contiguous_if_needed(Arg(pool.x, pool.where)), outputs[2];
  const Tensor* input = &packed;
  Shape shape = pool.result();
  // Only a gradient reads indices that the calling function drops; a call that is run later may be recorded then.
  bool may_record = context().has(Context::recording) || context().has(Context::slow_path);
  Shape places = wants_indices || may_record ? shape : Shape{shape[0], 0};
  const OutputSpec specs[] = {{shape, pool.x.dtype(), pool.x.device()}, {places, DType::i64, pool.x.device()}};
  Call call{op, {&input, 1}, bytes_of(pool.pooling), specs, outputs, pool.where};
  invoke(call);
  return {std::move(outputs[0]), std::move(outputs[1])};
}

ValuesAndIndices max_pool(const OpInfo (&ops)[3], int spatial, const Arg& x, const AxisNumbers& window,
                          const MaxPoolOptions& options) {
  const OpInfo& op = ops[spatial - 1];
  Pool pool(op.name, spatial, x, options.layout);
  pool.set_windows(window, options.stride, options.padding, options.dilation, options.ceil_mode);
  return run_max(op, pool, &ops == &max_pool_with_indices_ops);
}

Tensor avg_pool(int spatial, const Arg& x, const AxisNumbers& window, const AveragePoolOptions& options) {
  const OpInfo& op = avg_pool_ops[spatial - 1];
  Pool pool(op.name, spatial, x, options.layout);
  pool.set_windows(window, options.stride, options.padding, 1, options.ceil_mode);
  pool.pooling.counts_padding = options.padding.by_number() && options.count_include_pad;
  return run_linear(op, pool.x, nullptr, pool.pooling.results, pool.pooling, pool.where);
}

Pool adaptive(const OpInfo& op, int spatial, const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options) {
  Pool pool(op.name, spatial, x, options.layout);
  pool.pooling.adaptive = 1;
  for (int i = 0; i < spatial; ++i) pool.pooling.results[3 - spatial + i] = pool.number(results, i, "results", 1);
  return pool;
}

Tensor adaptive_avg_pool(int spatial, const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options) {
  const OpInfo& op = adaptive_avg_pool_ops[spatial - 1];
  Pool pool = adaptive(op, spatial, x, results, options);
  return run_linear(op, pool.x, nullptr, pool.pooling.results, pool.pooling, pool.where);
}

ValuesAndIndices adaptive_max_pool(const OpInfo (&ops)[3], int spatial, const Arg& x, const AxisNumbers& results,
                                   AdaptivePoolOptions options) {
  const OpInfo& op = ops[spatial - 1];
  return run_max(op, adaptive(op, spatial, x, results, options), &ops == &adaptive_max_pool_with_indices_ops);
}

Tensor max_unpool(const char* name, int spatial, const Arg& x, const Arg& indices, const AxisNumbers& sizes,
                  MaxUnpoolOptions options) {
  Pool pool(name, spatial, x, options.layout);
  const Tensor &values = pool.x, &at = tensor_of(name, indices);
  OpScope caller(pool.where, name);
  check_index_dtype(name, at, pool.where);
  check_same_device(name, values, at, pool.where);
  if (at.shape() != values.shape())
    fail<ShapeError>(name, pool.where, "the indices {} do not have the shape of x {}", to_string(at.shape()),
                     describe(values));
  for (int i = 0; i < spatial; ++i) pool.pooling.results[3 - spatial + i] = pool.number(sizes, i, "sizes", 1);
  bool last = pool.pooling.channels_last;
  std::int64_t examples = values.size(0), channels = values.size(last ? spatial + 1 : 1), places = 1, all;
  bool fits = !__builtin_mul_overflow(examples, channels, &all);
  for (std::int64_t size : pool.pooling.results)
    fits = fits && !__builtin_mul_overflow(places, size, &places) && !__builtin_mul_overflow(all, size, &all);
  if (!fits) fail<ShapeError>(name, pool.where, "a result of shape {} has too many elements", to_string(pool.result()));
  std::int64_t bad;
  if (!are_within(name, at, places, bad, pool.where))
    fail<IndexError>(name, pool.where, "index {} is out of range for the {} places of a result {}", bad, places,
                     to_string(pool.result()));
  auto joined = [&](std::int64_t count) {
    return last ? Shape{examples, count, channels} : Shape{examples, channels, count};
  };
  Shape given = joined(pool.pooling.size[0] * pool.pooling.size[1] * pool.pooling.size[2]);
  Tensor nothing = zeros(joined(places), {.dtype = values.dtype(), .device = values.device()});
  return reshape(scatter(nothing, last ? 1 : 2, reshape(at, given), reshape(values, given)), pool.result());
}

}  // namespace

Tensor max_pool1d(const Arg& x, const AxisNumbers& window, const MaxPoolOptions& options) {
  return max_pool(max_pool_ops, 1, x, window, options).values;
}
Tensor max_pool2d(const Arg& x, const AxisNumbers& window, const MaxPoolOptions& options) {
  return max_pool(max_pool_ops, 2, x, window, options).values;
}
Tensor max_pool3d(const Arg& x, const AxisNumbers& window, const MaxPoolOptions& options) {
  return max_pool(max_pool_ops, 3, x, window, options).values;
}

ValuesAndIndices max_pool1d_with_indices(const Arg& x, const AxisNumbers& window, const MaxPoolOptions& options) {
  return max_pool(max_pool_with_indices_ops, 1, x, window, options);
}
ValuesAndIndices max_pool2d_with_indices(const Arg& x, const AxisNumbers& window, const MaxPoolOptions& options) {
  return max_pool(max_pool_with_indices_ops, 2, x, window, options);
}
ValuesAndIndices max_pool3d_with_indices(const Arg& x, const AxisNumbers& window, const MaxPoolOptions& options) {
  return max_pool(max_pool_with_indices_ops, 3, x, window, options);
}

Tensor avg_pool1d(const Arg& x, const AxisNumbers& window, const AveragePoolOptions& options) {
  return avg_pool(1, x, window, options);
}
Tensor avg_pool2d(const Arg& x, const AxisNumbers& window, const AveragePoolOptions& options) {
  return avg_pool(2, x, window, options);
}
Tensor avg_pool3d(const Arg& x, const AxisNumbers& window, const AveragePoolOptions& options) {
  return avg_pool(3, x, window, options);
}

Tensor adaptive_avg_pool1d(const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options) {
  return adaptive_avg_pool(1, x, results, options);
}
Tensor adaptive_avg_pool2d(const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options) {
  return adaptive_avg_pool(2, x, results, options);
}
Tensor adaptive_avg_pool3d(const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options) {
  return adaptive_avg_pool(3, x, results, options);
}

Tensor adaptive_max_pool1d(const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options) {
  return adaptive_max_pool(adaptive_max_pool_ops, 1, x, results, options).values;
}
Tensor adaptive_max_pool2d(const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options) {
  return adaptive_max_pool(adaptive_max_pool_ops, 2, x, results, options).values;
}
Tensor adaptive_max_pool3d(const Arg& x, const AxisNumbers& results, AdaptivePoolOptions options) {
  return adaptive_max_pool(adaptive_max_pool_ops, 3, x, results, options).values;
}

ValuesAndIndices adaptive_max_pool1d_with_indices(const Arg& x, const AxisNumbers& results,
                                                  AdaptivePoolOptions options) {
  return adaptive_max_pool(adaptive_max_pool_with_indices_ops, 1, x, results, options);
}
ValuesAndIndices adaptive_max_pool2d_with_indices(const Arg& x, const AxisNumbers& results,
                                                  AdaptivePoolOptions options) {
  return adaptive_max_pool(adaptive_max_pool_with_indices_ops, 2, x, results, options);
}
ValuesAndIndices adaptive_max_pool3d_with_indices(const Arg& x, const AxisNumbers& results,
                                                  AdaptivePoolOptions options) {
  return adaptive_max_pool(adaptive_max_pool_with_indices_ops, 3, x, results, options);
}

Tensor max_unpool1d(const Arg& x, const Arg& indices, const AxisNumbers& sizes, MaxUnpoolOptions options) {
  return max_unpool("max_unpool1d", 1, x, indices, sizes, options);
}
Tensor max_unpool2d(const Arg& x, const Arg& indices, const AxisNumbers& sizes, MaxUnpoolOptions options) {
  return max_unpool("max_unpool2d", 2, x, indices, sizes, options);
}
Tensor max_unpool3d(const Arg& x, const Arg& indices, const AxisNumbers& sizes, MaxUnpoolOptions options) {
  return max_unpool("max_unpool3d", 3, x, indices, sizes, options);
}

OpList detail::pooling_ops() {
  static constexpr const OpInfo* ops[] = {&max_pool_ops[0],
                                          &max_pool_ops[1],
                                          &max_pool_ops[2],
                                          &max_pool_with_indices_ops[0],
                                          &max_pool_with_indices_ops[1],
                                          &max_pool_with_indices_ops[2],
                                          &avg_pool_ops[0],
                                          &avg_pool_ops[1],
                                          &avg_pool_ops[2],
                                          &adaptive_avg_pool_ops[0],
                                          &adaptive_avg_pool_ops[1],
                                          &adaptive_avg_pool_ops[2],
                                          &adaptive_max_pool_ops[0],
                                          &adaptive_max_pool_ops[1],
                                          &adaptive_max_pool_ops[2],
                                          &adaptive_max_pool_with_indices_ops[0],
                                          &adaptive_max_pool_with_indices_ops[1],
                                          &adaptive_max_pool_with_indices_ops[2],
                                          &pool_scatter_op,
                                          &pool_gather_op,
                                          &pool_spread_op};
  return ops;
}

}  // namespace reel
