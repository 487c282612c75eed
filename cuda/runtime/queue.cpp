#include "queue.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "../../lib/core/context.h"
#include "../../lib/core/fail.h"
#include "runtime.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

constexpr std::size_t most_devices = std::numeric_limits<decltype(Device::index)>::max() + 1;

struct Registry {
  std::mutex mutex;
  std::array<std::vector<Queue*>, most_devices> queues, abandoned;
  std::array<DeviceAccount, most_devices> accounts;
};

Registry& registry() {
  static auto& made = *std::make_unique<Registry>().release();
  return made;
}

// The queues of a thread, by device. They are adopted by threads that start later.
struct QueuesOfThread {
  std::vector<Queue*> queues;
};

// Plain pointers, which can be read after the thread's other variables are destroyed.
thread_local constinit QueuesOfThread* queues_of_thread = nullptr;
thread_local constinit Queue* entered = nullptr;

struct ThreadEnd {
  bool armed = false;
  ~ThreadEnd() {
    std::unique_ptr<QueuesOfThread> own(std::exchange(queues_of_thread, nullptr));
    entered = nullptr;
    if (!own) return;
    std::lock_guard lock(registry().mutex);
    for (Queue* queue : own->queues)
      if (queue) registry().abandoned[static_cast<std::size_t>(queue->device)].push_back(queue);
  }
};
thread_local ThreadEnd thread_end;

int count_of_devices() {
  std::string absence;
  return driver_device_count(absence);
}

// The queue of a thread that has ended, or a new one. It first waits for all work of other queues: a thread's first op
// may have operands of which the queue has not been notified.
Queue* new_queue(int device) {
  auto number = static_cast<std::size_t>(device);
  Queue* queue = nullptr;
  {
    std::lock_guard lock(registry().mutex);
    auto& abandoned = registry().abandoned[number];
    if (!abandoned.empty()) {
      queue = abandoned.back();
      abandoned.pop_back();
    }
  }
  if (!queue) queue = std::make_unique<Queue>(device).release();
  queue->faults.forget();
  for (const Queue* other : queues_of(device))
    if (other != queue) queue->wait_for(*other);
  std::lock_guard lock(registry().mutex);
  auto& all = registry().queues[number];
  if (std::find(all.begin(), all.end(), queue) == all.end()) all.push_back(queue);
  return queue;
}

[[gnu::noinline]] void enter_another(int device) {
  if (entered && entered->capture)
    throw DeviceError("a graph of cuda:" + std::to_string(entered->device) +
                          " is being recorded, where cuda:" + std::to_string(device) + " cannot take part",
                      context().call_site({}));
  static const int count = count_of_devices();
  if (device >= count) throw DeviceError("there is no cuda:" + std::to_string(device), context().call_site({}));
  if (!queues_of_thread) {
    queues_of_thread = std::make_unique<QueuesOfThread>().release();
    queues_of_thread->queues.resize(static_cast<std::size_t>(count));
    thread_end.armed = true;
  }
  driver_use(device);
  Queue*& own = queues_of_thread->queues[static_cast<std::size_t>(device)];
  if (!own) own = new_queue(device);
  entered = own;
}

}  // namespace

DeviceAccount& account_of(int device) { return registry().accounts[static_cast<std::size_t>(device)]; }

std::vector<Queue*> queues_of(int device) {
  std::lock_guard lock(registry().mutex);
  return registry().queues[static_cast<std::size_t>(device)];
}

Queue::Queue(int device) : device(device), memory(*this, account_of(device)) {
  stream = driver_make_stream();
  multiprocessors = driver_properties(device).multiprocessors;
}

Event Queue::record() const {
  OnDevice here(device);
  Event event = driver_make_event();
  std::lock_guard lock(capture_mutex);
  if (!capture) driver_record(event, stream);
  return event;
}

void Queue::finish() const {
  Event event = record();
  driver_wait(event);
  driver_free_event(event);
}

void Queue::wait_for(const Queue& other) const {
  if (other.capture) return;
  Event event = other.record();
  driver_wait_for(stream, event);
  driver_free_event(event);  // the driver keeps it until it has occurred
}

OnDevice::OnDevice(int device) : before_(entered ? entered->device : device) {
  if (before_ != device || !entered) driver_use(device);
}
OnDevice::~OnDevice() {
  try {
    if (entered) driver_use(before_);
  } catch (...) {
    // The driver has shut down.
  }
}

Queue& enter_device_of_thread(int device) {
  if (!entered || entered->device != device) [[unlikely]]
    enter_another(device);
  entered->faults.check();
  return *entered;
}

Queue* current_queue_or_null() noexcept { return entered; }

Queue& current_queue() { return entered ? *entered : enter_device_of_thread(0); }

}  // namespace reel::detail::inline REEL_TARGET
