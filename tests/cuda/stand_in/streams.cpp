#include "streams.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "device.h"
#include "record.h"

namespace reel_test::stand_in {
namespace {

using Known = std::vector<std::uint64_t>;

void join(Known& into, const Known& other) {
  if (into.size() < other.size()) into.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) into[i] = std::max(into[i], other[i]);
}

bool knows(const Known& known, Moment moment) {
  return moment.stream < known.size() && known[moment.stream] >= moment.tick;
}

struct State {
  std::vector<std::unique_ptr<CUstream_st>> streams;
  Known host;  // of all threads, which tell each other by means that are not seen here
  std::function<void()> before_wait;
};

State& state() {
  static auto& made = *new State;
  return made;
}

thread_local int device_of_thread = 0;
thread_local cudaError_t error_of_thread = cudaSuccess;

void record_use(CUstream_st& stream, std::uintptr_t address, int device, const char* what) {
  Allocation* found = find_allocation(address);
  if (!found) return;
  if (found->freed) return violation("{}: the address is that of freed memory", what);
  if (!found->pinned && found->device != device)
    violation("{}: memory of device {} is used on device {}", what, found->device, device);
  Moment now{stream.number, stream.known[stream.number]};
  Moment& owner = found->owners.try_emplace(address, now).first->second;
  if (owner.stream == now.stream)
    owner = now;
  else if (!found->pinned && !knows(stream.known, owner))
    violation("{}: work on a stream uses what another stream computes, without waiting for it", what);
  found->users[stream.number] = now.tick;
}

// A stream that is being recorded cannot be waited for, which would also end the recording.
bool refuse_in_recording(CUstream_st& stream, const char* call) {
  if (!stream.recorded) return false;
  stream.broken = true;
  violation("{} breaks the graph that is being recorded from that stream", call);
  return true;
}

}  // namespace

int current_device() { return device_of_thread; }

cudaError_t fail_with(cudaError_t error) {
  if (error != cudaSuccess) error_of_thread = error;
  return error;
}

bool host_knows(Moment moment) { return knows(state().host, moment); }

std::string name_of_stream(std::size_t number) {
  return fmt::format("{} of device {}", number, state().streams[number]->device);
}

CUstream_st* queue_work(cudaStream_t stream, const char* call) {
  std::lock_guard lock(mutex());
  if (!stream) {
    violation("{} uses the default stream, which waits for all others", call);
    fail_with(cudaErrorInvalidResourceHandle);
    return nullptr;
  }
  if (stream->device != current_device()) {
    violation("{}: the stream is one of device {}, and device {} is selected", call, stream->device, current_device());
    fail_with(cudaErrorInvalidResourceHandle);
    return nullptr;
  }
  join(stream->known, state().host);
  if (stream->known.size() <= stream->number) stream->known.resize(stream->number + 1);
  if (!stream->recorded) ++stream->known[stream->number];
  return stream;
}

void use_memory(CUstream_st& stream, std::uintptr_t address, int device, const char* what) {
  std::lock_guard lock(mutex());
  if (stream.recorded)
    stream.recorded->nodes.emplace_back(
        [address, device, what](CUstream_st& launched) { record_use(launched, address, device, what); });
  else
    record_use(stream, address, device, what);
}

void use_extent(CUstream_st& stream, const void* address, std::size_t bytes, const char* what) {
  std::lock_guard lock(mutex());
  if (check_extent(address, bytes, stream.device, what))
    use_memory(stream, reinterpret_cast<std::uintptr_t>(address), stream.device, what);
}

void before_next_wait(std::function<void()> f) {
  std::lock_guard lock(mutex());
  state().before_wait = std::move(f);
}

namespace {

void run_before_wait() {
  std::function<void()> f;
  {
    std::lock_guard lock(mutex());
    f = std::exchange(state().before_wait, nullptr);
  }
  if (f) f();
}

}  // namespace
}  // namespace reel_test::stand_in

using namespace reel_test::stand_in;

#pragma GCC visibility push(default)
extern "C" {

cudaError_t cudaGetLastError() { return std::exchange(error_of_thread, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return error_of_thread; }

cudaError_t cudaSetDevice(int device) {
  count("cudaSetDevice");
  if (device < 0 || device >= device_count) return fail_with(cudaErrorInvalidDevice);
  device_of_thread = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  count("cudaStreamCreateWithFlags");
  std::lock_guard lock(mutex());
  if (flags != cudaStreamNonBlocking) violation("a stream is made that waits for the default stream");
  auto made = std::make_unique<CUstream_st>();
  made->number = state().streams.size();
  made->device = current_device();
  made->known.resize(made->number + 1);
  *stream = state().streams.emplace_back(std::move(made)).get();
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  count("cudaStreamSynchronize");
  run_before_wait();
  std::lock_guard lock(mutex());
  if (refuse_in_recording(*stream, "cudaStreamSynchronize")) return fail_with(cudaErrorStreamCaptureUnsupported);
  join(state().host, stream->known);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  count("cudaStreamWaitEvent");
  std::lock_guard lock(mutex());
  if (!event->was_recorded) return cudaSuccess;
  if (stream->recorded && !event->of_recording) {
    stream->broken = true;
    violation("a graph that is being recorded waits for an event outside of it");
    return fail_with(cudaErrorStreamCaptureIsolation);
  }
  if (!stream->recorded && event->of_recording)
    violation("a stream waits for an event of a graph that is being recorded, and becomes part of it");
  join(stream->known, event->known);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  count("cudaEventCreateWithFlags");
  if ((flags & cudaEventDisableTiming) == 0) violation("an event is made that measures time");
  *event = std::make_unique<CUevent_st>().release();
  (*event)->device = current_device();
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  count("cudaEventDestroy");
  std::unique_ptr<CUevent_st> freed(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  count("cudaEventRecord");
  std::lock_guard lock(mutex());
  if (event->device != stream->device) {
    violation("an event of device {} is recorded on a stream of device {}", event->device, stream->device);
    return fail_with(cudaErrorInvalidResourceHandle);
  }
  event->known = stream->known;
  event->was_recorded = true;
  event->of_recording = stream->recorded != nullptr;
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  count("cudaEventQuery");
  std::lock_guard lock(mutex());
  if (event->of_recording) {
    violation("an event of a graph that is being recorded is queried");
    return fail_with(cudaErrorStreamCaptureUnsupported);
  }
  join(state().host, event->known);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  count("cudaEventSynchronize");
  run_before_wait();
  std::lock_guard lock(mutex());
  if (event->of_recording) {
    violation("the CPU waits for an event of a graph that is being recorded");
    return fail_with(cudaErrorStreamCaptureUnsupported);
  }
  join(state().host, event->known);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  count("cudaStreamBeginCapture");
  std::lock_guard lock(mutex());
  if (mode != cudaStreamCaptureModeRelaxed) violation("a graph is recorded in a mode that stops other threads");
  if (stream->recorded) return fail_with(cudaErrorIllegalState);
  stream->recorded = std::make_unique<CUgraph_st>();
  stream->broken = false;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  count("cudaStreamEndCapture");
  std::lock_guard lock(mutex());
  *graph = nullptr;
  if (!stream->recorded) return fail_with(cudaErrorIllegalState);
  std::unique_ptr<CUgraph_st> recorded = std::move(stream->recorded);
  if (stream->broken) return fail_with(cudaErrorStreamCaptureInvalidated);
  *graph = recorded.release();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* execution, cudaGraph_t graph, unsigned long long) {
  count("cudaGraphInstantiate");
  auto made = std::make_unique<CUgraphExec_st>();
  made->nodes = graph->nodes;
  made->device = current_device();
  *execution = made.release();
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  std::unique_ptr<CUgraph_st> freed(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t execution) {
  std::unique_ptr<CUgraphExec_st> freed(execution);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t execution, cudaStream_t stream) {
  count("cudaGraphLaunch");
  std::lock_guard lock(mutex());
  CUstream_st* queued = queue_work(stream, "cudaGraphLaunch");
  if (!queued) return cudaErrorInvalidResourceHandle;
  for (const auto& node : execution->nodes) node(*queued);
  return cudaSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
