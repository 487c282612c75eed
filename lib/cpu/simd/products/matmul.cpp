#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <reel/threads.h>

#include "../../../core/dtype_dispatch.h"
#include "../../../core/iteration.h"
#include "../../../core/threads/parallel.h"
#include "../../cached_space.h"
#include "../../onednn/onednn_product.h"
#include "../instruction_set.h"
#include "../vector/half_rows.h"
#include "bf16_vnni_product.h"
#include "element_product.h"
#include "gemm.h"
#include "matmul.h"
#include "packed_parameters.h"
#include "packed_product.h"
#include "skinny_product.h"

namespace reel::detail::inline REEL_TARGET {

template <class T>
constexpr typename Gemm<T>::Tiles Gemm<T>::tiles = make_tiles(std::make_integer_sequence<int, tile_rows>());
template const Gemm<float>::Tiles Gemm<float>::tiles;
template const Gemm<double>::Tiles Gemm<double>::tiles;

namespace {

// "Products" in tools/benchmark/README.md has the measurements behind the bounds below.

// Products that cost less than this many f32 multiplications in tiles stay on the calling thread: waking another takes
// longer than it saves, and far longer if another process uses its processor.
constexpr double parallel_cost = 1 << 24;
// The smallest cost that is worth a thread.
constexpr double part_cost = parallel_cost / 4;

// Below this many multiplications oneDNN's call costs more than the product does here.
constexpr double few_bf16_multiplications = 1 << 15;
// Returns true if packing b pays (see bf16_vnni_product.h): for few rows only on a processor with tiles, and never if
// few columns require transposing a. Long sums exceed the caches, and oneDNN divides them.
bool pays_vnni(const Matrix<BFloat16>& a, const Matrix<BFloat16>& b) {
  return a.columns <= 4096 && a.rows >= (has_bf16_tiles() ? 4 : 64) && (a.column_stride == 1 || b.columns >= 64);
}

// Skinny products, which are bound by reading b, read it in place, by SkinnyProduct; for more rows gemm.h's tiles pack it.
// This is the most rows of a product with a transposed b.
constexpr std::int64_t most_dot_rows = 8;

// The number of products for which a parameter is used in place before it is copied, if a copy gains a little each
// time.
constexpr int uses_that_repay = 4;

enum class ProductKind : std::uint8_t { tiled, gemv, dot, vnni, onednn, scalar };

template <class T>
PackedMatrix<T> as_packed(const Matrix<T>& m) {
  return {m.data, m.rows, m.columns, m.row_stride, m.column_stride};
}

template <class T>
double multiplications_of(const Matrix<T>& a, const Matrix<T>& b) {
  return static_cast<double>(a.rows * b.columns) * static_cast<double>(a.columns);
}

// Returns true if a matrix has columns, rather than rows, of elements that are close together.
template <class S>
bool lies_by_columns(const Matrix<S>& b) {
  return b.column_stride != 1 && (b.row_stride == 1 || std::abs(b.row_stride) < std::abs(b.column_stride));
}

// Few rows or columns are multiplied in place. T: the type of the sums. `columns_vary`: with the number of examples, as in a
// product with one column, whose rows are the columns here.
//
// Unless b lies by columns, the order in which an element's terms are added does not depend on the number of rows, nor on gaps:
// that of SkinnyProduct::multiply is that of tiles.
template <class T, class S>
ProductKind skinny_or_tiled(const Matrix<S>& a, const Matrix<S>& b, bool columns_vary) {
  if (!columns_vary && SkinnyProduct<T>::is_narrow(a.columns, b.columns)) return ProductKind::dot;
  if (!lies_by_columns(b))
    return b.column_stride == 1 && a.rows <= SkinnyProduct<T>::most_rows ? ProductKind::gemv : ProductKind::tiled;
  // A short column does not fill a vector.
  bool is_short = a.rows <= (a.columns >= 32 ? most_dot_rows : 2);
  return is_short || batch_invariant() ? ProductKind::dot : ProductKind::tiled;
}

// The algorithm is chosen from the whole product, so that it does not depend on the division among threads.
template <class T>
ProductKind kind_of(const Matrix<T>& a, const Matrix<T>& b, bool columns_vary = false) {
  if constexpr (std::is_integral_v<T>) {
    return ProductKind::scalar;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    ProductKind kind = skinny_or_tiled<float>(a, b, columns_vary);
    if (multiplications_of(a, b) < few_bf16_multiplications || !can_multiply_bf16() || batch_invariant()) return kind;
    if (pays_vnni(a, b)) return ProductKind::vnni;
    if (kind != ProductKind::tiled) return kind;
    return as_packed(a).is_readable() && as_packed(b).is_readable() ? ProductKind::onednn : ProductKind::tiled;
  } else if constexpr (std::is_floating_point_v<T>) {
    return skinny_or_tiled<T>(a, b, columns_vary);
  } else {
    return skinny_or_tiled<float>(a, b, columns_vary);
  }
}

template <class T>
void sum_products(ProductKind kind, float* sums, const Matrix<T>& a, const Matrix<T>& b) {
  if constexpr (std::is_same_v<T, BFloat16>)
    if (kind == ProductKind::onednn) return multiply(sums, b.columns, as_packed(a), as_packed(b));
  Gemm<float>::multiply(sums, b.columns, a, b);
}

// Halves are multiplied with f32 sums, which are rounded once.
template <class T>
void multiply_halves(ProductKind kind, T* c, std::int64_t c_stride, const Matrix<T>& a, const Matrix<T>& b) {
  // Blocks of about a megabyte of sums, which stay in the second-level cache, with about equally many rows.
  std::int64_t columns = std::min<std::int64_t>(b.columns, 1024), blocks = (a.rows + 319) / 320;
  std::int64_t rows = (a.rows + blocks - 1) / blocks;
  static constinit ThreadScratch scratch;
  float* sums = scratch.get<float>(rows * columns);
  for (std::int64_t i = 0; i < a.rows; i += rows)
    for (std::int64_t j = 0; j < b.columns; j += columns) {
      Matrix<T> left = a.part(i, std::min(rows, a.rows - i), 0, a.columns);
      Matrix<T> right = b.part(0, b.rows, j, std::min(columns, b.columns - j));
      sum_products(kind, sums, left, right);
      for (std::int64_t row = 0; row < left.rows; ++row) {
        T* to = c + (i + row) * c_stride + j;
        const float* from = sums + row * right.columns;
        narrow_row(to, from, right.columns);
      }
    }
}

// Few rows or columns of halves. Their sums have the order of those of f32, part after part of the long rows of a.
template <class T>
void multiply_few_halves(ProductKind kind, T* c, std::int64_t c_stride, const Matrix<T>& a, const Matrix<T>& b) {
  using Skinny = SkinnyProduct<float, T, false>;
  constexpr std::int64_t longest = 1 << 14;
  static_assert(longest % Gemm<float>::depth_block == 0);
  std::int64_t most_rows = std::min<std::int64_t>(a.rows, 64);
  CachedSpace<float> sums(most_rows * b.columns), wide(most_rows * std::min(a.columns, longest));
  for (std::int64_t first = 0; first < a.rows; first += most_rows) {
    std::int64_t rows = std::min(most_rows, a.rows - first);
    for (std::int64_t k = 0; k < a.columns; k += longest) {
      std::int64_t depth = std::min(longest, a.columns - k);
      for (std::int64_t i = 0; i < rows; ++i)
        widen_row(wide.get() + i * depth, a.at(first + i, k), a.column_stride, depth);
      Matrix<float> left{wide.get(), rows, depth, depth, 1};
      Matrix<T> right = b.part(k, depth, 0, b.columns);
      if (kind == ProductKind::gemv)
        Skinny::multiply(sums.get(), b.columns, left, right, k > 0);
      else
        Skinny::multiply_by_dots(sums.get(), b.columns, left, right, k > 0);
    }
    for (std::int64_t i = 0; i < rows; ++i)
      narrow_row(c + (first + i) * c_stride, sums.get() + i * b.columns, b.columns);
  }
}

// c = a b or, for f32 and f64, c += a b. The type of b differs for few rows only.
template <class T, class B>
void multiply_part(ProductKind kind, T* c, std::int64_t c_stride, const Matrix<T>& a, const Matrix<B>& b, bool adds) {
  if constexpr (!std::is_same_v<T, B>) {
    if (kind == ProductKind::gemv) return SkinnyProduct<T, B>::multiply(c, c_stride, a, b, adds);
    SkinnyProduct<T, B>::multiply_by_dots(c, c_stride, a, b, adds);
  } else if constexpr (std::is_integral_v<T>) {
    multiply_integers(c, c_stride, a, b);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (kind == ProductKind::gemv) return SkinnyProduct<T>::multiply(c, c_stride, a, b, adds);
    if (kind == ProductKind::dot) return SkinnyProduct<T>::multiply_by_dots(c, c_stride, a, b, adds);
    Gemm<T>::multiply(c, c_stride, a, b, adds);
  } else {
    if constexpr (std::is_same_v<T, BFloat16>)
      if (kind == ProductKind::vnni) return Bf16VnniProduct::multiply(c, c_stride, a, b);
    if (kind == ProductKind::gemv || kind == ProductKind::dot) return multiply_few_halves(kind, c, c_stride, a, b);
    multiply_halves(kind, c, c_stride, a, b);
  }
}

// The offset of the n-th matrix of a batch; the batch axes are those of `out`.
std::int64_t offset_of(const View& view, const View& out, std::int64_t n) {
  if (out.rank == 3) return view.rank < 3 || view.dims[0] == 1 ? 0 : n * view.strides[0];
  std::int64_t offset = 0;
  for (int axis = out.rank - 3, own = view.rank - 3; axis >= 0; --axis, --own) {
    std::int64_t index = n % out.dims[axis];
    n /= out.dims[axis];
    if (own >= 0 && view.dims[own] != 1) offset += index * view.strides[own];
  }
  return offset;
}

template <class T>
Matrix<T> matrix_of(const View& view) {
  int last = view.rank - 1;
  return {view.as<T>(), view.dims[last - 1], view.dims[last], view.strides[last - 1], view.strides[last]};
}

// The cost of a product in f32 multiplications in tiles.
template <class T>
double cost_of(ProductKind kind, double rows, double multiplications) {
  switch (kind) {
    case ProductKind::vnni:
    case ProductKind::onednn: return multiplications / 8;
    case ProductKind::scalar: return multiplications * 16;
    // Products of few rows are memory-bound.
    default: return multiplications * (rows <= 4 ? 8 : 1) * (sizeof(T) == 8 ? 2 : 1);
  }
}

// The division of a product among threads: `pieces` of each matrix of the batch, groups of rows or of columns. They
// begin at multiples of a unit, so that each element's bits are those of the whole product.
struct Pieces {
  std::int64_t count, length, unit;

  Pieces(std::int64_t length, std::int64_t unit, double cost)
      : count(std::clamp<std::int64_t>(length / unit, 1,
                                       static_cast<std::int64_t>(std::clamp(cost / part_cost, 1.0, 64.0)))),
        length(length),
        unit(unit) {}
  std::int64_t begin(std::int64_t piece) const {
    return piece == count ? length : length / unit * piece / count * unit;
  }
};

// A product with its algorithm and packed operand, from which any rows or columns can be computed.
template <class T, class B = T>
struct Product {
  ProductKind kind;
  bool adds;
  std::int64_t columns;
  const T* packed = nullptr;  // all of b, if it was packed

  /// c = or += rows `from` to `from + count` of a, times b.
  void of_rows(T* c, const Matrix<T>& a, const Matrix<B>& b, std::int64_t from, std::int64_t count) const {
    Matrix<T> part = a.part(from, count, 0, a.columns);
    if (packed)
      multiply_packed(c + from * columns, part, 0, columns);
    else
      multiply_part(kind, c + from * columns, columns, part, b, adds);
  }
  void of_columns(T* c, const Matrix<T>& a, const Matrix<B>& b, std::int64_t from, std::int64_t count) const {
    if (packed)
      multiply_packed(c + from, a, from, from + count);
    else
      multiply_part(kind, c + from, columns, a, b.part(0, b.rows, from, count), adds);
  }

 private:
  void multiply_packed(T* c, const Matrix<T>& a, std::int64_t begin, std::int64_t end) const {
    if constexpr (std::is_floating_point_v<T>)
      PackedProduct<T>::multiply(c, columns, a, packed, columns, begin, end, adds);
    else if constexpr (std::is_same_v<T, BFloat16>)
      Bf16VnniProduct::multiply(c, columns, a, packed, begin, end);
  }
};

// A whole parameter packed in tiles, or null. A packing that this product needs anyway is kept if the parameter is used
// again.
template <class T>
const T* packed(std::int64_t rows, const Matrix<T>& b, ParameterVersion version) {
  if (!PackedProduct<T>::pays(rows, b)) return nullptr;
  return packed_parameters.get().find<T>(
      {version, b.data, b.rows, b.columns, b.row_stride, b.column_stride, PackedParameters::Form::tiles},
      Gemm<T>::multiplies_in_place(rows, b) ? uses_that_repay : 1, PackedProduct<T>::size(b.rows, b.columns),
      [&](T* to) { PackedProduct<T>::pack(b, to); });
}

// A whole parameter packed in the VNNI layout, or null; kept if the parameter is used again.
const BFloat16* packed_vnni(const Matrix<BFloat16>& b, ParameterVersion version) {
  return packed_parameters.get().find<BFloat16>(
      {version, b.data, b.rows, b.columns, b.row_stride, b.column_stride, PackedParameters::Form::vnni}, 1,
      Bf16VnniProduct::size(b.rows, b.columns), [&](BFloat16* to) { Bf16VnniProduct::pack(b, to); });
}

// A copy of a parameter whose rows are aligned to cache lines.
template <class T>
Matrix<T> aligned(const Matrix<T>& b, ParameterVersion version) {
  constexpr std::int64_t line = 64 / sizeof(T), least = (1 << 14) / sizeof(T), most = (1 << 20) / sizeof(T);
  bool swaps = b.column_stride != 1;
  Matrix<T> rows = swaps ? b.transposed() : b;
  std::int64_t size = rows.rows * rows.columns, step = (rows.columns + line - 1) / line * line;
  if (size < least || size > most ||
      (rows.row_stride % line == 0 && reinterpret_cast<std::uintptr_t>(b.data) % 64 == 0))
    return b;
  const T* found = packed_parameters.get().find<T>(
      {version, rows.data, rows.rows, rows.columns, rows.row_stride, 1, PackedParameters::Form::aligned_rows},
      uses_that_repay, rows.rows * step, [&](T* to) {
        for (std::int64_t row = 0; row < rows.rows; ++row) std::copy_n(rows.at(row, 0), rows.columns, to + row * step);
      });
  if (!found) return b;
  Matrix<T> copy{found, rows.rows, rows.columns, step, 1};
  return swaps ? copy.transposed() : copy;
}

// Divides a product among threads. `a` and `b`: the operands in the order of the matrices.
template <class T, class B>
HWY_INLINE void run_product(const Product<T, B>& product, const View& out, const View& a, const View& b,
                            const Matrix<T>& left, const Matrix<B>& right) {
  ProductKind kind = product.kind;
  std::int64_t rows = left.rows, columns = right.columns, area = rows * columns;
  double cost =
      cost_of<T>(kind, static_cast<double>(rows), static_cast<double>(area) * static_cast<double>(left.columns));
  if (out.rank == 2) {
    if (cost < parallel_cost) return product.of_rows(out.as<T>(), left, right, 0, rows);
  }
  std::int64_t matrices = out.numel / area;
  std::int64_t together_rows = 64, together_columns = 64;
  if (kind == ProductKind::vnni) {
    together_rows = Bf16VnniProduct::rows_together;
    together_columns = Bf16VnniProduct::panel_columns(left.columns);
  }
  bool by_rows = rows * together_columns > columns * together_rows;
  Pieces pieces(by_rows ? rows : columns, by_rows ? together_rows : together_columns, cost);
  std::int64_t jobs = matrices * pieces.count;
  auto work = [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      std::int64_t n = begin / pieces.count, first = begin % pieces.count;
      std::int64_t last = std::min(pieces.count, first + (end - begin));
      begin += last - first;
      std::int64_t from = pieces.begin(first), count = pieces.begin(last) - from;
      Matrix<T> x = left;
      Matrix<B> y = right;
      x.data += offset_of(a, out, n);
      y.data += offset_of(b, out, n);
      T* c = out.as<T>() + n * area;
      by_rows ? product.of_rows(c, x, y, from, count) : product.of_columns(c, x, y, from, count);
    }
  };
  if (cost * static_cast<double>(matrices) < parallel_cost)
    work(0, jobs);
  else
    parallel_for(jobs,
                 std::max(static_cast<std::int64_t>(part_cost * static_cast<double>(pieces.count) / cost),
                          (jobs + parallel::threads() - 1) / parallel::threads()),
                 work);
}

template <class T>
void matmul_typed(const View& out, const View& a, const View& b, bool adds, ParameterVersion version_of_b,
                  bool columns_vary = false) {
  if (out.numel == 0) return;
  Matrix<T> left = matrix_of<T>(a), right = matrix_of<T>(b);
  if (left.columns == 0) {
    if (!adds) std::fill_n(out.as<T>(), out.numel, T{});
    return;
  }
  // A column is a row of the transposed product.
  bool swaps = right.columns == 1 && !columns_vary;
  if (swaps) {
    Matrix<T> row = right.transposed();
    right = left.transposed();
    left = row;
  }
  // A row times a column is the dot that it would be among several rows.
  if (swaps && right.columns == 1)
    right.column_stride = right.rows * std::max<std::int64_t>(std::abs(right.row_stride), 1) + 1;
  ProductKind kind = kind_of(left, right, swaps || columns_vary);
  Product<T> product{kind, adds, right.columns};
  if constexpr (std::is_floating_point_v<T>)
    if (version_of_b.number != 0 && out.rank == 2 && !swaps) {
      if (kind == ProductKind::tiled) product.packed = packed(left.rows, right, version_of_b);
      bool in_place = kind == ProductKind::gemv || (kind == ProductKind::dot && right.row_stride == 1);
      if (in_place) right = aligned(right, version_of_b);
    }
  if constexpr (std::is_same_v<T, BFloat16>)
    if (kind == ProductKind::vnni && version_of_b.number != 0 && out.rank == 2 && !swaps)
      product.packed = packed_vnni(right, version_of_b);
  run_product(product, out, swaps ? b : a, swaps ? a : b, left, right);
}

void matmul_add(const View& sum, const View& a, const View& b, ParameterVersion version_of_b) {
  if (sum.dtype == DType::f32)
    matmul_typed<float>(sum, a, b, true, version_of_b);
  else
    matmul_typed<double>(sum, a, b, true, version_of_b);
}

// A weight W that is rounded to the half H before products. Bits are those of the product with a rounded copy in f32.
template <class H>
class RoundedWeight {
  static constexpr bool is_bf16 = std::is_same_v<H, BFloat16>;
  using Form = PackedParameters::Form;

 public:
  RoundedWeight(const View& W, ParameterVersion version)
      : weight_(matrix_of<float>(W)),
        swaps_(lies_by_columns(weight_)),
        rows_(swaps_ ? weight_.transposed() : weight_),
        version_(version) {}

  void multiply(const View& out, const View& x, const View& W) {
    if (out.numel == 0) return;
    Matrix<float> left = matrix_of<float>(x);
    bool by_copy = left.columns == 0 || weight_.columns == 1 || rows_.column_stride != 1;
    ProductKind kind = by_copy ? ProductKind::scalar : kind_of(left, weight_);
    if (kind == ProductKind::gemv || kind == ProductKind::dot)
      return run_product(Product<float, H>{kind, false, weight_.columns}, out, x, W, left, halves());
    if (kind == ProductKind::tiled && version_.number != 0 && PackedProduct<float>::pays(left.rows, weight_))
      if (const float* packed = tiles())
        return run_product(Product<float>{kind, false, weight_.columns, packed}, out, x, W, left, weight_);
    multiply_by_copy(out, x, W);
  }

 private:
  PackedParameters::Key key(const Matrix<float>& matrix, Form form) const {
    return {version_, matrix.data, matrix.rows, matrix.columns, matrix.row_stride, matrix.column_stride, form};
  }

  // One copy serves W and its transpose: it holds whichever lines are contiguous.
  Matrix<H> halves() {
    constexpr std::int64_t line = 64 / sizeof(H);
    std::int64_t stride = (rows_.columns + line - 1) / line * line, size = rows_.rows * stride;
    auto pack = [&](H* to) {
      for (std::int64_t row = 0; row < rows_.rows; ++row, to += stride) {
        narrow_row(to, rows_.at(row, 0), rows_.columns);
        std::fill(to + rows_.columns, to + stride, H());
      }
    };
    const H* found = nullptr;
    if (version_.number != 0)
      found = rounded_parameters().find<H>(key(rows_, is_bf16 ? Form::bf16_rows : Form::f16_rows), 0, size, pack);
    if (!found) {
      H* room = memory_.get<H>(size);
      pack(room);
      found = room;
    }
    Matrix<H> halves{found, rows_.rows, rows_.columns, stride, 1};
    return swaps_ ? halves.transposed() : halves;
  }

  const float* tiles() const {
    std::int64_t size = PackedProduct<float>::size(weight_.rows, weight_.columns);
    auto pack = [&](float* to) {
      PackedProduct<float>::pack(weight_, to);
      round_row<H>(to, size);
    };
    return rounded_parameters().find<float>(key(weight_, is_bf16 ? Form::bf16_tiles : Form::f16_tiles), 0, size, pack);
  }

  void multiply_by_copy(const View& out, const View& x, const View& W) {
    float* all = memory_.get<float>(std::max<std::int64_t>(rows_.rows * rows_.columns, 1));
    for (std::int64_t row = 0; row < rows_.rows; ++row) {
      float* to = all + row * rows_.columns;
      for (std::int64_t column = 0; column < rows_.columns; ++column) to[column] = *rows_.at(row, column);
      round_row<H>(to, rows_.columns);
    }
    std::int64_t strides[2] = {rows_.columns, 1};
    if (swaps_) std::swap(strides[0], strides[1]);
    View copy = W;
    copy.data = all;
    copy.strides = strides;
    copy.contiguous = !swaps_;
    matmul_typed<float>(out, x, copy, false, {});
  }

  Matrix<float> weight_;
  bool swaps_;
  Matrix<float> rows_;
  ParameterVersion version_;
  Scratch memory_;
};

void weight_product(const View& out, const View& x, const View& W, DType weight_dtype,
                    ParameterVersion version_of_weight) {
  if (weight_dtype == DType::bf16)
    RoundedWeight<BFloat16>(W, version_of_weight).multiply(out, x, W);
  else
    RoundedWeight<Float16>(W, version_of_weight).multiply(out, x, W);
}

}  // namespace

void matmul(const View& out, const View& a, const View& b, ParameterVersion version_of_b) {
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) { matmul_typed<T>(out, a, b, false, version_of_b); });
}

void matmul_columns(const View& out, const View& a, const View& b) {
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) { matmul_typed<T>(out, a, b, false, {}, true); });
}

void fill_matmul(KernelTable& table) {
  table.matmul = matmul;
  table.matmul_add = matmul_add;
  table.weight_product = weight_product;
}

}  // namespace reel::detail::inline REEL_TARGET
