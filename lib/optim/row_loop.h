#pragma once

#include <algorithm>
#include <cstddef>

#include <span>

#include <reel/ops/shape.h>
#include <reel/tensor.h>

#include "../core/context.h"
#include "../core/kernel_table.h"
#include "../core/storage.h"
#include "../cpu/parallel.h"
#include "../ops/if_needed.h"
#include "descent.h"

namespace reel::detail {

/// Makes a step of those rows of a table that have a gradient, some at the same time.
inline void descend_rows(const Descending& table, const RowGradient& gradient, const Descent& descent) {
  const std::int64_t* rows = gradient.rows.data<std::int64_t>();
  std::int64_t row_count = gradient.rows.numel(), size = gradient.values.numel() / std::max<std::int64_t>(1, row_count);
  auto bytes = size * static_cast<std::int64_t>(size_of(table.dtype));
  auto at = [bytes](auto* start, std::int64_t row) {
    return start ? static_cast<char*>(start) + row * bytes : nullptr;
  };
  char* values = static_cast<char*>(gradient.values.body().data);
  // Rows lie all over memory: fetched some rows ahead.
  constexpr std::int64_t ahead = 12, line = 64;
  auto fetch = [&](const char* row) {
    for (std::int64_t i = 0; row && i < bytes; i += line) __builtin_prefetch(row + i, 1);
  };
  auto step = [&](std::int64_t i) {
    Descending row{table.dtype, size, at(table.values, rows[i]), values + i * bytes, {}};
    for (int k = 0; k < Descending::most_kept; ++k) row.kept[k] = at(table.kept[k], rows[i]);
    descent.kernel(row, descent.numbers);
  };
  parallel_for(row_count, std::max<std::int64_t>(1, parallel_grain / std::max<std::int64_t>(1, size)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   if (i + ahead < end) {
                     fetch(at(table.values, rows[i + ahead]));
                     for (void* kept : table.kept) fetch(at(kept, rows[i + ahead]));
                   }
                   step(i);
                 }
               });
}

/// The same on a device: the rows are taken together, changed, and put back. Of `kept`, undefined ones are left out.
inline void descend_rows_on_device(const Tensor& parameter, std::span<const Tensor> kept, const RowGradient& gradient,
                                   const Descent& descent, const void* recorded) {
  std::int64_t none;
  auto rows_of = [&](const Tensor& table) {
    Tensor rows = allocate(context(), {gradient.values.shape(), table.dtype(), table.device()}, "step", {});
    kernels(table.device()).take(rows.body(), table.body(), gradient.rows.body(), 0, none);
    return rows;
  };
  Tensor given = contiguous_if_needed(gradient.values), values = rows_of(parameter), taken[Descending::most_kept];
  Descending rows{given.dtype(), given.numel(), values.body().data, given.body().data, {}, recorded};
  for (std::size_t k = 0; k < kept.size(); ++k) {
    if (!kept[k].defined()) continue;
    taken[k] = rows_of(kept[k]);
    rows.kept[k] = taken[k].body().data;
  }
  descent.kernel(rows, descent.numbers);
  auto put = [&](const Tensor& table, const Tensor& changed) {
    kernels(table.device()).index_copy(table.body(), changed.body(), gradient.rows.body(), 0);
  };
  put(parameter, values);
  for (std::size_t k = 0; k < kept.size(); ++k)
    if (kept[k].defined()) put(kept[k], taken[k]);
}

}  // namespace reel::detail
