#include <cuda_runtime_api.h>

#include <cstring>

#include "device.h"
#include "record.h"
#include "streams.h"

// Calls of the CUDA runtime that are about devices and memory. Device memory holds nothing: what is copied from it is 0.

using namespace reel_test::stand_in;

namespace {

std::uintptr_t address_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// One side of a copy. `device`: where its memory is expected.
void use_side(CUstream_st& stream, const void* address, std::size_t bytes, int device, const char* what) {
  if (!is_of_device(address_of(address)) && !find_allocation(address_of(address))) {
    count("copy of pageable memory");
    if (stream.recorded)
      violation("{}: a graph that is being recorded copies memory of the CPU that may be freed", what);
    return;
  }
  if (check_extent(address, bytes, device, what)) use_memory(stream, address_of(address), device, what);
}

cudaError_t copy(void* to, int to_device, const void* from, int from_device, std::size_t bytes, cudaStream_t stream,
                 const char* call) {
  count(call);
  std::lock_guard lock(mutex());
  CUstream_st* queued = queue_work(stream, call);
  if (!queued) return cudaErrorInvalidResourceHandle;
  use_side(*queued, from, bytes, from_device, "the source of a copy");
  use_side(*queued, to, bytes, to_device, "the target of a copy");
  if (queued->recorded || is_of_device(address_of(to))) return cudaSuccess;
  if (is_of_device(address_of(from)))
    std::memset(to, 0, bytes);
  else
    std::memcpy(to, from, bytes);
  return cudaSuccess;
}

int value_of(cudaDeviceAttr attribute) {
  const Description& d = description();
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: return most_threads_of_block;
    case cudaDevAttrMaxBlockDimZ: return 64;
    case cudaDevAttrMaxGridDimX: return static_cast<int>(most_grid_x);
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: return static_cast<int>(most_grid_y);
    case cudaDevAttrWarpSize: return 32;
    case cudaDevAttrMultiProcessorCount: return d.multiprocessors;
    case cudaDevAttrMaxSharedMemoryPerBlock: return d.shared_of_block;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return d.most_shared_of_block;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return d.shared_of_multiprocessor;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: return registers_of_block;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return threads_of_multiprocessor;
    case cudaDevAttrComputeCapabilityMajor: return d.major;
    case cudaDevAttrComputeCapabilityMinor: return d.minor;
    default:
      violation("the attribute {} of a device is not one that the stand-in knows", static_cast<int>(attribute));
      return 0;
  }
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

cudaError_t cudaGetDeviceCount(int* number) {
  *number = device_count;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* found, int device) {
  if (device < 0 || device >= device_count) return fail_with(cudaErrorInvalidDevice);
  const Description& d = description();
  *found = {};
  std::strncpy(found->name, d.name, sizeof found->name - 1);
  found->totalGlobalMem = d.memory;
  found->multiProcessorCount = d.multiprocessors;
  found->major = d.major;
  found->minor = d.minor;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device < 0 || device >= device_count) return fail_with(cudaErrorInvalidDevice);
  *value = value_of(attribute);
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated: return "operation failed due to a previous error during capture";
    default: return "an error of the stand-in";
  }
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  count("cudaMalloc");
  *memory = reinterpret_cast<void*>(allocate(current_device(), bytes));
  return fail_with(*memory ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void* memory) {
  count("cudaFree");
  return fail_with(release(address_of(memory), false) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  count("cudaHostAlloc");
  if (flags != (cudaHostAllocPortable | cudaHostAllocMapped)) violation("pinned memory is not for all devices");
  *memory = allocate_pinned(current_device(), bytes);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  count("cudaFreeHost");
  return fail_with(release(address_of(memory), true) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = description().memory;
  *free = free_bytes(current_device());
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (kind != cudaMemcpyDefault) violation("a copy says where its memory is");
  const char* call = !is_of_device(address_of(from)) ? "cudaMemcpyAsync from the CPU"
                     : !is_of_device(address_of(to)) ? "cudaMemcpyAsync to the CPU"
                                                     : "cudaMemcpyAsync";
  return copy(to, current_device(), from, current_device(), bytes, stream, call);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                cudaStream_t stream) {
  return copy(to, to_device, from, from_device, bytes, stream, "cudaMemcpyPeerAsync");
}

cudaError_t cudaMemsetAsync(void* to, int, std::size_t bytes, cudaStream_t stream) {
  count("cudaMemsetAsync");
  std::lock_guard lock(mutex());
  CUstream_st* queued = queue_work(stream, "cudaMemsetAsync");
  if (!queued) return cudaErrorInvalidResourceHandle;
  use_extent(*queued, to, bytes, "a fill");
  return cudaSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
