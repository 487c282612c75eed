#include <reel/indexing.h>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include <span>

#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../../record/tape_list.h"
#include "../if_needed.h"
#include "../registry.h"
#include "assign_part.h"
#include "range.h"

namespace reel {

using namespace detail;

constexpr Index detail::no_index;

namespace {

// The attributes of these ops are an array of parts.
std::span<const std::byte> bytes_in(const AxisParts& parts) {
  return std::as_bytes(std::span(parts.parts, static_cast<std::size_t>(parts.count)));
}

std::span<const AxisPart> parts_in(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const AxisPart*>(bytes.data()), bytes.size() / sizeof(AxisPart)};
}

Tensor part_of(const Tensor& x, std::span<const AxisPart> parts, Location where) {
  const Body& body = x.body();
  Shape shape, strides;
  std::int64_t offset = 0;
  int axis = 0;
  for (const AxisPart& part : parts) {
    if (part.kind == AxisPart::added) {
      shape.push_back(1);
      strides.push_back(1);
      continue;
    }
    offset += part.start * body.strides[axis];
    if (part.kind == AxisPart::range) {
      shape.push_back(part.count);
      strides.push_back(body.strides[axis] * part.step);
    }
    ++axis;
  }
  for (; axis < body.rank; ++axis) {
    shape.push_back(body.dims[axis]);
    strides.push_back(body.strides[axis]);
  }
  return view_of(x, shape, strides, shape.numel() == 0 ? 0 : offset, where);
}

}  // namespace

// index: y = a part of x;  dx = zeros with d at the part
// index_gradient: z = zeros in x's shape with d at the part;  dd = that part of e

namespace {

Tensor index_parts(const Tensor& x, std::span<const std::byte> parts, Location where);

}  // namespace

constexpr OpInfo index_gradient_op{
    .name = "index_gradient",
    .forward =
        [](Call& call) {
          const KernelTable& table = kernels(call.output().device);
          table.fill(call.output(), 0, 0);
          Tensor part = part_of(call.outputs[0], parts_in(call.attribute_bytes), call.where);
          table.copy(part.body(), call.input(0));
        },
    .gradient = [](Gradient& g) { g.accumulate(0, index_parts(g.output(), g.attribute_bytes(), g.where())); },
    .internal = true,
};

// sum += d at the part

constexpr OpInfo accumulate_index_op{
    .name = "accumulate_index",
    .forward =
        [](Call& call) {
          Tensor part = part_of(call.outputs[0], parts_in(call.attribute_bytes), call.where);
          kernels(part.device()).binary[binary_place<formulas::Add>](part.body(), part.body(), call.input(1));
        },
    .internal = true,
};

constexpr OpInfo index_op{
    .name = "index",
    .forward =
        [](Call& call) { call.outputs[0] = part_of(*call.inputs[0], parts_in(call.attribute_bytes), call.where); },
    .gradient =
        [](Gradient& g) {
          if (!g.wants(0) || g.add_to_part(0, accumulate_index_op)) return;
          const Tensor& d = g.output();
          g.accumulate(0, invoke(index_gradient_op, {&d}, {g.input_shape(0), d.dtype(), d.device()}, g.where(),
                                 g.attribute_bytes()));
        },
};

namespace {

Tensor index_parts(const Tensor& x, std::span<const std::byte> parts, Location where) {
  return invoke_view(index_op, x, where, parts);
}

AxisPart range_part(const Slice& slice, std::int64_t size) {
  constexpr auto least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  Range range = range_of(slice.start.value_or(slice.step > 0 ? 0 : most),
                         slice.stop.value_or(slice.step > 0 ? most : least), slice.step, size);
  return {AxisPart::range, range.start, range.count, range.step};
}

// The number of axes that a mask or a tensor of indices takes the place of: a mask of rank 0 has an axis of its own.
int axes_of(const Tensor& index) { return index.dtype() == DType::boolean ? index.rank() : 1; }

void check_mask_sizes(const Tensor& x, int axis, const Tensor& mask, Location where) {
  for (int i = 0; i < mask.rank(); ++i)
    if (mask.body().dims[i] != x.body().dims[axis + i])
      fail<ShapeError>(index_op.name, where, "the mask {} does not fit the axes from {} on of {}",
                       to_string(mask.shape()), axis, describe(x));
}

// The tensors among the indices that parts_of has found.
struct FoundTensors {
  AxisIndices indices[max_rank + 2];
  std::size_t count = 0;
};

AxisParts parts_of(const Tensor& x, std::span<const Index* const> indices, FoundTensors& tensors, Location where) {
  const char* name = index_op.name;
  int taken = 0, ellipses = 0, added = 0, picked = 0;
  for (const Index* index : indices) {
    ellipses += index->kind() == Index::Kind::ellipsis;
    added += index->kind() == Index::Kind::newaxis;
    picked += index->kind() == Index::Kind::integer;
    taken += index->kind() == Index::Kind::integer || index->kind() == Index::Kind::slice;
    if (index->kind() != Index::Kind::tensor) continue;
    const Tensor& tensor = tensor_of(name, Arg(*index->tensor(), where));
    int axes = axes_of(tensor);
    taken += axes;
    added += axes == 0;
  }
  if (ellipses > 1) fail<ShapeError>(name, where, "there can be one ellipsis, not {}, for {}", ellipses, describe(x));
  if (taken > x.rank()) fail<IndexError>(name, where, "{} indices are too many for {}", taken, describe(x));
  if (x.rank() - picked + added > max_rank)
    fail<ShapeError>(name, where, "{} new axes are too many for {}: there can be 8 in all", added, describe(x));

  AxisParts parts;
  auto add = [&](AxisPart part) { parts.parts[parts.count++] = part; };
  int axis = 0, dropped = 0;
  for (const Index* index : indices) {
    switch (index->kind()) {
      case Index::Kind::missing: break;
      case Index::Kind::newaxis: add({AxisPart::added, 0, 1, 1}); break;
      case Index::Kind::ellipsis:
        for (int left = x.rank() - taken; left > 0; --left) add({AxisPart::range, 0, x.body().dims[axis++], 1});
        break;
      case Index::Kind::slice:
        if (index->slice().step == 0) fail<ShapeError>(name, where, "a step of 0 goes nowhere, for {}", describe(x));
        add(range_part(index->slice(), x.body().dims[axis++]));
        break;
      case Index::Kind::integer: {
        std::int64_t number = index->number(), size = x.body().dims[axis];
        if (number < -size || number >= size)
          fail<IndexError>(name, where, "index {} is out of range for axis {} of {}", number, axis, describe(x));
        add({AxisPart::picked, number < 0 ? number + size : number, 1, 1});
        ++axis;
        ++dropped;
        break;
      }
      case Index::Kind::tensor: {
        const Tensor& tensor = *index->tensor();
        tensors.indices[tensors.count++] = {&tensor, parts.count - dropped};
        if (tensor.dtype() == DType::boolean) check_mask_sizes(x, axis, tensor, where);
        if (axes_of(tensor) == 0) add({AxisPart::added, 0, 1, 1});
        for (int left = axes_of(tensor); left > 0; --left) add({AxisPart::range, 0, x.body().dims[axis++], 1});
      }
    }
  }
  return parts;
}

}  // namespace

Indexed Tensor::operator()(const Index& first, const Index& second, const Index& third, const Index& fourth,
                           const Index& fifth, const Index& sixth, const Index& seventh, const Index& eighth,
                           const Index& ninth, const Index& tenth, Location where) const {
  const Tensor& x = tensor_of(index_op.name, Arg(*this, where));
  const Index* indices[] = {&first, &second, &third, &fourth, &fifth, &sixth, &seventh, &eighth, &ninth, &tenth};
  FoundTensors tensors;
  AxisParts parts = parts_of(x, indices, tensors, where);
  if (tensors.count == 0) return {index_parts(x, bytes_in(parts), where), x, parts};
  return select_elements(x, parts, {tensors.indices, tensors.count}, where);
}

// index_assign_: writes y to a part of x in place;  dx = d with zeros at the part,  dy = d's part
// index_clear: z = x with zeros at the part;  dx = d with zeros at the part

namespace {

Tensor clear_parts(const Tensor& x, std::span<const std::byte> parts, Location where);
void index_assign_gradient(Gradient& g);

}  // namespace

constexpr OpInfo index_clear_op{
    .name = "index_clear",
    .forward =
        [](Call& call) {
          const KernelTable& table = kernels(call.output().device);
          table.copy(call.output(), call.input(0));
          table.fill(part_of(call.outputs[0], parts_in(call.attribute_bytes), call.where).body(), 0, 0);
        },
    .gradient = [](Gradient& g) { g.accumulate(0, clear_parts(g.output(), g.attribute_bytes(), g.where())); },
    .internal = true,
};

constexpr OpInfo index_assign_in_place_op{
    .name = "index_assign_",
    .forward =
        [](Call& call) {
          Tensor part = part_of(call.outputs[0], parts_in(call.attribute_bytes), call.where);
          kernels(part.device()).copy(part.body(), call.input(1));
        },
    .gradient = index_assign_gradient,
    .writes_part = true,
    .internal = true,
};

namespace {

Tensor clear_parts(const Tensor& x, std::span<const std::byte> parts, Location where) {
  return invoke(index_clear_op, {&x}, {x.body(), x.dtype()}, where, parts);
}

void assign_parts(Tensor x, const Tensor& y, std::span<const std::byte> parts, Location where) {
  const Tensor* inputs[] = {&x, &y};
  Call call{index_assign_in_place_op, inputs, parts, {}, {&x, 1}, where};
  invoke(call);
}

// When many rows are written to a buffer one after the other, each would copy the whole gradient if it were not changed
// in place.
void index_assign_gradient(Gradient& g) {
  enum { in_x, in_part };
  std::span<const std::byte> parts = g.attribute_bytes();
  bool in_place = g.wants(in_x) && !g.recording();
  if (g.wants(in_part)) {
    Tensor part = index_parts(g.output(), parts, g.where());
    g.accumulate(in_part, to_if_needed(in_place ? copy(part) : part, g.input_dtype(in_part)));
  }
  if (!g.wants(in_x)) return;
  if (!in_place) return g.accumulate(in_x, clear_parts(g.output(), parts, g.where()));
  Tensor rest = g.take_output();
  assign_parts(rest, zeros({}, {.dtype = rest.dtype(), .device = rest.device()}), parts, g.where());
  g.accumulate(in_x, std::move(rest));
}

}  // namespace

Indexed detail::view_part(const Tensor& x, const AxisParts& parts, Location where) {
  return {index_parts(x, bytes_in(parts), where), x, parts};
}

void detail::assign_part(const Indexed& part, const Tensor& value, Location where) {
  assign_parts(part.base(), value, bytes_in(part.parts()), where);
}

void detail::show_part(Context& context, const Indexed& part, Location where) {
  Tensor view = part;
  const Tensor* inputs[] = {&part.base()};
  Call call{index_op, inputs, bytes_in(part.parts()), {}, {&view, 1}, where};
  context.tapes->record(context, call);
}

OpList detail::indexing_ops() {
  static constexpr const OpInfo* ops[] = {&index_op, &index_gradient_op, &accumulate_index_op, &index_clear_op,
                                          &index_assign_in_place_op};
  return ops;
}

}  // namespace reel
