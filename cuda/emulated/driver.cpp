#include "../driver.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "device_access.h"

// A device made of the CPU's memory: one large range of addresses, open only while a DeviceAccess lives. What a stream is
// given it does at once.

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

constexpr std::size_t arena_bytes = std::size_t{1} << 32, alignment = 256;
constexpr std::size_t device_bytes = std::size_t{1} << 31;

class Arena {
 public:
  Arena() {
    begin_ =
        static_cast<char*>(mmap(nullptr, arena_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (begin_ == MAP_FAILED) throw std::runtime_error("there are no addresses for an emulated device");
    free_[0] = arena_bytes;
  }

  // First fit, with a gap that nothing may touch behind each block: kernels that run over the end meet other values than
  // those they wrote.
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
      return begin_ + offset;
    }
    return nullptr;
  }
  void free(void* memory) {
    std::lock_guard lock(mutex_);
    auto found = sizes_.find(static_cast<std::size_t>(static_cast<char*>(memory) - begin_));
    if (found == sizes_.end()) throw std::logic_error("memory is freed that the device has not given");
    used_ -= found->second;
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

  // By however many threads at a time. Only as much as has been in use is opened and closed.
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
    end_ = std::max(end_, (end + 4095) / 4096 * 4096);
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

int driver_device_count(std::string&) { return 2; }
DeviceProperties driver_properties(int) { return {"emulated by the CPU", device_bytes, 2, 9, 0}; }
void driver_use(int) {}
void* driver_allocate(std::size_t bytes) { return arena().allocate(bytes); }
void driver_free(void* memory) noexcept { arena().free(memory); }
DriverMemory driver_memory() { return {device_bytes - arena().used(), device_bytes}; }
void* driver_allocate_pinned(std::size_t bytes) { return ::operator new(bytes, std::align_val_t{64}); }
void driver_free_pinned(void* memory) noexcept { ::operator delete(memory, std::align_val_t{64}); }

// Streams and events are told apart, and no more.
Stream driver_make_stream() {
  static std::atomic<std::uintptr_t> last = 0;
  return reinterpret_cast<Stream>(++last);
}
void driver_wait(Stream) {}
Event driver_make_event() { return reinterpret_cast<Event>(std::uintptr_t{1}); }
void driver_free_event(Event) noexcept {}
void driver_record(Event, Stream) {}
void driver_wait_for(Stream, Event) {}
bool driver_is_done(Event) { return true; }
void driver_wait(Event) {}

void driver_copy(void* to, const void* from, std::size_t bytes, Stream) {
  DeviceAccess access;
  if (bytes > 0) std::memmove(to, from, bytes);
}
void driver_copy_between(int, void* to, int, const void* from, std::size_t bytes, Stream stream) {
  driver_copy(to, from, bytes, stream);
}
void driver_fill_with_zeros(void* to, std::size_t bytes, Stream) {
  DeviceAccess access;
  if (bytes > 0) std::memset(to, 0, bytes);
}

void check_launch() {}

}  // namespace REEL_TARGET
}  // namespace reel::detail
