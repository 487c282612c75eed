#include "../../../lib/kernels/attention.h"

#include <cmath>
#include <limits>

#include "../../device/launch.h"
#include "../../runtime/cuda_kernels.h"
#include "product.h"

// Attention as matrix products, for as many heads or queries at a time as have scores that fit in a limited memory.

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

// The backward pass needs twice as much, which stays in the second-level cache of an H100.
constexpr std::int64_t most_score_bytes = std::int64_t{1} << 24;

template <class T>
REEL_DEVICE T larger_or_nan(T a, T b) {
  return b > a || b != b ? b : a;
}

/// A range of queries of a range of heads.
template <class T>
struct QueryRows {
  std::int64_t first_head, first_query, rows;  // rows of each head
  std::int64_t queries, keys;                  // of each head
  const T* mask;
  bool one_mask, causal;
  T scale;

  REEL_DEVICE std::int64_t head_of(std::int64_t i) const { return first_head + i / rows; }
  REEL_DEVICE std::int64_t query_of(std::int64_t i) const { return first_query + i % rows; }
  /// The index of a row among those of all heads.
  REEL_DEVICE std::int64_t place_of(std::int64_t i) const { return head_of(i) * queries + query_of(i); }
  /// The number of keys to which a query attends; these are the first ones.
  REEL_DEVICE std::int64_t visible(std::int64_t i) const {
    return causal && query_of(i) + 1 < keys ? query_of(i) + 1 : keys;
  }
  REEL_DEVICE T scaled(T score, std::int64_t i, std::int64_t key) const {
    score *= scale;
    if (!mask) return score;
    return score + mask[((one_mask ? 0 : head_of(i)) * queries + query_of(i)) * keys + key];
  }
};

/// Converts scores to weights, and stores their normalisers.
template <class T>
struct WeighForward {
  T *scores, *normalisers;
  QueryRows<T> given;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    std::int64_t i = group.index(), visible = given.visible(i);
    T* row = scores + i * given.keys;
    auto partial = group.template per_thread<T>();
    group.each([&](int thread) {
      T largest = lowest;
      for (std::int64_t key = thread; key < visible; key += group.size()) {
        row[key] = given.scaled(row[key], i, key);
        largest = larger_or_nan(largest, row[key]);
      }
      partial[thread] = largest;
    });
    T largest = group.reduce(partial, [](T a, T b) { return larger_or_nan(a, b); });
    bool none = largest == lowest;
    group.each([&](int thread) {
      T sum = 0;
      for (std::int64_t key = thread; key < visible && !none; key += group.size()) {
        row[key] = std::exp(row[key] - largest);
        sum += row[key];
      }
      partial[thread] = sum;
    });
    T sum = group.reduce(partial, [](T a, T b) { return a + b; });
    T inverse = none ? T(0) : 1 / sum;
    group.each([&](int thread) {
      for (std::int64_t key = thread; key < given.keys; key += group.size())
        row[key] = none || key >= visible ? T(0) : row[key] * inverse;
      if (thread > 1) return;
      normalisers[2 * given.place_of(i) + thread] = thread == 1 ? inverse : none ? T(0) : largest;
    });
  }
};

/// Converts scores to weights P, and d vᵀ to scale P (d vᵀ − Σ d y).
template <class T>
struct WeighBackward {
  T *weights, *slopes;
  const T *gradient, *y, *normalisers;
  std::int64_t width;
  QueryRows<T> given;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    std::int64_t i = group.index(), visible = given.visible(i), place = given.place_of(i);
    auto partial = group.template per_thread<double>();
    group.each([&](int thread) {
      double sum = 0;
      for (std::int64_t j = thread; j < width; j += group.size())
        sum += static_cast<double>(gradient[place * width + j]) * static_cast<double>(y[place * width + j]);
      partial[thread] = sum;
    });
    T inner = static_cast<T>(group.reduce(partial, [](double a, double b) { return a + b; }));
    T largest = normalisers[2 * place], inverse = normalisers[2 * place + 1];
    group.each([&](int thread) {
      for (std::int64_t key = thread; key < given.keys; key += group.size()) {
        T &weight = weights[i * given.keys + key], &slope = slopes[i * given.keys + key];
        bool seen = key < visible;
        weight = seen ? std::exp(given.scaled(weight, i, key) - largest) * inverse : T(0);
        slope = seen ? weight * (slope - inner) * given.scale : T(0);
      }
    });
  }
};

/// Contiguous matrices, from row `first_row` on of each.
struct MatrixBatch {
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
  MatrixBatch(const MatrixBatch&) = delete;
  MatrixBatch& operator=(const MatrixBatch&) = delete;

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
    std::int64_t rows = most / row > 1 ? most / row : 1;
    rows_ = rows < queries_ ? rows : queries_;
    head_block_ = rows_ < queries_ || queries_ == 0 ? 1 : rows / queries_;
    if (head_block_ > heads_) head_block_ = heads_;
  }

  void forward(T* y, T* normalisers) const {
    if (queries_ == 0 || heads_ == 0) return;
    Scratch scores(score_bytes());
    for_each_block([&](std::int64_t head, std::int64_t count, std::int64_t query, std::int64_t rows) {
      MatrixBatch weights(scores.as<T>(), count, rows, keys_, rows, dtype_);
      multiply_by_keys(weights.view, head, count, query, rows);
      for_each_group(count * rows, threads_for_row(keys_), 0,
                     WeighForward<T>{scores.as<T>(), normalisers, some_rows(head, query, rows)});
      multiply(rows_of(y, width_, head, count, query, rows).view, weights.view,
               all_of(values(), width_, head, count).view, false);
    });
  }

  struct Gradients {
    T *queries, *keys, *values;
    const T *of_y, *y, *normalisers;
  };

  // With P the weights: dv = Pᵀ d,  ds = P (d vᵀ − Σ d y),  dq = scale ds k,  dk = scale dsᵀ q
  void backward(const Gradients& all) const {
    if (queries_ == 0 || heads_ == 0) {
      fill_with_zeros(all.keys, sizeof(T) * static_cast<std::size_t>(heads_ * keys_ * depth_));
      fill_with_zeros(all.values, sizeof(T) * static_cast<std::size_t>(heads_ * keys_ * width_));
      return;
    }
    Scratch scores(score_bytes()), products(score_bytes());
    for_each_block([&](std::int64_t head, std::int64_t count, std::int64_t query, std::int64_t rows) {
      MatrixBatch weights(scores.as<T>(), count, rows, keys_, rows, dtype_);
      MatrixBatch slopes(products.as<T>(), count, rows, keys_, rows, dtype_);
      multiply_by_keys(weights.view, head, count, query, rows);
      MatrixBatch d = rows_of(all.of_y, width_, head, count, query, rows);
      multiply(slopes.view, d.view, all_of(values(), width_, head, count).transposed(), false);
      for_each_group(count * rows, threads_for_row(keys_), 0,
                     WeighBackward<T>{scores.as<T>(), products.as<T>(), all.of_y, all.y, all.normalisers, width_,
                                      some_rows(head, query, rows)});
      multiply(rows_of(all.queries, depth_, head, count, query, rows).view, slopes.view,
               all_of(keys(), depth_, head, count).view, false);
      bool adds = query > 0;
      multiply(all_of(all.values, width_, head, count).view, weights.transposed(), d.view, adds);
      multiply(all_of(all.keys, depth_, head, count).view, slopes.transposed(),
               rows_of(queries(), depth_, head, count, query, rows).view, adds);
    });
  }

 private:
  const T* queries() const { return given_.queries.as<T>(); }
  const T* keys() const { return given_.keys.as<T>(); }
  const T* values() const { return given_.values.as<T>(); }
  std::size_t score_bytes() const {
    return sizeof(T) * static_cast<std::size_t>(head_block_ * rows_ * (keys_ > 0 ? keys_ : 1));
  }

  // A block with several heads has all of their queries.
  template <class F>
  void for_each_block(F f) const {
    for (std::int64_t head = 0; head < heads_; head += head_block_)
      for (std::int64_t query = 0; query < queries_; query += rows_)
        f(head, heads_ - head < head_block_ ? heads_ - head : head_block_, query,
          queries_ - query < rows_ ? queries_ - query : rows_);
  }

  template <class Element>
  MatrixBatch rows_of(Element* all, std::int64_t width, std::int64_t head, std::int64_t count, std::int64_t query,
                      std::int64_t rows) const {
    return {all + (head * queries_ + query) * width, count, rows, width, queries_, dtype_};
  }
  template <class Element>
  MatrixBatch all_of(Element* all, std::int64_t width, std::int64_t head, std::int64_t count) const {
    return {all + head * keys_ * width, count, keys_, width, keys_, dtype_};
  }
  void multiply_by_keys(const View& scores, std::int64_t head, std::int64_t count, std::int64_t query,
                        std::int64_t rows) const {
    multiply(scores, rows_of(queries(), depth_, head, count, query, rows).view,
             all_of(keys(), depth_, head, count).transposed(), false);
  }
  QueryRows<T> some_rows(std::int64_t head, std::int64_t query, std::int64_t rows) const {
    const View* mask = given_.mask;
    return {head,
            query,
            rows,
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

}  // namespace REEL_TARGET
}  // namespace reel::detail
