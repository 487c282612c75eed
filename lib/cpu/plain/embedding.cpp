#include "../../kernels/embedding.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "../../core/dtype_dispatch.h"
#include "../../core/halves.h"
#include "../../core/threads/parallel.h"
#include "../cpu_kernels.h"

namespace reel::detail {
namespace {

float wide(Float16 x) { return widened(x); }
float wide(BFloat16 x) { return widened(x); }
float wide(float x) { return x; }
double wide(double x) { return x; }

std::int64_t start_of(const Bags& bags, std::int64_t bag) { return bags.starts.as<std::int64_t>()[bag]; }

bool fits(const Bags& bags, std::int64_t rows, BagFault& fault) {
  std::int64_t count = bags.indices.numel, last = 0;
  for (std::int64_t b = 0; b < bags.starts.numel; ++b) {
    fault = {true, start_of(bags, b)};
    if (fault.value < last || fault.value > count || (b == 0 && fault.value != 0)) return false;
    last = fault.value;
  }
  for (std::int64_t j = 0; j < count; ++j) {
    fault = {false, bags.indices.as<std::int64_t>()[j]};
    if (fault.value < -rows || fault.value >= rows) return false;
  }
  return true;
}

template <class T>
class Bag {
 public:
  using Wide = decltype(wide(T()));

  Bag(const View& table, const Bags& bags)
      : bags_(bags), table_(table.as<T>()), rows_(table.dims[0]), width_(table.dims[1]), sums_(size()) {}

  void sum(std::int64_t bag, T* out, bool mean) {
    std::int64_t begin = start_of(bags_, bag), end = start_of(bags_, bag + 1);
    std::fill(sums_.begin(), sums_.end(), Wide(0));
    for (std::int64_t j = begin; j < end; ++j) {
      const T* row = table_ + row_of(j) * width_;
      if (bags_.weights)
        add(row, wide(bags_.weights->as<T>()[j]));
      else
        add(row);
    }
    auto count = static_cast<Wide>(mean ? std::max<std::int64_t>(1, end - begin) : 1);
    for (std::size_t d = 0; d < size(); ++d) out[d] = static_cast<T>(sums_[d] / count);
  }

  // NaN is treated as the largest number.
  void max(std::int64_t bag, T* out, std::int64_t* rows) {
    std::fill_n(rows, width_, -1);
    std::fill_n(out, width_, T(Wide(0)));
    for (std::int64_t j = start_of(bags_, bag); j < start_of(bags_, bag + 1); ++j) {
      const T* row = table_ + row_of(j) * width_;
      for (std::int64_t d = 0; d < width_; ++d) {
        Wide now = wide(out[d]), next = wide(row[d]);
        if (rows[d] >= 0 && !(next > now || (next != next && now == now))) continue;
        out[d] = row[d];
        rows[d] = row_of(j);
      }
    }
  }

 private:
  std::size_t size() const { return static_cast<std::size_t>(width_); }
  std::int64_t row_of(std::int64_t j) const {
    std::int64_t index = bags_.indices.as<std::int64_t>()[j];
    return index < 0 ? index + rows_ : index;
  }
  void add(const T* row) {
    for (std::size_t d = 0; d < size(); ++d) sums_[d] += wide(row[d]);
  }
  void add(const T* row, Wide weight) {
    for (std::size_t d = 0; d < size(); ++d) sums_[d] += weight * wide(row[d]);
  }

  const Bags& bags_;
  const T* table_;
  std::int64_t rows_, width_;
  std::vector<Wide> sums_;
};

bool bag(const View& out, const View& rows, const View& table, const Bags& bags, BagSum mode, BagFault& fault) {
  if (!fits(bags, table.dims[0], fault)) return false;
  std::int64_t count = out.dims[0], width = out.dims[1];
  std::int64_t cost = 1 + width * (1 + bags.indices.numel / std::max<std::int64_t>(1, count)) / 4;
  with_floating(table.dtype, [&]<class T>(std::type_identity<T>) {
    parallel_for(count, std::max<std::int64_t>(1, parallel_grain / cost), [&](std::int64_t begin, std::int64_t end) {
      Bag<T> each(table, bags);
      for (std::int64_t b = begin; b < end; ++b) {
        T* to = out.as<T>() + b * width;
        if (mode == BagSum::max)
          each.max(b, to, rows.as<std::int64_t>() + b * width);
        else
          each.sum(b, to, mode == BagSum::mean);
      }
    });
  });
  return true;
}

constexpr EmbeddingKernels embedding_kernels{.bag = bag};

}  // namespace

void fill_embedding(KernelTable& table) { table.embedding = &embedding_kernels; }

}  // namespace reel::detail
