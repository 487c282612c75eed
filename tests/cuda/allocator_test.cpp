#include <deque>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "../../cuda/runtime/memory_pool.h"
#include "../../cuda/runtime/queue.h"
#include "../../cuda/runtime/runtime.h"
#include "catch.h"

// The allocator over a fake driver whose streams run nothing until the test says so, which shows memory that is reused
// too early.

struct CUstream_st {
  std::uint64_t given = 0, done = 0;
};
struct CUevent_st {
  CUstream_st* stream = nullptr;
  std::uint64_t place = 0;
};

namespace reel::detail::inline REEL_TARGET {
namespace {

std::size_t allocations = 0, device_left = SIZE_MAX;
std::map<void*, std::size_t> held;
std::uintptr_t next_address = std::uintptr_t{1} << 32;

}  // namespace

int driver_device_count(std::string&) { return 2; }
DeviceDescription driver_properties(int) { return {"none", std::size_t{1} << 34, 1, 9, 0}; }
void driver_use(int) {}
void* driver_allocate(std::size_t bytes) {
  if (bytes > device_left) return nullptr;
  device_left -= bytes;
  ++allocations;
  void* memory = reinterpret_cast<void*>(next_address += std::uintptr_t{1} << 32);
  held[memory] = bytes;
  return memory;
}
std::size_t driver_gap() { return 0; }
void driver_spoil(void*, std::size_t, Stream) {}
void driver_forget_error() noexcept {}
void driver_free(void* memory) noexcept {
  device_left += held.at(memory);
  held.erase(memory);
}
DriverMemory driver_memory() { return {device_left, std::size_t{1} << 34}; }
void* driver_allocate_pinned(std::size_t bytes) { return ::operator new(bytes); }
void driver_free_pinned(void* memory) noexcept { ::operator delete(memory); }
// Streams are never destroyed, but stay reachable for leak checkers.
Stream driver_make_stream() {
  static auto& streams = *std::make_unique<std::deque<CUstream_st>>().release();
  return &streams.emplace_back();
}
void driver_wait(Stream stream) { stream->done = stream->given; }
Event driver_make_event() { return std::make_unique<CUevent_st>().release(); }
void driver_free_event(Event event) noexcept { std::unique_ptr<CUevent_st> freed(event); }
void driver_record(Event event, Stream stream) { *event = {stream, stream->given}; }
void driver_wait_for(Stream, Event) {}
bool driver_is_done(Event event) { return event->stream->done >= event->place; }
void driver_wait(Event event) { event->stream->done = std::max(event->stream->done, event->place); }
void driver_copy(void*, const void*, std::size_t, Stream) {}
void driver_copy_between(int, void*, int, const void*, std::size_t, Stream) {}
void driver_fill_with_zeros(void*, std::size_t, Stream) {}

}  // namespace reel::detail::inline REEL_TARGET

namespace reel_test {

using namespace reel;
using namespace reel::detail;

namespace {

constexpr std::size_t megabyte = std::size_t{1} << 20;

// Each test has its own queues, which are never destroyed but stay reachable for leak checkers.
Queue& new_queue() {
  static auto& queues = *std::make_unique<std::vector<Queue*>>().release();
  queues.push_back(std::make_unique<Queue>(static_cast<int>(queues.size() + 1) % 200).release());
  return *queues.back();
}

void* place_of(Block* block) { return block->data; }

// Checks that no two blocks in use overlap.
class Used {
 public:
  void add(const Block& block) {
    auto begin = reinterpret_cast<std::uintptr_t>(block.data);
    auto after = ranges_.lower_bound(begin);
    bool free = (after == ranges_.end() || begin + block.bytes <= after->first) &&
                (after == ranges_.begin() || std::prev(after)->second <= begin);
    REQUIRE(free);
    ranges_[begin] = begin + block.bytes;
  }
  void remove(const Block& block) { ranges_.erase(reinterpret_cast<std::uintptr_t>(block.data)); }

 private:
  std::map<std::uintptr_t, std::uintptr_t> ranges_;
};

}  // namespace

TEST_CASE("blocks are as large as was asked for, aligned, and apart from each other") {
  Queue& queue = new_queue();
  Used used;
  std::vector<Block*> blocks;
  for (std::size_t bytes : {0, 1, 255, 256, 257, 1024, 1025, 5000, 131072, 131073, 1000000, 40000000, 3, 700000}) {
    Block* block = queue.memory.take(bytes);
    CHECK(block->bytes >= bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(block->data) % 256 == 0);
    used.add(*block);
    blocks.push_back(block);
  }
  for (Block* block : blocks) queue.memory.give(block);
  queue.memory.release(false);
  CHECK(held.empty());
}

TEST_CASE("what a queue has freed it gets again at once, without the driver") {
  Queue& queue = new_queue();
  for (std::size_t bytes : {100u, 300000u, 50000000u}) {
    Block* first = queue.memory.take(bytes);
    void* place = place_of(first);
    queue.memory.give(first);
    std::size_t before = allocations;
    Block* second = queue.memory.take(bytes);
    CHECK(place_of(second) == place);
    CHECK(allocations == before);
    queue.memory.give(second);
  }
  queue.memory.release(false);
}

TEST_CASE("a block that another queue uses waits for that queue before it is given out again") {
  Queue& owner = new_queue();
  Queue user(owner.device);
  for (std::size_t bytes : {std::size_t{1000}, 3 * megabyte}) {
    Block* shared = owner.memory.take(bytes);
    void* place = place_of(shared);
    CHECK(owner.memory.record_use(*shared, user, false) == std::vector<Queue*>{&owner});
    user.stream->given += 1;
    owner.memory.give(shared);
    Block* other = owner.memory.take(bytes);
    CHECK(place_of(other) != place);
    user.stream->done = user.stream->given;
    Block* again = owner.memory.take(bytes);
    CHECK(place_of(again) == place);
    owner.memory.give(other);
    owner.memory.give(again);
  }
  owner.memory.release(false);
}

TEST_CASE("who reads waits for the last writer, and who writes for all readers, too") {
  Queue& owner = new_queue();
  Queue reader(owner.device), writer(owner.device);
  Block* block = owner.memory.take(10);
  CHECK(owner.memory.record_use(*block, reader, false) == std::vector<Queue*>{&owner});
  CHECK(owner.memory.record_use(*block, writer, true) == std::vector<Queue*>{&owner, &reader});
  CHECK(owner.memory.record_use(*block, owner, false) == std::vector<Queue*>{&writer});
  CHECK(owner.memory.record_use(*block, owner, true) == std::vector<Queue*>{&writer, &reader});
  CHECK(owner.memory.record_use(*block, reader, false) == std::vector<Queue*>{&owner});
  owner.memory.give(block);
  owner.memory.wait_for_users();
  owner.memory.release(false);
  CHECK(held.empty());
}

TEST_CASE("freed neighbours become one block again") {
  Queue& queue = new_queue();
  std::vector<Block*> parts;
  for (int i = 0; i < 8; ++i) parts.push_back(queue.memory.take(4 * megabyte));
  std::size_t before = allocations;
  CHECK(before > 0);
  for (std::size_t i : {1, 3, 5, 7, 0, 2, 4, 6}) queue.memory.give(parts[i]);
  Block* whole = queue.memory.take(32 * megabyte);
  CHECK(allocations == before);
  queue.memory.give(whole);
  queue.memory.release(false);
  CHECK(held.empty());
}

TEST_CASE("random sizes in a random order never overlap, and all of it goes back to the driver") {
  Queue& queue = new_queue();
  Used used;
  std::vector<Block*> live;
  std::uint64_t state = 1;
  auto random = [&state] { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33; };
  for (int step = 0; step < 20000; ++step) {
    if (!live.empty() && random() % 2 == 0) {
      std::size_t i = random() % live.size();
      used.remove(*live[i]);
      queue.memory.give(live[i]);
      live[i] = live.back();
      live.pop_back();
    } else {
      Block* block = queue.memory.take(random() % (std::size_t{1} << (random() % 24)));
      used.add(*block);
      live.push_back(block);
    }
    if (step % 5000 == 0) queue.memory.release(false);
  }
  for (Block* block : live) queue.memory.give(block);
  CHECK(account_of(queue.device).used.load() == 0);
  queue.memory.release(false);
  CHECK(held.empty());
  CHECK(account_of(queue.device).reserved.load() == 0);
}

TEST_CASE("the limit holds from above, the reservation from below") {
  Queue& queue = new_queue();
  DeviceAccount& account = account_of(queue.device);
  account.limit = 40 * megabyte;
  Block* block = queue.memory.take(30 * megabyte);
  REQUIRE(block);
  CHECK(queue.memory.take(30 * megabyte) == nullptr);
  queue.memory.give(block);
  account.limit = SIZE_MAX;
  CHECK(queue.memory.reserve(100 * megabyte));
  account.reservation = 100 * megabyte;
  queue.memory.release();
  CHECK(account.reserved.load() >= 100 * megabyte);
  std::size_t before = allocations;
  block = queue.memory.take(90 * megabyte);
  CHECK(allocations == before);
  queue.memory.give(block);
  account.reservation = 0;
  queue.memory.release();
  CHECK(account.reserved.load() == 0);
}

TEST_CASE("small memory goes back to the driver once nothing of a slab is in use") {
  Queue& queue = new_queue();
  std::vector<Block*> blocks;
  for (int i = 0; i < 3000; ++i) blocks.push_back(queue.memory.take(5000));
  Block* kept = blocks.back();
  blocks.pop_back();
  for (Block* block : blocks) queue.memory.give(block);
  queue.memory.release(false);
  CHECK(!held.empty());
  queue.memory.give(kept);
  queue.memory.release(false);
  CHECK(held.empty());
}

TEST_CASE("a pool that is given up ends with its last block") {
  Queue& queue = new_queue();
  auto pool = std::make_unique<MemoryPool>(queue, account_of(queue.device));
  Block *first = pool->take(10), *second = pool->take(3 * megabyte);
  MemoryPool::retire(std::move(pool));
  first->pool->give(first);
  CHECK(!held.empty());
  second->pool->give(second);
  CHECK(held.empty());
}

TEST_CASE("threads free each other's blocks") {
  Queue& queue = new_queue();
  std::mutex mutex;
  std::deque<Block*> handed;
  bool ended = false;
  std::thread other([&] {
    for (;;) {
      Block* block = nullptr;
      {
        std::lock_guard lock(mutex);
        if (handed.empty() && ended) return;
        if (!handed.empty()) {
          block = handed.front();
          handed.pop_front();
        }
      }
      if (block) block->pool->give(block);
    }
  });
  for (int i = 0; i < 20000; ++i) {
    Block* block = queue.memory.take(static_cast<std::size_t>(i % 7) * 60000);
    std::lock_guard lock(mutex);
    handed.push_back(block);
  }
  {
    std::lock_guard lock(mutex);
    ended = true;
  }
  other.join();
  CHECK(account_of(queue.device).used.load() == 0);
  queue.memory.release(false);
  CHECK(held.empty());
}

}  // namespace reel_test
