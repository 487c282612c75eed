#pragma once

#include <cstdint>
#include <memory>

#include <reel/tensor.h>

/// \file
/// Tensors that this program shares with other libraries (NumPy, PyTorch, JAX, CuPy, …) without a copy, through the C
/// structs of DLPack. They are declared here as its specification lays them out, so that its header is not needed; a
/// pointer to its `DLManagedTensor` may be cast to and from the one here.
/// Source: github.com/dmlc/dlpack, include/dlpack/dlpack.h, versions 0.8 and 1.0.

namespace reel::io {

/// The device of a tensor in DLPack.
struct DLDevice {
  std::int32_t device_type;  ///< 1: CPU, 2: CUDA, 3: CUDA's pinned memory of the CPU, 13: CUDA's managed memory
  std::int32_t device_id;    ///< which of the devices, from 0
};

/// The element type of a tensor in DLPack.
struct DLDataType {
  std::uint8_t code;    ///< 0: signed integer, 1: unsigned integer, 2: float, 4: bfloat16, 6: bool
  std::uint8_t bits;    ///< of an element
  std::uint16_t lanes;  ///< elements in a vector; 1
};

/// A tensor in DLPack, which does not own its memory.
struct DLTensor {
  void* data;                 ///< the start of the memory, which on a GPU is its address there
  DLDevice device;            ///< where the memory is
  std::int32_t ndim;          ///< the number of axes
  DLDataType dtype;           ///< the type of the elements
  std::int64_t* shape;        ///< `ndim` sizes
  std::int64_t* strides;      ///< `ndim` strides in elements; null: row-major without gaps
  std::uint64_t byte_offset;  ///< of the first element from `data`, in bytes
};

/// A tensor in DLPack and how to release it. Python passes it in a capsule named "dltensor".
struct DLManagedTensor {
  DLTensor dl_tensor;                      ///< the tensor
  void* manager_ctx;                       ///< belongs to the library that made it
  void (*deleter)(DLManagedTensor* self);  ///< releases all; null: nothing is to be released
};

/// A version of DLPack.
struct DLPackVersion {
  std::uint32_t major;  ///< structs of another one must not be read
  std::uint32_t minor;  ///< later ones add flags and codes only
};

/// A tensor in DLPack 1.0 or later and how to release it. Python passes it in a capsule named "dltensor_versioned".
struct DLManagedTensorVersioned {
  DLPackVersion version;                            ///< the version of the struct
  void* manager_ctx;                                ///< belongs to the library that made it
  void (*deleter)(DLManagedTensorVersioned* self);  ///< releases all; null: nothing is to be released
  std::uint64_t flags;                              ///< bits: 1 read-only, 2 copied for this purpose
  DLTensor dl_tensor;                               ///< the tensor
};

/// Calls the deleter of a tensor in DLPack.
struct DLPackDeleter {
  /// Releases a tensor in DLPack.
  void operator()(DLManagedTensor* tensor) const {
    if (tensor->deleter) tensor->deleter(tensor);
  }
  /// Releases a tensor in DLPack 1.0.
  void operator()(DLManagedTensorVersioned* tensor) const {
    if (tensor->deleter) tensor->deleter(tensor);
  }
};

/// An owned tensor in DLPack: `release()` passes it on to a library that calls its deleter.
using DLPackTensor = std::unique_ptr<DLManagedTensor, DLPackDeleter>;
/// An owned tensor in DLPack 1.0: `release()` passes it on to a library that calls its deleter.
using DLPackTensorVersioned = std::unique_ptr<DLManagedTensorVersioned, DLPackDeleter>;

/// A tensor in DLPack that shares the elements of x, with its shape and strides; both keep them alive, and any thread may
/// release either. On a GPU, work that this thread has queued is done when the function returns.
///
/// The other side may write to the elements. The tape does not see such writes: write only while no tape needs the
/// values. Gradients do not cross: a parameter is passed as its values, and what a tape tracks is refused.
/// Throws: TapeError if an open tape tracks x and it is no parameter: pass `stop_gradient(x)`; MemoryError; Error if x is
/// undefined.
DLPackTensor to_dlpack(const Tensor& x, Location where = Location::here());
/// A tensor in DLPack 1.0 that shares the elements of x, with its shape and strides; both keep them alive, and any thread
/// may release either. On a GPU, work that this thread has queued is done when the function returns.
///
/// With `read_only` the other side is asked not to write. It may write otherwise, and the tape does not see that: write
/// only while no tape needs the values. Gradients do not cross: a parameter is passed as its values, and what a tape
/// tracks is refused.
/// Throws: TapeError if an open tape tracks x and it is no parameter: pass `stop_gradient(x)`; MemoryError; Error if x is
/// undefined.
DLPackTensorVersioned to_dlpack_versioned(const Tensor& x, bool read_only = false, Location where = Location::here());

/// A tensor that shares the elements of another library's, on the CPU or a GPU, with its shape and strides. It takes over
/// `tensor`, whose deleter is called once, by the thread that drops the last tensor or saved value over the elements;
/// until then the other library keeps them. If this throws, the caller still owns `tensor`.
///
/// Elements of bool must be 0 or 1. Both sides may write, and neither sees the other's writes: the tape, too, only
/// detects those of reel. On a GPU the elements must be ready: wait for the other library's stream before the call.
/// Throws: DTypeError for an element type that tensors lack; DeviceError for a device other than the CPU and GPUs, or one
/// that does not exist; ShapeError for more than 8 axes, negative sizes, or elements that are not aligned to their size;
/// MemoryError; Error for a null pointer.
Tensor from_dlpack(DLManagedTensor* tensor, Location where = Location::here());
/// A tensor that shares the elements of another library's, on the CPU or a GPU, with its shape and strides. It takes over
/// `tensor`, whose deleter is called once, by the thread that drops the last tensor or saved value over the elements;
/// until then the other library keeps them. If this throws, the caller still owns `tensor`.
///
/// Elements of bool must be 0 or 1. Both sides may write, and neither sees the other's writes: the tape, too, only
/// detects those of reel. A tensor that is read-only is refused, since nothing here could keep it from being written.
/// Throws: DTypeError for an element type that tensors lack; DeviceError for a device other than the CPU and GPUs, or one
/// that does not exist; ShapeError for more than 8 axes, negative sizes, or elements that are not aligned to their size;
/// MemoryError; Error for a null pointer, an unknown major version or a read-only tensor.
Tensor from_dlpack(DLManagedTensorVersioned* tensor, Location where = Location::here());

}  // namespace reel::io
