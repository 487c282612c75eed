#include "../../device/launch.h"
#include "../../device/offsets.h"
#include "../../device/sort_key.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

struct FindAnomaly {
  Offsets<1> offsets;
  const void* x;
  DType dtype;
  bool contiguous;
  std::uint64_t least, most;  // the smallest and largest keys of allowed numbers
  std::uint32_t* found;

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t offset[1] = {i};
    if (!contiguous) offsets.find(i, offset);
    std::uint64_t key = key_at(dtype, x, offset[0]);
    if (key < least || key > most) *found = 1;  // any number of threads may write it
  }
};

// Keys have the order of the numbers, and that of NaN is above all of them.
bool has_anomaly(const View& x, bool infinities_count) {
  std::uint64_t infinity = infinity_key(x.dtype), minus_infinity = nan_key(x.dtype) ^ infinity;
  Scratch scratch(sizeof(std::uint32_t));
  auto* found = scratch.as<std::uint32_t>();
  fill_with_zeros(found, sizeof(std::uint32_t));
  for_each(x.numel,
           FindAnomaly{Offsets<1>(Iteration<1>({&x})), x.data, x.dtype, x.contiguous,
                       infinities_count ? minus_infinity + 1 : 0, infinities_count ? infinity - 1 : infinity, found});
  return read_from_device(found, "whether a tensor holds NaN or infinities") != 0;
}

}  // namespace

void fill_anomaly(KernelTable& table) { table.has_anomaly = has_anomaly; }

}  // namespace REEL_TARGET
}  // namespace reel::detail
