#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <new>

#include "context.h"
#include "storage.h"

// Placement of bodies and storages in blocks of a heap. Inline, because nearly every op makes one of each.

namespace reel::detail {

// Two sizes only, so that a freed body fits the next tensor of nearly any rank.
constexpr std::size_t small_body = sizeof(Body) + 4 * sizeof(std::int64_t);
constexpr std::size_t large_body = (sizeof(Body) + 2 * max_rank * sizeof(std::int64_t) + 63) / 64 * 64;
static_assert(small_body % 64 == 0);
constexpr std::size_t body_size(int rank) { return rank <= 2 ? small_body : large_body; }

inline Storage* place_storage(void* place, std::size_t bytes, std::size_t front, Device device) {
  auto* storage = new (place) Storage;
  storage->data = storage + 1;
  storage->extent = Storage::extent_of(bytes, front);
  storage->device = device;
  return storage;
}

/// Constructs a body in a block; its sizes, strides and elements are not set.
[[gnu::always_inline]] inline Body* place_body(void* block, Context& context, int rank, DType dtype, Device device,
                                               const Location& where, std::uint8_t marks = 0) {
  const Location& call_site = context.has(Context::caller_named) ? context.caller : where;
  auto* body = new (block) Body;
  body->dims = body->extents();
  body->strides = body->extents() + rank;
  body->rank = rank;
  body->dtype = dtype;
  body->contiguous = true;
  body->device = device;
  body->requires_grad = false;
  body->marks = marks;
  body->file = call_site.file;
  // One instruction sets the line and clears the serial number behind it.
  const auto line_alone = std::bit_cast<std::uint64_t>(std::array{call_site.line, 0});
  std::memcpy(static_cast<void*>(&body->line), &line_alone, sizeof line_alone);
  body->slot = context.scope_id;
  body->slot_version = 0;
  body->storage = nullptr;
  body->leaf = nullptr;
  return body;
}

/// The bytes of one block for a body of `front` bytes and `bytes` of elements.
constexpr std::size_t joint_size(std::size_t front, std::size_t bytes) { return front + sizeof(Storage) + bytes; }

/// Constructs a body followed by its storage and elements in a block; sizes and strides are not set.
[[gnu::always_inline]] inline Body* place_joint(void* block, Context& context, int rank, DType dtype, std::size_t front,
                                                std::size_t bytes, Device device, const Location& where) {
  Body* body = place_body(block, context, rank, dtype, device, where, Body::single_block);
  body->storage = place_storage(static_cast<char*>(block) + front, bytes, front, device);
  body->data = body->storage + 1;
  return body;
}

/// A row-major tensor whose elements are computed later. `spec`: with its strides behind the sizes, and room for four numbers.
/// `storage`: stands for its own until then. Throws: std::bad_alloc.
inline Tensor pending_tensor(Context& context, const OutputSpec& spec, std::int64_t count, Storage& storage,
                             const Location& where) {
  Body* body = place_body(context.heap->allocate(body_size(spec.rank), Heap::Use::body), context, spec.rank, spec.dtype,
                          spec.device, where);
  if (spec.rank <= 2) [[likely]]
    std::memcpy(body->extents(), spec.dims, 4 * sizeof(std::int64_t));
  else
    std::copy_n(spec.dims, 2 * spec.rank, body->extents());
  body->numel = count;
  body->data = nullptr;
  body->storage = &storage;
  storage.references.retain();
  return Tensor::adopt(body);
}

/// Makes a tensor share the storage of another one; its former storage is freed if no other tensor has it.
void replace_storage(Body& body, const Body& other) noexcept;

/// `allocate_like` without a cached block. Throws: as `allocate`.
Body* allocate_like_slowly(Context& context, const Body& like, DType dtype, const OpInfo& op, const Location& where);

/// The body of an uninitialised contiguous tensor with the shape of `like`, which is contiguous; the caller adopts it.
/// Throws: as `allocate`.
[[gnu::always_inline]] inline Body* allocate_like(Context& context, const Body& like, DType dtype, const OpInfo& op,
                                                  const Location& where) {
  std::size_t bytes = static_cast<std::size_t>(like.numel) * (dtype == DType::f32 ? 4 : size_of(dtype)),
              size = joint_size(small_body, bytes);
  void* block = like.device.type == Device::Type::cpu && like.rank <= 2 && size <= Heap::most_joint
                    ? context.heap->take_joint(size)
                    : nullptr;
  if (!block) [[unlikely]]
    return allocate_like_slowly(context, like, dtype, op, where);
  Body* body = place_joint(block, context, like.rank, dtype, small_body, bytes, cpu, where);
  body->numel = like.numel;
  // Copies sizes and strides of two axes at once: every body has room for them.
  std::memcpy(body->extents(), like.dims, 4 * sizeof(std::int64_t));
  return body;
}

}  // namespace reel::detail
