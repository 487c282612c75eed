#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "../core/dispatch.h"
#include "../core/iteration.h"
#include "activation.h"
#include "halves.h"
#include "instruction_set.h"
#include "parallel.h"
#include "streaming.h"
#include "vector_exponential.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

constexpr std::int64_t block = 512;

// A row of any floating type, read and written in blocks of f32 or f64.
template <class T>
struct Row {
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const T* from;
  std::int64_t step;

  // The elements [start, start + count), in `buffer` unless they can be read where they are.
  const Wide* read(std::int64_t start, std::int64_t count, Wide* buffer) const {
    if constexpr (std::is_same_v<T, Wide>)
      if (step == 1) return from + start;
    for (std::int64_t i = 0; i < count; ++i) buffer[i] = static_cast<Wide>(from[(start + i) * step]);
    return buffer;
  }
};

// Pads a last, shorter vector with `fill`.
template <class T>
Vector<T> load_padded(const T* from, std::int64_t count, T fill) {
  T lanes[Vector<T>::lanes];
  for (std::int64_t i = 0; i < Vector<T>::lanes; ++i) lanes[i] = i < count ? from[i] : fill;
  return Vector<T>::load(lanes);
}

template <class T, class F>
void for_each_vector(const T* x, std::int64_t n, T fill, F f) {
  constexpr std::int64_t lanes = Vector<T>::lanes;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(Vector<T>::load(x + i), i);
  if (i < n) f(load_padded(x + i, n - i, fill), i);
}

template <class T>
T sum_of_lanes(Vector<T> v) {
  T lanes[Vector<T>::lanes];
  v.store(lanes);
  for (std::int64_t width = Vector<T>::lanes / 2; width > 0; width /= 2)
    for (std::int64_t j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  return lanes[0];
}

template <class Wide>
struct Normaliser {
  Wide largest;
  Wide sum;  // of e^(x − largest)
};

template <class T>
Normaliser<typename Row<T>::Wide> normaliser(Row<T> row, std::int64_t n) {
  using Wide = typename Row<T>::Wide;
  using V = Vector<Wide>;
  constexpr Wide lowest = -std::numeric_limits<Wide>::infinity();
  Wide buffer[block];
  V most = V::repeat(lowest);
  for (std::int64_t start = 0; start < n; start += block) {
    std::int64_t count = n - start < block ? n - start : block;
    for_each_vector(row.read(start, count, buffer), count, lowest, [&](V x, std::int64_t) { most = maximum(most, x); });
  }
  Wide lanes[V::lanes];
  most.store(lanes);
  Wide largest = lanes[0];
  for (std::int64_t j = 1; j < V::lanes; ++j) largest = lanes[j] > largest || lanes[j] != lanes[j] ? lanes[j] : largest;
  Wide sum = 0;
  for (std::int64_t start = 0; start < n; start += block) {
    std::int64_t count = n - start < block ? n - start : block;
    V partial = V::repeat(0);
    for_each_vector(row.read(start, count, buffer), count, lowest,
                    [&](V x, std::int64_t) { partial = partial + exp(x - V::repeat(largest)); });
    sum += sum_of_lanes(partial);
  }
  return {largest, sum};
}

// Applies f to each vector of a row and stores what it gives.
template <class T, class F>
void map_row(T* out, std::int64_t out_step, Row<T> row, std::int64_t n, F f) {
  using Wide = typename Row<T>::Wide;
  Wide buffer[block], results[block + Vector<Wide>::lanes];
  for (std::int64_t start = 0; start < n; start += block) {
    std::int64_t count = n - start < block ? n - start : block;
    for_each_vector(row.read(start, count, buffer), count, Wide(0),
                    [&](Vector<Wide> x, std::int64_t i) { f(x, start + i).store(results + i); });
    for (std::int64_t i = 0; i < count; ++i) out[(start + i) * out_step] = static_cast<T>(results[i]);
  }
}

// Room for a row between the passes over it: on the stack unless it is long.
template <class Wide>
class Scratch {
 public:
  explicit Scratch(std::int64_t n) : longer_(n > most ? static_cast<std::size_t>(n) : 0) {}
  Wide* data() { return longer_.empty() ? lanes_ : longer_.data(); }

 private:
  static constexpr std::int64_t most = 2048;
  alignas(64) Wide lanes_[most];
  std::vector<Wide> longer_;
};

// A row as f32 or f64 without gaps, in `buffer` unless it can be read where it is.
template <class T>
const typename Row<T>::Wide* dense(Row<T> row, std::int64_t n, typename Row<T>::Wide* buffer) {
  if constexpr (std::is_same_v<T, typename Row<T>::Wide>) {
    if (row.step == 1) return row.from;
    for (std::int64_t i = 0; i < n; ++i) buffer[i] = row.from[i * row.step];
  } else if (row.step == 1) {
    for (std::int64_t i = 0; i < n; ++i) buffer[i] = widened(row.from[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) buffer[i] = widened(row.from[i * row.step]);
  }
  return buffer;
}

template <class T>
void write_row(T* to, const typename Row<T>::Wide* results, std::int64_t n, bool streams) {
  if constexpr (!std::is_same_v<T, typename Row<T>::Wide>) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = narrowed<T>(results[i]);
  } else if (streams) {
    copy_streaming(to, results, n * static_cast<std::int64_t>(sizeof(T)));
  } else if (to != results) {
    std::memcpy(to, results, static_cast<std::size_t>(n) * sizeof(T));
  }
}

// x with its last axis taken off.
View heads(const View& x) {
  View view = x;
  if (view.rank > 0) --view.rank;
  return view;
}
std::int64_t last_dim(const View& x) { return x.rank == 0 ? 1 : x.dims[x.rank - 1]; }
std::int64_t last_step(const View& x) { return x.rank == 0 || x.dims[x.rank - 1] == 1 ? 0 : x.strides[x.rank - 1]; }

// Calls f(results, offsets of the inputs' rows) for each row of `out`, which is contiguous. `make` gives f for a thread.
template <class T, int input_count, class Make>
void for_each_row(const View& out, const View* const (&inputs)[input_count], Make make) {
  using Wide = typename Row<T>::Wide;
  if (out.numel == 0) return;
  View views[input_count + 1] = {heads(out)};
  const View* pointers[input_count + 1] = {&views[0]};
  for (int k = 0; k < input_count; ++k) {
    views[k + 1] = heads(*inputs[k]);
    pointers[k + 1] = &views[k + 1];
  }
  Iteration<input_count + 1> iteration(pointers);
  std::int64_t n = last_dim(out);
  bool streams = std::is_same_v<T, Wide> && out.numel * static_cast<std::int64_t>(sizeof(T)) >= streaming_bytes;
  bool in_place = std::is_same_v<T, Wide> && !streams;
  parallel_for(out.numel / n, std::max<std::int64_t>(parallel_grain / n, 1), [&](std::int64_t begin, std::int64_t end) {
    auto f = make();
    Scratch<Wide> scratch(in_place ? 0 : n);
    iteration.for_each_part(begin, end, [&](const std::int64_t* offsets, std::int64_t count) {
      std::int64_t at[input_count];
      for (std::int64_t row = 0; row < count; ++row) {
        for (int k = 0; k < input_count; ++k) at[k] = offsets[k + 1] + row * iteration.strides[k + 1][0];
        T* to = out.as<T>() + offsets[0] + row * iteration.strides[0][0];
        auto* results = in_place ? reinterpret_cast<Wide*>(to) : scratch.data();
        f(results, at);
        write_row(to, results, n, streams);
      }
    });
    if (streams) end_streaming();
  });
}

// For x that is at most 0 and no NaN.
template <class T>
Vector<T> exp_of_nonpositive(Vector<T> x) {
  return hn::Exp(typename Vector<T>::Tag(), x.raw);
}

template <class Wide>
Wide largest_of(const Wide* x, std::int64_t n) {
  using V = Vector<Wide>;
  constexpr Wide lowest = -std::numeric_limits<Wide>::infinity();
  V most = V::repeat(lowest);
  for_each_vector(x, n, lowest, [&](V v, std::int64_t) { most = maximum(most, v); });
  Wide lanes[V::lanes];
  most.store(lanes);
  Wide largest = lanes[0];
  for (std::int64_t j = 1; j < V::lanes; ++j) largest = lanes[j] > largest || lanes[j] != lanes[j] ? lanes[j] : largest;
  return largest;
}

// Whether a row has something to be normalised; if not, it is `nothing` where −∞ is its largest number, else NaN.
template <class Wide>
bool has_normaliser(Wide* y, std::int64_t n, Wide largest, Wide nothing) {
  constexpr Wide infinity = std::numeric_limits<Wide>::infinity();
  if (largest > -infinity && largest < infinity) [[likely]]
    return true;
  std::fill_n(y, n, largest == -infinity ? nothing : std::numeric_limits<Wide>::quiet_NaN());
  return false;
}

struct Softmax {
  static constexpr double nothing = 0;
  template <class Wide>
  static void run_row(Wide* y, const Wide* x, std::int64_t n, Wide nothing) {
    using V = Vector<Wide>;
    Wide largest = largest_of(x, n);
    if (!has_normaliser(y, n, largest, nothing)) return;
    V shift = V::repeat(largest), sum = V::repeat(0);
    for_each_vector(x, n, -std::numeric_limits<Wide>::infinity(), [&](V v, std::int64_t i) {
      V e = exp_of_nonpositive(v - shift);
      sum = sum + e;
      n - i < V::lanes ? e.store(y + i, n - i) : e.store(y + i);
    });
    V scale = V::repeat(1 / sum_of_lanes(sum));
    std::int64_t i = 0;
    for (; i + V::lanes <= n; i += V::lanes) (V::load(y + i) * scale).store(y + i);
    if (i < n) (V::load(y + i, n - i) * scale).store(y + i, n - i);
  }
};

struct LogSoftmax {
  static constexpr double nothing = -std::numeric_limits<double>::infinity();
  template <class Wide>
  static void run_row(Wide* y, const Wide* x, std::int64_t n, Wide nothing) {
    using V = Vector<Wide>;
    Wide largest = largest_of(x, n);
    if (!has_normaliser(y, n, largest, nothing)) return;
    V shift = V::repeat(largest), sum = V::repeat(0);
    for_each_vector(x, n, -std::numeric_limits<Wide>::infinity(),
                    [&](V v, std::int64_t) { sum = sum + exp_of_nonpositive(v - shift); });
    V rest = V::repeat(static_cast<Wide>(std::log(sum_of_lanes(sum))));
    std::int64_t i = 0;
    for (; i + V::lanes <= n; i += V::lanes) (V::load(x + i) - shift - rest).store(y + i);
    if (i < n) (V::load(x + i, n - i) - shift - rest).store(y + i, n - i);
  }
};

template <class Op>
struct Plain {
  template <class T>
  static void run(const View& out, const View& x) {
    using Wide = typename Row<T>::Wide;
    std::int64_t n = last_dim(out);
    for_each_row<T>(out, {&x}, [&] {
      return [&, given = Scratch<Wide>(n)](Wide* y, const std::int64_t* at) mutable {
        Row<T> row{x.as<T>() + at[0], last_step(x)};
        Op::run_row(y, dense(row, n, given.data()), n, std::numeric_limits<Wide>::quiet_NaN());
      };
    });
  }
};

// What the mask leaves out counts as −∞.
template <class Op>
struct Masked {
  template <class T>
  static void run(const View& out, const View& x, const View& mask) {
    using Wide = typename Row<T>::Wide;
    std::int64_t n = last_dim(out), mask_step = last_step(mask);
    for_each_row<T>(out, {&x, &mask}, [&] {
      return [&, given = Scratch<Wide>(n)](Wide* y, const std::int64_t* at) mutable {
        Row<T> row{x.as<T>() + at[0], last_step(x)};
        const Wide* from = dense(row, n, given.data());
        const bool* takes_part = mask.as<bool>() + at[1];
        Wide* seen = given.data();
        for (std::int64_t i = 0; i < n; ++i)
          seen[i] = takes_part[i * mask_step] ? from[i] : -std::numeric_limits<Wide>::infinity();
        Op::run_row(y, seen, n, static_cast<Wide>(Op::nothing));
      };
    });
  }
};

template <class Op>
struct FromGradient {
  template <class T>
  static void run(const View& out, const View& d, const View& y) {
    using Wide = typename Row<T>::Wide;
    std::int64_t n = last_dim(out);
    for_each_row<T>(out, {&d, &y}, [&] {
      return [&, left = Scratch<Wide>(n), right = Scratch<Wide>(n)](Wide* to, const std::int64_t* at) mutable {
        const Wide* gradient = dense(Row<T>{d.as<T>() + at[0], last_step(d)}, n, left.data());
        const Wide* result = dense(Row<T>{y.as<T>() + at[1], last_step(y)}, n, right.data());
        Op::run_row(to, gradient, result, n);
      };
    });
  }
};

// dx = y (d − Σ d y)
struct SoftmaxGradient {
  template <class Wide>
  static void run_row(Wide* to, const Wide* d, const Wide* y, std::int64_t n) {
    using V = Vector<Wide>;
    V sum = V::repeat(0);
    std::int64_t whole = n / V::lanes * V::lanes, left = n - whole;
    for (std::int64_t i = 0; i < whole; i += V::lanes) sum = multiply_add(V::load(d + i), V::load(y + i), sum);
    if (left > 0) sum = multiply_add(V::load(d + whole, left), V::load(y + whole, left), sum);
    V inner = V::repeat(sum_of_lanes(sum));
    for (std::int64_t i = 0; i < whole; i += V::lanes) (V::load(y + i) * (V::load(d + i) - inner)).store(to + i);
    if (left > 0) (V::load(y + whole, left) * (V::load(d + whole, left) - inner)).store(to + whole, left);
  }
};

// dx = d − e^y Σ d
struct LogSoftmaxGradient {
  template <class Wide>
  static void run_row(Wide* to, const Wide* d, const Wide* y, std::int64_t n) {
    using V = Vector<Wide>;
    V sum = V::repeat(0);
    std::int64_t whole = n / V::lanes * V::lanes, left = n - whole;
    for (std::int64_t i = 0; i < whole; i += V::lanes) sum = sum + V::load(d + i);
    if (left > 0) sum = sum + V::load(d + whole, left);
    V inner = V::repeat(sum_of_lanes(sum));
    for (std::int64_t i = 0; i < whole; i += V::lanes) (V::load(d + i) - exp(V::load(y + i)) * inner).store(to + i);
    if (left > 0) (V::load(d + whole, left) - exp(V::load(y + whole, left)) * inner).store(to + whole, left);
  }
};

template <class Op, class... Views>
void floating(const View& out, const Views&... views) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) { Op::template run<T>(out, views...); });
}

std::int64_t target_at(const View& targets, std::int64_t n) {
  std::int64_t at = targets.rank == 0 ? 0 : n * targets.strides[0];
  return targets.dtype == DType::i64 ? targets.as<std::int64_t>()[at] : targets.as<std::int32_t>()[at];
}

bool targets_fit(const View& targets, std::int64_t classes, std::int64_t ignored, std::int64_t& bad) {
  for (std::int64_t n = 0; n < targets.numel; ++n) {
    bad = target_at(targets, n);
    if (bad != ignored && (bad < 0 || bad >= classes)) return false;
  }
  return true;
}

struct CrossEntropy {
  template <class T>
  static void run(const View& losses, const View& logits, const View& targets, std::int64_t ignored) {
    using Wide = typename Row<T>::Wide;
    for (std::int64_t n = 0; n < losses.numel; ++n) {
      Row<T> row{logits.as<T>() + n * logits.strides[0], logits.strides[1]};
      std::int64_t target = target_at(targets, n);
      T* loss = losses.as<T>() + n;
      if (target == ignored) {
        *loss = T(Wide(0));
        continue;
      }
      auto [largest, sum] = normaliser(row, logits.dims[1]);
      auto chosen = static_cast<Wide>(row.from[target * row.step]);
      *loss = static_cast<T>(static_cast<Wide>(std::log(sum)) - (chosen - largest));
    }
  }
};

bool cross_entropy(const View& losses, const View& logits, const View& targets, std::int64_t ignored,
                   std::int64_t& bad) {
  if (!targets_fit(targets, logits.dims[1], ignored, bad)) return false;
  floating<CrossEntropy>(losses, logits, targets, ignored);
  return true;
}

struct CrossEntropyGradient {
  template <class T>
  static void run(const View& out, const View& d, const View& logits, const View& targets, std::int64_t ignored) {
    using Wide = typename Row<T>::Wide;
    using V = Vector<Wide>;
    std::int64_t classes = logits.dims[1];
    for (std::int64_t n = 0; n < logits.dims[0]; ++n) {
      Row<T> row{logits.as<T>() + n * logits.strides[0], logits.strides[1]};
      T* to = out.as<T>() + n * classes;
      std::int64_t target = target_at(targets, n);
      if (target == ignored) {
        for (std::int64_t c = 0; c < classes; ++c) to[c] = T(Wide(0));
        continue;
      }
      auto gradient = static_cast<Wide>(d.as<T>()[n * d.strides[0]]);
      auto [largest, sum] = normaliser(row, classes);
      V shift = V::repeat(largest), scale = V::repeat(gradient / sum);
      map_row(to, 1, row, classes, [=](V v, std::int64_t) { return exp(v - shift) * scale; });
      // p − 1 is formed in f32, as a difference, not by rounding p first.
      auto chosen = static_cast<Wide>(row.from[target * row.step]);
      to[target] = static_cast<T>(gradient * (static_cast<Wide>(std::exp(chosen - largest)) / sum - Wide(1)));
    }
  }
};

void cross_entropy_gradient(const View& out, const View& d, const View& logits, const View& targets,
                            std::int64_t ignored) {
  floating<CrossEntropyGradient>(out, d, logits, targets, ignored);
}

}  // namespace

void fill_masked_softmax(ActivationKernels& table) {
  table.masked_softmax = floating<Masked<Softmax>, View, View>;
  table.masked_log_softmax = floating<Masked<LogSoftmax>, View, View>;
}

void fill_softmax(KernelTable& table) {
  table.softmax = floating<Plain<Softmax>, View>;
  table.log_softmax = floating<Plain<LogSoftmax>, View>;
  table.softmax_gradient = floating<FromGradient<SoftmaxGradient>, View, View>;
  table.log_softmax_gradient = floating<FromGradient<LogSoftmaxGradient>, View, View>;
  table.cross_entropy = cross_entropy;
  table.cross_entropy_gradient = cross_entropy_gradient;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
