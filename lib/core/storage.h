#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>

#include <reel/shape.h>
#include <reel/tensor.h>

namespace reel::detail {

struct Context;
struct DeviceBlock;
struct OpInfo;

/// Elements on a device, shared by a tensor and its views. On the CPU they lie behind it in the same block, and if they
/// are few, the body of the tensor for which they were made lies before it. Of elements elsewhere the device's block is
/// named there.
struct alignas(64) Storage {
  ReferenceCount references;
  /// Counts overwrites.
  std::atomic<std::uint32_t> version{0};
  void* data = nullptr;
  std::uint64_t extent = 0;  ///< both of the next two
  const char* overwrite_file = nullptr;
  /// The last filling of a tape list that counted this storage among what it saves.
  std::atomic<std::uint64_t> counted_by{0};
  /// The last filling of a tape list that put tracked values here through one of several tensors, and the version from
  /// which on they were here.
  std::atomic<std::uint64_t> tracked_by{0};
  std::atomic<std::uint32_t> tracked_version{0};
  std::int32_t overwrite_line = 0;
  /// What products know a parameter's elements by, together with `version`: no storage has had the number before. 0: they
  /// are no parameter's.
  std::atomic<std::uint32_t> number{0};
  /// Open guards.
  std::atomic<std::uint16_t> writers{0};
  Device device;

  /// Of all elements.
  std::size_t bytes() const { return extent & ((std::uint64_t{1} << 48) - 1); }
  /// How many bytes the block begins before this.
  std::size_t front() const { return extent >> 48; }
  static constexpr std::uint64_t extent_of(std::size_t bytes, std::size_t front) { return front << 48 | bytes; }
  /// Of elements that are not on the CPU.
  DeviceBlock*& device_block() { return *reinterpret_cast<DeviceBlock**>(this + 1); }
  void* block() { return reinterpret_cast<char*>(this) - front(); }
  /// Gives it a number.
  void become_parameter();
  Location last_overwrite() const { return {overwrite_file, overwrite_line}; }
  /// Notes an overwrite by the caller at `where`.
  void overwritten(Location where) {
    overwrite_file = where.file;
    overwrite_line = where.line;
    version.fetch_add(1, std::memory_order_relaxed);
  }
};
static_assert(sizeof(Storage) == 64);

/// What a parameter has been given by backwards: at most one of the two.
struct LeafGradient {
  Tensor gradient;
  RowGradient row_gradient;
};

/// Tells whether a parameter is trained.
struct LeafTraining {
  std::uint32_t optimisers = 0;  ///< that hold it
  /// Of a parameter that none holds, when a backward first reached it: the number and the version of one that an optimiser
  /// holds, which it reached, too, and its own version.
  std::uint32_t witness = 0, witness_version = 0, own_version = 0;
  bool reported = false;
};

/// What a parameter has beside its values. All but its name is guarded by `gradient_mutex`.
struct Leaf : LeafGradient {
  Location replaced_at = {};  ///< where its module took another tensor in its place; it is a parameter no more
  LeafTraining training = {};
  std::string name = {};  ///< in the module that it was made for; empty if there is none
};

/// Guards the gradients of all parameters. One lock for all, so that threads which share several cannot wait for each
/// other.
std::mutex& gradient_mutex();

/// Size, dtype and device of an output that is to be allocated.
struct OutputSpec {
  const std::int64_t* dims;
  int rank;
  DType dtype;
  Device device;
  const Body* like = nullptr;  ///< a contiguous tensor of that shape, if there is one

  OutputSpec(const Shape& shape, DType dtype, Device device)
      : dims(shape.data()), rank(shape.rank()), dtype(dtype), device(device) {}
  OutputSpec(const Body& like, DType dtype)
      : dims(like.dims), rank(like.rank), dtype(dtype), device(like.device), like(like.contiguous ? &like : nullptr) {}
};

/// An uninitialised contiguous tensor.
/// Throws: ShapeError, MemoryError or DeviceError, in the name of `op`.
Tensor allocate(Context& context, const OutputSpec& spec, const char* op, Location where);

/// A tensor that shares the elements of `base`, starting `offset` elements after its first.
Tensor view_of(const Tensor& base, const Shape& shape, const Shape& strides, std::int64_t offset, Location where);

/// Row-major strides.
Shape contiguous_strides(const Shape& shape);

}  // namespace reel::detail
