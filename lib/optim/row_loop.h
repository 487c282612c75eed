#pragma once

#include <algorithm>
#include <cstddef>

#include <span>

#include <reel/ops/shape.h>
#include <reel/tensor.h>

#include "../core/context.h"
#include "../core/storage.h"
#include "../core/threads/parallel.h"
#include "../kernels/kernel_table.h"
#include "../ops/if_needed.h"
#include "update_step.h"

namespace reel::detail {

/// Updates those rows of a table that have a gradient, some concurrently.
inline void update_rows(const ParameterSlice& table, const RowGradient& gradient, const UpdateStep& update_step) {
  const std::int64_t* rows = gradient.rows.data<std::int64_t>();
  std::int64_t row_count = gradient.rows.numel(), size = gradient.values.numel() / std::max<std::int64_t>(1, row_count);
  auto bytes = size * static_cast<std::int64_t>(size_of(table.dtype));
  auto at = [bytes](auto* start, std::int64_t row) {
    return start ? static_cast<char*>(start) + row * bytes : nullptr;
  };
  char* values = static_cast<char*>(gradient.values.body().data);
  // Rows are scattered over memory, so they are prefetched some rows ahead.
  constexpr std::int64_t ahead = 12, line = 64;
  auto fetch = [&](const char* row) {
    for (std::int64_t i = 0; row && i < bytes; i += line) __builtin_prefetch(row + i, 1);
  };
  auto step = [&](std::int64_t i) {
    ParameterSlice row{table.dtype, size, at(table.values, rows[i]), values + i * bytes, {}};
    for (int k = 0; k < ParameterSlice::most_kept; ++k) row.kept[k] = at(table.kept[k], rows[i]);
    update_step({&row, 1});
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

/// Updates those rows of a table on a device that have a gradient: they are gathered, updated, and scattered back.
/// Undefined tensors in `kept` are skipped.
inline void update_rows_on_device(const Tensor& parameter, std::span<const Tensor> kept, const RowGradient& gradient,
                                  const UpdateStep& update_step, const void* recorded) {
  std::int64_t none;
  auto rows_of = [&](const Tensor& table) {
    Tensor rows = allocate(context(), {gradient.values.shape(), table.dtype(), table.device()}, "step", {});
    kernels(table.device()).take(rows.body(), table.body(), gradient.rows.body(), 0, none);
    return rows;
  };
  Tensor given = contiguous_if_needed(gradient.values), values = rows_of(parameter), taken[ParameterSlice::most_kept];
  ParameterSlice rows{given.dtype(), given.numel(), values.body().data, given.body().data, {}};
  for (std::size_t k = 0; k < kept.size(); ++k) {
    if (!kept[k].defined()) continue;
    taken[k] = rows_of(kept[k]);
    rows.kept[k] = taken[k].body().data;
  }
  update_step({&rows, 1}, recorded);
  auto put = [&](const Tensor& table, const Tensor& changed) {
    kernels(table.device()).index_copy(table.body(), changed.body(), gradient.rows.body(), 0);
  };
  put(parameter, values);
  for (std::size_t k = 0; k < kept.size(); ++k)
    if (kept[k].defined()) put(kept[k], taken[k]);
}

}  // namespace reel::detail
