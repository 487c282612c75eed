#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "../../../core/iteration.h"
#include "../../../core/threads/parallel.h"
#include "../vector/streaming.h"

// Copies between layouts whose innermost axes differ. This header is compiled once per instruction set.

namespace reel::detail::inline REEL_TARGET {

/// 16 bytes of T.
template <class T>
struct Block {
  static constexpr int lanes = 16 / sizeof(T);
  typedef T Raw __attribute__((vector_size(16)));

  template <int... i>
  static Raw lower(Raw a, Raw b, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, (i / 2 + i % 2 * lanes)...);
  }
  template <int... i>
  static Raw upper(Raw a, Raw b, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, (i / 2 + lanes / 2 + i % 2 * lanes)...);
  }

  /// Transposes a square of lanes × lanes elements: to[i][k] = from[k][i], by interleaving rows i and i + lanes / 2
  /// log₂(lanes) times.
  static void transpose(T* to, std::int64_t to_stride, const T* from, std::int64_t from_stride) {
    constexpr auto places = std::make_integer_sequence<int, lanes>();
    Raw rows[lanes], next[lanes];
    for (int i = 0; i < lanes; ++i) std::memcpy(&rows[i], from + i * from_stride, sizeof(Raw));
    for (int round = 1; round < lanes; round *= 2) {
      for (int i = 0; i < lanes / 2; ++i) {
        next[2 * i] = lower(rows[i], rows[i + lanes / 2], places);
        next[2 * i + 1] = upper(rows[i], rows[i + lanes / 2], places);
      }
      for (int i = 0; i < lanes; ++i) rows[i] = next[i];
    }
    for (int i = 0; i < lanes; ++i) std::memcpy(to + i * to_stride, &rows[i], sizeof(Raw));
  }
};

/// to[i to_stride + k] = from[i + k from_stride] for height × width elements. Prefetches the first `ahead` rows of the
/// panel that follows in `from`.
template <class T>
void transpose_panel(T* to, std::int64_t to_stride, const T* from, std::int64_t from_stride, std::int64_t height,
                     std::int64_t width, std::int64_t ahead) {
  constexpr std::int64_t lanes = Block<T>::lanes, line = 64 / sizeof(T);
  std::int64_t whole_height = height / lanes * lanes, whole_width = width / lanes * lanes;
  for (std::int64_t k = 0; k < whole_width; k += lanes) {
    for (std::int64_t i = 0; i < whole_height; i += lanes)
      Block<T>::transpose(to + i * to_stride + k, to_stride, from + i + k * from_stride, from_stride);
    for (std::int64_t next = k; next < std::min(k + lanes, ahead); ++next)
      for (std::int64_t i = 0; i < height; i += line) __builtin_prefetch(from + i + (width + next) * from_stride);
  }
  for (std::int64_t i = 0; i < height; ++i)
    for (std::int64_t k = i < whole_height ? whole_width : 0; k < width; ++k)
      to[i * to_stride + k] = from[i + k * from_stride];
}

/// Copies between operands where axis 0 has stride 1 in the first, and `across` in the second. Panels are transposed
/// into a buffer that stays in the first-level cache, so that both operands are accessed by whole cache lines.
template <class T>
void copy_transposed(T* to, const T* from, const Iteration<2>& iteration, int across, bool streams) {
  constexpr std::int64_t side = std::min<std::int64_t>(256 / sizeof(T), 128);
  std::int64_t width = iteration.dims[0], height = iteration.dims[across];
  std::int64_t to_stride = iteration.strides[0][across], from_stride = iteration.strides[1][0];
  std::int64_t columns = (width + side - 1) / side, panels = (height + side - 1) / side * columns;
  std::int64_t matrices = 1;
  for (int axis = 1; axis < iteration.rank; ++axis)
    if (axis != across) matrices *= iteration.dims[axis];
  constexpr std::int64_t grain = std::max<std::int64_t>(parallel_grain / (side * side), 1);
  parallel_for(matrices * panels, grain, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) T buffer[side * side];
    for (std::int64_t number = begin; number < end; ++number) {
      std::int64_t row = number % panels / columns * side, column = number % columns * side;
      T* target = to + row * to_stride + column;
      const T* source = from + row + column * from_stride;
      std::int64_t rest = number / panels;
      for (int axis = 1; axis < iteration.rank; ++axis) {
        if (axis == across) continue;
        target += rest % iteration.dims[axis] * iteration.strides[0][axis];
        source += rest % iteration.dims[axis] * iteration.strides[1][axis];
        rest /= iteration.dims[axis];
      }
      std::int64_t rows = std::min(side, height - row), count = std::min(side, width - column);
      transpose_panel(buffer, side, source, from_stride, rows, count, std::min(side, width - column - count));
      for (std::int64_t i = 0; i < rows; ++i) {
        std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
        if (streams)
          copy_streaming(target + i * to_stride, buffer + i * side, bytes);
        else
          std::memcpy(target + i * to_stride, buffer + i * side, static_cast<std::size_t>(bytes));
      }
    }
    if (streams) end_streaming();
  });
}

}  // namespace reel::detail::inline REEL_TARGET
