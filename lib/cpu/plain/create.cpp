#include <algorithm>

#include "../../core/convert.h"
#include "../../core/dtype_dispatch.h"
#include "../../core/iteration.h"
#include "../../core/threads/parallel.h"
#include "../cpu_kernels.h"

namespace reel::detail {
namespace {

template <class T, class Formula>
void fill_typed(const View& out, Formula formula) {
  parallel_for(out.numel, parallel_grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out.as<T>()[i] = convert<T>(formula(i));
  });
}

// The formula gets the position as a number. Processors convert vectors of i32, but not all those of i64.
template <class T, class Formula>
void fill_by_position(const View& out, Formula formula) {
  constexpr std::int64_t block = 1024;
  parallel_for(out.numel, parallel_grain, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; begin += block) {
      T* to = out.as<T>() + begin;
      int count = static_cast<int>(std::min(block, end - begin));
      for (int i = 0; i < count; ++i) to[i] = convert<T>(formula(static_cast<double>(begin) + i));
    }
  });
}

void arange(const View& out, double start, double step, std::int64_t integer_start, std::int64_t integer_step) {
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    // Unsigned arithmetic wraps around.
    if constexpr (std::is_integral_v<T>)
      fill_typed<T>(out, [=](std::int64_t i) {
        return static_cast<std::uint64_t>(integer_start) +
               static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(integer_step);
      });
    else
      fill_by_position<T>(out, [=](double i) { return start + i * step; });
  });
}

void linspace(const View& out, double first, double last) {
  // With two numbers there is no step: their difference may be out of range.
  auto steps = static_cast<double>(out.numel - 1);
  double step = out.numel > 2 ? last / steps - first / steps : 0;
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    std::int64_t middle = (out.numel + 1) / 2;
    fill_by_position<T>(out, [=, half = static_cast<double>(middle)](double i) {
      return i < half ? first + i * step : last - (steps - i) * step;
    });
  });
}

template <class T, class Index>
bool one_hot_typed(const View& out, const View& indices, std::int64_t& bad) {
  std::int64_t classes = out.dims[out.rank - 1];
  Iteration<1> iteration({&indices});
  bool within = true;
  iteration.for_each_row([&](const std::int64_t* offset) {
    for (std::int64_t i = 0; within && i < iteration.dims[0]; ++i) {
      bad = indices.as<Index>()[offset[0] + i * iteration.strides[0][0]];
      within = bad >= 0 && bad < classes;
    }
  });
  if (!within) return false;
  std::fill_n(out.as<T>(), out.numel, T{});
  T* row = out.as<T>();
  iteration.for_each_row([&](const std::int64_t* offset) {
    for (std::int64_t i = 0; i < iteration.dims[0]; ++i, row += classes)
      row[indices.as<Index>()[offset[0] + i * iteration.strides[0][0]]] = convert<T>(1);
  });
  return true;
}

bool one_hot(const View& out, const View& indices, std::int64_t& bad) {
  return with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    return indices.dtype == DType::i32 ? one_hot_typed<T, std::int32_t>(out, indices, bad)
                                       : one_hot_typed<T, std::int64_t>(out, indices, bad);
  });
}

template <class T>
void band_typed(const View& out, const View& x, std::int64_t low, std::int64_t high) {
  std::int64_t rows = out.dims[out.rank - 2], columns = out.dims[out.rank - 1];
  std::int64_t row_stride = x.strides[x.rank - 2], step = x.strides[x.rank - 1];
  View matrices = out, from = x;  // without the last two axes
  matrices.rank = from.rank = out.rank - 2;
  Iteration<2> iteration({&matrices, &from});
  iteration.for_each_row([&](const std::int64_t* offset) {
    for (std::int64_t k = 0; k < iteration.dims[0]; ++k) {
      T* to = out.as<T>() + offset[0] + k * iteration.strides[0][0];
      const T* matrix = x.as<T>() + offset[1] + k * iteration.strides[1][0];
      parallel_for(rows, std::max<std::int64_t>(parallel_grain / std::max<std::int64_t>(columns, 1), 1),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i) {
                       // Columns [first, last) are kept; cut before i is added, so that nothing overflows.
                       std::int64_t first = std::clamp(std::clamp(low, -rows, columns) + i, std::int64_t{0}, columns);
                       std::int64_t last = std::clamp(std::clamp(high, -rows, columns) + i + 1, first, columns);
                       T* row = to + i * columns;
                       const T* kept = matrix + i * row_stride;
                       if (columns < 16) {  // calls would cost more
                         for (std::int64_t j = 0; j < columns; ++j) {
                           T element = kept[j * step];
                           row[j] = j >= first && j < last ? element : T{};
                         }
                         continue;
                       }
                       std::fill(row, row + first, T{});
                       for (std::int64_t j = first; j < last; ++j) row[j] = kept[j * step];
                       std::fill(row + last, row + columns, T{});
                     }
                   });
    }
  });
}

void band(const View& out, const View& x, std::int64_t low, std::int64_t high) {
  if (out.numel == 0) return;
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) { band_typed<T>(out, x, low, high); });
}

}  // namespace

void fill_create(KernelTable& table) {
  table.arange = arange;
  table.linspace = linspace;
  table.one_hot = one_hot;
  table.band = band;
}

}  // namespace reel::detail
