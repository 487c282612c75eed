#include "recurrent_weights.h"

#include <cstdint>
#include <utility>

#include "../../../lib/core/dtype_dispatch.h"
#include "../../device/launch.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

constexpr int side = 32, padded = side + 1;  // padded, so that no two rows of a tile begin in one bank
constexpr int move_threads = 256;

// A range of packed elements.
struct Range {
  std::int64_t begin, end;
};

// Moves weights (columns, rows), whose transposes (rows, columns) are packed, by square tiles, so that both are accessed
// along their rows; a last group moves the biases and, if `packs`, fills what is between all of these with zeros.
// The elements are moved as bits.
template <class T, bool packs>
struct MoveWeights {
  struct Matrix {
    T* own;
    std::int64_t row_stride, column_stride;  // of `own`, along the packed rows and columns
    std::int64_t place, rows, columns;
    std::int64_t tiles_across, tiles;
  };
  Matrix matrices[2];
  T *packed, *bias;
  std::int64_t first_bias, first_count;    // the bias of x W_x, and the number of its elements
  std::int64_t second_bias, second_count;  // where the rest of `bias` is packed
  Range rest[3];                           // what is outside of the matrices

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    std::int64_t index = group.index();
    T* tile = group.template shared<T>(side * padded);
    if (index < matrices[0].tiles)
      move_tile(group, matrices[0], index, tile);
    else if (index < matrices[0].tiles + matrices[1].tiles)
      move_tile(group, matrices[1], index - matrices[0].tiles, tile);
    else
      group.each([&](int thread) { move_rest(thread); });
  }

 private:
  template <class Group>
  REEL_DEVICE void move_tile(Group& group, const Matrix& matrix, std::int64_t index, T* tile) const {
    std::int64_t row = index / matrix.tiles_across * side, column = index % matrix.tiles_across * side;
    int rows = static_cast<int>(matrix.rows - row < side ? matrix.rows - row : side);
    int columns = static_cast<int>(matrix.columns - column < side ? matrix.columns - column : side);
    T* of_packed = packed + matrix.place + row * matrix.columns + column;
    T* own = matrix.own + row * matrix.row_stride + column * matrix.column_stride;
    auto along_packed = [&](int thread, const auto& move) {
      int j = thread % side;
      for (int i = thread / side; i < rows; i += move_threads / side)
        if (j < columns) move(of_packed[i * matrix.columns + j], tile[i * padded + j]);
    };
    auto along_own = [&](int thread, const auto& move) {
      int i = thread % side;
      for (int j = thread / side; j < columns; j += move_threads / side)
        if (i < rows) move(own[i * matrix.row_stride + j * matrix.column_stride], tile[i * padded + j]);
    };
    auto load = [](const T& element, T& in_tile) { in_tile = element; };
    auto store = [](T& element, const T& in_tile) { element = in_tile; };
    if constexpr (packs) {
      group.each([&](int thread) { along_own(thread, load); });
      group.each([&](int thread) { along_packed(thread, store); });
    } else {
      group.each([&](int thread) { along_packed(thread, load); });
      group.each([&](int thread) { along_own(thread, store); });
    }
  }
  REEL_DEVICE void move_rest(int thread) const {
    if constexpr (packs) {
      for (const Range& range : rest)
        for (std::int64_t i = range.begin + thread; i < range.end; i += move_threads) packed[i] = bias_at(i);
    } else {
      for (std::int64_t i = thread; i < first_count; i += move_threads) bias[i] = packed[first_bias + i];
      for (std::int64_t i = thread; i < second_count; i += move_threads)
        bias[first_count + i] = packed[second_bias + i];
    }
  }
  REEL_DEVICE T bias_at(std::int64_t i) const {
    if (i >= first_bias && i < first_bias + first_count) return bias[i - first_bias];
    if (i >= second_bias && i < second_bias + second_count) return bias[first_count + i - second_bias];
    return T(0);
  }
};

template <class T, bool packs>
void move_typed(const LayerWeights& weights) {
  std::int64_t size = weights.W_h.dims[0], rows = form_of(weights.cell).gates * size;
  using Move = MoveWeights<T, packs>;
  auto matrix = [&](const View& own, std::int64_t place) {
    std::int64_t columns = own.dims[0], across = (columns + side - 1) / side;
    return typename Move::Matrix{own.as<T>(), own.strides[1], own.strides[0], place,
                                 rows,        columns,        across,         (rows + side - 1) / side * across};
  };
  const WeightLayout& layout = weights.layout;
  Move move{{matrix(weights.W_x, layout.input_weights), matrix(weights.W_h, layout.state_weights)},
            weights.packed.as<T>(),
            weights.bias.as<T>(),
            layout.input_bias,
            rows,
            layout.state_bias + 2 * size,
            weights.cell == RecurrentCell::gru ? size : 0,
            {}};
  auto range_of = [](const typename Move::Matrix& matrix) {
    return Range{matrix.place, matrix.place + matrix.rows * matrix.columns};
  };
  Range first = range_of(move.matrices[0]), second = range_of(move.matrices[1]);
  if (second.begin < first.begin) std::swap(first, second);
  move.rest[0] = {0, first.begin};
  move.rest[1] = {first.end, second.begin};
  move.rest[2] = {second.end, weights.packed.numel / static_cast<std::int64_t>(sizeof(T))};
  for_each_block(move.matrices[0].tiles + move.matrices[1].tiles + 1, move_threads, side * padded * sizeof(T), move);
}

template <bool packs>
void move_weights(const LayerWeights& weights) {
  if (size_of(weights.W_x.dtype) == 8)
    move_typed<std::uint64_t, packs>(weights);
  else
    move_typed<std::uint32_t, packs>(weights);
}

}  // namespace

void pack_layer_weights(const LayerWeights& weights) { move_weights<true>(weights); }
void unpack_layer_weights(const LayerWeights& weights) { move_weights<false>(weights); }

}  // namespace reel::detail::inline REEL_TARGET
