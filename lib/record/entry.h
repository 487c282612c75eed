#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <reel/shape.h>

#include "../core/op.h"

namespace reel::detail {

/// A value saved for the gradient. Constructed in the arena; `TapeList::release_saved` destroys it.
struct Saved {
  Tensor tensor;
  std::uint32_t version;  // of its storage when it was saved
  std::int32_t number;    // input index, or −1 − output index, or first_kept + member, or captured

  static constexpr std::int32_t first_kept = 1 << 24;
  static constexpr std::int32_t captured = first_kept - 1;
};

/// The dtype and shape that a slot's gradient must have. Slots of one shape share it.
struct SlotForm {
  DType dtype;
  Device device;
  std::int32_t rank;
  std::int64_t dims[max_rank];

  bool matches(const Body& body) const {
    if (dtype != body.dtype || rank != body.rank || device != body.device) return false;
    for (int i = 0; i < rank; ++i)
      if (dims[i] != body.dims[i]) return false;
    return true;
  }
  std::int64_t numel() const {
    std::int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= dims[i];
    return count;
  }
  Shape shape() const { return Shape({dims, static_cast<std::size_t>(rank)}); }
};

/// One recorded op, in the arena, followed by the slots of its inputs, its saved values, its attributes and, where the
/// op keeps them, the shapes of its inputs.
struct Entry {
  const OpInfo* op;
  Entry* previous;
  const char* file;
  std::int32_t line;
  std::uint32_t first_output;
  std::uint32_t input_count;
  std::uint32_t output_count;
  std::uint32_t saved_count;
  std::uint32_t attribute_bytes;

  Location where() const { return {file, line}; }
  /// The slots of the inputs; 0: not tracked.
  std::uint32_t* input_slots() { return reinterpret_cast<std::uint32_t*>(this + 1); }
  const std::uint32_t* input_slots() const { return reinterpret_cast<const std::uint32_t*>(this + 1); }
  std::span<const std::uint32_t> inputs() const { return {input_slots(), input_count}; }
  Saved* saved() { return reinterpret_cast<Saved*>(input_slots() + ((input_count + 1) & ~1u)); }
  const Saved* saved() const { return const_cast<Entry*>(this)->saved(); }
  std::byte* attributes() { return reinterpret_cast<std::byte*>(saved() + saved_count); }
  Shape* input_shapes() { return reinterpret_cast<Shape*>(attributes() + ((attribute_bytes + 7) & ~7u)); }

  static std::size_t size_for(std::size_t inputs, std::size_t saved, std::size_t attributes, bool shapes) {
    return sizeof(Entry) + ((inputs + 1) & ~std::size_t{1}) * 4 + saved * sizeof(Saved) +
           ((attributes + 7) & ~std::size_t{7}) + (shapes ? inputs * sizeof(Shape) : 0);
  }
};
static_assert(sizeof(Entry) % 8 == 0 && sizeof(Saved) == 16);

}  // namespace reel::detail
