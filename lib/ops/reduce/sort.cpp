#include "ordered.h"

#include <reel/no_record.h>
#include <reel/ops/create.h>
#include <reel/ops/index.h>
#include <reel/ops/shape.h>

#include "../../core/op_error.h"
#include "../../kernels/kernel_table.h"
#include "../joining.h"
#include "../operand.h"
#include "../registry.h"
#include "reduction.h"

namespace reel {

using namespace detail;

void detail::accumulate_at_indices(Gradient& g) {
  const Tensor& d = g.output(values_output);
  Tensor nothing = expand(zeros({}, {.dtype = d.dtype(), .device = d.device()}), g.input_shape(0));
  g.accumulate(0, scatter_add(nothing, static_cast<int>(g.attributes<OrderAttributes>().axis),
                              g.saved_output(indices_output), d));
}

ValuesAndIndices detail::invoke_ordered(const OpInfo& op, const Tensor& x, const Shape& shape,
                                        OrderAttributes attributes, Location where) {
  const Tensor* input = &x;
  Tensor outputs[2];
  const OutputSpec specs[] = {{shape, DType::i64, x.device()}, {shape, x.dtype(), x.device()}};
  Call call{op, {&input, 1}, bytes_of(attributes), specs, outputs, where};
  invoke(call);
  return {std::move(outputs[values_output]), std::move(outputs[indices_output])};
}

namespace {

void order(Call& call, decltype(KernelTable::sort) kernel) {
  auto [axis, descending] = call.attributes<OrderAttributes>();
  kernel(call.output(values_output), call.output(indices_output), call.input(0), static_cast<int>(axis),
         descending != 0);
}

}  // namespace

// sort: y = x in order along an axis;  dx = zeros with d at the indices

constexpr OpInfo sort_op{
    .name = "sort",
    .forward = [](Call& call) { order(call, kernels(call.output().device).sort); },
    .gradient = accumulate_at_indices,
    .saves_output_for = {inputs({0})},
    .joining = by_other_axes,
};

ValuesAndIndices sort(const Arg& x, int axis, SortOptions options) {
  const Tensor& tensor = tensor_of("sort", x);
  axis = check_axis("sort", axis, tensor, x.location());
  return invoke_ordered(sort_op, tensor, tensor.shape(), {axis, options.descending}, x.location());
}

Tensor argsort(const Arg& x, int axis, SortOptions options) {
  const Tensor& tensor = tensor_of("argsort", x);
  axis = check_axis("argsort", axis, tensor, x.location());
  NoRecord pause;  // no gradient flows through indices
  return invoke_ordered(sort_op, tensor, tensor.shape(), {axis, options.descending}, x.location()).indices;
}

// topk: y = the k largest of x in order;  dx = zeros with d at the indices

constexpr OpInfo topk_op{
    .name = "topk",
    .forward = [](Call& call) { order(call, kernels(call.output().device).topk); },
    .gradient = accumulate_at_indices,
    .saves_output_for = {inputs({0})},
    .joining = by_other_axes,
};

ValuesAndIndices topk(const Arg& x, std::int64_t k, int axis, TopKOptions options) {
  const Tensor& tensor = tensor_of("topk", x);
  axis = check_axis("topk", axis, tensor, x.location());
  Shape shape = tensor.shape();
  if (k < 0 || k > shape[axis])
    fail<ShapeError>("topk", x.location(), "there are not {} elements along axis {} of {}", k, axis, describe(tensor));
  shape[axis] = k;
  return invoke_ordered(topk_op, tensor, shape, {axis, options.largest}, x.location());
}

ValuesAndIndices kthvalue(const Arg& x, std::int64_t k, int axis, KthValueOptions options) {
  const Tensor& tensor = tensor_of("kthvalue", x);
  axis = check_axis("kthvalue", axis, tensor, x.location());
  OpScope caller(x.location(), "kthvalue");
  if (k < 1 || k > tensor.size(axis))
    fail<ShapeError>("kthvalue", x.location(), "there is no {}-th smallest element along axis {} of {}", k, axis,
                     describe(tensor));
  const std::int64_t rank[] = {~(k - 1)};
  Tensor rows = transpose(tensor, axis, -1), places = places_of_ranks(rows, rank, x.location());
  auto result = [&](const Tensor& found) {
    return options.keepdims ? transpose(found, axis, -1) : squeeze(transpose(found, axis, -1), axis);
  };
  return {result(gather(rows, -1, places)), result(places)};
}

// searchsorted: y = the number of elements of `sorted` that are smaller; no gradient

namespace {

struct SearchAttributes {
  std::int64_t right;
};

}  // namespace

constexpr OpInfo searchsorted_op{
    .name = "searchsorted",
    .forward =
        [](Call& call) {
          kernels(call.output().device)
              .searchsorted(call.output(), call.input(0), call.input(1),
                            call.attributes<SearchAttributes>().right != 0);
        },
    .joining = [](const Call& call) -> Joining {
      if (call.input(0).rank > 1) return {.by = Joining::By::rows};
      auto by = call.input(1).rank > 0 ? Joining::By::rows : Joining::By::stacked;
      return {.by = by, .shared = inputs({0})};
    },
};

Tensor searchsorted(const Arg& sorted, const Arg& values, SearchSortedOptions options) {
  const char* name = searchsorted_op.name;
  const Tensor& row = tensor_of(name, sorted);
  Location where = sorted.location();
  DType dtype = common_dtype(name, sorted, values);
  Operand rows(name, sorted, dtype, values), wanted(name, values, dtype, sorted);
  check_same_device(name, *rows, *wanted, where);
  bool fits = rows->rank() == 1 || (rows->rank() > 1 && rows->rank() == wanted->rank());
  for (int i = 0; fits && i + 1 < rows->rank(); ++i) fits = rows->body().dims[i] == wanted->body().dims[i];
  if (!fits)
    fail<ShapeError>(name, where,
                     "{} is neither one sorted row for all values, nor has it one for each row of the values {}",
                     describe(row), to_string(wanted->shape()));
  return invoke(searchsorted_op, {&*rows, &*wanted}, {wanted->shape(), DType::i64, wanted->device()}, where,
                bytes_of(SearchAttributes{options.right}));
}

Tensor bucketize(const Arg& x, const Arg& boundaries, SearchSortedOptions options) {
  const Tensor &tensor = tensor_of("bucketize", x), &ends = tensor_of("bucketize", boundaries);
  if (ends.rank() != 1)
    fail<ShapeError>("bucketize", x.location(), "the boundaries {} are not a vector", describe(ends));
  check_same_device("bucketize", tensor, ends, x.location());
  OpScope caller(x.location(), "bucketize");
  return searchsorted(ends, tensor, options);
}

OpList detail::sort_ops() {
  static constexpr const OpInfo* ops[] = {&sort_op, &topk_op, &searchsorted_op};
  return ops;
}

}  // namespace reel
