#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../../core/dtype_dispatch.h"
#include "../../../core/halves.h"
#include "../../../core/threads/parallel.h"
#include "../instruction_set.h"
#include "segment_sum.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

template <class F>
auto with_indices(const View& indices, F f) {
  return indices.dtype == DType::i64 ? f(indices.as<const std::int64_t>()) : f(indices.as<const std::int32_t>());
}

struct Place {
  std::int64_t row, number;
};

// One pass of a radix sort by some bits of the row.
void order_by_digit(const Place* from, Place* to, std::int64_t count, int shift) {
  constexpr int bits = 11;
  std::int64_t starts[1 << bits] = {}, start = 0;
  auto digit_of = [&](const Place& place) { return (place.row >> shift) & ((1 << bits) - 1); };
  for (std::int64_t i = 0; i < count; ++i) ++starts[digit_of(from[i])];
  for (std::int64_t& first : starts) start += std::exchange(first, start);
  for (std::int64_t i = 0; i < count; ++i) to[starts[digit_of(from[i])]++] = from[i];
}

}  // namespace

void order_rows(const View& numbers, const View& distinct, const View& indices, std::int64_t row_count) {
  auto count = static_cast<std::size_t>(indices.numel);
  std::vector<Place> places(count), others(count);
  with_indices(indices, [&](const auto* first) {
    for (std::int64_t i = 0; i < indices.numel; ++i)
      places[static_cast<std::size_t>(i)] = {first[i] + (first[i] < 0 ? row_count : 0), i};
  });
  for (int shift = 0; shift < 63 && (row_count - 1) >> shift > 0; shift += 11) {
    order_by_digit(places.data(), others.data(), indices.numel, shift);
    std::swap(places, others);
  }
  std::int64_t rows = 0, before = -1;
  auto* to = numbers.as<std::int64_t>();
  for (const Place& place : places) {
    rows += place.row != before;
    before = place.row;
    *to++ = place.number;
  }
  *distinct.as<std::int64_t>() = rows;
}

namespace {

template <class T>
void fetch(const T* row, std::int64_t size) {
  for (std::int64_t i = 0; i < size; i += 64 / static_cast<std::int64_t>(sizeof(T))) __builtin_prefetch(row + i);
}

template <class T>
void sum_of_rows(T* to, const T* values, const std::int64_t* numbers, std::int64_t count, std::int64_t size) {
  std::copy_n(values + numbers[0] * size, size, to);
  for (std::int64_t k = 1; k < count; ++k) {
    const T* from = values + numbers[k] * size;
    for (std::int64_t i = 0; i < size; ++i) to[i] += from[i];
  }
}

template <class Half>
  requires(sizeof(Half) == 2)
void sum_of_rows(Half* to, const Half* values, const std::int64_t* numbers, std::int64_t count, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) {
    float sum = 0;
    for (std::int64_t k = 0; k < count; ++k) sum += widened(values[numbers[k] * size + i]);
    to[i] = narrowed<Half>(sum);
  }
}

}  // namespace

void segment_sum_rows(const View& rows, const View& sums, const View& values, const View& indices, const View& numbers,
                      std::int64_t row_count) {
  const auto* number = numbers.as<const std::int64_t>();
  auto* row = rows.as<std::int64_t>();
  std::int64_t count = numbers.numel, distinct = rows.numel;
  std::int64_t size = distinct == 0 ? 0 : sums.numel / distinct;
  // The offsets at which the indices of each row start.
  std::vector<std::int64_t> starts(static_cast<std::size_t>(distinct) + 1);
  with_indices(indices, [&](const auto* first) {
    std::int64_t at = -1, before = -1;
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t index = first[number[i]], own = index + (index < 0 ? row_count : 0);
      if (own == before) continue;
      before = row[++at] = own;
      starts[static_cast<std::size_t>(at)] = i;
    }
  });
  starts.back() = count;
  with_floating(sums.dtype, [&]<class T>(std::type_identity<T>) {
    const T* from = values.as<const T>();
    T* to = sums.as<T>();
    constexpr std::int64_t ahead = 8;
    std::int64_t grain = std::max<std::int64_t>(1, parallel_grain / std::max<std::int64_t>(1, size));
    parallel_for(distinct, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t j = begin; j < end; ++j) {
        std::int64_t start = starts[static_cast<std::size_t>(j)], stop = starts[static_cast<std::size_t>(j) + 1];
        if (start + ahead < count) fetch(from + number[start + ahead] * size, size);
        sum_of_rows(to + j * size, from, number + start, stop - start, size);
      }
    });
  });
}

}  // namespace reel::detail::inline REEL_TARGET
