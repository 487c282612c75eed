#include "memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "device.h"
#include "record.h"
#include "streams.h"

namespace reel_test::stand_in {
namespace {

constexpr std::size_t space_bytes = std::size_t{8} << 40;
// Between allocations, so that the end of one is not the start of the next.
constexpr std::size_t alignment = 512;
// The lower half of the first address. An argument of four bytes, and a stale half of an address behind it, which nothing
// reads, would look like an address if numbers like 0 and 1 were lower halves.
constexpr std::uintptr_t lower_half = 0x5a000000;

struct Memory {
  std::uintptr_t spaces[device_count], next[device_count];
  std::size_t used[device_count] = {};
  std::map<std::uintptr_t, Allocation> allocations;

  Memory() {
    for (int device = 0; device < device_count; ++device) {
      void* space = mmap(nullptr, space_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (space == MAP_FAILED) throw std::bad_alloc();
      spaces[device] = reinterpret_cast<std::uintptr_t>(space);
      next[device] = (((spaces[device] >> 32) + 1) << 32) + lower_half;
    }
  }
};

Memory& memory() {
  static auto& made = *new Memory;
  return made;
}

}  // namespace

std::uintptr_t allocate(int device, std::size_t bytes) {
  std::lock_guard lock(mutex());
  Memory& all = memory();
  std::size_t rounded = (bytes / alignment + 2) * alignment;
  if (bytes > free_bytes(device) || all.next[device] + rounded > all.spaces[device] + space_bytes) return 0;
  std::uintptr_t first = all.next[device];
  all.next[device] += rounded;
  all.used[device] += bytes;
  Allocation& made = all.allocations[first];
  made.first = first;
  made.bytes = bytes;
  made.device = device;
  return first;
}

void* allocate_pinned(int device, std::size_t bytes) {
  std::lock_guard lock(mutex());
  void* made = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  auto first = reinterpret_cast<std::uintptr_t>(made);
  Allocation& allocation = memory().allocations[first];
  allocation.first = first;
  allocation.bytes = bytes;
  allocation.device = device;
  allocation.pinned = true;
  return made;
}

bool release(std::uintptr_t first, bool pinned) {
  if (first == 0) return true;
  std::lock_guard lock(mutex());
  Memory& all = memory();
  auto found = all.allocations.find(first);
  if (found == all.allocations.end() || found->second.pinned != pinned || found->second.freed) {
    violation("memory is freed that was not allocated, or was freed before");
    return false;
  }
  Allocation& allocation = found->second;
  for (const auto& [stream, tick] : allocation.users)
    if (!host_knows({stream, tick}))
      violation("memory is freed while work of stream {} that uses it may be queued", name_of_stream(stream));
  if (pinned) {
    std::free(reinterpret_cast<void*>(first));
    all.allocations.erase(found);
    return true;
  }
  all.used[allocation.device] -= allocation.bytes;
  allocation.freed = true;
  allocation.users.clear();
  allocation.owners.clear();
  return true;
}

std::size_t free_bytes(int device) { return description().memory - memory().used[device]; }

bool is_of_device(std::uintptr_t address) {
  const Memory& all = memory();
  for (std::uintptr_t space : all.spaces)
    if (address - space < space_bytes) return true;
  return false;
}

Allocation* find_allocation(std::uintptr_t address) {
  Memory& all = memory();
  auto after = all.allocations.upper_bound(address);
  if (after == all.allocations.begin()) return nullptr;
  Allocation& found = std::prev(after)->second;
  return address - found.first <= found.bytes ? &found : nullptr;
}

Allocation* check_extent(const void* address, std::size_t bytes, int device, const char* what) {
  std::lock_guard lock(mutex());
  auto first = reinterpret_cast<std::uintptr_t>(address);
  if (bytes == 0) return nullptr;
  Allocation* found = find_allocation(first);
  if (!found || found->freed) {
    violation("{}: the address is {}", what, found ? "that of freed memory" : address ? "none of a device" : "null");
    return nullptr;
  }
  if (bytes > found->bytes - (first - found->first))
    violation("{}: {} bytes at {} exceed an allocation of {}", what, bytes, first - found->first, found->bytes);
  if (!found->pinned && found->device != device)
    violation("{}: memory of device {} is used on device {}", what, found->device, device);
  return found;
}

}  // namespace reel_test::stand_in
