#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/shape.h>

#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../joining.h"
#include "../operand.h"
#include "../registry.h"
#include "attributes.h"
#include "index_checks.h"
#include "take.h"

// Ops that move whole rows at a list of indices.

namespace reel {

using namespace detail;

namespace {

int axis_of(const auto& call) { return static_cast<int>(call.template attributes<AxisAttributes>().axis); }

}  // namespace

// take_gradient: z = zeros with d added at the indices along an axis;  dd = e taken there

constexpr OpInfo take_gradient_op{
    .name = "take_gradient",
    .forward =
        [](Call& call) {
          const KernelTable& table = kernels(call.output().device);
          table.fill(call.output(), 0, 0);
          table.index_add(call.output(), call.input(0), call.input(1), axis_of(call));
        },
    .gradient = [](Gradient& g) { g.accumulate(0, take(g.output(), g.saved_input(1), axis_of(g))); },
    .saves_input_for = {0, inputs({0})},
    .internal = true,
};

// take: y[…, j, …] = x[…, indices[j], …];  dx = zeros with d added there

void detail::take_forward(Call& call) {
  std::int64_t bad;
  int axis = axis_of(call);
  if (!kernels(call.output().device).take(call.output(), call.input(0), call.input(1), axis, bad))
    fail_range(call, bad, axis);
}

bool detail::take_accepts(const Call& call) { return accepts_index(call.input(0), call.input(1), axis_of(call)); }

Joining detail::joining_of_take(const Call& call) {
  if (axis_of(call) != 0 || call.specs[0].rank == max_rank) return {};
  auto by = call.input(1).rank > 0 ? Joining::By::rows : Joining::By::stacked;
  return {.by = by, .shared = inputs({0})};
}

void detail::take_gradient(Gradient& g) {
  enum { in_x, in_indices };
  const Tensor& d = g.output();
  g.accumulate(in_x, invoke(take_gradient_op, {&d, &g.saved_input(in_indices)},
                            {g.input_shape(in_x), d.dtype(), d.device()}, g.where(), g.attribute_bytes()));
}

Tensor detail::take_rows(const OpInfo& op, const Tensor& x, const Tensor& indices, int axis, Location where) {
  check_index_dtype(op.name, indices, where);
  check_same_device(op.name, x, indices, where);
  const Body &from = x.body(), &at = indices.body();
  if (from.rank - 1 + at.rank > max_rank)
    fail<ShapeError>(op.name, where, "the indices {} make {} axes of {}: there can be 8", to_string(indices.shape()),
                     from.rank - 1 + at.rank, describe(x));
  Shape shape;
  for (int i = 0; i < axis; ++i) shape.push_back(from.dims[i]);
  for (int i = 0; i < at.rank; ++i) shape.push_back(at.dims[i]);
  for (int i = axis + 1; i < from.rank; ++i) shape.push_back(from.dims[i]);
  return invoke(op, {&x, &indices}, {shape, x.dtype(), x.device()}, where, bytes_of(AxisAttributes{axis}));
}

void detail::check_index_vector(const char* op, const Tensor& index, Location where) {
  if (index.rank() != 1) fail<ShapeError>(op, where, "the index {} is not a vector", describe(index));
}

constexpr OpInfo take_op = taking("take"), index_select_op = taking("index_select");

Tensor take(const Arg& x, const Arg& indices, int axis) {
  const Tensor &from = tensor_of("take", x), &at = tensor_of("take", indices);
  return take_rows(take_op, from, at, check_axis("take", axis, from, x.location()), x.location());
}

Tensor take(const Arg& x, const Arg& indices) {
  const Tensor &from = tensor_of("take", x), &at = tensor_of("take", indices);
  return take_rows(take_op, from.rank() == 1 ? from : reshape(x, {-1}), at, 0, x.location());
}

Tensor index_select(const Arg& x, int axis, const Arg& index) {
  const Tensor &from = tensor_of("index_select", x), &at = tensor_of("index_select", index);
  axis = check_axis("index_select", axis, from, x.location());
  check_index_vector("index_select", at, x.location());
  return take_rows(index_select_op, from, at, axis, x.location());
}

// index_add: y = x with s added at the index along an axis;  dx = d,  ds = d taken there

constexpr OpInfo index_add_op{
    .name = "index_add",
    .forward =
        [](Call& call) {
          int axis = axis_of(call);
          const KernelTable& table = kernels(call.output().device);
          std::int64_t bad;
          if (!table.indices_within(call.input(1), call.output().dims[axis], bad)) fail_range(call, bad, axis);
          table.copy(call.output(), call.input(0));
          table.index_add(call.output(), call.input(2), call.input(1), axis);
        },
    .gradient =
        [](Gradient& g) {
          enum { in_x, in_index, in_source };
          g.accumulate(in_x, g.output());
          if (g.wants(in_source)) g.accumulate(in_source, take(g.output(), g.saved_input(in_index), axis_of(g)));
        },
    .saves_input_for = {0, inputs({2})},
    .joining = runs_alone,
    .accepts_elements = [](const Call& call) { return accepts_index(call.input(0), call.input(1), axis_of(call)); },
};

Tensor index_add(const Arg& x, int axis, const Arg& index, const Arg& source) {
  const char* name = index_add_op.name;
  const Tensor &to = tensor_of(name, x), &at = tensor_of(name, index), &from = tensor_of(name, source);
  Location where = x.location();
  axis = check_axis(name, axis, to, where);
  check_index_dtype(name, at, where);
  check_index_vector(name, at, where);
  check_same_device(name, to, at, where);
  Shape shape = to.shape();
  shape[axis] = at.numel();
  if (from.shape() != shape)
    fail<ShapeError>(name, where, "the source {} does not have the shape {} that x {} and the index {} ask for",
                     to_string(from.shape()), to_string(shape), describe(to), to_string(at.shape()));
  if (from.dtype() != to.dtype())
    fail<DTypeError>(name, where, "the source {} does not have x's dtype {}", describe(from), name_of(to.dtype()));
  check_same_device(name, to, from, where);
  return invoke(index_add_op, {&to, &at, &from}, {to.body(), to.dtype()}, where, bytes_of(AxisAttributes{axis}));
}

// segment_sum: y_s = Σ x_n over n in segment s;  dx = d taken at the segments

namespace {

// The segments of each call follow those of the one before.
void run_joined_sums(Call& joined, std::span<const std::int64_t> starts, std::span<const std::int64_t> result_starts) {
  DeviceGuard here(cpu);
  std::vector<std::int64_t> ids = to(*joined.inputs[1], DType::i64).to_vector<std::int64_t>();
  for (std::size_t k = 0; k + 1 < starts.size(); ++k)
    for (std::int64_t i = starts[k]; i < starts[k + 1]; ++i) {
      std::int64_t &id = ids[static_cast<std::size_t>(i)], segments = result_starts[k + 1] - result_starts[k];
      if (id < -segments || id >= segments) throw InternalError("segment_sum: a segment is out of range");
      id += result_starts[k + (id < 0)];
    }
  joined.outputs[0] = segment_sum(*joined.inputs[0], tensor(ids), result_starts.back());
}

}  // namespace

constexpr OpInfo segment_sum_op{
    .name = "segment_sum",
    .forward =
        [](Call& call) {
          const KernelTable& table = kernels(call.output().device);
          std::int64_t bad, segments = call.output().dims[0];
          if (!table.indices_within(call.input(1), segments, bad))
            fail<IndexError>(call.op.name, call.where, "segment {} is out of range for {} segments", bad, segments);
          table.fill(call.output(), 0, 0);
          table.index_add(call.output(), call.input(0), call.input(1), 0);
        },
    .gradient = [](Gradient& g) { g.accumulate(0, take(g.output(), g.saved_input(1), 0)); },
    .saves_input_for = {0, inputs({0})},
    .joining = [](const Call& call) -> Joining {
      if (call.input(0).device != cpu || call.specs[0].dims[0] == 0) return {};
      return {.by = Joining::By::rows, .own_rows = true};
    },
    .run_joined = run_joined_sums,
    .accepts_elements = [](const Call& call) { return are_classes(call.input(1), call.specs[0].dims[0]); },
};

Tensor segment_sum(const Arg& x, const Arg& segment_ids, std::int64_t segments) {
  const char* name = segment_sum_op.name;
  const Tensor &from = tensor_of(name, x), &at = tensor_of(name, segment_ids);
  Location where = x.location();
  check_index_dtype(name, at, where);
  if (from.rank() == 0 || at.rank() != 1 || at.numel() != from.body().dims[0])
    fail<ShapeError>(name, where, "the segment ids {} are not one for each row of x {}", to_string(at.shape()),
                     describe(from));
  if (segments < 0) fail<ShapeError>(name, where, "there cannot be {} segments", segments);
  check_same_device(name, from, at, where);
  Shape shape = from.shape();
  shape[0] = segments;
  return invoke(segment_sum_op, {&from, &at}, {shape, from.dtype(), from.device()}, where);
}

// index_put: y = x with v written, or added, at rows;  dx = d, but 0 where v was written,  dv = d taken there, 0 for
// overwritten elements

namespace {

Tensor put_rows(const Tensor& x, const Tensor& rows, const Tensor& values, bool accumulate, Location where);

}  // namespace

constexpr OpInfo index_put_op{
    .name = "index_put",
    .forward =
        [](Call& call) {
          const KernelTable& table = kernels(call.output().device);
          table.copy(call.output(), call.input(0));
          bool accumulate = call.attributes<PutAttributes>().accumulate != 0;
          (accumulate ? table.index_add : table.index_copy)(call.output(), call.input(2), call.input(1), 0);
        },
    .gradient =
        [](Gradient& g) {
          enum { in_x, in_rows, in_values };
          const Tensor &d = g.output(), &rows = g.saved_input(in_rows);
          bool accumulate = g.attributes<PutAttributes>().accumulate != 0;
          Tensor taken = take(d, rows, 0);
          if (accumulate) {
            g.accumulate(in_x, d);
            return g.accumulate(in_values, taken);
          }
          TensorOptions places{.dtype = DType::i64, .device = d.device()};
          g.accumulate(in_x,
                       put_rows(d, rows, expand(zeros({}, {.dtype = d.dtype(), .device = d.device()}), taken.shape()),
                                false, g.where()));
          if (!g.wants(in_values)) return;
          // Writes each row's index; a row that reads another one's index has been overwritten.
          Tensor numbers = reshape(arange(rows.numel(), {.dtype = DType::i64, .device = d.device()}), rows.shape());
          Tensor left = put_rows(zeros({d.size(0)}, places), rows, numbers, false, g.where());
          Shape shape = rows.shape();
          while (shape.rank() < taken.rank()) shape.push_back(1);
          g.accumulate(in_values, where(reshape(take(left, rows, 0) == numbers, shape), taken, 0));
        },
    .saves_input_for = {0, inputs({0, 2})},
};

namespace {

Tensor put_rows(const Tensor& x, const Tensor& rows, const Tensor& values, bool accumulate, Location where) {
  return invoke(index_put_op, {&x, &rows, &values}, {x.body(), x.dtype()}, where, bytes_of(PutAttributes{accumulate}));
}

std::string shapes_of(std::span<const Tensor> tensors) {
  std::string text;
  for (const Tensor& tensor : tensors) text += (text.empty() ? "" : ", ") + to_string(tensor.shape());
  return text;
}

}  // namespace

Tensor detail::merged_index(const char* name, const Tensor& x, std::span<const Tensor> indices, Location where) {
  int count = static_cast<int>(indices.size());
  if (count == 0 || count > x.rank())
    fail<IndexError>(name, where, "{} indices do not fit {}: there must be at least one, and no more than axes", count,
                     describe(x));
  Tensor merged;
  Shape shape;
  for (int axis = 0; axis < count; ++axis) {
    const Tensor& index = tensor_of(name, Arg(indices[static_cast<std::size_t>(axis)], where));
    check_index_dtype(name, index, where);
    check_same_device(name, x, index, where);
    std::int64_t size = x.body().dims[axis], bad;
    if (!are_within(name, index, size, bad, where))
      fail<IndexError>(name, where, "index {} is out of range for axis {} of {}", bad, axis, describe(x));
    if (!broadcast(Shape(shape), index.shape(), shape))
      fail<ShapeError>(name, where, "the indices do not broadcast: {}", shapes_of(indices));
    if (count == 1) return index;
    Tensor place = to_if_needed(index, DType::i64);
    place = reel::where(place < 0, place + size, place);
    merged = axis == 0 ? place : merged * size + place;
  }
  return merged;
}

Tensor index_put(const Arg& x, std::span<const Tensor> indices, const Arg& values, IndexPutOptions options) {
  return detail::index_put(index_put_op.name, x, indices, values, options);
}

Tensor detail::index_put(const char* name, const Arg& x, std::span<const Tensor> indices, const Arg& values,
                         IndexPutOptions options) {
  const Tensor& to = tensor_of(name, x);
  Location where = x.location();
  OpScope caller(where, name);
  // A number is added to halves in f32, as by `add`.
  if (options.accumulate && !values.is_tensor() && is_half(to.dtype()))
    return to_if_needed(index_put(name, Arg(widened(to), where), indices, values, options), to.dtype());
  Tensor rows = merged_index(name, to, indices, where), value = value_for(name, to, values, where);
  Shape merged, wanted = rows.shape();
  int leading = static_cast<int>(indices.size());
  merged.push_back(1);
  for (int i = 0; i < leading; ++i) merged[0] *= to.body().dims[i];
  if (wanted.rank() + to.rank() - leading > max_rank)
    fail<ShapeError>(name, where, "the indices {} ask for values with {} axes, for {}: there can be 8",
                     to_string(rows.shape()), wanted.rank() + to.rank() - leading, describe(to));
  for (int i = leading; i < to.rank(); ++i) {
    merged.push_back(to.body().dims[i]);
    wanted.push_back(to.body().dims[i]);
  }
  Shape broad;
  if (!broadcast(value.shape(), wanted, broad) || broad != wanted)
    fail<ShapeError>(name, where, "the values {} do not broadcast to {}, what the indices select of {}",
                     to_string(value.shape()), to_string(wanted), describe(to));
  value = expand_if_needed(value, wanted);
  if (leading == 1) return put_rows(to, rows, value, options.accumulate, where);
  return reshape(put_rows(reshape(to, merged), rows, value, options.accumulate, where), to.shape());
}

OpList detail::take_ops() {
  static constexpr const OpInfo* ops[] = {&take_op,      &take_gradient_op, &index_select_op,
                                          &index_add_op, &segment_sum_op,   &index_put_op};
  return ops;
}

}  // namespace reel
