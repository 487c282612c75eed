#include <algorithm>
#include <atomic>

#include "../../core/dtype_dispatch.h"
#include "../../core/iteration.h"
#include "../../core/threads/parallel.h"
#include "../cpu_kernels.h"

namespace reel::detail {
namespace {

std::int64_t nonzero_count(const View& x) {
  std::atomic<std::int64_t> total{0};
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    Iteration<1> iteration({&x});
    iteration.for_each_row([&](const std::int64_t* offset) {
      const T* first = x.as<const T>() + offset[0];
      std::int64_t step = iteration.strides[0][0];
      parallel_for(iteration.dims[0], parallel_grain, [&](std::int64_t begin, std::int64_t end) {
        std::int64_t count = 0;
        for (std::int64_t i = begin; i < end; ++i) count += first[i * step] != T(0);
        total += count;
      });
    });
  });
  return total;
}

void nonzero(const View& out, const View& x) {
  if (out.numel == 0) return;
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    auto* place = out.as<std::int64_t>();
    std::int64_t left = out.dims[0], at[8] = {};
    const T* row = x.as<const T>();
    int last = x.rank - 1;
    std::int64_t size = x.dims[last], step = x.strides[last];
    while (left > 0) {
      // Written before the element is known to be nonzero: if it is not, the next one overwrites the entry.
      for (std::int64_t i = 0; left > 0 && i < size; ++i) {
        std::copy_n(at, last, place);
        place[last] = i;
        bool counts = row[i * step] != T(0);
        place += counts ? x.rank : 0;
        left -= counts;
      }
      for (int k = last; k-- > 0;) {
        row += x.strides[k];
        if (++at[k] < x.dims[k]) break;
        row -= x.strides[k] * x.dims[k];
        at[k] = 0;
      }
    }
  });
}

}  // namespace

void fill_nonzero(KernelTable& table) {
  table.nonzero_count = nonzero_count;
  table.nonzero = nonzero;
}

}  // namespace reel::detail
