#include "constants.h"

#include <bit>

#include "driver.h"

namespace reel::detail::inline REEL_TARGET {

void* Constants::find(DType dtype, double number, std::int64_t integer, const KernelTable* kernels) {
  auto bits = std::bit_cast<std::uint64_t>(number);
  std::uint64_t mixed =
      (bits ^ static_cast<std::uint64_t>(integer) * 31 ^ static_cast<std::uint64_t>(dtype)) * 0x9E3779B97F4A7C15;
  std::size_t i = mixed >> 32 & (size - 1);
  for (; entries_[i].used; i = (i + 1) & (size - 1))
    if (entries_[i].number == bits && entries_[i].integer == integer && entries_[i].dtype == dtype)
      return memory_ + i * bytes;
  if (!kernels || count_ == most) return nullptr;
  if (!memory_) memory_ = static_cast<char*>(driver_allocate(size * bytes));
  if (!memory_) return nullptr;
  kernels->fill({memory_ + i * bytes, nullptr, nullptr, 1, 0, dtype, true}, number, integer);
  entries_[i] = {bits, integer, dtype, true};
  ++count_;
  return memory_ + i * bytes;
}

}  // namespace reel::detail::inline REEL_TARGET
