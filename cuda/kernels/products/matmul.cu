#include <optional>

#include "../../../lib/core/dtype_dispatch.h"
#include "../../../lib/core/parameter_version.h"
#include "../../device/element.h"
#include "../../device/launch.h"
#include "../../device/matrix_layout.h"
#include "../../device/offsets.h"
#include "../../libraries/library_product.h"
#include "../../runtime/cuda_kernels.h"
#include "../elementwise/copy.h"
#include "product.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// A block of threads computes a tile of the product, each thread a square of it.
constexpr int tile = 64, tile_depth = 16, square = 4, threads_across = tile / square;
constexpr int product_threads = threads_across * threads_across;
// The padded leading dimension of a tile, so that its rows start in different banks.
constexpr int tile_stride = tile + 4;

// Integers wrap around, so they are added as unsigned; bools are or-ed.
template <class T>
struct SumOf {
  using Type = std::uint32_t;
};
template <>
struct SumOf<std::int64_t> {
  using Type = std::uint64_t;
};
template <>
struct SumOf<double> {
  using Type = double;
};
template <>
struct SumOf<float> {
  using Type = float;
};
template <>
struct SumOf<BFloat16> {
  using Type = float;
};
template <>
struct SumOf<Float16> {
  using Type = float;
};

template <class S>
struct Square {
  S sums[square][square];
};

template <class T>
struct TiledProduct {
  using S = typename SumOf<T>::Type;

  T* out;
  const T *a, *b;
  Offsets<3> batches;
  std::int64_t rows, columns, depth;
  std::int64_t out_row, out_column, a_row, a_column, b_row, b_column;
  std::int64_t tiles_down, tiles_across;
  bool adds;

  static constexpr std::size_t shared_bytes = 2 * sizeof(S) * tile_depth * tile_stride;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    std::int64_t within = group.index() % (tiles_down * tiles_across), offsets[3];
    batches.find(group.index() / (tiles_down * tiles_across), offsets);
    std::int64_t top = within / tiles_across * tile, left = within % tiles_across * tile;
    S* a_tile = group.template shared<S>(tile_depth * tile_stride);
    S* b_tile = group.template shared<S>(tile_depth * tile_stride);
    auto squares = group.template per_thread<Square<S>>();
    group.each([&](int thread) { squares[thread] = {}; });
    for (std::int64_t k = 0; k < depth; k += tile_depth) {
      group.each([&](int thread) {
        load(a_tile, a + offsets[1], thread, top, rows, a_row, k, a_column);
        load(b_tile, b + offsets[2], thread, left, columns, b_column, k, b_row);
      });
      int here = static_cast<int>(depth - k < tile_depth ? depth - k : tile_depth);
      group.each([&](int thread) { add_products(squares[thread], a_tile, b_tile, thread, top, left, here); });
    }
    group.each([&](int thread) { store(squares[thread], out + offsets[0], thread, top, left); });
  }

 private:
  // Loads rows of a, or columns of b; consecutive terms of the sum are `depth_stride` apart.
  REEL_DEVICE void load(S* to, const T* from, int thread, std::int64_t first, std::int64_t length, std::int64_t step,
                        std::int64_t k, std::int64_t depth_stride) const {
    bool along_depth = depth_stride == 1;
#pragma unroll
    for (int i = 0; i < tile * tile_depth / product_threads; ++i) {
      int place = thread + i * product_threads;
      int deep = along_depth ? place % tile_depth : place / tile,
          along = along_depth ? place / tile_depth : place % tile;
      bool inside = first + along < length && k + deep < depth;
      to[deep * tile_stride + along] =
          inside ? static_cast<S>(loaded(from[(first + along) * step + (k + deep) * depth_stride])) : S(0);
    }
  }

  REEL_DEVICE void add_products(Square<S>& result, const S* a_tile, const S* b_tile, int thread, std::int64_t top,
                                std::int64_t left, int here) const {
    int down = thread / threads_across * square, across = thread % threads_across * square;
    if (top + down >= rows || left + across >= columns) return;
    for (int k = 0; k < here; ++k) {
      const S *x = a_tile + k * tile_stride + down, *y = b_tile + k * tile_stride + across;
#pragma unroll
      for (int i = 0; i < square; ++i)
#pragma unroll
        for (int j = 0; j < square; ++j)
          if constexpr (std::is_same_v<T, bool>)
            result.sums[i][j] |= x[i] & y[j];
          else
            result.sums[i][j] += x[i] * y[j];
    }
  }

  REEL_DEVICE void store(const Square<S>& result, T* to, int thread, std::int64_t top, std::int64_t left) const {
    std::int64_t row = top + thread / threads_across * square, column = left + thread % threads_across * square;
#pragma unroll
    for (int i = 0; i < square; ++i)
#pragma unroll
      for (int j = 0; j < square; ++j) {
        if (row + i >= rows || column + j >= columns) continue;
        T& place = to[(row + i) * out_row + (column + j) * out_column];
        S sum = result.sums[i][j];
        if constexpr (std::is_floating_point_v<T>)
          place = adds ? place + sum : sum;
        else if constexpr (std::is_integral_v<T>)
          place = static_cast<T>(sum);
        else
          place = stored<T>(adds ? static_cast<S>(loaded(place)) + sum : sum);
      }
  }
};

// The leading axes of a view.
View batch_of(const View& view) {
  View batch = view;
  batch.rank -= 2;
  return batch;
}

template <class T>
void multiply_tiles(const View& out, const View& a, const View& b, bool adds) {
  View batches[] = {batch_of(out), batch_of(a), batch_of(b)};
  int o = out.rank - 2, x = a.rank - 2, y = b.rank - 2;
  std::int64_t rows = out.dims[o], columns = out.dims[o + 1];
  TiledProduct<T> product{
      out.as<T>(),
      a.as<T>(),
      b.as<T>(),
      Offsets<3>(Iteration<3>({&batches[0], &batches[1], &batches[2]})),
      rows,
      columns,
      a.dims[x + 1],
      out.strides[o],
      out.strides[o + 1],
      a.strides[x],
      a.strides[x + 1],
      b.strides[y],
      b.strides[y + 1],
      (rows + tile - 1) / tile,
      (columns + tile - 1) / tile,
      adds,
  };
  std::int64_t tiles = out.numel / (rows * columns) * product.tiles_down * product.tiles_across;
  for_each_group(tiles, product_threads, TiledProduct<T>::shared_bytes, product);
}

// An operand with contiguous rows or columns: the operand itself, or a copy.
class Lined : Immovable {
 public:
  explicit Lined(const View& x) : view_(x) {
    if (has_matrix_layout(x)) return;
    copy_.emplace(static_cast<std::size_t>(x.numel) * size_of(x.dtype));
    view_.data = copy_->as<void>();
    view_.strides = strides_;
    view_.contiguous = true;
    for (std::int64_t axis = x.rank, step = 1; axis-- > 0; step *= x.dims[axis]) strides_[axis] = step;
    move_elements(view_, x);
  }

  const View& view() const { return view_; }

 private:
  View view_;
  std::int64_t strides_[8];
  std::optional<Scratch> copy_;
};

void matmul(const View& out, const View& a, const View& b, ParameterVersion) { multiply(out, a, b, false); }
void matmul_add(const View& sum, const View& a, const View& b, ParameterVersion) { multiply(sum, a, b, true); }

}  // namespace

void multiply(const View& out, const View& a, const View& b, bool adds) {
  if (out.numel == 0) return;
  bool empty = a.dims[a.rank - 1] == 0;
  if (empty && adds) return;
  if (empty) return fill_with_zeros(out.data, static_cast<std::size_t>(out.numel) * size_of(out.dtype));
  auto by_tiles = [&](const View& left, const View& right) {
    with_type(out.dtype, [&]<class T>(std::type_identity<T>) { multiply_tiles<T>(out, left, right, adds); });
  };
  if (!is_floating(out.dtype)) return by_tiles(a, b);
  Lined left(a), right(b);
  if (!multiply_by_library(out, left.view(), right.view(), adds)) by_tiles(left.view(), right.view());
}

void add_to_product(const View& out, const View& c, const View& a, const View& b) {
  if (out.numel == 0) return;
  bool a_row_for_all = (c.strides[0] == 0 || c.dims[0] == 1) && (c.strides[1] == 1 || c.dims[1] == 1);
  if (a_row_for_all && a.dims[1] > 0) {
    Lined left(a), right(b);
    if (multiply_by_library(out, left.view(), right.view(), c.data)) return;
  }
  move_elements(out, c);
  multiply(out, a, b, true);
}

void fill_matmul(KernelTable& table) {
  table.matmul = matmul;
  table.matmul_add = matmul_add;
}

}  // namespace reel::detail::inline REEL_TARGET
