#include "runtime.h"

#include <memory>
#include <vector>

#include "../lib/core/invoke.h"
#include "../lib/core/op_error.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

struct Block : DeviceBlock {
  int device;
  Stream stream;
};

struct OnDevice {
  Stream stream = nullptr;
  int multiprocessors = 0;
};

// Of a thread.
struct State {
  int device = -1;
  std::vector<OnDevice> devices;
  FaultRecord* faults = nullptr;
  std::vector<FaultSource> sources;  // by ticket, going round
  std::uint64_t tickets = 0;
};
thread_local State state;

OnDevice& here() {
  if (state.device < 0) enter_device_of_thread(0);
  return state.devices[static_cast<std::size_t>(state.device)];
}

constexpr std::uint64_t remembered_tickets = 1 << 12;

}  // namespace

void enter_device_of_thread(int device) {
  if (state.faults && state.faults->state == 2) throw_faults();
  if (state.device == device) return;
  std::string absence;
  int count = driver_device_count(absence);
  if (device >= count) throw DeviceError("there is no cuda:" + std::to_string(device), context().resolve({}));
  state.devices.resize(static_cast<std::size_t>(count));
  driver_use(device);
  state.device = device;
  OnDevice& entered = state.devices[static_cast<std::size_t>(device)];
  if (entered.stream) return;
  entered.multiprocessors = driver_properties(device).multiprocessors;
  entered.stream = driver_make_stream();
}

int current_device() { return state.device; }
Stream current_stream() { return here().stream; }
int multiprocessors() { return here().multiprocessors; }

FaultNote note_faults() {
  if (!state.faults) {
    state.faults = static_cast<FaultRecord*>(driver_allocate_pinned(sizeof(FaultRecord)));
    *state.faults = {};
    state.sources.resize(remembered_tickets);
  }
  state.sources[++state.tickets % remembered_tickets] = running_op();
  return {state.faults, state.tickets};
}

void throw_faults() {
  if (!state.faults || state.faults->state != 2) return;
  FaultRecord found = *state.faults;
  state.faults->state = 0;
  throw_fault(found, state.sources[found.ticket % remembered_tickets]);
}

DeviceBlock* allocate_block(int device, std::size_t bytes, const char* op, Location where) {
  enter_device_of_thread(device);
  auto block = std::make_unique<Block>();
  block->device = device;
  block->stream = current_stream();
  block->data = driver_allocate(bytes);
  if (!block->data) fail<MemoryError>(op, where, "there is no memory on cuda:{} for {} bytes", device, bytes);
  return block.release();
}

void free_block(DeviceBlock* block) noexcept {
  std::unique_ptr<Block> owned(static_cast<Block*>(block));
  driver_free(owned->data);
}

Scratch::Scratch(std::size_t bytes) {
  DeviceBlock* block = allocate_block(current_device(), bytes, "scratch memory", {});
  data_ = block->data;
  block_ = block;
}
Scratch::~Scratch() { free_block(static_cast<DeviceBlock*>(block_)); }

void copy_to_device(void* to, const void* from, std::size_t bytes) { driver_copy(to, from, bytes, current_stream()); }
void copy_on_device(void* to, const void* from, std::size_t bytes) { driver_copy(to, from, bytes, current_stream()); }
void fill_with_zeros(void* to, std::size_t bytes) { driver_fill_with_zeros(to, bytes, current_stream()); }

void copy_to_host(void* to, const void* from, std::size_t bytes, const char*) {
  driver_copy(to, from, bytes, current_stream());
  driver_wait(current_stream());
  throw_faults();
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
