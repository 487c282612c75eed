#pragma once

#include <array>
#include <cstdint>

#include "../../lib/core/target.h"
#include "../../lib/kernels/kernel_table.h"

namespace reel::detail::inline REEL_TARGET {

/// The numbers that a queue's ops have used, each stored on the device permanently: `x * 2` runs no fill the second
/// time. Their count is limited; later numbers are not stored.
class Constants {
 public:
  /// The address of a number; null if there is no room. With null `kernels`, no new number is stored.
  void* find(DType dtype, double number, std::int64_t integer, const KernelTable* kernels);

 private:
  struct Entry {
    std::uint64_t number;  // its bits: 0 and −0 are different
    std::int64_t integer;
    DType dtype;
    bool used;
  };
  static constexpr std::size_t most = 512, size = 2 * most, bytes = 8;

  std::array<Entry, size> entries_ = {};
  std::size_t count_ = 0;
  char* memory_ = nullptr;
};

}  // namespace reel::detail::inline REEL_TARGET
