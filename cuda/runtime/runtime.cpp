#include "runtime.h"

#include <algorithm>
#include <memory>
#include <string>

#include "../../lib/core/context.h"
#include "../../lib/core/device/largest_tensors.h"
#include "../../lib/core/fail.h"
#include "../../lib/core/op.h"
#include "../device/recording.h"
#include "../kernels/reduce/fingerprint.h"
#include "capture.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

void wait_for_others(Queue& queue, Block& block, bool writes) {
  for (Queue* other : block.pool->record_use(block, queue, writes)) {
    if (!queue.capture)
      queue.wait_for(*other);
    else if (!other->capture)
      other->finish();  // a graph cannot wait for work outside of it
  }
}

inline void prepare_operand(Queue& queue, const Body& x, bool writes) {
  if (x.device.type == Device::Type::cpu || !x.storage->device_block()) return;
  auto& block = *static_cast<Block*>(x.storage->device_block());
  if (queue.capture && block.pool != queue.pool) queue.capture.load()->keep(x, writes);
  if (&block.pool->queue() != &queue || block.shared.load(std::memory_order_acquire)) [[unlikely]]
    wait_for_others(queue, block, writes);
}

// The device that a call runs on; −1: the CPU.
int device_of(const Call& call) {
  for (const OutputSpec& spec : call.specs)
    if (spec.device.type != Device::Type::cpu) return spec.device.index;
  for (const Tensor& output : call.outputs)
    if (output.defined() && output.device().type != Device::Type::cpu) return output.device().index;
  for (const Tensor* input : call.inputs)
    if (input->defined() && input->device().type != Device::Type::cpu) return input->device().index;
  return -1;
}

std::string in_megabytes(std::size_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6); }

[[noreturn, gnu::cold]] void refuse_memory(int device, std::size_t bytes, const char* op, Location where) {
  DriverMemory memory = driver_memory();
  const DeviceAccount& account = account_of(device);
  std::size_t limit = account.limit.load();
  std::string sentence =
      fmt::format("cuda:{} has no memory for {}: {} of its {} are free, {} are reserved here and {} of these in use{}",
                  device, in_megabytes(bytes), in_megabytes(memory.free), in_megabytes(memory.total),
                  in_megabytes(account.reserved.load()), in_megabytes(account.used.load()),
                  limit == SIZE_MAX ? "" : fmt::format("; set_memory_limit allows {}", in_megabytes(limit)));
  std::string largest = largest_tensors({Device::Type::cuda, static_cast<std::uint8_t>(device)});
  if (!largest.empty()) sentence += "; the largest tensors are of " + largest;
  fail<MemoryError>(op, where, "{}", sentence);
}

}  // namespace

void prepare_operands(const Call& call) {
  int device = device_of(call);
  if (device < 0) return;
  Queue& queue = enter_device_of_thread(device);
  for (const Tensor* input : call.inputs)
    if (input->defined()) prepare_operand(queue, input->body(), false);
  for (const Tensor& output : call.outputs)
    if (output.defined()) prepare_operand(queue, output.body(), true);
}

void prepare_operand(const Body& x, bool writes) {
  if (x.device.type != Device::Type::cpu) prepare_operand(enter_device_of_thread(x.device.index), x, writes);
}

DeviceBlock* allocate_block(int device, std::size_t bytes, const char* op, Location where) {
  Queue& queue = enter_device_of_thread(device);
  MemoryPool& pool = *queue.pool;
  if (Block* block = pool.take(bytes)) [[likely]]
    return block;
  pool.wait_for_users();
  if (Block* block = pool.take(bytes)) return block;
  release_caches(device);
  if (Block* block = pool.take(bytes)) return block;
  refuse_memory(device, bytes, op, where);
}

void free_block(DeviceBlock* freed) noexcept {
  auto* block = static_cast<Block*>(freed);
  block->pool->give(block);
}

void reserve_block(int device, std::size_t bytes, Location where) {
  Queue& queue = enter_device_of_thread(device);
  DeviceAccount& account = account_of(device);
  account.reservation = bytes;
  std::size_t reserved = account.reserved.load();
  if (bytes <= reserved || queue.memory.reserve(bytes - reserved)) return;
  release_caches(device);
  if (!queue.memory.reserve(bytes - std::min(bytes, account.reserved.load())))
    refuse_memory(device, bytes, "cuda::reserve_memory", where);
}

void release_caches(int device) noexcept {
  for (Queue* queue : queues_of(device)) {
    if (queue->capture) continue;
    try {
      queue->finish();
    } catch (...) {
      continue;  // the error is reported elsewhere
    }
    queue->memory.release();
  }
}

void notify_wait_for(const Queue& queue, const char* reason) {
  if (queue.capture) {
    const Call* call = context().running;
    fail<DeviceError>(call ? call->op.name : "cuda::Graph", call ? call->where : Location{},
                      "the CPU waits for {} here, which a graph cannot; leave it out of the step that is recorded",
                      reason);
  }
  notify_wait({Device::Type::cuda, static_cast<std::uint8_t>(queue.device)}, reason);
}

void wait_for_queue(Queue& queue, const char* reason) {
  notify_wait_for(queue, reason);
  driver_wait(queue.stream);
  queue.faults.check();
}

namespace {

constexpr std::uint32_t remembered_values = 1 << 16;

std::uint64_t* fingerprint_at(const Queue& queue, std::uint32_t number) {
  return static_cast<std::uint64_t*>(queue.fingerprint_ring->data) + number % remembered_values;
}

Fingerprinted fingerprinted(const Body& x) {
  int unit = std::min(4, static_cast<int>(size_of(x.dtype)));
  return {x.data, x.numel * static_cast<std::int64_t>(size_of(x.dtype)) / unit, unit};
}

}  // namespace

std::uint32_t record_fingerprint_of(const Body& x) {
  Queue& queue = enter_device_of_thread(x.device.index);
  // The ring is kept permanently, so that it cannot be in the memory of a graph that is being recorded.
  if (!queue.fingerprint_ring)
    queue.fingerprint_ring = queue.memory.take(remembered_values * sizeof(std::uint64_t), false);
  if (!queue.fingerprint_ring) refuse_memory(queue.device, remembered_values * sizeof(std::uint64_t), "checkpoint", {});
  write_fingerprint(fingerprint_at(queue, queue.fingerprint_count), fingerprinted(x));
  return queue.fingerprint_count++;
}

void check_values_of(std::uint32_t recorded, const Body& x, const char* op, Location where, int result) {
  Queue& queue = enter_device_of_thread(x.device.index);
  if (queue.fingerprint_count - recorded > remembered_values) return;  // overwritten by later fingerprints
  FaultReporter reporter = queue.faults.reporter({op, where, {}, x.dtype}, queue.capture != nullptr);
  compare_fingerprint(fingerprint_at(queue, recorded), fingerprinted(x), result, reporter);
}

int current_device() { return current_queue().device; }
Stream current_stream() { return current_queue().stream; }
int multiprocessors() { return current_queue().multiprocessors; }
bool records_graph() { return current_queue().capture != nullptr; }

FaultReporter fault_reporter() {
  Queue& queue = current_queue();
  return queue.faults.reporter(queue.capture != nullptr);
}

Scratch::Scratch(std::size_t bytes) {
  const Call* call = context().running;
  DeviceBlock* block =
      allocate_block(current_device(), bytes, call ? call->op.name : "scratch memory", call ? call->where : Location{});
  data_ = block->data;
  block_ = block;
}
Scratch::~Scratch() { free_block(static_cast<DeviceBlock*>(block_)); }

void copy_to_device(void* to, const void* from, std::size_t bytes) {
  Queue& queue = current_queue();
  if (queue.capture) {
    const Call* call = context().running;
    fail<DeviceError>(call ? call->op.name : "cuda::Graph", call ? call->where : Location{},
                      "numbers of the CPU are copied to the device here, and would be the same at each replay of the "
                      "graph; make them before, or pass them as an input");
  }
  queue.staging.copy_in(to, from, bytes, queue.stream);
}
void copy_on_device(void* to, const void* from, std::size_t bytes) { driver_copy(to, from, bytes, current_stream()); }
void fill_with_zeros(void* to, std::size_t bytes) { driver_fill_with_zeros(to, bytes, current_stream()); }

void copy_to_host(void* to, const void* from, std::size_t bytes, const char* reason) {
  Queue& queue = current_queue();
  notify_wait_for(queue, reason);
  queue.staging.copy_out(to, from, bytes, queue.stream);
  queue.faults.check();
}

}  // namespace reel::detail::inline REEL_TARGET
