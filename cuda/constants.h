#pragma once

#include <array>
#include <cstdint>

#include "../lib/core/kernel_table.h"
#include "../lib/core/target.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// The numbers that a queue's ops have met, each on the device for good: `x * 2` fills nothing the second time. They are
/// few, or they would stay for nothing; what comes later has no room.
class Constants {
 public:
  /// Null where it has no room; with null `kernels`, nothing is put there.
  void* find(DType dtype, double number, std::int64_t integer, const KernelTable* kernels);

 private:
  struct Entry {
    std::uint64_t number;  // its bits: 0 and −0 are two
    std::int64_t integer;
    DType dtype;
    bool used;
  };
  static constexpr std::size_t most = 512, size = 2 * most, bytes = 8;

  std::array<Entry, size> entries_ = {};
  std::size_t count_ = 0;
  char* memory_ = nullptr;
};

}  // namespace REEL_TARGET
}  // namespace reel::detail
