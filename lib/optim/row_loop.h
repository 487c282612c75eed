#pragma once

#include <algorithm>

#include <reel/tensor.h>

#include "../cpu/parallel.h"

namespace reel::detail {

/// Calls f(start in the parameter, gradient, count) for each row of a gradient by rows, some at the same
/// time. `tables`: what f changes there; null counts for none.
template <class T, class F, class... Tables>
void for_each_row(const RowGradient& gradient, F f, const Tables*... tables) {
  const std::int64_t* rows = gradient.rows.data<std::int64_t>();
  const T* values = gradient.values.data<T>();
  std::int64_t row_count = gradient.rows.numel(), size = gradient.values.numel() / std::max<std::int64_t>(1, row_count);
  // Rows lie all over memory: fetched some rows ahead.
  constexpr std::int64_t ahead = 12, line = 64 / sizeof(T);
  auto fetch = [&](const T* row) {
    for (std::int64_t i = 0; row && i < size; i += line) __builtin_prefetch(row + i, 1);
  };
  parallel_for(row_count, std::max<std::int64_t>(1, parallel_grain / std::max<std::int64_t>(1, size)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   if (i + ahead < end) (fetch(tables ? tables + rows[i + ahead] * size : nullptr), ...);
                   f(rows[i] * size, values + i * size, size);
                 }
               });
}

}  // namespace reel::detail
