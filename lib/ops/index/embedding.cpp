#include <reel/ops/embedding.h>

#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>
#include <reel/ops/sort.h>

#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/embedding.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../registry.h"
#include "index_checks.h"
#include "take.h"

namespace reel {

using namespace detail;

// embedding: y = x[indices];  dx = zeros with d added there, or the rows of d

namespace {

void accumulate_rows(Gradient& g) {
  enum { in_table, in_indices };
  if (!g.takes_rows(in_table)) return take_gradient(g);
  const Tensor &d = g.output(), &indices = g.saved_input(in_indices);
  g.accumulate_rows(in_table, reshape(indices, {indices.numel()}), reshape(d, {indices.numel(), d.size(-1)}));
}

}  // namespace

constexpr OpInfo embedding_op = taking("embedding"), embedding_by_rows_op = taking("embedding", accumulate_rows, true);

Tensor embedding(const Arg& table, const Arg& indices, EmbeddingOptions options) {
  const Tensor &from = tensor_of("embedding", table), &at = tensor_of("embedding", indices);
  if (from.rank() != 2)
    fail<ShapeError>("embedding", table.location(), "the table {} is not a matrix of rows", describe(from));
  return take_rows(options.row_gradient ? embedding_by_rows_op : embedding_op, from, at, 0, table.location());
}

namespace {

struct BagAttributes {
  BagSum mode;
  std::int64_t row_gradient;  // not 0: by rows
};

constexpr int sums_output = 0, rows_output = 1;

// The index of the bag of each of n indices.
Tensor bags_of(const Tensor& starts, std::int64_t count) {
  return searchsorted(starts, arange(count, {.dtype = DType::i64, .device = starts.device()}), {.right = true}) - 1;
}

// The gradient of each row of a bag, in f32 for halves.
Tensor row_gradients(const Tensor& d, const Tensor& starts, const BagAttributes& attributes) {
  Tensor wide = widened(d);
  if (attributes.mode == BagSum::sum) return wide;
  Tensor counts = slice(starts, 0, 1) - slice(starts, 0, 0, -1);
  return wide / unsqueeze(to(maximum(counts, 1), wide.dtype()), 1);
}

}  // namespace

// embedding_bag: y_b = Σ w_j x[i_j] over j in bag b, or their mean or maximum;
// dx = w_j d_b added at i_j,  dw_j = d_b · x[i_j]

constexpr OpInfo embedding_bag_op{
    .name = "embedding_bag",
    .forward =
        [](Call& call) {
          const View* weights = call.inputs.size() > 3 ? &call.input(3) : nullptr;
          BagFault fault;
          if (kernels(call.output().device)
                  .embedding->bag(call.output(sums_output), call.output(rows_output), call.input(0),
                                  {call.input(1), call.input(2), weights}, call.attributes<BagAttributes>().mode,
                                  fault))
            return;
          if (!fault.is_start) fail_range(call, fault.value, 0);
          fail<IndexError>(call.op.name, call.where,
                           "the offset {} does not fit: they start with 0, ascend, and are at most {}", fault.value,
                           call.inputs[1]->numel());
        },
    .gradient =
        [](Gradient& g) {
          enum { in_table, in_indices, in_starts, in_weights };
          const auto& attributes = g.attributes<BagAttributes>();
          const Tensor &d = g.output(sums_output), &indices = g.saved_input(in_indices),
                       &starts = g.saved_input(in_starts);
          DType dtype = d.dtype();
          if (attributes.mode == BagSum::max) {
            const Tensor& rows = g.saved_output(rows_output);
            Tensor nothing = zeros(g.input_shape(in_table), {.dtype = dtype, .device = d.device()});
            // Empty bags have no row; if all are empty, the table may have no rows either.
            if (nothing.numel() == 0) return g.accumulate(in_table, nothing);
            return g.accumulate(in_table, scatter_add(nothing, 0, maximum(rows, 0), where(rows < 0, 0.0, d)));
          }
          Tensor flowing = take(row_gradients(d, starts, attributes), bags_of(starts, indices.numel()), 0);
          if (g.input_count() > 3 && g.wants(in_weights)) {
            Tensor chosen = to_if_needed(take(g.saved_input(in_table), indices, 0), flowing.dtype());
            g.accumulate(in_weights, to_if_needed(sum(chosen * flowing, -1), dtype));
          }
          if (!g.wants(in_table)) return;
          if (g.input_count() > 3)
            flowing = flowing * unsqueeze(to_if_needed(g.saved_input(in_weights), flowing.dtype()), 1);
          if (attributes.row_gradient != 0 && g.takes_rows(in_table))
            return g.accumulate_rows(in_table, indices, to_if_needed(flowing, dtype));
          Tensor nothing = zeros(g.input_shape(in_table), {.dtype = flowing.dtype(), .device = d.device()});
          g.accumulate(in_table, to_if_needed(index_add(nothing, 0, indices, flowing), dtype));
        },
    .saves_input_for = {inputs({3}), inputs({0, 3}), inputs({0, 3}), inputs({0})},
    .saves_output_for = {0, inputs({0})},
};

Tensor embedding_bag(const Arg& table, const Arg& indices, const EmbeddingBagOptions& options) {
  const char* name = embedding_bag_op.name;
  const Tensor &x = tensor_of(name, table), &at = tensor_of(name, indices);
  Location where = table.location();
  OpScope caller(where, name);
  check_floating(name, x, where);
  check_index_dtype(name, at, where);
  check_same_device(name, x, at, where);
  if (x.rank() != 2) fail<ShapeError>(name, where, "the table {} is not a matrix of rows", describe(x));
  const Tensor &offsets = options.offsets, &factors = options.per_sample_weights;
  if (at.rank() != (offsets.defined() ? 1 : 2))
    fail<ShapeError>(name, where, "indices {}: there must be (B, L), or a vector with offsets", describe(at));
  Tensor starts;
  if (offsets.defined()) {
    check_index_dtype(name, offsets, where);
    check_same_device(name, x, offsets, where);
    if (offsets.rank() != 1) fail<ShapeError>(name, where, "the offsets {} are not a vector", describe(offsets));
    starts =
        concat({to_if_needed(offsets, DType::i64), full({1}, at.numel(), {.dtype = DType::i64, .device = x.device()})});
  } else {
    starts = arange(at.size(0) + 1, {.dtype = DType::i64, .device = x.device()}) * at.size(1);
  }
  BagAttributes attributes{static_cast<BagSum>(options.mode), options.row_gradient ? 1 : 0};
  Tensor weights;
  if (factors.defined()) {
    if (options.mode != BagMode::sum) fail<Error>(name, where, "per_sample_weights are for sums only");
    if (factors.dtype() != x.dtype())
      fail<DTypeError>(name, where, "the per_sample_weights {} do not have the table's dtype {}", describe(factors),
                       name_of(x.dtype()));
    check_same_device(name, x, factors, where);
    if (factors.shape() != at.shape())
      fail<ShapeError>(name, where, "the per_sample_weights {} do not have the shape of the indices {}",
                       to_string(factors.shape()), to_string(at.shape()));
    weights = contiguous_if_needed(reshape(factors, {factors.numel()}));
  }
  Tensor rows = contiguous_if_needed(Arg(x, where)),
         list = contiguous_if_needed(reshape(to_if_needed(at, DType::i64), {at.numel()}));
  const Tensor* given[] = {&rows, &list, &starts, &weights};
  Shape shape{starts.numel() - 1, x.size(1)}, none{0, 0};
  const OutputSpec specs[] = {{shape, x.dtype(), x.device()},
                              {options.mode == BagMode::max ? shape : none, DType::i64, x.device()}};
  Tensor results[2];
  Call call{embedding_bag_op, {given, factors.defined() ? 4u : 3u}, bytes_of(attributes), specs, results, where};
  invoke(call);
  return std::move(results[sums_output]);
}

OpList detail::embedding_ops() {
  static constexpr const OpInfo* ops[] = {&embedding_op, &embedding_by_rows_op, &embedding_bag_op};
  return ops;
}

}  // namespace reel
