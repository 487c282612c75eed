#include "driver.h"

#include <cuda_runtime_api.h>

#include <reel/error.h>

#include "../../lib/core/context.h"
#include "../../lib/core/threads/waiting.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// Checks the runtime's status.
void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw DeviceError(std::string("CUDA: ") + call + " gave \"" + cudaGetErrorString(status) + '"',
                    context().call_site({}));
}

}  // namespace

int driver_device_count(std::string& absence) {
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  int driver = 0, runtime = 0;
  static_cast<void>(cudaDriverGetVersion(&driver));
  static_cast<void>(cudaRuntimeGetVersion(&runtime));
  auto version = [](int number) { return std::to_string(number / 1000) + '.' + std::to_string(number % 1000 / 10); };
  if (status == cudaErrorInsufficientDriver)
    absence = driver == 0 ? "NVIDIA's driver is not installed (there is no libcuda.so.1)"
                          : "NVIDIA's driver goes up to CUDA " + version(driver) + ", and this build wants " +
                                version(runtime) + "; install a newer driver";
  else
    absence = status == cudaSuccess ? "the driver sees no device" : cudaGetErrorString(status);
  static_cast<void>(cudaGetLastError());
  return 0;
}

DeviceDescription driver_properties(int device) {
  cudaDeviceProp found;
  check(cudaGetDeviceProperties(&found, device), "cudaGetDeviceProperties");
  return {found.name, found.totalGlobalMem, found.multiProcessorCount, found.major, found.minor};
}

void driver_use(int device) { check(cudaSetDevice(device), "cudaSetDevice"); }

void* driver_allocate(std::size_t bytes) {
  void* memory = nullptr;
  cudaError_t status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }
  check(status, "cudaMalloc");
  return memory;
}

std::size_t driver_gap() { return 0; }
void driver_spoil(void*, std::size_t, Stream) {}

void driver_forget_error() noexcept { static_cast<void>(cudaGetLastError()); }

void driver_free(void* memory) noexcept { static_cast<void>(cudaFree(memory)); }

DriverMemory driver_memory() {
  DriverMemory found{};
  check(cudaMemGetInfo(&found.free, &found.total), "cudaMemGetInfo");
  return found;
}

void* driver_allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped), "cudaHostAlloc");
  return memory;
}

void driver_free_pinned(void* memory) noexcept { static_cast<void>(cudaFreeHost(memory)); }

Stream driver_make_stream() {
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return stream;
}

void driver_wait(Stream stream) {
  ObservedWait waiting("a GPU");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

Event driver_make_event() {
  cudaEvent_t event;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return event;
}

void driver_free_event(Event event) noexcept { static_cast<void>(cudaEventDestroy(event)); }

void driver_record(Event event, Stream stream) { check(cudaEventRecord(event, stream), "cudaEventRecord"); }

void driver_wait_for(Stream stream, Event event) {
  check(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
}

bool driver_is_done(Event event) {
  cudaError_t status = cudaEventQuery(event);
  if (status == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  check(status, "cudaEventQuery");
  return true;
}

void driver_wait(Event event) {
  ObservedWait waiting("a GPU");
  check(cudaEventSynchronize(event), "cudaEventSynchronize");
}

void driver_copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
}

void driver_copy_between(int to_device, void* to, int from_device, const void* from, std::size_t bytes, Stream stream) {
  check(cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, stream), "cudaMemcpyPeerAsync");
}

void driver_fill_with_zeros(void* to, std::size_t bytes, Stream stream) {
  check(cudaMemsetAsync(to, 0, bytes, stream), "cudaMemsetAsync");
}

void driver_begin_recording(Stream stream) {
  // Relaxed mode: other threads continue, and memory may be allocated; calls that would wait are refused earlier.
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
}

GraphExecution driver_end_recording(Stream stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t execution = nullptr;
  cudaError_t status = cudaGraphInstantiate(&execution, graph, 0);
  static_cast<void>(cudaGraphDestroy(graph));
  check(status, "cudaGraphInstantiate");
  return execution;
}

void driver_abandon_recording(Stream stream) noexcept {
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(stream, &graph) == cudaSuccess && graph) static_cast<void>(cudaGraphDestroy(graph));
  static_cast<void>(cudaGetLastError());
}

void driver_launch(GraphExecution graph, Stream stream) { check(cudaGraphLaunch(graph, stream), "cudaGraphLaunch"); }

void driver_free_graph(GraphExecution graph) noexcept { static_cast<void>(cudaGraphExecDestroy(graph)); }

void check_launch() { check(cudaGetLastError(), "a kernel's launch"); }

}  // namespace reel::detail::inline REEL_TARGET
