#include "../../../lib/kernels/embedding.h"

#include <type_traits>

#include "../../../lib/core/dtype_dispatch.h"
#include "../../device/device.h"
#include "../../device/element.h"
#include "../../device/launch.h"
#include "../../device/split.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

struct CheckBags {
  const std::int64_t *indices, *starts;
  std::int64_t index_count, start_count, rows;
  FaultReporter reporter;

  REEL_DEVICE void operator()(std::int64_t i) const {
    if (i < start_count) {
      std::int64_t start = starts[i], before = i == 0 ? 0 : starts[i - 1];
      if (start < before || start > index_count || (i == 0 && start != 0))
        reporter.report(Fault::bag_start, start, index_count);
    }
    if (i < index_count && (indices[i] < -rows || indices[i] >= rows)) reporter.report(Fault::index, indices[i], rows);
  }
};

// Indices and offsets out of range have already been reported, and are skipped.
template <class T>
struct GivenBags {
  const T *table, *weights;
  const std::int64_t *indices, *starts;
  std::int64_t index_count, rows, width;

  REEL_DEVICE std::int64_t start(std::int64_t bag) const {
    std::int64_t start = starts[bag];
    return start < 0 ? 0 : start > index_count ? index_count : start;
  }
  // Calls f(j, row) for each index of a bag.
  template <class F>
  REEL_DEVICE void for_each_row(std::int64_t bag, const F& f) const {
    std::int64_t end = start(bag + 1);
    for (std::int64_t j = start(bag); j < end; ++j) {
      std::int64_t row = indices[j] < 0 ? indices[j] + rows : indices[j];
      if (row >= 0 && row < rows) f(j, row);
    }
  }
};

template <class T>
struct SumBags {
  GivenBags<T> given;
  Split width;
  T* out;
  bool mean;

  REEL_DEVICE void operator()(std::int64_t i) const {
    Split::Parts parts = width(i);
    std::int64_t bag = parts.whole, column = parts.rest;  // clang 14 captures no structured bindings
    Wide<T> sum = 0;
    given.for_each_row(bag, [&](std::int64_t j, std::int64_t row) {
      Wide<T> number = loaded(given.table[row * given.width + column]);
      sum += given.weights ? loaded(given.weights[j]) * number : number;
    });
    std::int64_t count = given.start(bag + 1) - given.start(bag);
    out[i] = stored<T>(mean && count > 1 ? sum / static_cast<Wide<T>>(count) : sum);
  }
};

// NaN is treated as the largest number.
template <class T>
struct LargestOfBags {
  GivenBags<T> given;
  Split width;
  T* out;
  std::int64_t* rows;

  REEL_DEVICE void operator()(std::int64_t i) const {
    Split::Parts parts = width(i);
    std::int64_t bag = parts.whole, column = parts.rest;
    Wide<T> most = 0;
    std::int64_t from = -1;
    given.for_each_row(bag, [&](std::int64_t, std::int64_t row) {
      Wide<T> next = loaded(given.table[row * given.width + column]);
      if (from >= 0 && !(next > most || (next != next && most == most))) return;
      most = next;
      from = row;
    });
    out[i] = stored<T>(most);
    rows[i] = from;
  }
};

bool bag(const View& out, const View& rows, const View& table, const Bags& bags, BagSum mode, BagFault&) {
  const auto* indices = bags.indices.as<const std::int64_t>();
  const auto* starts = bags.starts.as<const std::int64_t>();
  std::int64_t index_count = bags.indices.numel, start_count = bags.starts.numel;
  for_each(index_count > start_count ? index_count : start_count,
           CheckBags{indices, starts, index_count, start_count, table.dims[0], fault_reporter()});
  Split width(table.dims[1], out.numel);
  with_floating(table.dtype, [&]<class T>(std::type_identity<T>) {
    const T* weights = bags.weights ? bags.weights->as<const T>() : nullptr;
    GivenBags<T> given{table.as<const T>(), weights, indices, starts, index_count, table.dims[0], table.dims[1]};
    if (mode == BagSum::max)
      for_each(out.numel, LargestOfBags<T>{given, width, out.as<T>(), rows.as<std::int64_t>()});
    else
      for_each(out.numel, SumBags<T>{given, width, out.as<T>(), mode == BagSum::mean});
  });
  return true;
}

}  // namespace

void fill_embedding(KernelTable& table) {
  static constexpr EmbeddingKernels kernels{.bag = bag};
  table.embedding = &kernels;
}

}  // namespace reel::detail::inline REEL_TARGET
