#include <cstdint>
#include <type_traits>

#include "../../../lib/core/dtype_dispatch.h"
#include "../../device/launch.h"
#include "../../device/offsets.h"
#include "../../device/pack.h"
#include "../../device/sort_key.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

struct FindAnomaly {
  Offsets<1> offsets;
  const void* x;
  DType dtype;
  std::uint64_t least, most;  // the smallest and largest keys of allowed numbers
  std::uint32_t* found;

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t offset[1];
    offsets.find(i, offset);
    std::uint64_t key = key_at(dtype, x, offset[0]);
    if (key < least || key > most) *found = 1;  // any number of threads may write it
  }
};

// Checks contiguous elements, 16 bytes a thread. Bound: x is read once.
template <class Bits>
struct FindAnomalyInPacks {
  static constexpr int lanes = full_lanes<Bits>;
  const Bits* x;
  std::int64_t count;
  Bits most;  // the largest magnitude of allowed numbers: bits without the sign are in the order of magnitudes
  std::uint32_t* found;

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t at = i * lanes;
    bool any = false;
    if (count - at < lanes) {
      for (; at < count; ++at) any |= is_anomaly(x[at]);
    } else {
      Pack<Bits, lanes> pack = reinterpret_cast<const Pack<Bits, lanes>*>(x)[i];
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane) any |= is_anomaly(pack.element[lane]);
    }
    if (any) *found = 1;  // any number of threads may write it
  }

 private:
  REEL_DEVICE bool is_anomaly(Bits bits) const {
    return static_cast<Bits>(bits & static_cast<Bits>(~Bits{0}) >> 1) > most;
  }
};

// Keys have the order of the numbers, and that of NaN is above all of them.
bool has_anomaly(const View& x, bool infinities_count) {
  Scratch scratch(sizeof(std::uint32_t));
  auto* found = scratch.as<std::uint32_t>();
  fill_with_zeros(found, sizeof(std::uint32_t));
  std::uint64_t infinity = infinity_key(x.dtype), minus_infinity = nan_key(x.dtype) ^ infinity;
  if (x.contiguous && reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0)
    with_bits(x.dtype, [&]<class Bits>(std::type_identity<Bits>) {
      constexpr int lanes = full_lanes<Bits>;
      auto most = static_cast<Bits>(infinity_bits(x.dtype) - (infinities_count ? 1 : 0));
      for_each((x.numel + lanes - 1) / lanes, FindAnomalyInPacks<Bits>{x.as<const Bits>(), x.numel, most, found});
    });
  else
    for_each(x.numel,
             FindAnomaly{Offsets<1>(Iteration<1>({&x})), x.data, x.dtype, infinities_count ? minus_infinity + 1 : 0,
                         infinities_count ? infinity - 1 : infinity, found});
  return read_from_device(found, "whether a tensor holds NaN or infinities") != 0;
}

}  // namespace

void fill_anomaly(KernelTable& table) { table.has_anomaly = has_anomaly; }

}  // namespace reel::detail::inline REEL_TARGET
