#include "../runtime/driver.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../../lib/core/threads/waiting.h"
#include "device_access.h"
#include "stream.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(begin, bytes) static_cast<void>(begin)
#define ASAN_UNPOISON_MEMORY_REGION(begin, bytes) static_cast<void>(begin)
#endif

// A device in the CPU's memory: one large range of addresses, accessible only while a DeviceAccess lives.

namespace reel::detail::inline REEL_TARGET {
namespace {

constexpr std::size_t arena_bytes = std::size_t{1} << 32, alignment = 256;
constexpr std::size_t page_bytes = std::size_t{1} << 21;
constexpr std::size_t device_bytes = std::size_t{1} << 31;

class Arena {
 public:
  Arena() {
    begin_ =
        static_cast<char*>(mmap(nullptr, arena_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (begin_ == MAP_FAILED) throw std::runtime_error("there are no addresses for an emulated device");
    // Access is switched at every launch, page by page: with large pages that is a hundred times faster.
    begin_ += (page_bytes - reinterpret_cast<std::uintptr_t>(begin_) % page_bytes) % page_bytes;
    madvise(begin_, arena_bytes - page_bytes, MADV_HUGEPAGE);
    free_[0] = arena_bytes - page_bytes;
  }

  // First fit. At least a byte remains free behind each block, and free memory is poisoned for the address sanitizer,
  // which then detects kernels that run over the end.
  void* allocate(std::size_t bytes) {
    std::lock_guard lock(mutex_);
    std::size_t size = (bytes + alignment) / alignment * alignment;
    if (used_ + size > device_bytes) return nullptr;
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      auto [offset, room] = *it;
      if (room < size) continue;
      free_.erase(it);
      if (room > size) free_[offset + size] = room - size;
      sizes_[offset] = size;
      used_ += size;
      if (open_ > 0) protect(PROT_READ | PROT_WRITE);
      ASAN_UNPOISON_MEMORY_REGION(begin_ + offset, bytes);
      ASAN_POISON_MEMORY_REGION(begin_ + offset + bytes, size - bytes);
      return begin_ + offset;
    }
    return nullptr;
  }
  void free(void* memory) {
    std::lock_guard lock(mutex_);
    auto found = sizes_.find(static_cast<std::size_t>(static_cast<char*>(memory) - begin_));
    if (found == sizes_.end()) throw std::logic_error("memory is freed that the device has not given");
    used_ -= found->second;
    ASAN_POISON_MEMORY_REGION(begin_ + found->first, found->second);
    auto it = free_.emplace(found->first, found->second).first;
    sizes_.erase(found);
    if (auto next = std::next(it); next != free_.end() && it->first + it->second == next->first) {
      it->second += next->second;
      free_.erase(next);
    }
    if (it != free_.begin())
      if (auto before = std::prev(it); before->first + before->second == it->first) {
        before->second += it->second;
        free_.erase(it);
      }
  }
  std::size_t used() {
    std::lock_guard lock(mutex_);
    return used_;
  }
  bool holds(const void* memory) const { return memory >= begin_ && memory < begin_ + arena_bytes; }

  // Any number of threads may have it open. Only the part that has been in use is opened and closed.
  void open() {
    std::lock_guard lock(mutex_);
    if (open_++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  void close() {
    std::lock_guard lock(mutex_);
    if (--open_ == 0) protect(PROT_NONE);
  }

 private:
  void protect(int how) {
    std::size_t end = sizes_.empty() ? 0 : std::prev(sizes_.end())->first + std::prev(sizes_.end())->second;
    end_ = std::max(end_, (end + page_bytes - 1) / page_bytes * page_bytes);
    if (end_ > 0) mprotect(begin_, end_, how);
  }

  std::mutex mutex_;
  char* begin_;
  std::map<std::size_t, std::size_t> free_, sizes_;
  std::size_t used_ = 0, end_ = 0;
  int open_ = 0;
};

Arena& arena() {
  static auto& made = *std::make_unique<Arena>().release();
  return made;
}

}  // namespace

DeviceAccess::DeviceAccess() { arena().open(); }
DeviceAccess::~DeviceAccess() { arena().close(); }

namespace {

bool late() {
  static const bool wanted = [] {
    const char* said = std::getenv("REEL_EMULATED_LATE");
    return said && *said == '1';
  }();
  return wanted;
}

// Guards streams and events, and delayed work.
std::recursive_mutex& stream_mutex() {
  static auto& made = *std::make_unique<std::recursive_mutex>().release();
  return made;
}

std::set<CUstream_st*>& streams() {
  static auto& made = *std::make_unique<std::set<CUstream_st*>>().release();
  return made;
}

std::map<std::uintptr_t, std::size_t>& pinned() {
  static auto& made = *std::make_unique<std::map<std::uintptr_t, std::size_t>>().release();
  return made;
}

}  // namespace
}  // namespace reel::detail::inline REEL_TARGET

struct CUstream_st {
  bool records = false;
  std::vector<std::function<void()>> recorded;
  std::deque<std::function<void()>> waiting;
  std::uint64_t given = 0, done = 0;
};
struct CUevent_st {
  CUstream_st* stream = nullptr;
  std::uint64_t place = 0;  // the event has occurred when the stream has done this much work
};
struct CUgraphExec_st {
  std::vector<std::function<void()>> recorded;
};

namespace reel::detail::inline REEL_TARGET {
namespace {

void run_until(CUstream_st* stream, std::uint64_t place) {
  std::lock_guard lock(stream_mutex());
  while (stream->done < place) {
    std::function<void()> work = std::move(stream->waiting.front());
    stream->waiting.pop_front();
    work();
    ++stream->done;
  }
}

void refuse_recorded(Stream stream, const char* call) {
  if (stream->records) throw std::logic_error(std::string(call) + " of a stream that is being recorded");
}

bool is_pinned_or_device(const void* memory) {
  if (arena().holds(memory)) return true;
  auto place = reinterpret_cast<std::uintptr_t>(memory);
  std::lock_guard lock(stream_mutex());
  auto after = pinned().upper_bound(place);
  return after != pinned().begin() && place < std::prev(after)->first + std::prev(after)->second;
}

}  // namespace

void give_to_stream(Stream stream, std::function<void()> work) {
  if (!late() && !stream->records) return work();
  std::lock_guard lock(stream_mutex());
  if (stream->records) return stream->recorded.push_back(std::move(work));
  stream->waiting.push_back(std::move(work));
  ++stream->given;
}

int driver_device_count(std::string&) { return 2; }
DeviceDescription driver_properties(int) { return {"emulated by the CPU", device_bytes, 2, 9, 0}; }
void driver_use(int) {}
void* driver_allocate(std::size_t bytes) { return arena().allocate(bytes); }
std::size_t driver_gap() { return alignment; }
void driver_spoil(void* memory, std::size_t bytes, Stream stream) {
  give_to_stream(stream, [=] {
    DeviceAccess access;
    std::memset(memory, 0xdb, bytes);
  });
}
void driver_forget_error() noexcept {}

void driver_free(void* memory) noexcept {
  {
    std::lock_guard lock(stream_mutex());
    for (CUstream_st* stream : streams()) run_until(stream, stream->given);
  }
  arena().free(memory);
}
DriverMemory driver_memory() { return {device_bytes - arena().used(), device_bytes}; }
void* driver_allocate_pinned(std::size_t bytes) {
  void* memory = ::operator new(bytes, std::align_val_t{64});
  std::lock_guard lock(stream_mutex());
  pinned()[reinterpret_cast<std::uintptr_t>(memory)] = bytes;
  return memory;
}
void driver_free_pinned(void* memory) noexcept {
  {
    std::lock_guard lock(stream_mutex());
    pinned().erase(reinterpret_cast<std::uintptr_t>(memory));
  }
  ::operator delete(memory, std::align_val_t{64});
}

Stream driver_make_stream() {
  std::lock_guard lock(stream_mutex());
  return *streams().insert(std::make_unique<CUstream_st>().release()).first;
}
void driver_wait(Stream stream) {
  refuse_recorded(stream, "a wait");
  ObservedWait waiting("a GPU");
  run_until(stream, stream->given);
}
Event driver_make_event() { return std::make_unique<CUevent_st>().release(); }
void driver_free_event(Event event) noexcept { std::unique_ptr<CUevent_st> freed(event); }
void driver_record(Event event, Stream stream) {
  refuse_recorded(stream, "an event");
  std::lock_guard lock(stream_mutex());
  *event = {stream, stream->given};
}
void driver_wait_for(Stream stream, Event event) {
  refuse_recorded(stream, "an event");
  if (late()) give_to_stream(stream, [awaited = *event] { run_until(awaited.stream, awaited.place); });
}
bool driver_is_done(Event event) {
  std::lock_guard lock(stream_mutex());
  return !event->stream || event->stream->done >= event->place;
}
void driver_wait(Event event) {
  ObservedWait waiting("a GPU");
  if (event->stream) run_until(event->stream, event->place);
}

void driver_copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  if (bytes == 0) return;
  auto copy = [=] {
    DeviceAccess access;
    std::memmove(to, from, bytes);
  };
  if (is_pinned_or_device(to) && is_pinned_or_device(from)) return give_to_stream(stream, copy);
  driver_wait(stream);
  copy();
}
void driver_copy_between(int, void* to, int, const void* from, std::size_t bytes, Stream stream) {
  driver_copy(to, from, bytes, stream);
}
void driver_fill_with_zeros(void* to, std::size_t bytes, Stream stream) {
  if (bytes == 0) return;
  give_to_stream(stream, [=] {
    DeviceAccess access;
    std::memset(to, 0, bytes);
  });
}

void driver_begin_recording(Stream stream) {
  std::lock_guard lock(stream_mutex());
  stream->records = true;
}
GraphExecution driver_end_recording(Stream stream) {
  std::lock_guard lock(stream_mutex());
  stream->records = false;
  return std::make_unique<CUgraphExec_st>(CUgraphExec_st{std::exchange(stream->recorded, {})}).release();
}
void driver_abandon_recording(Stream stream) noexcept {
  std::lock_guard lock(stream_mutex());
  stream->records = false;
  stream->recorded.clear();
}
void driver_launch(GraphExecution graph, Stream stream) {
  for (const auto& work : graph->recorded) give_to_stream(stream, work);
}
void driver_free_graph(GraphExecution graph) noexcept { std::unique_ptr<CUgraphExec_st> freed(graph); }

void check_launch() {}

}  // namespace reel::detail::inline REEL_TARGET

// For tests of kernels of a program's own: queues a function as a launch queues a kernel.
extern "C" [[gnu::visibility("default")]] void reel_emulated_launch(CUstream_st* stream, void (*kernel)(const void*),
                                                                    const void* arguments, std::size_t bytes) {
  using namespace reel::detail;
  std::vector<std::byte> copy(bytes);
  std::memcpy(copy.data(), arguments, bytes);
  give_to_stream(stream, [kernel, copy = std::move(copy)] {
    DeviceAccess access;
    kernel(copy.data());
  });
}
