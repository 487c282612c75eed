#include "copy.h"

#include <cstring>
#include <utility>

#include "../../../lib/core/convert.h"
#include "../../../lib/kernels/formulas/integer.h"
#include "../../device/formula_loop.h"
#include "../../device/split.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// Copies between layouts whose innermost axes differ, by square tiles: both sides are accessed along their rows. In the
// tile from row i and column k, x has stride 1 from i to i + 1, and `out` from k to k + 1.
template <class T>
struct TileCopy {
  static constexpr int side = 32, padded = side + 1;  // padded, so that no two rows begin in one bank

  T* out;
  const T* x;
  std::int64_t height, width;
  std::int64_t to_stride, from_stride;  // strides: from i to i + 1 in `out`, from k to k + 1 in x
  Split by_tiles, by_columns;           // of a tile's index: into matrix and tile, and into row and column of tiles
  Offsets<2> matrices;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    T* tile = group.template shared<T>(side * padded);
    Split::Parts of_matrix = by_tiles(group.index()), of_row = by_columns(of_matrix.rest);
    std::int64_t at[2], row = of_row.whole * side, column = of_row.rest * side;
    matrices.find(of_matrix.whole, at);
    T* to = out + at[0] + row * to_stride + column;
    const T* from = x + at[1] + row + column * from_stride;
    int rows = within(height - row), count = within(width - column), step = group.size() / side;
    group.each([&](int thread) {
      int i = thread % side;
      const T* place = from + i + thread / side * from_stride;
      for (int k = thread / side; k < count; k += step, place += step * from_stride)
        if (i < rows) tile[k * padded + i] = *place;
    });
    group.each([&](int thread) {
      int k = thread % side;
      T* place = to + k + thread / side * to_stride;
      for (int i = thread / side; i < rows; i += step, place += step * to_stride)
        if (k < count) *place = tile[k * padded + i];
    });
  }

 private:
  REEL_DEVICE static int within(std::int64_t size) { return size < side ? static_cast<int>(size) : side; }
};

// An axis along which an operand has stride 1, long enough for tiles; −1 if there is none.
int unit_axis(const Iteration<2>& iteration, int operand) {
  for (int axis = 0; axis < iteration.rank; ++axis)
    if (iteration.strides[operand][axis] == 1 && iteration.dims[axis] >= 8) return axis;
  return -1;
}

void remove_axis(Iteration<2>& iteration, int axis) {
  --iteration.rank;
  for (int i = axis; i < iteration.rank; ++i) {
    iteration.dims[i] = iteration.dims[i + 1];
    for (auto& strides : iteration.strides) strides[i] = strides[i + 1];
  }
}

template <class T>
void copy_by_tiles(const View& out, const View& x, Iteration<2> iteration, int along, int across) {
  constexpr std::int64_t side = TileCopy<T>::side;
  TileCopy<T> tiles;
  tiles.out = out.as<T>();
  tiles.x = x.as<T>();
  tiles.height = iteration.dims[across];
  tiles.width = iteration.dims[along];
  tiles.to_stride = iteration.strides[0][across];
  tiles.from_stride = iteration.strides[1][along];
  std::int64_t columns = (tiles.width + side - 1) / side, count = (tiles.height + side - 1) / side * columns;
  std::int64_t matrices = out.numel / (tiles.height * tiles.width);
  tiles.by_tiles = Split(count, matrices * count);
  tiles.by_columns = Split(columns, count);
  remove_axis(iteration, along > across ? along : across);
  remove_axis(iteration, along > across ? across : along);
  tiles.matrices = Offsets<2>(iteration);
  for_each_block(matrices * count, 256, side * TileCopy<T>::padded * sizeof(T), tiles);
}

template <class T>
void move_typed(const View& out, const View& x) {
  if (!(out.contiguous && x.contiguous) && out.numel > 0) {
    Iteration<2> iteration({&out, &x});
    int along = unit_axis(iteration, 0), across = unit_axis(iteration, 1);
    if (along >= 0 && across >= 0 && along != across) return copy_by_tiles<T>(out, x, iteration, along, across);
  }
  run_formula<T, T>(formulas::Itself(), out, {&x});
}

void copy(const View& out, const View& x) {
  if (out.dtype == x.dtype)
    move_elements(out, x);
  else
    convert_elements(out, x);
}

template <class T>
struct Filling {
  static constexpr int lanes = 16 / sizeof(T);
  T value;
  T* out;
  std::int64_t count;

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t at = i * lanes;
    if (count - at < lanes) {
      for (; at < count; ++at) out[at] = value;
      return;
    }
    Pack<T, lanes> pack;
    for (T& element : pack.element) element = value;
    *reinterpret_cast<Pack<T, lanes>*>(out + at) = pack;
  }
};

template <class T>
struct StridedFilling {
  T value;
  T* out;
  Offsets<1> offsets;

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t at[1];
    offsets.find(i, at);
    out[at[0]] = value;
  }
};

template <class T>
void fill_typed(const View& out, T value) {
  constexpr int lanes = Filling<T>::lanes;
  if (out.contiguous && is_aligned<T>(out, lanes))
    for_each((out.numel + lanes - 1) / lanes, Filling<T>{value, out.as<T>(), out.numel});
  else if (out.numel > 0)
    for_each(out.numel, StridedFilling<T>{value, out.as<T>(), Offsets<1>(Iteration<1>::in_memory({&out}))});
}

// Only bits are moved, so one instance serves all dtypes of a size.
void fill(const View& out, double number, std::int64_t integer) {
  std::uint64_t bits = 0;
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    T value;
    if constexpr (std::is_integral_v<T>)
      value = convert<T>(integer);
    else
      value = convert<T>(number);
    std::memcpy(&bits, &value, sizeof(T));
  });
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) { fill_typed(out, static_cast<T>(bits)); });
}

}  // namespace

void move_elements(const View& out, const View& x) {
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) { move_typed<T>(out, x); });
}

void fill_copy(KernelTable& table) {
  table.copy = copy;
  table.fill = fill;
}

}  // namespace reel::detail::inline REEL_TARGET
