#pragma once

#include <cstdint>
#include <utility>

#include <reel/detail/immovable.h>
#include <reel/tensor.h>

struct CUstream_st;

/// \file
/// Kernels of the program's own: the stream of reel's ops, and device pointers to the elements of tensors. A kernel that is
/// launched on the stream runs after the ops that the thread has queued before, and before those that it queues later;
/// within a cuda::Graph it is recorded with them. A kernel gets a gradient as any other op does: see custom.h.
///
/// The header needs none of CUDA's, and nvcc and the C++ compiler both take it.

namespace reel::cuda {

/// A stream of work on a GPU: what CUDA's headers call cudaStream_t.
using Stream = CUstream_st*;

/// The stream on which this thread queues the work of ops on a GPU, by default that of the DeviceGuard. The GPU becomes the
/// one that is selected for the thread's calls of the CUDA runtime, as a launch needs it. The stream belongs to the library:
/// it must not be destroyed, and is a thread's for as long as the thread runs. A kernel is launched as
/// `scale<<<blocks, threads, 0, cuda::stream(x.device())>>>(out.data(), cuda::data<float>(x), x.numel())`.
/// Throws: DeviceError for the CPU, and if no such GPU exists; errors that ops of this thread have found in their operands
/// on the GPU, such as an index out of range, in the name of the op.
Stream stream(Device device = default_device(), Location where = Location::here());

/// A device pointer to the first element of a contiguous tensor, for kernels on `stream(x.device())` to read; the others
/// follow in row-major order. Kernels that are queued afterwards wait for what other threads compute of the tensor. The CPU
/// must not read through the pointer. It is valid while the tensor lives; kernels that are queued by then may still run.
/// Float16 and BFloat16 have the bits of CUDA's __half and __nv_bfloat16.
/// Throws: DTypeError unless T is the tensor's type; ShapeError if not contiguous; DeviceError if the tensor is on the CPU;
/// Error if it is undefined; errors that ops of this thread have found in their operands on the GPU, in the name of the op.
template <Element T>
const T* data(const Tensor& x, Location where = Location::here());
/// A device pointer to the first element of any tensor on a GPU, such as a view, for kernels on `stream(x.device())` to
/// read; the others follow at `x.strides()`. It is valid for as long as that of `data`.
/// Throws: DTypeError unless T is the tensor's type; DeviceError if the tensor is on the CPU; Error if it is undefined;
/// errors that ops of this thread have found in their operands on the GPU, in the name of the op.
template <Element T>
const T* strided_data(const Tensor& x, Location where = Location::here());

/// The guard that `cuda::write` returns: memory on a GPU that kernels of this thread's stream may overwrite. While it
/// lives, a gradient that needs the values of the tensor throws.
template <Element T>
class Writer : detail::Immovable {
 public:
  /// Ends the access and marks the tensor as overwritten. Kernels that are queued by then may still run.
  ~Writer() { detail::end_write(tensor_, where_); }

  /// A device pointer to the first element; the others follow in row-major order. The CPU must not access it.
  T* data() const { return data_; }
  /// The number of elements.
  std::int64_t size() const { return tensor_.numel(); }

 private:
  template <Element U>
  friend Writer<U> write(Tensor& x, Location where);
  Writer(Tensor tensor, T* data, Location where) : tensor_(std::move(tensor)), data_(data), where_(where) {}
  Tensor tensor_;
  T* data_;
  Location where_;
};

/// Access for kernels on `stream(x.device())` to overwrite the elements of a contiguous tensor on a GPU. Kernels that are
/// queued afterwards wait for what other threads do with the tensor. The tape treats it as an overwrite: a gradient that
/// needs the old values throws. Elements that no kernel writes keep their values.
/// Throws: DTypeError unless T is the tensor's type; ShapeError if not contiguous; DeviceError if it is on the CPU;
/// TapeError if an open tape tracks the tensor and it is not a parameter; Error if it is undefined; errors that ops of this
/// thread have found in their operands on the GPU, in the name of the op.
template <Element T>
Writer<T> write(Tensor& x, Location where = Location::here());

}  // namespace reel::cuda

namespace reel::detail {

/// The device pointer of a contiguous tensor that is to be read. Throws: as cuda::data.
const void* row_major_on_device(const Tensor& x, DType dtype, Location where);
/// The device pointer of a tensor that is to be read by its strides. Throws: as cuda::strided_data.
const void* readable_on_device(const Tensor& x, DType dtype, Location where);
/// The device pointer of a tensor that is to be overwritten. Throws: as cuda::write.
void* writable_on_device(Tensor& x, DType dtype, Location where);

}  // namespace reel::detail

namespace reel::cuda {

template <Element T>
const T* data(const Tensor& x, Location where) {
  return static_cast<const T*>(detail::row_major_on_device(x, dtype_of<T>(), where));
}

template <Element T>
const T* strided_data(const Tensor& x, Location where) {
  return static_cast<const T*>(detail::readable_on_device(x, dtype_of<T>(), where));
}

template <Element T>
Writer<T> write(Tensor& x, Location where) {
  return Writer<T>(x, static_cast<T*>(detail::writable_on_device(x, dtype_of<T>(), where)), where);
}

}  // namespace reel::cuda
