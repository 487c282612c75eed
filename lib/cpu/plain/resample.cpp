#include <algorithm>
#include <utility>
#include <vector>

#include "../../core/dtype_dispatch.h"
#include "../../core/threads/parallel.h"
#include "../../kernels/formulas/resample.h"
#include "../cpu_kernels.h"
#include "unfold.h"

namespace reel::detail {
namespace {

// The taps of all output elements of an axis: those of `o` are [first[o], first[o + 1]) of the lists.
template <class T>
class TapLists {
 public:
  explicit TapLists(const AxisTaps& axis) {
    formulas::Taps taps(axis);
    first_.push_back(0);
    for (std::int64_t o = 0; o < axis.new_size; ++o) {
      taps.for_each(o, [&](std::int64_t index, double weight) {
        index_.push_back(index);
        weight_.push_back(static_cast<T>(weight));
      });
      first_.push_back(index_.size());
    }
  }

  template <class F>
  void for_each(std::int64_t o, F f) const {
    for (std::size_t k = first_[static_cast<std::size_t>(o)]; k < first_[static_cast<std::size_t>(o) + 1]; ++k)
      f(index_[k], weight_[k]);
  }

 private:
  std::vector<std::size_t> first_;
  std::vector<std::int64_t> index_;
  std::vector<T> weight_;
};

// The product of the sizes behind the axis, for x as (outer, axis, inner).
std::int64_t inner_size(const View& x, std::int64_t axis) {
  std::int64_t size = 1;
  for (std::int64_t i = axis + 1; i < x.rank; ++i) size *= x.dims[i];
  return size;
}

template <class F>
void with_wide(DType dtype, F f) {
  dtype == DType::f64 ? f(std::type_identity<double>()) : f(std::type_identity<float>());
}

void resample(const View& out, const View& x, const AxisTaps& axis) {
  if (out.numel == 0) return;
  std::int64_t inner = inner_size(out, axis.axis), grain = std::max<std::int64_t>(parallel_grain / inner, 1);
  with_wide(out.dtype, [&]<class T>(std::type_identity<T>) {
    TapLists<T> taps(axis);
    parallel_for(out.numel / inner, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const T* from = x.as<T>() + row / axis.new_size * axis.old_size * inner;
        T* to = out.as<T>() + row * inner;
        if (inner == 1) {
          T sum = 0;
          taps.for_each(row % axis.new_size, [&](std::int64_t index, T weight) { sum += weight * from[index]; });
          *to = sum;
          continue;
        }
        bool is_first = true;
        taps.for_each(row % axis.new_size, [&](std::int64_t index, T weight) {
          const T* old = from + index * inner;
          if (std::exchange(is_first, false))
            for (std::int64_t i = 0; i < inner; ++i) to[i] = weight * old[i];
          else
            for (std::int64_t i = 0; i < inner; ++i) to[i] += weight * old[i];
        });
      }
    });
  });
}

void resample_transposed(const View& out, const View& d, const AxisTaps& axis) {
  if (out.numel == 0) return;
  std::int64_t inner = inner_size(out, axis.axis), old_plane = axis.old_size * inner, new_plane = axis.new_size * inner;
  std::int64_t grain = std::max<std::int64_t>(parallel_grain / (old_plane + new_plane), 1);
  with_wide(out.dtype, [&]<class T>(std::type_identity<T>) {
    TapLists<T> taps(axis);
    parallel_for(out.numel / old_plane, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t plane = begin; plane < end; ++plane) {
        T* to = out.as<T>() + plane * old_plane;
        std::fill_n(to, old_plane, T(0));
        for (std::int64_t o = 0; o < axis.new_size; ++o) {
          const T* from = d.as<T>() + plane * new_plane + o * inner;
          taps.for_each(o, [&](std::int64_t index, T weight) {
            T* old = to + index * inner;
            for (std::int64_t i = 0; i < inner; ++i) old[i] += weight * from[i];
          });
        }
      }
    });
  });
}

}  // namespace

void fill_resample(KernelTable& table) {
  static constinit ResampleKernels kernels{};
  kernels.resample = resample;
  kernels.resample_transposed = resample_transposed;
  fill_unfold(kernels);
  table.resample = &kernels;
}

}  // namespace reel::detail
