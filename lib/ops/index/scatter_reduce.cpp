#include <reel/ops/index.h>

#include <limits>

#include <reel/no_record.h>
#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/pad.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>
#include <reel/ops/sort.h>

#include "../../core/memory_error.h"
#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../registry.h"
#include "attributes.h"
#include "index_checks.h"

namespace reel {

using namespace detail;

namespace {

// Whether a source's element goes to each element of x.
Tensor reached(const Shape& shape, Device device, int axis, const Tensor& index) {
  return scatter(zeros(shape, {.dtype = DType::boolean, .device = device}), axis, index, true);
}

Tensor same_value(const Tensor& a, const Tensor& b) { return logical_or(a == b, logical_and(isnan(a), isnan(b))); }

}  // namespace

// The largest or smallest elements m, which the op computes, or is given where the device has no kernel for them: y = m;
// dx = d / n where x = m,  ds = (d / n) gathered where s = m, for n equal elements

constexpr OpInfo scatter_extreme_op{
    .name = "scatter_reduce",
    .forward =
        [](Call& call) {
          const auto &out = call.output(), &index = call.input(1), &source = call.input(2);
          const KernelTable& table = kernels(out.device);
          if (!table.scatter_extreme) return table.copy(out, call.input(3));
          auto [along, include_self, largest] = call.attributes<ExtremeAttributes>();
          int axis = static_cast<int>(along);
          table.copy(out, call.input(0));
          // Any of the source's elements replaces one of x that does not take part.
          if (!include_self) table.scatter(out, source, index, axis);
          table.scatter_extreme(out, source, index, axis, largest);
        },
    .gradient =
        [](Gradient& g) {
          enum { in_x, in_index, in_source };
          const Tensor &x = g.saved_input(in_x), &index = g.saved_input(in_index), &source = g.saved_input(in_source),
                       &y = g.saved_output();
          auto [along, include_self, largest] = g.attributes<ExtremeAttributes>();
          int axis = static_cast<int>(along);
          Tensor d = widened(g.output());
          Tensor of_x = include_self ? same_value(x, y) : !reached(x.shape(), x.device(), axis, index);
          Tensor of_source = same_value(source, gather(y, axis, index));
          Tensor share = d / scatter_add(to(of_x, d.dtype()), axis, index, to(of_source, d.dtype()));
          if (g.wants(in_x)) g.accumulate(in_x, to_if_needed(where(of_x, share, 0.0), x.dtype()));
          if (g.wants(in_source))
            g.accumulate(in_source, to_if_needed(where(of_source, gather(share, axis, index), 0.0), source.dtype()));
        },
    .saves_input_for = {inputs({0, 2}), inputs({0, 2}), inputs({0, 2})},
    .saves_output_for = {inputs({0, 2})},
};

namespace {

// Once sorted along the axis, the largest of several elements for one position is the last one, which scatter takes.
Tensor largest_of(const Tensor& x, int axis, const Tensor& index, const Tensor& source, bool largest,
                  bool include_self) {
  // A descending sort has NaN first, so that elements are negated instead.
  bool inverts = !largest && is_floating(x.dtype());
  auto [values, order] = sort(inverts ? -source : source, axis, {.descending = !largest && !inverts});
  Tensor sorted_index = gather(index, axis, order);
  Tensor found = scatter(x, axis, sorted_index, inverts ? -values : values);
  if (!include_self) return found;
  Tensor both = largest ? maximum(found, x) : minimum(found, x);
  return where(reached(x.shape(), x.device(), axis, index), both, x);
}

Tensor reduced_extreme(const Tensor& x, int axis, const Tensor& index, const Tensor& source, bool largest,
                       bool include_self, Location where) {
  Tensor found = x;
  if (!kernels(x.device()).scatter_extreme) {
    NoRecord pause;
    found = largest_of(x, axis, index, source, largest, include_self);
  }
  return invoke(scatter_extreme_op, {&x, &index, &source, &found}, {x.body(), x.dtype()}, where,
                bytes_of(ExtremeAttributes{axis, include_self, largest}));
}

// The product of the source's elements for each element of x, 1 where there are none. The elements for one position are
// put side by side, so that the exact gradient is that of a product along an axis.
Tensor products_of(const Tensor& x, int axis, const Tensor& index, const Tensor& source) {
  std::int64_t size = x.body().dims[axis], count = index.body().dims[axis];
  Tensor places = transpose(index, axis, -1), factors = transpose(source, axis, -1);
  Shape rest = places.shape();
  rest[-1] = size;
  std::int64_t rows = index.numel() / count;
  places = to_if_needed(reshape(places, {rows, count}), DType::i64);
  places = where(places < 0, places + size, places);
  auto [sorted, order] = sort(places, -1);
  Tensor rank = arange(count, {.dtype = DType::i64, .device = x.device()}) - searchsorted(sorted, sorted);
  std::int64_t width = max(rank).item<std::int64_t>() + 1;
  Tensor beside = ones({rows, size * width}, {.dtype = x.dtype(), .device = x.device()});
  beside = scatter(beside, -1, sorted * width + rank, gather(reshape(factors, {rows, count}), -1, order));
  Tensor products = transpose(reshape(prod(reshape(beside, {rows, size, width}), -1), rest), axis, -1);
  if (products.shape() == x.shape()) return to_if_needed(products, x.dtype());
  std::vector<PadWidth> widths;
  for (int i = 0; i < x.rank(); ++i) widths.push_back({.after = x.body().dims[i] - products.body().dims[i]});
  return pad(to_if_needed(products, x.dtype()), widths, {.value = 1});
}

Tensor reduced_mean(const Tensor& base, int axis, const Tensor& index, const Tensor& source, const Tensor& self) {
  // The fewer bytes, the more of them stay in the cache.
  bool few = index.size(axis) < std::numeric_limits<std::int32_t>::max();
  TensorOptions options{.dtype = few ? DType::i32 : DType::i64, .device = base.device()};
  Tensor counts = scatter_add(to(self, options.dtype), axis, index, expand(ones({}, options), index.shape()));
  Tensor sums = scatter_add(base, axis, index, source);
  if (!is_floating(base.dtype())) return to_if_needed(floor_divide(sums, counts), base.dtype());
  Tensor wide = widened(sums);
  return to_if_needed(wide / to(counts, wide.dtype()), base.dtype());
}

}  // namespace

Tensor scatter_reduce(const Arg& x, int axis, const Arg& index, const Arg& source, ScatterReduction reduction,
                      ScatterReduceOptions options) {
  return with_memory_error(scatter_extreme_op.name, x.location(), [&]() -> Tensor {
    const char* name = scatter_extreme_op.name;
    const Tensor &to = tensor_of(name, x), &at = tensor_of(name, index), &from = tensor_of(name, source);
    Location where = x.location();
    OpScope caller(where, name);
    axis = check_axis(name, axis, to, where);
    check_index_dtype(name, at, where);
    check_index_shape(name, to, at, axis, where);
    check_same_device(name, to, at, where);
    check_same_device(name, to, from, where);
    if (to.dtype() == DType::boolean)
      fail<DTypeError>(name, where, "takes numbers, not {}; convert it with to(x, i32)", describe(to));
    if (from.dtype() != to.dtype())
      fail<DTypeError>(name, where, "the source {} does not have x's dtype {}", describe(from), name_of(to.dtype()));
    if (from.shape() != at.shape())
      fail<ShapeError>(name, where, "the source {} does not have the index's shape {}", to_string(from.shape()),
                       to_string(at.shape()));
    check_index_range(name, to, at, axis, where);
    if (at.numel() == 0) return copy(to);
    bool keeps = options.include_self;
    if (reduction == ScatterReduction::amax || reduction == ScatterReduction::amin)
      return reduced_extreme(to, axis, at, from, reduction == ScatterReduction::amax, keeps, where);

    Tensor self = keeps ? ones(to.shape(), {.dtype = DType::boolean, .device = to.device()})
                        : !reached(to.shape(), to.device(), axis, at);
    if (reduction == ScatterReduction::prod) {
      Tensor products = products_of(to, axis, at, from);
      return keeps ? to * products : reel::where(self, to, products);
    }
    Tensor base = keeps ? to : reel::where(self, to, 0);
    if (reduction == ScatterReduction::sum) return scatter_add(base, axis, at, from);
    return reduced_mean(base, axis, at, from, self);
  });
}

OpList detail::scatter_reduce_ops() {
  static constexpr const OpInfo* ops[] = {&scatter_extreme_op};
  return ops;
}

}  // namespace reel
