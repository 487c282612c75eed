#include "../../../lib/kernels/attention.h"

#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "../../device/launch.h"
#include "../../device/packed_row.h"
#include "../../device/split.h"
#include "../../runtime/cuda_kernels.h"
#include "../rows/aligned_view.h"
#include "../rows/exponents.h"
#include "product.h"

// Attention as matrix products, for as many heads or queries at a time as have scores that fit in a limited memory. If it
// is causal, long sequences are also divided into tiles of queries, whose products are over the keys that the last of
// these sees: with n tiles of as many queries as keys, (n + 1) / 2n of all products.

namespace reel::detail::inline REEL_TARGET {
namespace {

// The backward pass needs twice as much, which stays in the second-level cache of an H100.
constexpr std::int64_t most_score_bytes = std::int64_t{1} << 24;

/// A range of queries of a range of heads, with the scores of their first keys.
template <class T>
struct QueryRows {
  std::int64_t first_head, first_query;
  Split by_rows;                        // of a row's index: into head and query of this range
  std::int64_t columns, queries, keys;  // scores of a row; queries and keys of each head
  const T* mask;
  bool one_mask, causal;
  T scale;
};

/// A row of scores in packs.
template <class T, int lanes>
struct QueryRow {
  std::int64_t place;    // among the rows of all heads
  std::int64_t visible;  // the number of keys to which the query attends; these are the first ones
  const T* mask;         // null if there is none
  T scale;

  REEL_DEVICE QueryRow(const QueryRows<T>& rows, std::int64_t i) : scale(rows.scale) {
    Split::Parts found = rows.by_rows(i);
    std::int64_t head = rows.first_head + found.whole, query = rows.first_query + found.rest;
    place = head * rows.queries + query;
    visible = rows.causal && query + 1 < rows.columns ? query + 1 : rows.columns;
    mask = rows.mask ? rows.mask + (rows.one_mask ? query : place) * rows.keys : nullptr;
  }
  /// The scores of pack p of a row of products, −∞ for keys that are not seen.
  REEL_DEVICE Pack<T, lanes> scores(const T* products, std::int64_t p) const {
    Pack<T, lanes> found;
    for (T& each : found.element) each = -std::numeric_limits<T>::infinity();
    if (p * lanes >= visible) return found;
    Pack<T, lanes> given = load_pack<lanes>(products, p), added{};
    if (mask) added = load_pack<lanes>(mask, p);
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane)
      if (p * lanes + lane < visible)
        found.element[lane] = mask ? given.element[lane] * scale + added.element[lane] : given.element[lane] * scale;
    return found;
  }
};

/// Converts scores to weights, and stores their normalisers. Bound: scores are read once and written once, if the row is one
/// chunk.
template <class T, int lanes>
struct WeighForward {
  T *scores, *normalisers;
  QueryRows<T> given;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    QueryRow<T, lanes> query(given, group.index());
    T* row = scores + group.index() * given.columns;
    PackLoop<lanes> loop(0, given.columns / lanes, group.size());
    auto kept = group.template per_thread<KeptPacks<T, lanes>>();
    Exponents<T> all =
        exponents_of_row<lanes, T>(group, loop, kept, [&](std::int64_t p) { return query.scores(row, p); });
    bool none = all.largest == -std::numeric_limits<T>::infinity();
    T largest = none ? T(0) : all.largest, inverse = none ? T(0) : 1 / all.sum;
    group.each([&](int thread) {
      KeptPacks<T, lanes>& own = kept[thread];
      loop.run(
          1, thread, [&](int k, std::int64_t p) { own.of[k] = query.scores(row, p); },
          [&](int k, std::int64_t p) {
            Pack<T, lanes> result;
#pragma unroll
            for (int lane = 0; lane < lanes; ++lane)
              result.element[lane] = p * lanes + lane < query.visible && !none
                                         ? std::exp(own.of[k].element[lane] - largest) * inverse
                                         : T(0);
            store_pack<lanes>(row, p, result);
          });
      if (thread < 2) normalisers[2 * query.place + thread] = thread == 1 ? inverse : largest;
    });
  }
};

/// Converts scores to weights P, and d vᵀ to scale P (d vᵀ − Σ d y). Bound: both are read once and written once.
template <class T, int lanes>
struct WeighBackward {
  T *weights, *slopes;
  const T *gradient, *y, *normalisers;
  std::int64_t width;
  QueryRows<T> given;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    QueryRow<T, lanes> query(given, group.index());
    const T *own_gradient = gradient + query.place * width, *own_y = y + query.place * width;
    auto partial = group.template per_thread<double>();
    group.each([&](int thread) {
      double sum = 0;
      for (std::int64_t j = thread; j < width; j += group.size())
        sum += static_cast<double>(own_gradient[j]) * static_cast<double>(own_y[j]);
      partial[thread] = sum;
    });
    T inner = static_cast<T>(group.reduce(partial, [](double a, double b) { return a + b; }));
    T largest = normalisers[2 * query.place], inverse = normalisers[2 * query.place + 1];
    T *own_weights = weights + group.index() * given.columns, *own_slopes = slopes + group.index() * given.columns;
    PackLoop<lanes> loop(0, given.columns / lanes, group.size());
    group.each([&](int thread) {
      KeptPacks<T, lanes> scores, of_d;
      loop.run(
          0, thread,
          [&](int k, std::int64_t p) {
            scores.of[k] = query.scores(own_weights, p);
            of_d.of[k] = load_pack<lanes>(own_slopes, p);
          },
          [&](int k, std::int64_t p) {
            Pack<T, lanes> weight, slope;
#pragma unroll
            for (int lane = 0; lane < lanes; ++lane) {
              bool seen = p * lanes + lane < query.visible;
              weight.element[lane] = seen ? std::exp(scores.of[k].element[lane] - largest) * inverse : T(0);
              slope.element[lane] =
                  seen ? weight.element[lane] * (of_d.of[k].element[lane] - inner) * given.scale : T(0);
            }
            store_pack<lanes>(own_weights, p, weight);
            store_pack<lanes>(own_slopes, p, slope);
          });
    });
  }
};

/// Contiguous matrices, from row `first_row` on of each.
struct MatrixBatch : private Immovable {
  std::int64_t dims[3], strides[3];
  View view;

  template <class T>
  MatrixBatch(T* data, std::int64_t count, std::int64_t rows, std::int64_t columns, std::int64_t all_rows, DType dtype)
      : dims{count, rows, columns},
        strides{all_rows * columns, columns, 1},
        view{const_cast<void*>(static_cast<const void*>(data)),
             dims,
             strides,
             count * rows * columns,
             3,
             dtype,
             count == 1 || rows == all_rows} {}

  /// Transposes the view in place; may be called once.
  const View& transposed() {
    for (std::int64_t* sizes : {dims, strides}) {
      std::int64_t rows = sizes[1];
      sizes[1] = sizes[2];
      sizes[2] = rows;
    }
    view.contiguous = false;
    return view;
  }
};

template <class T>
class Attention {
 public:
  explicit Attention(const Attended& given)
      : given_(given),
        dtype_(given.queries.dtype),
        heads_(given.queries.dims[0]),
        queries_(given.queries.dims[1]),
        keys_(given.keys.dims[1]),
        depth_(given.queries.dims[2]),
        width_(given.values.dims[2]) {
    std::int64_t most = most_score_bytes / static_cast<std::int64_t>(sizeof(T)), row = keys_ > 0 ? keys_ : 1;
    std::int64_t fit = most / row > 1 ? most / row : 1;
    rows_ = fit < queries_ ? fit : queries_;
    std::int64_t tiles = given.causal ? tiles_of(heads_, queries_, keys_) : 1;
    is_tiled_ = tiles > 1;
    if (is_tiled_) {
      std::int64_t tile = rounded_up((queries_ + tiles - 1) / tiles), whole = fit / row_unit * row_unit;
      rows_ = tile < whole ? tile : whole;
    }
    head_block_ = is_tiled_ || rows_ == queries_ ? fit / (rows_ > 0 ? rows_ : 1) : 1;
    if (head_block_ > heads_) head_block_ = heads_;
    if (given.mask) mask_.emplace(*given.mask, keys_ % full_lanes<T> == 0 ? full_lanes<T> : 1);
  }

  void forward(T* y, T* normalisers) const {
    if (queries_ == 0 || heads_ == 0) return;
    Scratch scores(score_bytes());
    for_each_block([&](const Block& block) {
      MatrixBatch weights(scores.as<T>(), block.heads, block.rows, block.keys, block.rows, dtype_);
      multiply_by_keys(weights.view, block);
      weigh(block, [&]<int lanes>(std::integral_constant<int, lanes>) {
        return WeighForward<T, lanes>{scores.as<T>(), normalisers, some_rows(block)};
      });
      multiply(rows_of(y, width_, block).view, weights.view, keys_of(values(), width_, block).view, false);
    });
  }

  struct Gradients {
    T *queries, *keys, *values;
    const T *of_y, *y, *normalisers;
  };

  // With P the weights: dv = Pᵀ d,  ds = P (d vᵀ − Σ d y),  dq = scale ds k,  dk = scale dsᵀ q
  void backward(const Gradients& all) const {
    // Keys that no query sees have gradients of 0.
    if (queries_ == 0 || heads_ == 0 || (is_tiled_ && queries_ < keys_)) {
      fill_with_zeros(all.keys, sizeof(T) * static_cast<std::size_t>(heads_ * keys_ * depth_));
      fill_with_zeros(all.values, sizeof(T) * static_cast<std::size_t>(heads_ * keys_ * width_));
    }
    if (queries_ == 0 || heads_ == 0) return;
    Scratch scores(score_bytes()), products(score_bytes());
    for_each_block([&](const Block& block) {
      MatrixBatch weights(scores.as<T>(), block.heads, block.rows, block.keys, block.rows, dtype_);
      MatrixBatch slopes(products.as<T>(), block.heads, block.rows, block.keys, block.rows, dtype_);
      multiply_by_keys(weights.view, block);
      MatrixBatch d = rows_of(all.of_y, width_, block);
      multiply(slopes.view, d.view, keys_of(values(), width_, block).transposed(), false);
      weigh(block, [&]<int lanes>(std::integral_constant<int, lanes>) {
        return WeighBackward<T, lanes>{scores.as<T>(),  products.as<T>(), all.of_y,        all.y,
                                       all.normalisers, width_,           some_rows(block)};
      });
      multiply(rows_of(all.queries, depth_, block).view, slopes.view, keys_of(keys(), depth_, block).view, false);
      multiply(keys_of(all.values, width_, block).view, weights.transposed(), d.view, !block.is_first);
      multiply(keys_of(all.keys, depth_, block).view, slopes.transposed(), rows_of(queries(), depth_, block).view,
               !block.is_first);
    });
  }

 private:
  const T* queries() const { return given_.queries.as<T>(); }
  const T* keys() const { return given_.keys.as<T>(); }
  const T* values() const { return given_.values.as<T>(); }
  std::size_t score_bytes() const {
    return sizeof(T) * static_cast<std::size_t>(head_block_ * rows_ * (keys_ > 0 ? keys_ : 1));
  }

  // Queries of some heads, with the first keys of these.
  struct Block {
    std::int64_t head, heads, query, rows, keys;
    bool is_first;  // of its heads
  };

  // Tiles of queries begin at multiples of 64, so that the rows of their scores are aligned.
  static constexpr std::int64_t row_unit = 64;
  static std::int64_t rounded_up(std::int64_t rows) { return (rows + row_unit - 1) / row_unit * row_unit; }
  // More tiles skip more, but have more launches: each has 256 queries or more, and at least 2²⁰ scores.
  static std::int64_t tiles_of(std::int64_t heads, std::int64_t queries, std::int64_t keys) {
    constexpr std::int64_t most = 8, least_rows = 256, least_scores = std::int64_t{1} << 20;
    if (keys > most_score_bytes / (row_unit * static_cast<std::int64_t>(sizeof(T)))) return 1;
    std::int64_t by_rows = queries / least_rows, by_scores = heads * queries * keys / least_scores;
    std::int64_t tiles = by_rows < by_scores ? by_rows : by_scores;
    return tiles < most ? tiles : most;
  }

  // From the last queries to the first: those before see no more keys, so that the first block of some heads writes the
  // gradients of all keys to which the others add.
  template <class F>
  void for_each_block(F f) const {
    for (std::int64_t head = 0; head < heads_; head += head_block_)
      for (std::int64_t end = queries_; end > 0;) {
        std::int64_t query = (end - 1) / rows_ * rows_;
        std::int64_t heads = heads_ - head < head_block_ ? heads_ - head : head_block_;
        f(Block{head, heads, query, end - query, is_tiled_ && end < keys_ ? end : keys_, end == queries_});
        end = query;
      }
  }

  template <class Element>
  MatrixBatch rows_of(Element* all, std::int64_t width, const Block& block) const {
    return {all + (block.head * queries_ + block.query) * width, block.heads, block.rows, width, queries_, dtype_};
  }
  template <class Element>
  MatrixBatch keys_of(Element* all, std::int64_t width, const Block& block) const {
    return {all + block.head * keys_ * width, block.heads, block.keys, width, keys_, dtype_};
  }
  void multiply_by_keys(const View& scores, const Block& block) const {
    multiply(scores, rows_of(queries(), depth_, block).view, keys_of(keys(), depth_, block).transposed(), false);
  }
  // Runs a program for each row of a block; program(std::integral_constant<int, lanes>()) makes it.
  template <class Program>
  void weigh(const Block& block, const Program& program) const {
    auto launch = [&]<int lanes>(std::integral_constant<int, lanes> size) {
      for_each_group(block.heads * block.rows, threads_for_packs(block.keys / lanes, lanes), 0, program(size));
    };
    // Rows of the mask, of all keys, have the packs of those of scores.
    if (given_.mask && keys_ % full_lanes<T> != 0) return launch(std::integral_constant<int, 1>());
    with_lanes<T>(block.keys, launch);
  }
  QueryRows<T> some_rows(const Block& block) const {
    const View* mask = mask_ ? &mask_->view() : nullptr;
    return {block.head,
            block.query,
            Split(block.rows, block.heads * block.rows),
            block.keys,
            queries_,
            keys_,
            mask ? mask->as<T>() : nullptr,
            mask && mask->dims[0] == 1,
            given_.causal,
            static_cast<T>(given_.scale)};
  }

  const Attended& given_;
  DType dtype_;
  std::int64_t heads_, queries_, keys_, depth_, width_;
  std::int64_t rows_, head_block_;  // of a block
  bool is_tiled_;
  std::optional<AlignedView> mask_;
};

void forward(const View& y, const View& normalisers, const Attended& given) {
  if (y.dtype == DType::f64)
    Attention<double>(given).forward(y.as<double>(), normalisers.as<double>());
  else
    Attention<float>(given).forward(y.as<float>(), normalisers.as<float>());
}

template <class T>
typename Attention<T>::Gradients gradients_of(const View& by_queries, const View& by_keys, const View& by_values,
                                              const View& gradient, const View& y, const View& normalisers) {
  return {by_queries.as<T>(), by_keys.as<T>(), by_values.as<T>(), gradient.as<T>(), y.as<T>(), normalisers.as<T>()};
}

void backward(const View& by_queries, const View& by_keys, const View& by_values, const View& gradient, const View& y,
              const View& normalisers, const Attended& given) {
  if (y.dtype == DType::f64)
    Attention<double>(given).backward(gradients_of<double>(by_queries, by_keys, by_values, gradient, y, normalisers));
  else
    Attention<float>(given).backward(gradients_of<float>(by_queries, by_keys, by_values, gradient, y, normalisers));
}

}  // namespace

void fill_attention(KernelTable& table) {
  static constexpr AttentionKernels kernels{.forward = forward, .backward = backward};
  table.attention = &kernels;
}

}  // namespace reel::detail::inline REEL_TARGET
