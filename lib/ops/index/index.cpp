#include <reel/ops/index.h>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include "../../core/iteration.h"
#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../joining.h"
#include "../operand.h"
#include "../registry.h"
#include "index_checks.h"

namespace reel {

using namespace detail;

void detail::check_index_dtype(const char* op, const Tensor& index, Location where) {
  if (index.dtype() != DType::i32 && index.dtype() != DType::i64)
    fail<DTypeError>(op, where, "indices are i32 or i64, not {}; convert them with to(index, i64)", describe(index));
}

bool detail::are_within(const char* op, const Tensor& indices, std::int64_t size, std::int64_t& bad, Location where) {
  wait_for(indices, where);
  if (indices.device() == cpu) return kernels(cpu).indices_within(indices.body(), size, bad);
  OpInfo check{
      .name = op, .forward = [](Call& call) {
        std::int64_t found;
        kernels(call.inputs[0]->device()).indices_within(call.input(0), call.attributes<std::int64_t>(), found);
      }};
  const Tensor* inputs[] = {&indices};
  Call call{check, inputs, bytes_of(size), {}, {}, where};
  invoke(call);
  return true;
}

bool detail::accepts_index(const Body& x, const Body& index, int axis) {
  std::int64_t bad;
  return !(index.marks & Body::pending) && kernels(cpu).indices_within(index, x.dims[axis], bad);
}

bool detail::are_classes(const Body& x, std::int64_t classes, std::optional<std::int64_t> ignored) {
  if (x.marks & Body::pending) return false;
  Iteration<1> iteration({&x});
  bool fit = true;
  auto look_at = [&]<class T>(const T* first) {
    iteration.for_each_row([&](const std::int64_t* offset) {
      for (std::int64_t i = 0; i < iteration.dims[0]; ++i) {
        std::int64_t found = first[offset[0] + i * iteration.strides[0][0]];
        fit &= found == ignored || (found >= 0 && found < classes);
      }
    });
  };
  x.dtype == DType::i32 ? look_at(x.as<std::int32_t>()) : look_at(x.as<std::int64_t>());
  return fit;
}

void detail::fail_range(const Call& call, std::int64_t bad, int axis) {
  fail<IndexError>(call.op.name, call.where, "index {} is out of range for axis {} of {}", bad, axis,
                   describe(*call.inputs[0]));
}

Tensor detail::value_for(const char* op, const Tensor& x, const Arg& value, Location where) {
  if (!value.is_tensor()) {
    if (common_dtype(op, Arg(x, where), value) != x.dtype())
      fail<DTypeError>(op, where, "the number {} does not fit into {}", value.number(), describe(x));
    check_fits(op, value, x.dtype());
    return full({}, value, {.dtype = x.dtype(), .device = x.device()});
  }
  const Tensor& tensor = tensor_of(op, value);
  if (tensor.dtype() != x.dtype())
    fail<DTypeError>(op, where, "the values {} do not have x's dtype {}", describe(tensor), name_of(x.dtype()));
  check_same_device(op, x, tensor, where);
  return tensor;
}

void detail::check_index_shape(const char* op, const Tensor& x, const Tensor& index, int axis, Location where) {
  bool fits = index.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == axis || index.body().dims[i] <= x.body().dims[i];
  if (!fits)
    fail<ShapeError>(op, where,
                     "the index {} does not fit x {}: ranks must agree, and no size but that of axis {} may be larger",
                     to_string(index.shape()), to_string(x.shape()), axis);
}

void detail::check_index_range(const char* op, const Tensor& x, const Tensor& index, int axis, Location where) {
  std::int64_t bad;
  if (!are_within(op, index, x.body().dims[axis], bad, where))
    fail<IndexError>(op, where, "index {} is out of range for axis {} of {}", bad, axis, describe(x));
}

namespace {

// For x and an index: by rows where the index has all of x's rows.
Joining joining_with_index(const Call& call) {
  bool all_rows = call.input(0).dims[0] == call.input(1).dims[0];
  return all_rows ? by_other_axes(call) : stacked_beside_axis(call);
}

bool accepts_index_of_axis(const Call& call) {
  return accepts_index(call.input(0), call.input(1), static_cast<int>(call.attributes<AxisAttributes>().axis));
}

}  // namespace

// gather: y[…, j, …] = x[…, index[…, j, …], …];  dx = zeros with d added at the index

constexpr OpInfo gather_op{
    .name = "gather",
    .forward =
        [](Call& call) {
          int axis = static_cast<int>(call.attributes<AxisAttributes>().axis);
          std::int64_t bad;
          if (!kernels(call.output().device).gather(call.output(), call.input(0), call.input(1), axis, bad))
            fail_range(call, bad, axis);
        },
    .gradient =
        [](Gradient& g) {
          enum { in_x, in_index };
          const Tensor& d = g.output();
          Tensor nothing = expand(zeros({}, {.dtype = d.dtype(), .device = d.device()}), g.input_shape(in_x));
          int axis = static_cast<int>(g.attributes<AxisAttributes>().axis);
          g.accumulate(in_x, scatter_add(nothing, axis, g.saved_input(in_index), d));
        },
    .saves_input_for = {0, inputs({0})},
    .joining = [](const Call& call) -> Joining {
      // Joined, x may be copied, which takes longer than to take a few of many elements.
      if (call.input(0).numel > 1024 + 16 * call.input(1).numel) return {};
      return joining_with_index(call);
    },
    .accepts_elements = accepts_index_of_axis,
};

Tensor gather(const Arg& x, int axis, const Arg& index) {
  const Tensor &from = tensor_of("gather", x), &at = tensor_of("gather", index);
  Location where = x.location();
  axis = check_axis("gather", axis, from, where);
  check_index_dtype("gather", at, where);
  check_index_shape("gather", from, at, axis, where);
  check_same_device("gather", from, at, where);
  return invoke(gather_op, {&from, &at}, {at.body(), from.dtype()}, where, bytes_of(AxisAttributes{axis}));
}

// scatter: y = x with s written at the index;  dx = d but 0 there,  ds = d gathered there, 0 for overwritten elements

constexpr OpInfo scatter_op{
    .name = "scatter",
    .forward =
        [](Call& call) {
          int axis = static_cast<int>(call.attributes<AxisAttributes>().axis);
          const KernelTable& table = kernels(call.output().device);
          std::int64_t bad;
          if (!table.indices_within(call.input(1), call.output().dims[axis], bad)) fail_range(call, bad, axis);
          table.copy(call.output(), call.input(0));
          table.scatter(call.output(), call.input(2), call.input(1), axis);
        },
    .gradient =
        [](Gradient& g) {
          enum { in_x, in_index, in_source };
          const Tensor &d = g.output(), &index = g.saved_input(in_index);
          int axis = static_cast<int>(g.attributes<AxisAttributes>().axis);
          if (g.wants(in_x)) g.accumulate(in_x, scatter(d, axis, index, 0));
          if (!g.wants(in_source)) return;
          // Scatters each element's index; an element that gathers another one's index has been overwritten.
          Tensor numbers = reshape(arange(index.numel(), {.dtype = DType::i64, .device = d.device()}), index.shape());
          Tensor left = scatter(zeros(d.shape(), {.dtype = DType::i64, .device = d.device()}), axis, index, numbers);
          g.accumulate(in_source, where(gather(left, axis, index) == numbers, gather(d, axis, index), 0));
        },
    .saves_input_for = {0, inputs({0, 2})},
    .joining = joining_with_index,
    .accepts_elements = accepts_index_of_axis,
};

Tensor scatter(const Arg& x, int axis, const Arg& index, const Arg& source) {
  const char* name = scatter_op.name;
  const Tensor &to = tensor_of(name, x), &at = tensor_of(name, index);
  Location where = x.location();
  OpScope caller(where, name);
  axis = check_axis(name, axis, to, where);
  check_index_dtype(name, at, where);
  check_index_shape(name, to, at, axis, where);
  check_same_device(name, to, at, where);
  Tensor from = value_for(name, to, source, where);
  if (!source.is_tensor()) from = expand(from, at.shape());
  if (from.shape() != at.shape())
    fail<ShapeError>(name, where, "the source {} does not have the index's shape {}", to_string(from.shape()),
                     to_string(at.shape()));
  return invoke(scatter_op, {&to, &at, &from}, {to.body(), to.dtype()}, where, bytes_of(AxisAttributes{axis}));
}

// scatter_add: y = x with u added at the index;  dx = d,  du = d gathered there

constexpr OpInfo scatter_add_op{
    .name = "scatter_add",
    .forward =
        [](Call& call) {
          int axis = static_cast<int>(call.attributes<AxisAttributes>().axis);
          const KernelTable& table = kernels(call.output().device);
          std::int64_t bad;
          if (!table.indices_within(call.input(1), call.output().dims[axis], bad)) fail_range(call, bad, axis);
          table.copy(call.output(), call.input(0));
          table.scatter_add(call.output(), call.input(2), call.input(1), axis);
        },
    .gradient =
        [](Gradient& g) {
          enum { in_x, in_index, in_updates };
          g.accumulate(in_x, g.output());
          if (g.wants(in_updates))
            g.accumulate(in_updates, gather(g.output(), static_cast<int>(g.attributes<AxisAttributes>().axis),
                                            g.saved_input(in_index)));
        },
    .saves_input_for = {0, inputs({2})},
    .joining = joining_with_index,
    .accepts_elements = accepts_index_of_axis,
};

Tensor scatter_add(const Arg& x, int axis, const Arg& index, const Arg& updates) {
  const char* name = scatter_add_op.name;
  const Tensor &to = tensor_of(name, x), &at = tensor_of(name, index), &from = tensor_of(name, updates);
  Location where = x.location();
  axis = check_axis(name, axis, to, where);
  check_index_dtype(name, at, where);
  check_index_shape(name, to, at, axis, where);
  if (from.shape() != at.shape())
    fail<ShapeError>(name, where, "the updates {} do not have the index's shape {}", to_string(from.shape()),
                     to_string(at.shape()));
  if (from.dtype() != to.dtype())
    fail<DTypeError>(name, where, "the updates {} do not have x's dtype {}", describe(from), name_of(to.dtype()));
  check_same_device(name, to, at, where);
  check_same_device(name, to, from, where);
  return invoke(scatter_add_op, {&to, &at, &from}, {to.body(), to.dtype()}, where, bytes_of(AxisAttributes{axis}));
}

OpList detail::index_ops() {
  static constexpr const OpInfo* ops[] = {&gather_op, &scatter_op, &scatter_add_op};
  return ops;
}

}  // namespace reel
