#include <reel/data/loader_engine.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <reel/device.h>
#include <reel/no_record.h>
#include <reel/ops/create.h>
#include <reel/threads.h>

#include "../core/op_error.h"
#include "../core/threads/waiting.h"
#include "../optim/state_reader.h"
#include "batch_maker.h"
#include "batch_order.h"

namespace reel::detail {

// Before which batch an epoch is.
struct LoaderPosition {
  std::int64_t window = 0;     // the window that the next batch is in
  std::int64_t batch = 0;      // its number in the window
  std::int64_t delivered = 0;  // the batches of the epoch before it
};

// A batch on its way to the caller.
struct LoaderTask {
  LoaderPosition after;  // when it has been received
  std::int64_t number = 0;
  std::vector<std::int64_t> indices;
  MadeBatch made;
  bool ready = false;
};

namespace {

constexpr const char* loader_name = "data::Loader";

// A setting that the order depends on, by its name in a state.
struct NamedSetting {
  const char* name;
  std::int64_t value;
};

std::vector<NamedSetting> named_settings(const LoaderSettings& settings, std::int64_t size) {
  return {{"size", size},
          {"batch_size", settings.batch_size},
          {"shuffle", settings.shuffle},
          {"drop_last", settings.drop_last},
          {"bucket_batches", settings.bucket_batches},
          {"most_elements", settings.most_elements}};
}

void check_settings(const LoaderSettings& settings, bool has_length, Location where) {
  auto check_least = [&](const char* name, std::int64_t value, std::int64_t least) {
    if (value < least) fail<Error>(loader_name, where, "{} is {}, but must be at least {}", name, value, least);
  };
  check_least("batch_size", settings.batch_size, 1);
  check_least("workers", settings.workers, 0);
  check_least("prefetch", settings.prefetch, 0);
  check_least("most_elements", settings.most_elements, 0);
  check_least("shards", settings.shards, 1);
  if (settings.shard < 0 || settings.shard >= settings.shards)
    fail<Error>(loader_name, where, "shard is {}, but must be in [0, {}), the number of shards", settings.shard,
                settings.shards);
  if (has_length) check_least("bucket_batches", settings.bucket_batches, 1);
  if (!has_length && settings.most_elements > 0)
    fail<Error>(loader_name, where, "most_elements needs the length of an item; set .length or .lengths, too");
  if (settings.most_elements > 0 && settings.drop_last)
    fail<Error>(loader_name, where, "with most_elements no batch is incomplete; leave out .drop_last");
}

// The items of a batch that belong to this shard. Items sorted by length are dealt forth and back, so that the sums of
// lengths of all shards are about equal.
std::vector<std::int64_t> own_part(std::span<const std::int64_t> items, bool sorted, const LoaderSettings& settings) {
  std::vector<std::int64_t> own;
  if (sorted) {
    for (std::int64_t i = 0; i < std::ssize(items); ++i) {
      std::int64_t round = i / settings.shards, place = i % settings.shards;
      if ((round % 2 == 0 ? place : settings.shards - 1 - place) == settings.shard)
        own.push_back(items[static_cast<std::size_t>(i)]);
    }
    return own;
  }
  auto bound = [&](std::int64_t shard) { return std::ssize(items) * shard / settings.shards; };
  return {items.begin() + bound(settings.shard), items.begin() + bound(settings.shard + 1)};
}

}  // namespace

struct LoaderEngine::Implementation : private Immovable {
  Implementation(LoaderFunctions all, const LoaderSettings& given, Location called)
      : functions(std::move(all)), settings(given), where(called), size(functions.size()) {
    take_known_lengths();
    check_settings(settings, functions.length != nullptr, where);
  }
  ~Implementation() { stop(); }

  BatchOrder order() const { return {settings, size}; }
  void take_known_lengths();
  void check_size() const;
  LengthFunction named_length() const;
  bool plan(LoaderTask& task);
  std::shared_ptr<void> receive(LoaderTask task);
  std::shared_ptr<void> next_here();
  std::shared_ptr<void> next_of_workers();
  void start();
  void stop();
  void work(Device device);
  bool take_task(std::int64_t& ticket);
  LoaderTask& slot(std::int64_t ticket) { return queue[static_cast<std::size_t>(ticket) % queue.size()]; }

  LoaderFunctions functions;
  LoaderSettings settings;
  Location where;
  std::int64_t size;
  // Used by the caller's thread only.
  std::int64_t epoch = 0;
  LoaderPosition position;
  std::vector<std::int64_t> indices;
  double seconds = 0;
  // Used by the thread that makes the next plan: the caller's, or the worker that holds plan_mutex.
  std::mutex plan_mutex;
  LoaderPosition planned;
  std::optional<Window> window;
  bool planned_all = false;
  // Used by the workers and the caller's thread, under queue_mutex.
  std::mutex queue_mutex;
  std::condition_variable room, arrival;
  std::vector<LoaderTask> queue;  // a ring: the batch with ticket t is at t modulo its size
  std::int64_t issued = 0, received = 0;
  bool issued_all = false;
  std::atomic<bool> stopped = false;
  std::vector<std::thread> threads;
};

void LoaderEngine::Implementation::take_known_lengths() {
  if (!functions.known_lengths) return;
  std::vector<std::int64_t> known = std::move(*functions.known_lengths);
  if (functions.length) fail<Error>(loader_name, where, "both .length and .lengths are set; set one of them");
  if (std::ssize(known) != size)
    fail<Error>(loader_name, where, "there are {} lengths for {} items", known.size(), size);
  functions.length = [known = std::move(known)](std::span<const std::int64_t> items,
                                                std::vector<std::int64_t>& lengths) {
    for (std::int64_t item : items) lengths.push_back(known[static_cast<std::size_t>(item)]);
  };
}

void LoaderEngine::Implementation::check_size() const {
  if (std::int64_t now = functions.size(); now != size)
    fail<Error>(loader_name, where, "the dataset had {} items when the loader was made, and has {} now", size, now);
}

// The function that gives lengths, whose errors name the item; null if there is none.
LengthFunction LoaderEngine::Implementation::named_length() const {
  if (!functions.length) return {};
  return [this](std::span<const std::int64_t> items, std::vector<std::int64_t>& lengths) {
    std::size_t before = lengths.size();
    try {
      functions.length(items, lengths);
    } catch (...) {
      std::int64_t item = items[lengths.size() - before];
      std::rethrow_exception(load_error(item_subject(functions, item), where));
    }
  };
}

// Finds the items of the next batch. Returns false at the end of the epoch. An exception is the task's result, and ends
// the plan.
bool LoaderEngine::Implementation::plan(LoaderTask& task) try {
  BatchOrder batches = order();
  while (!planned_all && planned.window < batches.windows()) {
    if (!window) {
      NoRecord pause;
      window = batches.window(epoch, planned.window, named_length(), stopped, where);
    }
    if (stopped) return false;
    if (planned.batch < window->batches()) {
      task.indices = own_part(window->batch(planned.batch), functions.length != nullptr, settings);
      task.number = planned.delivered++;
      if (++planned.batch == window->batches()) {
        planned = {planned.window + 1, 0, planned.delivered};
        window.reset();
      }
      task.after = planned;
      return true;
    }
    fail<Error>(loader_name, where, "the state is before batch {} of a window that has {}; the lengths have changed",
                planned.batch, window->batches());
  }
  return false;
} catch (...) {
  planned_all = true;
  task.made.error = std::current_exception();
  return true;
}

std::shared_ptr<void> LoaderEngine::Implementation::receive(LoaderTask task) {
  if (task.made.error) {
    stop();  // the next call begins with this batch again
    std::rethrow_exception(task.made.error);
  }
  position = task.after;
  indices = std::move(task.indices);
  return std::move(task.made.batch);
}

std::shared_ptr<void> LoaderEngine::Implementation::next_here() {
  LoaderTask task;
  planned_all = false;
  if (position.window != planned.window || position.batch != planned.batch) window.reset();
  planned = position;
  if (!plan(task)) return nullptr;
  if (!task.made.error)
    task.made = make_batch(functions, task.indices, settings.seed, epoch, task.number, stopped, where);
  return receive(std::move(task));
}

std::shared_ptr<void> LoaderEngine::Implementation::next_of_workers() {
  if (threads.empty()) start();
  std::unique_lock lock(queue_mutex);
  auto has_arrived = [&] { return received < issued ? slot(received).ready : issued_all; };
  if (!has_arrived()) {
    ObservedWait waiting("data::Loader");
    arrival.wait(lock, has_arrived);
  }
  if (received == issued) return nullptr;
  LoaderTask task = std::exchange(slot(received), {});
  ++received;
  lock.unlock();
  room.notify_one();
  return receive(std::move(task));
}

void LoaderEngine::Implementation::start() {
  planned = position;
  window.reset();
  planned_all = issued_all = false;
  issued = received = 0;
  queue.clear();
  std::int64_t ahead = settings.prefetch > 0 ? settings.prefetch : 2 * std::int64_t{settings.workers};
  queue.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(ahead, 1, std::max<std::int64_t>(size, 1))));
  stopped = false;
  Device device = default_device();
  try {
    for (int i = 0; i < settings.workers; ++i) threads.emplace_back([this, device] { work(device); });
  } catch (const std::system_error& error) {
    stop();
    fail<Error>(loader_name, where, "cannot start {} workers: {}", settings.workers, error.what());
  }
}

void LoaderEngine::Implementation::stop() {
  if (threads.empty()) return;
  {
    std::lock_guard lock(queue_mutex);
    stopped = true;
  }
  room.notify_all();
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  queue.clear();
  window.reset();
  stopped = false;
}

// Waits for room in the queue and plans its next batch. Returns false when there is nothing more to do.
bool LoaderEngine::Implementation::take_task(std::int64_t& ticket) {
  std::lock_guard planning(plan_mutex);
  {
    std::unique_lock lock(queue_mutex);
    room.wait(lock, [&] { return stopped || issued - received < static_cast<std::int64_t>(queue.size()); });
    if (stopped || issued_all) return false;
  }
  LoaderTask task;
  bool found = plan(task);
  task.ready = task.made.error != nullptr;
  bool failed = task.ready;
  std::lock_guard lock(queue_mutex);
  if (found) {
    ticket = issued++;
    slot(ticket) = std::move(task);
  }
  if (!found || failed) {
    issued_all = true;
    arrival.notify_all();
    room.notify_all();
  }
  return found && !failed;
}

void LoaderEngine::Implementation::work(Device device) {
  set_thread_count(1);
  DeviceGuard guard(device);
  for (std::int64_t ticket = 0; take_task(ticket);) {
    // The slot belongs to this thread until it is ready, and the ring does not move.
    LoaderTask& task = slot(ticket);
    MadeBatch made = make_batch(functions, task.indices, settings.seed, epoch, task.number, stopped, where);
    std::lock_guard lock(queue_mutex);
    if (made.error) issued_all = true;  // what follows would not be received
    task.made = std::move(made);
    task.ready = true;
    arrival.notify_one();
  }
}

LoaderEngine::LoaderEngine(LoaderFunctions functions, const LoaderSettings& settings, Location where)
    : implementation_(std::make_unique<Implementation>(std::move(functions), settings, where)) {}

LoaderEngine::~LoaderEngine() = default;

std::shared_ptr<void> LoaderEngine::next() {
  using Clock = std::chrono::steady_clock;
  Implementation& self = *implementation_;
  if (self.threads.empty()) self.check_size();
  auto start = Clock::now();
  std::shared_ptr<void> batch = self.settings.workers > 0 ? self.next_of_workers() : self.next_here();
  self.seconds += std::chrono::duration<double>(Clock::now() - start).count();
  if (!batch) start_epoch(self.epoch + 1, self.where);
  return batch;
}

std::int64_t LoaderEngine::epoch() const { return implementation_->epoch; }
std::int64_t LoaderEngine::position() const { return implementation_->position.delivered; }
std::int64_t LoaderEngine::batches() const { return implementation_->order().batches(); }
const std::vector<std::int64_t>& LoaderEngine::indices() const { return implementation_->indices; }
double LoaderEngine::seconds_waited() const { return implementation_->seconds; }

std::vector<data::Source> LoaderEngine::sources() const {
  std::vector<data::Source> sources;
  for (std::int64_t index : implementation_->indices) sources.push_back(source_of(implementation_->functions, index));
  return sources;
}

void LoaderEngine::start_epoch(std::int64_t epoch, Location where) {
  if (epoch < 0) fail<Error>(loader_name, where, "there is no epoch {}; the first one is 0", epoch);
  implementation_->stop();
  implementation_->window.reset();
  implementation_->epoch = epoch;
  implementation_->position = {};
}

std::vector<NamedTensor> LoaderEngine::state() const {
  const Implementation& self = *implementation_;
  DeviceGuard on_cpu(cpu);
  auto entry = [](const char* name, std::int64_t value) { return NamedTensor{name, tensor({value})}; };
  std::vector<NamedTensor> state{entry("seed", static_cast<std::int64_t>(self.settings.seed)),
                                 entry("epoch", self.epoch), entry("window", self.position.window),
                                 entry("batch", self.position.batch), entry("delivered", self.position.delivered)};
  for (const NamedSetting& setting : named_settings(self.settings, self.size))
    state.push_back(entry(setting.name, setting.value));
  return state;
}

void LoaderEngine::load_state(std::span<const NamedTensor> state, Location where) {
  Implementation& self = *implementation_;
  StateReader reader(loader_name, state, where);
  auto number = [&](const char* name) { return reader.number<std::int64_t>(name); };
  std::int64_t seed = number("seed"), epoch = number("epoch");
  LoaderPosition position{number("window"), number("batch"), number("delivered")};
  for (const NamedSetting& setting : named_settings(self.settings, self.size)) {
    std::int64_t saved = number(setting.name);
    // Without lengths, 0, an order has windows of one batch, as with lengths and 1.
    bool same_windows = setting.name == std::string_view("bucket_batches") && saved <= 1 && setting.value <= 1;
    if (saved == setting.value || same_windows) continue;
    if (setting.name == std::string_view("size"))
      fail<Error>(loader_name, where, "the state is of a dataset of {} items, not of {}", saved, setting.value);
    fail<Error>(loader_name, where, "the state is of a loader with {} {}, not {}", setting.name, saved, setting.value);
  }
  reader.finish();
  if (epoch < 0) fail<Error>(loader_name, where, "the state's 'epoch' is {}", epoch);
  std::int64_t batches = self.order().batches();
  bool fits = position.window >= 0 && position.window <= self.order().windows() && position.batch >= 0 &&
              position.delivered >= 0 && position.batch <= position.delivered &&
              (batches < 0 || position.delivered <= batches);
  if (fits && batches >= 0) {
    std::int64_t each = std::max<std::int64_t>(self.settings.bucket_batches, 1);
    std::int64_t window = std::min(position.delivered / each, self.order().windows());
    bool at_end = position.delivered == batches;
    fits = at_end ? position.window == self.order().windows() && position.batch == 0
                  : position.window == window && position.batch == position.delivered % each;
  }
  if (!fits)
    fail<Error>(loader_name, where, "the state's position, batch {} of window {} after {} batches, does not exist",
                position.batch, position.window, position.delivered);
  self.stop();
  self.window.reset();
  self.settings.seed = static_cast<std::uint64_t>(seed);
  self.epoch = epoch;
  self.position = position;
}

}  // namespace reel::detail
