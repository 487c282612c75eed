#include "batch.h"

#include <cstring>
#include <utility>
#include <vector>

#include <reel/no_record.h>
#include <reel/ops/shape.h>

#include "../../core/context.h"
#include "../../core/joint_body.h"
#include "../../core/memory_error.h"
#include "../../core/op_error.h"
#include "../../core/storage.h"
#include "../../dispatch/invoke.h"
#include "../../dispatch/listener_scope.h"
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

// Gives a pending tensor elements of `whole`, from `offset` of them on.
void place_behind(Body& pending, const Body& whole, std::int64_t offset) {
  replace_storage(pending, whole);
  pending.data = static_cast<char*>(whole.data) + offset * static_cast<std::int64_t>(size_of(whole.dtype));
  TapeList::mark_current(pending);
}

// The memory from a tensor's first element to behind its last.
struct Extent {
  char *begin, *end;

  explicit Extent(const Body& x) : begin(static_cast<char*>(x.data)), end(begin) {
    if (x.numel == 0) return;
    auto size = static_cast<std::int64_t>(size_of(x.dtype));
    for (int i = 0; i < x.rank; ++i) (x.strides[i] < 0 ? begin : end) += (x.dims[i] - 1) * x.strides[i] * size;
    end += size;
  }
  // Includes another one that overlaps this one; returns false if it does not.
  bool include(const Extent& other) {
    if (other.end <= begin || end <= other.begin) return false;
    begin = std::min(begin, other.begin);
    end = std::max(end, other.end);
    return true;
  }
};

// The tensors that share elements with a grouped one, and it, all of which `extent` then contains. The parts of other
// examples lie beside its own.
std::vector<Body*> tensors_of_example(Context& context, const char* op, const Tensor& x, Extent& extent,
                                      Location where) {
  std::vector<Body*> found{&x.body()}, others;
  if (!(x.body().marks & Body::viewed)) return found;
  std::uint32_t known = 0;
  {
    Heap::Inspection inspection(*context.heap);
    for (void* block : inspection.bodies()) {
      auto* body = static_cast<Body*>(block);
      if (body->storage != x.body().storage) continue;
      ++known;
      if (body != &x.body() && body->marks & Body::grouped) others.push_back(body);
    }
  }
  if (known != x.body().storage->references.count())
    fail<Error>(op, where,
                "{}, made at {}, is the result of an op that batch_map has run for several examples at once, and "
                "another thread has a tensor that shares its elements; overwrite a copy",
                describe(x), to_string(x.made_at()));
  for (bool grows = true; std::exchange(grows, false);)
    for (Body*& other : others)
      if (other && extent.include(Extent(*other))) {
        found.push_back(std::exchange(other, nullptr));
        grows = true;
      }
  return found;
}

}  // namespace

void leave_group(const char* op, const Tensor& x, Location where) {
  Context& context = detail::context();
  wait_for(x, where);
  wait_for_uses(x, context);
  with_memory_error(op, where, [&] {
    if (!(x.body().marks & Body::grouped)) [[likely]]
      return;
    wait_for_all(context);  // nothing waits from here on, as others might make or free views then
    Storage* from = x.body().storage;
    Extent extent(x.body());
    std::vector<Body*> bodies = tensors_of_example(context, op, x, extent, where);
    auto size = static_cast<std::int64_t>(size_of(x.dtype()));
    NoRecord pause;
    Unobserved unobserved(context);
    Tensor shared = view_of(x, {(extent.end - extent.begin) / size}, {1},
                            (extent.begin - static_cast<char*>(x.body().data)) / size, where);
    Tensor own = copy(Arg(shared, where));
    Storage* to = own.body().storage;
    to->version.store(from->version.load(std::memory_order_relaxed), std::memory_order_relaxed);
    for (Body* body : bodies) {
      body->data = static_cast<char*>(own.body().data) + (static_cast<char*>(body->data) - extent.begin);
      body->marks = 0;
      body->storage = to;
      to->references.retain();
      from->references.release();  // `shared` is another owner
    }
  });
}

// batch: y = x_1, x_2, … along axis 0;  dx_i = its rows of d

constexpr OpInfo batch_op{
    .name = "batch",
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
    .internal = true,
};

// unbatch: y_i = its rows of x;  dx = d_1, d_2, … along axis 0

constexpr OpInfo unbatch_op{
    .name = "unbatch",
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
            if (call.outputs[i].defined()) {
              place_behind(call.outputs[i].body(), whole.body(), parts.start(i) * stride);
              continue;
            }
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
    .internal = true,
};

OpList batch_ops() {
  static constexpr const OpInfo* ops[] = {&batch_op, &unbatch_op};
  return ops;
}

}  // namespace reel::detail
