#include "../../device/element_keys.h"
#include "../../device/sorted_rows.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// Writes the place of a rank's element in a sorted row, or of the row's first NaN, which precedes all others.
struct RankedPlaces {
  std::int64_t* out;
  std::int64_t size, wanted, ranks[2];
  DType dtype;

  template <class Sorted>
  REEL_DEVICE void operator()(std::int64_t row, std::int64_t k, const Sorted& sorted) const {
    std::int64_t rank = ranks[k], at = rank < 0 ? ~rank : rank;
    if (rank >= 0 && is_floating(dtype) && sorted.key(size - 1) == nan_key(dtype)) {
      at = 0;
      for (std::int64_t left = size - 1; left > 0;) {
        std::int64_t half = left / 2;
        bool before = sorted.key(at + half) != nan_key(dtype);
        at += before ? half + 1 : 0;
        left = before ? left - half - 1 : half;
      }
    }
    out[row * wanted + k] = sorted.place(at);
  }
};

void places_of_ranks(const View& out, const View& x, const std::int64_t (&ranks)[2]) {
  if (out.numel == 0) return;
  std::int64_t size = x.dims[x.rank - 1], wanted = out.dims[x.rank - 1];
  // An element is available only if the whole row is sorted.
  sort_whole_rows(ElementKeys(x, x.rank - 1, false),
                  RankedPlaces{out.as<std::int64_t>(), size, wanted, {ranks[0], ranks[1]}, x.dtype}, x.numel / size,
                  size, wanted);
}

}  // namespace

void fill_median(KernelTable& table) { table.places_of_ranks = places_of_ranks; }

}  // namespace reel::detail::inline REEL_TARGET
