#include "capture.h"

#include <algorithm>
#include <array>
#include <utility>

#include "../../lib/core/context.h"
#include "../../lib/core/fail.h"
#include "../../lib/core/op.h"
#include "../device/device.h"
#include "../device/random_call.h"
#include "runtime.h"

namespace reel::detail::inline REEL_TARGET {

Capture::Capture(Queue& queue, Generator& generator)
    : queue_(queue),
      generator_(generator),
      seed_(generator.seed()),
      first_call_(generator.calls()),
      pool_(std::make_unique<MemoryPool>(queue, account_of(queue.device))) {
  if (queue.capture) fail<DeviceError>("cuda::Graph", {}, "another graph is being recorded");
  driver_wait(queue.stream);  // no thread can wait for the stream while it is recorded
  {
    std::lock_guard lock(queue.capture_mutex);
    driver_begin_recording(queue.stream);
    queue.capture = this;
  }
  queue.pool = pool_.get();
}

Capture::~Capture() {
  if (recording_) {
    driver_abandon_recording(queue_.stream);
    stop();
  }
  if (execution_) driver_free_graph(execution_);
  for (const Numbers& numbers : numbers_) free_block(numbers.block);
  if (draws_) free_block(draws_);
  MemoryPool::retire(std::move(pool_));
}

void Capture::stop() noexcept {
  recording_ = false;
  queue_.capture = nullptr;
  queue_.pool = &queue_.memory;
}

void Capture::finish() {
  struct Stop {
    Capture& capture;
    ~Stop() { capture.stop(); }
  } stop{*this};
  execution_ = driver_end_recording(queue_.stream);
}

void Capture::launch(std::uint64_t seed, std::uint64_t added_calls) {
  if (&enter_device_of_thread(queue_.device) != &queue_)
    fail<DeviceError>("cuda::Graph", {}, "a graph is replayed by the thread that has recorded it");
  bool replayed = std::exchange(launched_, true);
  if (replayed)
    for (const auto& hook : hooks_) hook();
  for (const Numbers& numbers : numbers_)
    queue_.staging.copy_in(numbers.block->data, numbers.source, numbers.bytes, queue_.stream);
  if (draws_) {
    std::array<std::uint64_t, 2> told{seed, added_calls};
    queue_.staging.copy_in(draws_->data, told.data(), sizeof told, queue_.stream);
  }
  Location where = context().call_site({});
  for (const Kept& kept : kept_) {
    prepare_operand(kept.tensor.body(), kept.written);
    if (kept.written && replayed) kept.tensor.body().storage->overwritten(where);
  }
  driver_launch(execution_, queue_.stream);
}

void Capture::keep(const Body& x, bool writes) {
  auto same = [&](const Kept& kept) { return &kept.tensor.body() == &x; };
  if (auto found = std::find_if(kept_.begin(), kept_.end(), same); found != kept_.end()) {
    found->written |= writes;
    return;
  }
  auto& body = const_cast<Body&>(x);
  body.references.retain();
  kept_.push_back({Tensor::adopt(&body), writes});
}

void Capture::keep(std::shared_ptr<const void> kernels) {
  if (std::find(kernels_.begin(), kernels_.end(), kernels) == kernels_.end()) kernels_.push_back(std::move(kernels));
}

// Memory that each launch fills before it runs. It does not come from the graph's pool, whose memory earlier ops of the
// graph may have used.
DeviceBlock* Capture::block_for_launches(std::size_t bytes) {
  // Without spoiling, which would be recorded, too.
  DeviceBlock* block = queue_.memory.take(bytes, false);
  if (!block) fail<MemoryError>("cuda::Graph", {}, "there is no memory for {} bytes", bytes);
  return block;
}

const std::uint64_t* Capture::draws(RandomCall call) {
  if (call.seed != seed_ || call.call < first_call_ || call.call >= generator_.calls()) {
    const Call* running = context().running;
    fail<DeviceError>(
        running ? running->op.name : "cuda::Graph", running ? running->where : Location{},
        "it draws from a generator of its own, whose numbers would be the same at each replay of the graph; "
        "draw from the thread's");
  }
  if (!draws_) draws_ = block_for_launches(2 * sizeof(std::uint64_t));
  return static_cast<const std::uint64_t*>(draws_->data);
}

const void* Capture::numbers(const void* numbers, std::size_t bytes) {
  DeviceBlock* block = block_for_launches(bytes);
  numbers_.push_back({numbers, bytes, block});
  return block->data;
}

const std::uint64_t* recorded_draws(RandomCall call) {
  Queue& queue = current_queue();
  return queue.capture ? queue.capture.load()->draws(call) : nullptr;
}

}  // namespace reel::detail::inline REEL_TARGET
