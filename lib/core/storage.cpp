#include "storage.h"

#include <memory>
#include <new>

#include "op_error.h"

namespace reel::detail {
namespace {

inline Storage* make_storage(Context& context, std::size_t bytes, Device device) {
  void* block = context.heap->allocate(sizeof(Storage) + bytes, Heap::Use::storage);
  auto* storage = new (block) Storage;
  storage->data = storage + 1;
  storage->bytes = bytes;
  storage->device = device;
  return storage;
}

inline Body* make_body(Context& context, int rank, DType dtype, Device device, Location where) {
  // Two sizes only, so that a freed body fits the next tensor of nearly any rank.
  constexpr std::size_t small = sizeof(Body) + 4 * sizeof(std::int64_t);
  constexpr std::size_t large = sizeof(Body) + 2 * max_rank * sizeof(std::int64_t);
  void* block =
      rank <= 2 ? context.heap->allocate(small, Heap::Use::body) : context.heap->allocate(large, Heap::Use::body);
  auto* body = new (block) Body;
  body->dims = body->extents();
  body->strides = body->extents() + rank;
  body->rank = rank;
  body->dtype = dtype;
  body->contiguous = true;
  body->device = device;
  body->requires_grad = false;
  if (context.has(Context::caller_named)) where = context.caller;
  body->file = where.file;
  body->line = where.line;
  body->slot = context.birth;
  body->slot_version = 0;
  body->epoch.store(0, std::memory_order_relaxed);
  body->storage = nullptr;
  body->leaf = nullptr;
  return body;
}

bool is_row_major(const Shape& shape, const Shape& strides) {
  std::int64_t expected = 1;
  for (int i = shape.rank(); i-- > 0;) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

Shape shape_of(const OutputSpec& spec) { return Shape({spec.dims, static_cast<std::size_t>(spec.rank)}); }

// Fills in sizes and row-major strides. Throws: ShapeError where their product is out of reach.
void set_row_major(Body* body, const OutputSpec& spec, const char* op, Location where) {
  std::int64_t* dims = body->extents();
  std::int64_t* strides = dims + spec.rank;
  std::int64_t count = 1;
  bool overflow = false;
  for (int i = spec.rank; i-- > 0;) {
    dims[i] = spec.dims[i];
    strides[i] = count;
    overflow |= __builtin_mul_overflow(count, spec.dims[i], &count);
  }
  if (overflow || count > (std::int64_t{1} << 44))
    fail<ShapeError>(op, where, "a tensor of shape {} is larger than any memory", to_string(shape_of(spec)));
  body->numel = count;
}

}  // namespace

Tensor allocate(Context& context, const OutputSpec& spec, const char* op, Location where) {
  if (spec.device.type != Device::Type::cpu) [[unlikely]]
    fail<DeviceError>(op, where, "tensors on {} need the CUDA backend, which is not built in", to_string(spec.device));
  Body* body = make_body(context, spec.rank, spec.dtype, spec.device, where);
  Tensor owner = Tensor::adopt(body);
  if (spec.like) [[likely]] {
    for (int i = 0; i < 2 * spec.rank; ++i) body->extents()[i] = spec.dims[i];
    body->numel = spec.like->numel;
  } else {
    set_row_major(body, spec, op, where);
  }
  std::size_t bytes = static_cast<std::size_t>(body->numel) * size_of(spec.dtype);
  try {
    body->storage = make_storage(context, bytes, spec.device);
  } catch (const std::bad_alloc&) {
    fail<MemoryError>(op, where, "there is no memory for the {:.1f} MB of a tensor {} {}",
                      static_cast<double>(bytes) / 1e6, to_string(shape_of(spec)), name_of(spec.dtype));
  }
  body->data = body->storage->data;
  return owner;
}

Tensor view_of(const Tensor& base, const Shape& shape, const Shape& strides, std::int64_t offset, Location where) {
  const Body& source = base.body();
  Body* body = make_body(context(), shape.rank(), source.dtype, source.device, where);
  for (int i = 0; i < shape.rank(); ++i) {
    body->extents()[i] = shape[i];
    body->extents()[shape.rank() + i] = strides[i];
  }
  body->numel = shape.numel();
  body->contiguous = is_row_major(shape, strides);
  body->data = static_cast<char*>(source.data) + offset * static_cast<std::int64_t>(size_of(source.dtype));
  body->storage = source.storage;
  body->storage->references.retain();
  body->slot_version = body->storage->version.load(std::memory_order_relaxed);
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
  static auto& mutex = *std::make_unique<std::mutex>().release();
  return mutex;
}

namespace {

[[gnu::noinline]] void destroy_of_other_thread(Body* body, Heap* mine) noexcept {
  // Its gradient is freed after the visit: that may be a visit to a third thread.
  std::unique_ptr<Leaf> leaf(body->leaf);
  Heap::Visit visit(*Heap::owner_of(body));
  if (Storage* storage = body->storage; storage && storage->references.release()) Heap::free(storage, mine);
  Heap::free(body, mine);
}

}  // namespace

void destroy(Body* body) noexcept {
  Context* context = current_context;
  Heap* heap = context ? context->heap : nullptr;
  if (Heap::owner_of(body) != heap) [[unlikely]]
    return destroy_of_other_thread(body, heap);
  if (body->leaf) [[unlikely]]
    std::unique_ptr<Leaf>(body->leaf).reset();
  if (Storage* storage = body->storage; storage && storage->references.release()) Heap::free(storage, heap);
  heap->free_own(body);
}

}  // namespace reel::detail
