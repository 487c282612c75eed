#include "batch.h"

#include <cstring>

#include <reel/ops/shape.h>

#include "../../core/context.h"
#include "../../core/joint_body.h"
#include "../../core/storage.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../../record/row_division.h"
#include "../registry.h"

namespace reel::detail {

namespace {

// Copies x to `to`, a part of the elements of `whole`.
void copy_part(const Body& whole, char* to, const Body& x) {
  if (x.contiguous && x.device == cpu) {
    std::memcpy(to, x.data, static_cast<std::size_t>(x.numel) * size_of(x.dtype));
    return;
  }
  Shape strides = contiguous_strides(Shape({x.dims, static_cast<std::size_t>(x.rank)}));
  View part = x;
  part.data = to;
  part.strides = strides.data();
  part.contiguous = true;
  kernels(whole.device).copy(part, x);
}

// A view of the form of another view, whose elements lie some bytes behind its.
Tensor view_behind(Context& context, const Body& view, std::int64_t bytes, Location where) {
  Body* body = place_body(context.heap->allocate(body_size(view.rank), Heap::Use::body), context, view.rank, view.dtype,
                          view.device, where);
  std::memcpy(body->extents(), view.dims, static_cast<std::size_t>(view.rank) * sizeof(std::int64_t));
  std::memcpy(body->extents() + view.rank, view.strides, static_cast<std::size_t>(view.rank) * sizeof(std::int64_t));
  body->numel = view.numel;
  body->contiguous = view.contiguous;
  body->data = static_cast<char*>(view.data) + bytes;
  body->storage = view.storage;
  body->storage->references.retain();
  body->slot_version = view.slot_version;
  return Tensor::adopt(body);
}

}  // namespace

// batch: y = x_1, x_2, … along axis 0;  dx_i = its rows of d

constexpr OpInfo batch_op{
    .name = "batch",
    .arity = -1,
    .batching = Batching::loop,
    .forward =
        [](Call& call) {
          const Body& whole = call.output();
          auto* to = static_cast<char*>(whole.data);
          for (const Tensor* input : call.inputs) {
            copy_part(whole, to, input->body());
            to += static_cast<std::size_t>(input->body().numel) * size_of(whole.dtype);
          }
        },
    .gradient = [](Gradient& g) { g.accumulate_parts(RowDivision(g.attribute_bytes())); },
};

// unbatch: y_i = its rows of x;  dx = d_1, d_2, … along axis 0

constexpr OpInfo unbatch_op{
    .name = "unbatch",
    .arity = 1,
    .batching = Batching::loop,
    .forward =
        [](Call& call) {
          const Tensor& whole = *call.inputs[0];
          RowDivision parts(call.attribute_bytes);
          Shape shape = whole.shape(), strides = whole.strides();
          std::int64_t stride = strides[0];
          if (parts.stacked()) {
            shape = Shape(std::span<const std::int64_t>(shape.data() + 1, static_cast<std::size_t>(shape.rank() - 1)));
            strides =
                Shape(std::span<const std::int64_t>(strides.data() + 1, static_cast<std::size_t>(strides.rank() - 1)));
          }
          Context& context = detail::context();
          std::int64_t distance = parts.rows(0) * stride * static_cast<std::int64_t>(size_of(whole.dtype()));
          for (std::size_t i = 0; i < call.outputs.size(); ++i) {
            if (i > 0 && parts.even()) {
              call.outputs[i] =
                  view_behind(context, call.output(0), static_cast<std::int64_t>(i) * distance, call.where);
              continue;
            }
            if (!parts.stacked()) shape[0] = parts.rows(i);
            call.outputs[i] = view_of(whole, shape, strides, parts.start(i) * stride, call.where);
          }
        },
    .gradient = [](Gradient& g) { g.accumulate_whole(RowDivision(g.attribute_bytes())); },
};

std::span<const RegisteredOp> batch_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "batch", .info = &batch_op, .internal = true},
      {.name = "unbatch", .info = &unbatch_op, .internal = true},
  };
  return ops;
}

}  // namespace reel::detail
