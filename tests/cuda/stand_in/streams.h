#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "memory.h"

// Streams, events and graphs. Each stream counts its work, and knows how much of other streams' work precedes its next
// work: two accesses to memory conflict if neither precedes the other.

struct CUgraph_st {
  std::vector<std::function<void(CUstream_st&)>> nodes;
};

struct CUgraphExec_st {
  std::vector<std::function<void(CUstream_st&)>> nodes;
  int device = 0;
};

struct CUstream_st {
  std::size_t number = 0;
  int device = 0;
  std::vector<std::uint64_t> known;      ///< of each stream, how much of its work precedes work queued here now
  std::unique_ptr<CUgraph_st> recorded;  ///< what is being recorded
  bool broken = false;                   ///< the recording, by a call that is not allowed then
  bool alive = true;
};

struct CUevent_st {
  int device = 0;
  std::vector<std::uint64_t> known;
  bool was_recorded = false;
  bool of_recording = false;
};

namespace reel_test::stand_in {

int current_device();

/// Counts a piece of work on the stream, after checking that the current device may queue it there. Returns null, and
/// sets the runtime's error, if it may not.
CUstream_st* queue_work(cudaStream_t stream, const char* call);
/// Records that the work just queued uses memory of a device, or has it recorded at each launch of the graph that is recorded.
void use_memory(CUstream_st& stream, std::uintptr_t address, int device, const char* what);
/// Checks the bytes and records their use.
void use_extent(CUstream_st& stream, const void* address, std::size_t bytes, const char* what);

/// True if the CPU has waited for the work.
bool host_knows(Moment moment);
std::string name_of_stream(std::size_t number);

/// Sets the thread's error and returns it; with success it does nothing.
cudaError_t fail_with(cudaError_t error);

#pragma GCC visibility push(default)
/// Called once when a thread next waits for a stream, before it does: another thread may act in between.
void before_next_wait(std::function<void()> f);
#pragma GCC visibility pop

}  // namespace reel_test::stand_in
