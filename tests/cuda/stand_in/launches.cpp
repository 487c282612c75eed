#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <unordered_map>

#include "cubin.h"
#include "device.h"
#include "record.h"
#include "streams.h"

// Launches of kernels, none of which runs. The resources that a kernel needs are read from its machine code.

// The type that nvcc's code passes instead of a kernel's address; it is not defined elsewhere.
struct CUkern_st {
  reel_test::stand_in::Kernel kernel;
};

namespace reel_test::stand_in {
namespace {

struct Registered {
  std::unordered_map<std::string, Kernel> by_name;  // of the newest library that was registered
  std::unordered_map<const void*, CUkern_st> by_host_function;
};

Registered& registered() {
  static auto& made = *new Registered;
  return made;
}

struct Configuration {
  dim3 grid, block;
  std::size_t shared;
  cudaStream_t stream;
};
thread_local Configuration pushed;

CUkern_st* find(const void* function) {
  std::lock_guard lock(mutex());
  auto found = registered().by_host_function.find(function);
  return found == registered().by_host_function.end() ? nullptr : &found->second;
}

// Registers are handed out to warps in units of 256.
int registers_of(const Kernel& kernel, int threads) {
  int of_warp = (kernel.registers * 32 + 255) / 256 * 256;
  return of_warp * ((threads + 31) / 32);
}

bool check_shape(const Kernel& kernel, dim3 grid, dim3 block, std::size_t shared) {
  std::size_t threads = std::size_t{block.x} * block.y * block.z;
  std::string fault;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || threads == 0)
    fault = "an empty grid or block";
  else if (grid.x > most_grid_x || grid.y > most_grid_y || grid.z > most_grid_y)
    fault = fmt::format("a grid of {} x {} x {}", grid.x, grid.y, grid.z);
  else if (block.x > most_threads_of_block || block.y > most_threads_of_block || block.z > 64 ||
           threads > static_cast<std::size_t>(kernel.most_threads))
    fault = fmt::format("a block of {} x {} x {} threads, where {} are allowed", block.x, block.y, block.z,
                        kernel.most_threads);
  else if (shared + static_cast<std::size_t>(kernel.static_shared) >
           static_cast<std::size_t>(description().shared_of_block))
    fault = fmt::format("{} bytes of shared memory, {} of them static", shared + kernel.static_shared,
                        kernel.static_shared);
  else if (registers_of(kernel, static_cast<int>(threads)) > registers_of_block)
    fault = fmt::format("{} threads with {} registers each", threads, kernel.registers);
  if (fault.empty()) return true;
  violation("a kernel is launched with {}: {}", fault, kernel.name.substr(0, 200));
  return false;
}

// Every word of the arguments that is an address of memory of a device. A member without a value may hold any word, also an
// old address, so that nothing is said of addresses where there is no memory.
void use_arguments(CUstream_st& stream, const Kernel& kernel, void** arguments) {
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i)
    for (unsigned place = 0; place + sizeof(std::uintptr_t) <= kernel.parameters[i].bytes;
         place += sizeof(std::uintptr_t)) {
      std::uintptr_t word = 0;
      std::memcpy(&word, static_cast<const char*>(arguments[i]) + place, sizeof word);
      const Allocation* found = is_of_device(word) ? find_allocation(word) : nullptr;
      if (found && !found->freed) use_memory(stream, word, stream.device, "an argument of a kernel");
    }
}

cudaError_t launch(const Kernel& kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                   cudaStream_t stream) {
  count("launch");
  std::lock_guard lock(mutex());
  CUstream_st* queued = queue_work(stream, "a kernel's launch");
  if (!queued) return cudaErrorInvalidResourceHandle;
  if (!check_shape(kernel, grid, block, shared)) return fail_with(cudaErrorInvalidConfiguration);
  use_arguments(*queued, kernel, arguments);
  return cudaSuccess;
}

}  // namespace
}  // namespace reel_test::stand_in

using namespace reel_test::stand_in;

#pragma GCC visibility push(default)
extern "C" {

void** __cudaRegisterFatBinary(void* fat_binary) {
  std::lock_guard lock(mutex());
  try {
    for (Kernel& kernel : kernels_of(fat_binary)) registered().by_name[kernel.name] = std::move(kernel);
  } catch (const std::runtime_error& error) {
    violation("{}", error.what());
  }
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}

void __cudaRegisterFunction(void**, const char* host_function, char*, const char* name, int, uint3*, uint3*, dim3*,
                            dim3*, int*) {
  std::lock_guard lock(mutex());
  auto found = registered().by_name.find(name);
  if (found == registered().by_name.end())
    violation("a kernel has no machine code: {}", name);
  else
    registered().by_host_function[host_function] = {found->second};
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, CUstream_st* stream) {
  pushed = {grid, block, shared, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  *grid = pushed.grid;
  *block = pushed.block;
  *shared = pushed.shared;
  *static_cast<cudaStream_t*>(stream) = pushed.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(CUkern_st** kernel, const void* function) {
  *kernel = find(function);
  return fail_with(*kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

cudaError_t __cudaLaunchKernel(CUkern_st* kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                               cudaStream_t stream) {
  return launch(kernel->kernel, grid, block, arguments, shared, stream);
}

// The call of CUDA 12.
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                             cudaStream_t stream) {
  CUkern_st* kernel = find(function);
  if (!kernel) return fail_with(cudaErrorInvalidDeviceFunction);
  return launch(kernel->kernel, grid, block, arguments, shared, stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  CUkern_st* found = find(function);
  if (!found) return fail_with(cudaErrorInvalidDeviceFunction);
  const Kernel& kernel = found->kernel;
  *attributes = {};
  attributes->sharedSizeBytes = static_cast<std::size_t>(kernel.static_shared);
  attributes->localSizeBytes = static_cast<std::size_t>(kernel.stack);
  attributes->maxThreadsPerBlock = kernel.most_threads;
  attributes->numRegs = kernel.registers;
  attributes->ptxVersion = kernel.architecture;
  attributes->binaryVersion = kernel.architecture;
  attributes->maxDynamicSharedSizeBytes = description().shared_of_block - kernel.static_shared;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int threads,
                                                                   std::size_t shared, unsigned) {
  CUkern_st* found = find(function);
  if (!found) return fail_with(cudaErrorInvalidDeviceFunction);
  const Kernel& kernel = found->kernel;
  int each = kernel.static_shared + static_cast<int>(shared) + 1024;
  *blocks = std::min({blocks_of_multiprocessor, threads_of_multiprocessor / threads,
                      registers_of_block / std::max(1, registers_of(kernel, threads)),
                      description().shared_of_multiprocessor / each});
  return cudaSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
