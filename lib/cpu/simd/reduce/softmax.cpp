#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "../../../core/dtype_dispatch.h"
#include "../../../core/halves.h"
#include "../../../core/iteration.h"
#include "../../../core/threads/parallel.h"
#include "../elementwise/elementwise.h"
#include "../instruction_set.h"
#include "../vector/half_rows.h"
#include "../vector/streaming.h"
#include "row_exponentials.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// A row of any floating type, computed in f32 or f64.
template <class T>
struct Row {
  using Wide = detail::Wide<T>;
  const T* from;
  std::int64_t step;
};

// Loads a vector; a last, partial vector is padded with `fill`.
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

// A sum of vectors. Rounding errors grow with the number of terms, so no partial sum has more than sixteen: sixteen vectors
// are added, then sixteen such sums, and so on.
template <class T>
class CascadedSum {
 public:
  void add(Vector<T> v) {
    sums_[0] = sums_[0] + v;
    if (++count_ % 16 == 0) carry();
  }
  T total() const { return sum_of_lanes((sums_[3] + sums_[2]) + (sums_[1] + sums_[0])); }

 private:
  void carry() {
    std::int64_t sums = count_;
    for (int k = 0; k < 3 && sums % 16 == 0; ++k, sums /= 16) {
      sums_[k + 1] = sums_[k + 1] + sums_[k];
      sums_[k] = Vector<T>::repeat(0);
    }
  }

  Vector<T> sums_[4] = {Vector<T>::repeat(0), Vector<T>::repeat(0), Vector<T>::repeat(0), Vector<T>::repeat(0)};
  std::int64_t count_ = 0;
};

// A buffer for a row between the passes over it: on the stack unless the row is long.
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

// A contiguous row of f32 or f64, in `buffer` unless it can be read in place.
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
    narrow_row(to, results, n);
  } else if (streams) {
    copy_streaming(to, results, n * static_cast<std::int64_t>(sizeof(T)));
  } else if (to != results) {
    std::memcpy(to, results, static_cast<std::size_t>(n) * sizeof(T));
  }
}

// x without its last axis.
View heads(const View& x) {
  View view = x;
  if (view.rank > 0) --view.rank;
  return view;
}
std::int64_t last_dim(const View& x) { return x.rank == 0 ? 1 : x.dims[x.rank - 1]; }
std::int64_t last_step(const View& x) { return x.rank == 0 || x.dims[x.rank - 1] == 1 ? 0 : x.strides[x.rank - 1]; }

// Calls f(results, offsets of the inputs' rows) for each row of the contiguous `out`. Each thread gets an f from make().
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

// Returns true if a row can be normalised; if not, fills it with `nothing` if its largest number is −∞, else with NaN.
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
    V shift = V::repeat(largest);
    CascadedSum<Wide> sum;
    for_each_vector(x, n, -std::numeric_limits<Wide>::infinity(), [&](V v, std::int64_t i) {
      V e = exp_of_nonpositive(v - shift);
      sum.add(e);
      n - i < V::lanes ? e.store(y + i, n - i) : e.store(y + i);
    });
    V scale = V::repeat(1 / sum.total());
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
    V shift = V::repeat(largest);
    CascadedSum<Wide> sum;
    for_each_vector(x, n, -std::numeric_limits<Wide>::infinity(),
                    [&](V v, std::int64_t) { sum.add(exp_of_nonpositive(v - shift)); });
    V rest = V::repeat(static_cast<Wide>(std::log(sum.total())));
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

// Masked elements are treated as −∞.
template <class Op>
struct Masked {
  template <class T>
  static void run(const View& out, const View& x, const View& mask) {
    using Wide = typename Row<T>::Wide;
    std::int64_t n = last_dim(out), mask_stride = last_step(mask);
    for_each_row<T>(out, {&x, &mask}, [&] {
      return [&, given = Scratch<Wide>(n)](Wide* y, const std::int64_t* at) mutable {
        Row<T> row{x.as<T>() + at[0], last_step(x)};
        const Wide* from = dense(row, n, given.data());
        const bool* takes_part = mask.as<bool>() + at[1];
        Wide* seen = given.data();
        for (std::int64_t i = 0; i < n; ++i)
          seen[i] = takes_part[i * mask_stride] ? from[i] : -std::numeric_limits<Wide>::infinity();
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
        Row<T> given{d.as<T>() + at[0], last_step(d)}, result{y.as<T>() + at[1], last_step(y)};
        if (given.step == 1 && result.step == 1) return Op::run_row(to, given.from, result.from, n);
        Op::run_row(to, dense(given, n, left.data()), dense(result, n, right.data()), n);
      };
    });
  }
};

template <class Wide, class T>
HWY_INLINE Vector<Wide> load_wide(const T* from) {
  if constexpr (std::is_same_v<T, Wide>)
    return Vector<Wide>::load(from);
  else
    return load_widened(from);
}

// Loads fewer elements than a vector has; the others are zeros.
template <class Wide, class T>
HWY_INLINE Vector<Wide> load_wide(const T* from, std::int64_t count) {
  if constexpr (std::is_same_v<T, Wide>) {
    return Vector<Wide>::load(from, count);
  } else {
    T some[Vector<Wide>::lanes] = {};
    std::copy_n(from, count, some);
    return load_widened(some);
  }
}

// dx = y (d − Σ d y)
struct SoftmaxGradient {
  template <class Wide, class T>
  static void run_row(Wide* to, const T* d, const T* y, std::int64_t n) {
    using V = Vector<Wide>;
    V sum = V::repeat(0);
    std::int64_t whole = n / V::lanes * V::lanes, left = n - whole;
    for (std::int64_t i = 0; i < whole; i += V::lanes)
      sum = multiply_add(load_wide<Wide>(d + i), load_wide<Wide>(y + i), sum);
    if (left > 0) sum = multiply_add(load_wide<Wide>(d + whole, left), load_wide<Wide>(y + whole, left), sum);
    V inner = V::repeat(sum_of_lanes(sum));
    for (std::int64_t i = 0; i < whole; i += V::lanes)
      (load_wide<Wide>(y + i) * (load_wide<Wide>(d + i) - inner)).store(to + i);
    if (left > 0)
      (load_wide<Wide>(y + whole, left) * (load_wide<Wide>(d + whole, left) - inner)).store(to + whole, left);
  }
};

// dx = d − e^y Σ d
struct LogSoftmaxGradient {
  template <class Wide, class T>
  static void run_row(Wide* to, const T* d, const T* y, std::int64_t n) {
    using V = Vector<Wide>;
    V sum = V::repeat(0);
    std::int64_t whole = n / V::lanes * V::lanes, left = n - whole;
    for (std::int64_t i = 0; i < whole; i += V::lanes) sum = sum + load_wide<Wide>(d + i);
    if (left > 0) sum = sum + load_wide<Wide>(d + whole, left);
    V inner = V::repeat(sum_of_lanes(sum));
    for (std::int64_t i = 0; i < whole; i += V::lanes)
      (load_wide<Wide>(d + i) - exp(load_wide<Wide>(y + i)) * inner).store(to + i);
    if (left > 0)
      (load_wide<Wide>(d + whole, left) - exp(load_wide<Wide>(y + whole, left)) * inner).store(to + whole, left);
  }
};

template <class Op, class... Views>
void floating(const View& out, const Views&... views) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) { Op::template run<T>(out, views...); });
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
}

}  // namespace reel::detail::inline REEL_TARGET
