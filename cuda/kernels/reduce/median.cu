#include "../../device/element_keys.h"
#include "../../device/sorted_rows.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// The middle of a sorted row, or its first NaN, which precedes all others.
struct MiddlePlaces {
  std::int64_t* out;
  std::int64_t size, wanted;
  DType dtype;

  template <class Sorted>
  REEL_DEVICE void operator()(std::int64_t row, std::int64_t k, const Sorted& sorted) const {
    std::int64_t at = (size - wanted) / 2 + k;
    if (is_floating(dtype) && sorted.key(size - 1) == nan_key(dtype)) {
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

void median_places(const View& out, const View& x) {
  if (out.numel == 0) return;
  std::int64_t size = x.dims[x.rank - 1], wanted = size % 2 == 0 ? 2 : 1;
  // The middle is available only if the whole row is sorted.
  sort_whole_rows(ElementKeys(x, x.rank - 1, false), MiddlePlaces{out.as<std::int64_t>(), size, wanted, x.dtype},
                  x.numel / size, size, wanted);
}

}  // namespace

void fill_median(KernelTable& table) { table.median_places = median_places; }

}  // namespace reel::detail::inline REEL_TARGET
