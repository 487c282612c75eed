#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include <reel/shape.h>
#include <reel/tensor.h>

namespace reel::detail {

struct Context;
struct DeviceBlock;
struct OpInfo;

/// The most elements of a tensor: more than any memory holds, and few enough that their bytes can be counted.
constexpr std::int64_t most_elements = std::int64_t{1} << 44;

/// Elements on a device, shared by a tensor and its views. On the CPU the elements follow this object in the same
/// block, and if they are few, the body of the tensor for which they were made precedes it. For elements on other
/// devices the device's block is stored behind this object.
struct alignas(64) Storage {
  ReferenceCount references;
  /// The number of overwrites.
  std::atomic<std::uint32_t> version{0};
  void* data = nullptr;
  std::uint64_t extent = 0;  ///< `bytes()` and `front()` in one number
  const char* overwrite_file = nullptr;
  /// The last epoch of a tape list that counted this storage among its saved values.
  std::atomic<std::uint64_t> counted_by{0};
  /// The last epoch of a tape list in which tracked values were written here through one of several tensors, and the
  /// version that first held them.
  std::atomic<std::uint64_t> tracked_by{0};
  std::atomic<std::uint32_t> tracked_version{0};
  std::int32_t overwrite_line = 0;
  /// The id by which products, together with `version`, know a parameter's elements: no storage has had it before. 0:
  /// not a parameter's elements.
  std::atomic<std::uint32_t> number{0};
  /// The number of open guards.
  std::atomic<std::uint16_t> writers{0};
  Device device;

  /// The size of all elements in bytes.
  std::size_t bytes() const { return extent & ((std::uint64_t{1} << 48) - 1); }
  /// The bytes between the start of the block and this object.
  std::size_t front() const { return extent >> 48; }
  static constexpr std::uint64_t extent_of(std::size_t bytes, std::size_t front) { return front << 48 | bytes; }
  /// The device's block of elements that are not on the CPU.
  DeviceBlock*& device_block() { return *reinterpret_cast<DeviceBlock**>(this + 1); }
  /// Returns true if the elements are in memory that is not the library's: its own follow their storage, or, on a device,
  /// have a storage that follows its body.
  bool is_foreign() const { return data != this + 1 && front() == 0; }
  void* block() { return reinterpret_cast<char*>(this) - front(); }
  /// Assigns an id to a parameter's elements.
  void become_parameter();
  Location last_overwrite() const { return {overwrite_file, overwrite_line}; }
  /// Records an overwrite by the caller at `where`.
  void overwritten(Location where) {
    overwrite_file = where.file;
    overwrite_line = where.line;
    version.fetch_add(1, std::memory_order_relaxed);
  }
};
static_assert(sizeof(Storage) == 64);

/// A parameter's gradient from backwards: at most one of the two members is set.
struct LeafGradient {
  Tensor gradient;
  RowGradient row_gradient;
};

/// State for detecting parameters that no optimiser trains.
struct LeafTraining {
  std::uint32_t optimisers = 0;  ///< the number of optimisers that hold it
  /// For a parameter that no optimiser holds, when a backward first reached it: the id and version of one that an
  /// optimiser holds and that the same backward reached, and its own version.
  std::uint32_t witness = 0, witness_version = 0, own_version = 0;
  bool reported = false;
};

/// The state of a parameter besides its values. All but its name is guarded by `gradient_mutex`.
struct Leaf : LeafGradient {
  Location replaced_at = {};  ///< where its module replaced it by another tensor; it is no parameter any more
  LeafTraining training = {};
  std::string name = {};  ///< its name in the module that it was made for; empty if there is none
};

/// Guards the gradients of all parameters. It is one lock, so that threads which share several parameters cannot
/// deadlock.
std::mutex& gradient_mutex();

/// Shape, dtype and device of an output to be allocated.
struct OutputSpec {
  const std::int64_t* dims;
  int rank;
  DType dtype;
  Device device;
  const Body* like = nullptr;   ///< a contiguous tensor of that shape, if there is one
  const Body* order = nullptr;  ///< a tensor of that shape, whose order of axes in memory is kept; null: row-major

  OutputSpec(const Shape& shape, DType dtype, Device device)
      : dims(shape.data()), rank(shape.rank()), dtype(dtype), device(device) {}
  OutputSpec(const Body& like, DType dtype)
      : dims(like.dims), rank(like.rank), dtype(dtype), device(like.device), like(like.contiguous ? &like : nullptr) {}
};

/// Allocates an uninitialised tensor without gaps.
/// Throws: ShapeError, MemoryError or DeviceError, in the name of `op`.
Tensor allocate(Context& context, const OutputSpec& spec, const char* op, Location where);

/// Marks a grouped tensor as viewed. Returns the marks of the view.
inline std::uint8_t mark_viewed(Body& grouped) {
  // Several threads may view one tensor.
  std::atomic_ref(grouped.marks).fetch_or(Body::viewed, std::memory_order_relaxed);
  return Body::grouped | Body::viewed;
}

/// A tensor that shares the elements of `base`, starting `offset` elements after its first.
Tensor view_of(const Tensor& base, const Shape& shape, const Shape& strides, std::int64_t offset, Location where);

/// Row-major strides.
Shape contiguous_strides(const Shape& shape);

}  // namespace reel::detail
