#include "storage.h"

#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include <reel/detail/fork_safe_mutex.h>

#include "device/device_module.h"
#include "foreign_memory.h"
#include "joint_body.h"
#include "memory_error.h"
#include "memory_order.h"
#include "op.h"
#include "op_error.h"

namespace reel::detail {
namespace {

[[gnu::always_inline]] inline Body* make_body(Context& context, int rank, DType dtype, Device device,
                                              const Location& where) {
  return place_body(context.heap->allocate(body_size(rank), Heap::Use::body), context, rank, dtype, device, where);
}

bool is_row_major(const Shape& shape, const Shape& strides, std::int64_t count) {
  if (count == 0) return true;
  std::int64_t expected = 1;
  for (int i = shape.rank(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

Shape shape_of(const OutputSpec& spec) { return Shape({spec.dims, static_cast<std::size_t>(spec.rank)}); }

// The number of elements. Throws: ShapeError if it is out of range.
std::int64_t count_of(const OutputSpec& spec, const char* op, Location where) {
  std::int64_t count = 1;
  bool overflow = false;
  for (int i = spec.rank; i-- > 0;) overflow |= __builtin_mul_overflow(count, spec.dims[i], &count);
  if (overflow || count > most_elements)
    fail<ShapeError>(op, where, "a tensor of shape {} is larger than any memory", to_string(shape_of(spec)));
  return count;
}

// Out of line, so that allocating a row-major tensor needs no room for it.
[[gnu::noinline]] void set_order(Body* body, const OutputSpec& spec) {
  MemoryOrder order(spec.order->dims, spec.order->strides, spec.rank);
  std::int64_t *dims = body->extents(), *strides = dims + spec.rank, step = 1;
  body->contiguous = order.is_logical;
  for (int place = order.rank; place-- > 0; step *= dims[order.axes[place]]) strides[order.axes[place]] = step;
}

inline void set_sizes(Body* body, const OutputSpec& spec, std::int64_t count) {
  body->numel = count;
  if (spec.like) [[likely]] {
    for (int i = 0; i < 2 * spec.rank; ++i) body->extents()[i] = spec.dims[i];
    return;
  }
  std::int64_t* dims = body->extents();
  std::int64_t* strides = dims + spec.rank;
  std::int64_t step = 1;
  for (int i = spec.rank; i-- > 0;) {
    dims[i] = spec.dims[i];
    strides[i] = step;
    step *= spec.dims[i];
  }
  if (spec.order) [[unlikely]]
    set_order(body, spec);
}

[[gnu::noinline]] Tensor allocate_apart(Context& context, const OutputSpec& spec, std::int64_t count, const char* op,
                                        const Location& where) {
  try {
    Body* body = make_body(context, spec.rank, spec.dtype, spec.device, where);
    Tensor owner = Tensor::adopt(body);
    set_sizes(body, spec, count);
    std::size_t bytes = static_cast<std::size_t>(count) * size_of(spec.dtype);
    void* block = context.heap->allocate(sizeof(Storage) + bytes, Heap::Use::storage);
    body->storage = place_storage(block, bytes, 0, spec.device);
    body->data = body->storage->data;
    return owner;
  } catch (const std::bad_alloc&) {
    fail_for_memory(op, where, shape_of(spec), spec.dtype);
  }
}

// The body and the storage are in one block, which stores the pointer to the device's block.
[[gnu::noinline]] Tensor allocate_on_device(Context& context, const OutputSpec& spec, const char* op,
                                            const Location& where) {
  std::int64_t count = spec.like ? spec.like->numel : count_of(spec, op, where);
  std::size_t bytes = static_cast<std::size_t>(count) * size_of(spec.dtype), front = body_size(spec.rank);
  DeviceModule& module = module_of_device(op, spec.device, where);
  void* block = context.heap->allocate_joint(joint_size(front, sizeof(DeviceBlock*)));
  Body* body = place_joint(block, context, spec.rank, spec.dtype, front, bytes, spec.device, where);
  body->marks = 0;
  body->storage->device_block() = nullptr;
  set_sizes(body, spec, count);
  Tensor owner = Tensor::adopt(body);
  body->storage->device_block() = module.allocate(spec.device.index, bytes, op, where);
  body->data = body->storage->data = body->storage->device_block()->data;
  return owner;
}

// The data behind a storage of foreign memory. The pointer to the device's block is null: the module does not know it.
struct ForeignOwner {
  DeviceBlock* none;
  void* owner;
  void (*release)(void* owner);
};

ForeignOwner* owner_of_foreign(Storage* storage) { return reinterpret_cast<ForeignOwner*>(storage + 1); }

}  // namespace

Tensor adopt_memory(const ForeignMemory& memory, void* first, const Shape& shape, const Shape& strides, DType dtype,
                    const char* op, Location where) {
  Context& context = detail::context();
  return with_memory_error(op, where, [&] {
    Body* body = make_body(context, shape.rank(), dtype, memory.device, where);
    Tensor owner = Tensor::adopt(body);
    for (int i = 0; i < shape.rank(); ++i) {
      body->extents()[i] = shape[i];
      body->extents()[shape.rank() + i] = strides[i];
    }
    body->numel = shape.numel();
    body->contiguous = is_row_major(shape, strides, body->numel);
    void* block = context.heap->allocate(sizeof(Storage) + sizeof(ForeignOwner), Heap::Use::storage);
    body->storage = place_storage(block, memory.bytes, 0, memory.device);
    body->storage->data = memory.data;
    body->data = first;
    new (owner_of_foreign(body->storage)) ForeignOwner{nullptr, memory.owner, memory.release};
    return owner;
  });
}

Tensor allocate(Context& context, const OutputSpec& spec, const char* op, Location where) {
  if (spec.device.type != Device::Type::cpu) [[unlikely]]
    return allocate_on_device(context, spec, op, where);
  std::int64_t count = spec.like ? spec.like->numel : count_of(spec, op, where);
  std::size_t bytes = static_cast<std::size_t>(count) * size_of(spec.dtype);
  std::size_t front = body_size(spec.rank), size = joint_size(front, bytes);
  if (size > Heap::most_joint) return allocate_apart(context, spec, count, op, where);
  void* block;
  try {
    block = context.heap->allocate_joint(size);
  } catch (const std::bad_alloc&) {
    fail_for_memory(op, where, shape_of(spec), spec.dtype);
  }
  Body* body = place_joint(block, context, spec.rank, spec.dtype, front, bytes, spec.device, where);
  set_sizes(body, spec, count);
  return Tensor::adopt(body);
}

void wait_for_pending(const Tensor& given, Location where) {
  Tensor x = given;  // the caller's handle may be assigned meanwhile
  if (current_context && current_context->interceptor) current_context->interceptor->wait_for(x);
  if (x.body().marks & Body::pending)
    fail<Error>(
        "batch_map", where,
        "{}, made at {}, has no elements: an example of batch_map has ended before the op that computes them ran",
        describe(x), to_string(x.made_at()));
}

Body* allocate_like_slowly(Context& context, const Body& like, DType dtype, const OpInfo& op, const Location& where) {
  return allocate(context, {like, dtype}, op.name, where).disown();
}

Tensor view_of(const Tensor& base, const Shape& shape, const Shape& strides, std::int64_t offset, Location where) {
  Body& source = base.body();
  Body* body = make_body(context(), shape.rank(), source.dtype, source.device, where);
  for (int i = 0; i < shape.rank(); ++i) {
    body->extents()[i] = shape[i];
    body->extents()[shape.rank() + i] = strides[i];
  }
  body->numel = shape.numel();
  body->contiguous = is_row_major(shape, strides, body->numel);
  body->data = static_cast<char*>(source.data) + offset * static_cast<std::int64_t>(size_of(source.dtype));
  body->storage = source.storage;
  body->storage->references.retain();
  body->slot_version = body->storage->version.load(std::memory_order_relaxed);
  if (source.marks & Body::grouped) [[unlikely]]
    body->marks = mark_viewed(source);
  return Tensor::adopt(body);
}

Shape contiguous_strides(const Shape& shape) {
  Shape strides = shape;
  std::int64_t step = 1;
  for (int i = shape.rank(); i-- > 0;) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

void Storage::become_parameter() {
  static std::atomic<std::uint32_t> last = 0;
  std::uint32_t none = 0;
  if (number.load(std::memory_order_relaxed) == none)
    number.compare_exchange_strong(none, last.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

std::mutex& gradient_mutex() {
  static auto& mutex = *std::make_unique<ForkSafeMutex>().release();
  return mutex;
}

namespace {

void free_on_device(Storage* storage) noexcept {
  if (storage->device.type == Device::Type::cpu || !storage->device_block()) return;
  opened_device_module()->free(storage->device_block());
}

// Releases foreign memory at the end of its scope and not earlier, because the owner's function may free other tensors,
// which must not happen during a visit to another thread's heap.
class ForeignRelease : Immovable {
 public:
  ForeignRelease() = default;
  ~ForeignRelease() {
    if (foreign_.release) release();
  }
  void set(Storage* storage) noexcept {
    foreign_ = *owner_of_foreign(storage);
    device_ = storage->device;
  }

 private:
  void release() noexcept {
    try {
      // Kernels that are queued may still read the memory.
      if (device_.type != Device::Type::cpu) opened_device_module()->synchronise(device_.index);
    } catch (const std::exception&) {
      // The next op that uses the device reports the error.
    }
    foreign_.release(foreign_.owner);
  }

  ForeignOwner foreign_{};
  Device device_;
};

void free_elements(Storage* storage, Heap* mine, ForeignRelease& foreign) noexcept {
  free_on_device(storage);
  if (storage->front() == 0) {
    if (storage->is_foreign()) foreign.set(storage);
    return Heap::free(storage, mine);
  }
  Heap::count_widow(storage->block(), -1);
  Heap::free(storage->block(), mine);
}

// Returns true if views keep the elements behind a destroyed body alive. The body must not be written to afterwards:
// the last view frees both.
bool leaves_elements(Body* body) noexcept {
  Storage* storage = body->storage;
  if (storage->references.unique()) return false;
  body->storage = nullptr;
  Heap::count_widow(body, 1);
  if (!storage->references.release()) return true;
  Heap::count_widow(body, -1);
  return false;
}

[[gnu::always_inline]] inline void free_body(Body* body, Heap* mine, ForeignRelease& foreign) noexcept {
  Storage* storage = body->storage;
  if (storage && storage->block() == body) {
    if (leaves_elements(body)) return;
    free_on_device(storage);
    return Heap::free(body, mine);
  }
  if (storage && storage->references.release()) free_elements(storage, mine, foreign);
  Heap::free_apart(body, mine);
}

[[gnu::noinline]] void free_last_elements(Storage* storage, Heap* mine) noexcept {
  ForeignRelease foreign;
  free_elements(storage, mine, foreign);
}

[[gnu::noinline]] void destroy_slowly(Body* body, Heap* mine) noexcept {
  ForeignRelease foreign;
  if (Heap::owner_of(body) == mine && !body->leaf) return free_body(body, mine, foreign);
  // The gradient is freed last: after the visit to another thread's heap, because freeing it may visit a third.
  std::unique_ptr<Leaf> leaf(body->leaf);
  std::optional<Heap::Visit> visit;
  if (Heap* owner = Heap::owner_of(body); owner != mine) visit.emplace(*owner);
  free_body(body, mine, foreign);
}

}  // namespace

void replace_storage(Body& body, const Body& other) noexcept {
  other.storage->references.retain();
  Storage* before = std::exchange(body.storage, other.storage);
  if (!before->references.release()) return;
  ForeignRelease foreign;
  free_elements(before, context().heap, foreign);
}

void destroy(Body* body) noexcept {
  Context* context = current_context;
  Heap* heap = context ? context->heap : nullptr;
  if (Heap::owner_of(body) == heap) [[likely]] {
    Storage* storage = body->storage;
    // The common cases, made by this thread: without views, and a view.
    if (body->marks & Body::single_block) {
      if (storage->references.unique()) [[likely]]
        return heap->free_own(body);
    } else if (storage && !body->leaf && storage->block() != body) {
      if (storage->references.release()) free_last_elements(storage, heap);
      return Heap::free_apart(body, heap);
    }
  }
  destroy_slowly(body, heap);
}

}  // namespace reel::detail
