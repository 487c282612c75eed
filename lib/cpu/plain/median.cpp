#include <algorithm>
#include <vector>

#include "../../core/dtype_dispatch.h"
#include "../../core/halves.h"
#include "../../core/iteration.h"
#include "../../core/threads/parallel.h"
#include "../cpu_kernels.h"

namespace reel::detail {
namespace {

template <class Wide>
struct Entry {
  Wide value;
  std::int64_t place;
};

// Equal values are ordered by their indices, so that the result does not depend on the library's selection algorithm.
template <class Wide>
bool precedes(const Entry<Wide>& a, const Entry<Wide>& b) {
  return a.value < b.value || (a.value == b.value && a.place < b.place);
}

template <class Wide, class T>
void find_middle(std::int64_t* places, int wanted, const T* row, std::int64_t step, std::int64_t count,
                 Entry<Wide>* entries) {
  for (std::int64_t i = 0; i < count; ++i) {
    entries[i] = {static_cast<Wide>(row[i * step]), i};
    if (entries[i].value != entries[i].value) {
      std::fill_n(places, wanted, i);
      return;
    }
  }
  Entry<Wide>* upper = entries + count / 2;
  std::nth_element(entries, upper, entries + count, precedes<Wide>);
  places[wanted - 1] = upper->place;
  if (wanted == 2) places[0] = std::max_element(entries, upper, precedes<Wide>)->place;
}

void median_places(const View& out, const View& x) {
  std::int64_t count = x.dims[x.rank - 1], rows = x.numel / count;
  int wanted = count % 2 == 0 ? 2 : 1;
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    using Wide = std::conditional_t<std::is_integral_v<T>, std::int64_t, detail::Wide<T>>;
    parallel_for(rows, (parallel_grain + count - 1) / count, [&](std::int64_t begin, std::int64_t end) {
      constexpr std::int64_t few = 64;
      Entry<Wide> short_row[few];
      std::vector<Entry<Wide>> long_row(static_cast<std::size_t>(count <= few ? 0 : count));
      for (std::int64_t row = begin; row < end; ++row) {
        std::int64_t offset = 0, rest = row;
        for (int axis = x.rank - 1; axis-- > 0; rest /= x.dims[axis]) offset += rest % x.dims[axis] * x.strides[axis];
        find_middle(out.as<std::int64_t>() + row * wanted, wanted, x.as<T>() + offset, x.strides[x.rank - 1], count,
                    count <= few ? short_row : long_row.data());
      }
    });
  });
}

}  // namespace

void fill_median(KernelTable& table) { table.median_places = median_places; }

}  // namespace reel::detail
