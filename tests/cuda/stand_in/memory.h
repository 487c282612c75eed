#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>

// The memory of the GPUs: addresses without memory behind them, so that a program that reads one on the CPU stops. No
// address is used twice.

namespace reel_test::stand_in {

/// A stream's number and the number of a piece of work that was queued on it.
struct Moment {
  std::size_t stream = 0;
  std::uint64_t tick = 0;
};

struct Allocation {
  std::uintptr_t first = 0;
  std::size_t bytes = 0;
  int device = 0;
  bool pinned = false;  ///< memory of the CPU
  bool freed = false;
  std::map<std::size_t, std::uint64_t> users;  ///< the last work of each stream that used it
  /// By address within it, the last work of the stream that used the address first, by which it was allocated and written.
  std::unordered_map<std::uintptr_t, Moment> owners;
};

/// Returns 0 if no memory is left.
std::uintptr_t allocate(int device, std::size_t bytes);
void* allocate_pinned(int device, std::size_t bytes);
/// Frees memory that `allocate` or `allocate_pinned` has returned. Returns false, and records a violation, otherwise.
bool release(std::uintptr_t first, bool pinned);
std::size_t free_bytes(int device);

/// True for addresses of a GPU's memory, also of freed memory.
bool is_of_device(std::uintptr_t address);
/// The allocation that contains the address, or ends there; null if there is none. A GPU's allocation may be freed.
Allocation* find_allocation(std::uintptr_t address);
/// Records a violation unless all bytes are within one allocation, on the given device if they are on any. `what` names them.
/// Returns the allocation, or null.
Allocation* check_extent(const void* address, std::size_t bytes, int device, const char* what);

}  // namespace reel_test::stand_in
