#include "../../../kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "../../../core/threads/parallel.h"
#include "../instruction_set.h"
#include "../reduce/row_exponentials.h"
#include "element_product.h"
#include "gemm.h"
#include "skinny_product.h"

// Attention in blocks of queries and keys whose scores stay in the second-level cache, with a running normaliser.
// Source: Dao et al., FlashAttention: fast and memory-efficient exact attention with IO-awareness (2022).

namespace reel::detail::inline REEL_TARGET {
namespace {

// Queries of a block. With a causal mask, smaller blocks skip more keys.
constexpr std::int64_t most_queries = 256, most_causal_queries = 64;
constexpr std::int64_t most_keys = 512;

constinit ThreadScratch attention_scratch;

template <class T>
class Attention {
 public:
  using V = Vector<T>;

  explicit Attention(const Attended& given)
      : given_(given),
        heads_(given.queries.dims[0]),
        queries_(given.queries.dims[1]),
        keys_(given.keys.dims[1]),
        depth_(given.queries.dims[2]),
        width_(given.values.dims[2]),
        block_(std::min(queries_, given.causal ? most_causal_queries : most_queries)),
        key_block_(std::min(keys_, most_keys)),
        scale_(static_cast<T>(given.scale)) {}

  void forward(T* y, T* normalisers) const {
    if (queries_ == 0) return;
    std::int64_t blocks = (queries_ + block_ - 1) / block_;
    parallel_for(heads_ * blocks, parts_at_least(2 * block_), [&](std::int64_t begin, std::int64_t end) {
      T* scratch = attention_scratch.get<T>(block_ * key_block_ + block_ * width_ + 3 * block_);
      for (std::int64_t part = begin; part < end; ++part) {
        std::int64_t head = part / blocks, query = part % blocks * block_, count = std::min(block_, queries_ - query);
        std::int64_t place = head * queries_ + query;
        forward_block(head, query, count, y + place * width_, normalisers + 2 * place, scratch);
      }
    });
  }

  struct Gradients {
    T *queries, *keys, *values;
    const T *of_y, *y, *normalisers;
  };

  void backward(const Gradients& all) const {
    parallel_for(heads_, parts_at_least(5 * queries_), [&](std::int64_t begin, std::int64_t end) {
      std::int64_t scores = block_ * key_block_, product = std::max(block_, key_block_) * std::max(depth_, width_);
      T* scratch = attention_scratch.get<T>(2 * scores + product + queries_);
      for (std::int64_t head = begin; head < end; ++head) {
        Gradients own = all;
        own.queries += head * queries_ * depth_;
        own.keys += head * keys_ * depth_;
        own.values += head * keys_ * width_;
        own.of_y += head * queries_ * width_;
        own.y += head * queries_ * width_;
        own.normalisers += 2 * head * queries_;
        backward_head(head, own, scratch, scratch + scores, scratch + 2 * scores, scratch + 2 * scores + product);
      }
    });
  }

 private:
  std::int64_t parts_at_least(std::int64_t rows) const {
    // Some thirty multiplications take a nanosecond.
    std::int64_t cost = 1 + rows * keys_ * (depth_ + width_ + 16) / 32;
    return std::max<std::int64_t>(1, 4 * parallel_grain / cost);
  }

  static Matrix<T> matrix(const T* data, std::int64_t rows, std::int64_t columns) {
    return {data, rows, columns, columns, 1};
  }
  Matrix<T> some_queries(std::int64_t head, std::int64_t query, std::int64_t count) const {
    return matrix(given_.queries.as<T>() + (head * queries_ + query) * depth_, count, depth_);
  }
  Matrix<T> some_keys(std::int64_t head, std::int64_t key, std::int64_t count) const {
    return matrix(given_.keys.as<T>() + (head * keys_ + key) * depth_, count, depth_);
  }
  Matrix<T> some_values(std::int64_t head, std::int64_t key, std::int64_t count) const {
    return matrix(given_.values.as<T>() + (head * keys_ + key) * width_, count, width_);
  }
  const T* mask_row(std::int64_t head, std::int64_t query) const {
    if (!given_.mask) return nullptr;
    return given_.mask->as<T>() + ((given_.mask->dims[0] == 1 ? 0 : head) * queries_ + query) * keys_;
  }
  // The number of keys in [key, key + count) that the query attends to; these are the first ones.
  std::int64_t seen(std::int64_t query, std::int64_t key, std::int64_t count) const {
    return given_.causal ? std::clamp<std::int64_t>(query + 1 - key, 0, count) : count;
  }
  std::int64_t keys_seen(std::int64_t last_query) const { return seen(last_query, 0, keys_); }

  // c = a b, also if the inner size is 0. With few queries or keys packing takes longer than the product.
  static void multiply(T* c, const Matrix<T>& a, const Matrix<T>& b) {
    using Skinny = SkinnyProduct<T>;
    bool few = a.rows <= Skinny::most_rows;
    if (a.columns == 0 || a.rows == 0 || b.columns == 0)
      std::fill_n(c, a.rows * b.columns, T(0));
    else if (a.rows * a.columns * b.columns <= 32 || (a.columns < 8 && b.columns <= 4))
      multiply_elements(c, a, b);
    else if (few && b.column_stride == 1)
      Skinny::multiply(c, b.columns, a, b, false);
    else if ((few || b.columns <= Skinny::most_rows) && b.row_stride == 1 && a.columns >= 8)
      Skinny::multiply_by_dots(c, b.columns, a, b, false);
    else
      Gemm<T>::multiply(c, b.columns, a, b);
  }
  // c = or += a b.
  static void add_product(bool adds, T* c, const Matrix<T>& a, const Matrix<T>& b, T* product) {
    if (!adds) return multiply(c, a, b);
    multiply(product, a, b);
    for (std::int64_t i = 0; i < a.rows * b.columns; ++i) c[i] += product[i];
  }

  void scale_scores(T* row, const T* mask, std::int64_t count) const {
    if (mask)
      for (std::int64_t j = 0; j < count; ++j) row[j] = row[j] * scale_ + mask[j];
    else
      for (std::int64_t j = 0; j < count; ++j) row[j] *= scale_;
  }

  // e^(row − most) in place; returns the sum.
  static T exponentials(T* row, std::int64_t count, T most) {
    V shift = V::repeat(most), sum = V::repeat(0);
    std::int64_t j = 0;
    for (; j + V::lanes <= count; j += V::lanes) {
      V p = exp_below(V::load(row + j) - shift);
      p.store(row + j);
      sum = sum + p;
    }
    if (j < count) {
      V p = exp_below(load_or_lowest(row + j, count - j) - shift);
      p.store(row + j, count - j);
      sum = sum + p;
    }
    return sum_of_lanes(sum);
  }

  void forward_block(std::int64_t head, std::int64_t query, std::int64_t count, T* y, T* normalisers,
                     T* scratch) const {
    T *scores = scratch, *product = scores + block_ * key_block_, *most = product + block_ * width_;
    T *sums = most + block_, *factors = sums + block_;
    std::fill_n(most, count, -infinity<T>);
    std::fill_n(sums, count, T(0));
    std::int64_t end = keys_seen(query + count - 1);
    if (end == 0) std::fill_n(y, count * width_, T(0));
    for (std::int64_t key = 0; key < end; key += key_block_) {
      std::int64_t here = std::min(key_block_, end - key);
      multiply(scores, some_queries(head, query, count), some_keys(head, key, here).transposed());
      for (std::int64_t i = 0; i < count; ++i) {
        T* row = scores + i * here;
        std::int64_t visible = seen(query + i, key, here);
        const T* mask = mask_row(head, query + i);
        scale_scores(row, mask ? mask + key : nullptr, visible);
        T before = most[i], largest = largest_of(row, visible);
        if (largest > before || largest != largest) most[i] = largest;
        bool none = most[i] == -infinity<T>;
        factors[i] = before == -infinity<T> || before == most[i] ? T(1) : std::exp(before - most[i]);
        T sum = none ? T(0) : exponentials(row, visible, most[i]);
        sums[i] = sums[i] * factors[i] + sum;
        std::fill(none ? row : row + visible, row + here, T(0));
      }
      T* to = key == 0 ? y : product;
      multiply(to, matrix(scores, count, here), some_values(head, key, here));
      if (key == 0) continue;
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t j = 0; j < width_; ++j)
          y[i * width_ + j] = y[i * width_ + j] * factors[i] + product[i * width_ + j];
    }
    for (std::int64_t i = 0; i < count; ++i) {
      bool none = sums[i] == 0;
      T inverse = none ? T(0) : 1 / sums[i];
      for (std::int64_t j = 0; j < width_; ++j) y[i * width_ + j] *= inverse;
      normalisers[2 * i] = none ? T(0) : most[i];
      normalisers[2 * i + 1] = inverse;
    }
  }

  // With P the weights: dv = Pᵀ d,  ds = P (d vᵀ − Σ d y),  dq = scale ds k,  dk = scale dsᵀ q
  void backward_head(std::int64_t head, const Gradients& own, T* weights, T* slopes, T* product, T* inner) const {
    for (std::int64_t i = 0; i < queries_; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < width_; ++j)
        sum += static_cast<double>(own.of_y[i * width_ + j]) * static_cast<double>(own.y[i * width_ + j]);
      inner[i] = static_cast<T>(sum);
    }
    if (keys_ == 0) std::fill_n(own.queries, queries_ * depth_, T(0));
    for (std::int64_t key = 0; key < keys_; key += key_block_) {
      std::int64_t here = std::min(key_block_, keys_ - key);
      bool adds = false;
      for (std::int64_t query = 0; query < queries_; query += block_) {
        std::int64_t count = std::min(block_, queries_ - query);
        if (seen(query + count - 1, key, here) == 0) continue;
        Matrix<T> q = some_queries(head, query, count), k = some_keys(head, key, here),
                  v = some_values(head, key, here);
        Matrix<T> d = matrix(own.of_y + query * width_, count, width_);
        multiply(weights, q, k.transposed());
        multiply(slopes, d, v.transposed());
        for (std::int64_t i = 0; i < count; ++i) {
          const T* mask = mask_row(head, query + i);
          weigh(weights + i * here, slopes + i * here, seen(query + i, key, here), here, mask ? mask + key : nullptr,
                own.normalisers + 2 * (query + i), inner[query + i]);
        }
        Matrix<T> p = matrix(weights, count, here), s = matrix(slopes, count, here);
        add_product(adds, own.values + key * width_, p.transposed(), d, product);
        add_product(adds, own.keys + key * depth_, s.transposed(), q, product);
        add_product(key > 0, own.queries + query * depth_, s, k, product);
        adds = true;
      }
      if (adds) continue;
      std::fill_n(own.values + key * width_, here * width_, T(0));
      std::fill_n(own.keys + key * depth_, here * depth_, T(0));
    }
  }

  // Converts scores to weights, and the gradient of the weights to that of the scores.
  void weigh(T* weights, T* slopes, std::int64_t visible, std::int64_t count, const T* mask, const T* normalisers,
             T inner) const {
    scale_scores(weights, mask, visible);
    exponentials(weights, visible, normalisers[0]);
    for (std::int64_t j = 0; j < visible; ++j) weights[j] *= normalisers[1];
    std::fill(weights + visible, weights + count, T(0));
    for (std::int64_t j = 0; j < visible; ++j) slopes[j] = weights[j] * (slopes[j] - inner) * scale_;
    std::fill(slopes + visible, slopes + count, T(0));
  }

  const Attended& given_;
  std::int64_t heads_, queries_, keys_, depth_, width_, block_, key_block_;
  T scale_;
};

template <class F>
void with_width(DType dtype, F f) {
  if (dtype == DType::f64) return f(std::type_identity<double>());
  f(std::type_identity<float>());
}

void forward(const View& y, const View& normalisers, const Attended& given) {
  with_width(y.dtype,
             [&]<class T>(std::type_identity<T>) { Attention<T>(given).forward(y.as<T>(), normalisers.as<T>()); });
}

void backward(const View& by_queries, const View& by_keys, const View& by_values, const View& gradient, const View& y,
              const View& normalisers, const Attended& given) {
  with_width(y.dtype, [&]<class T>(std::type_identity<T>) {
    Attention<T>(given).backward(
        {by_queries.as<T>(), by_keys.as<T>(), by_values.as<T>(), gradient.as<T>(), y.as<T>(), normalisers.as<T>()});
  });
}

constexpr AttentionKernels attention_kernels{.forward = forward, .backward = backward};

}  // namespace

void fill_attention(KernelTable& table) { table.attention = &attention_kernels; }

}  // namespace reel::detail::inline REEL_TARGET
