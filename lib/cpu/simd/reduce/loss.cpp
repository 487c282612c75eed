#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "../../../core/dtype_dispatch.h"
#include "../../../core/halves.h"
#include "../../../core/threads/parallel.h"
#include "../../../kernels/formulas/loss.h"
#include "../../../kernels/loss.h"
#include "../../plain/ctc.h"
#include "../instruction_set.h"
#include "../vector/block_loop.h"
#include "../vector/streaming.h"
#include "row_exponentials.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// The part of a row that is processed at a time; it stays in the first-level cache.
constexpr std::int64_t block = 2048;

template <class T>
const Wide<T>* widened_block(const T* from, std::int64_t count, Wide<T>* buffer) {
  if constexpr (std::is_same_v<T, Wide<T>>) {
    return from;
  } else {
    for (std::int64_t i = 0; i < count; ++i) buffer[i] = widened(from[i]);
    return buffer;
  }
}

template <class T>
T sum_of_exponentials(const T* x, std::int64_t count, T largest) {
  using V = Vector<T>;
  constexpr std::int64_t lanes = V::lanes;
  V shift = V::repeat(largest), sums[2] = {V::repeat(0), V::repeat(0)};
  std::int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes)
    for (int k = 0; k < 2; ++k) sums[k] = sums[k] + exp_below(V::load(x + i + k * lanes) - shift);
  for (; i < count; i += lanes) sums[0] = sums[0] + exp_below(load_or_lowest(x + i, count - i) - shift);
  return sum_of_lanes(sums[0] + sums[1]);
}

template <class T>
struct Exponents {
  T largest;
  T sum;  // of e^(x − largest)
};

// In one pass: the sum so far is rescaled if a block has a larger element.
template <class T>
Exponents<Wide<T>> exponents_of(const T* row, std::int64_t count) {
  using Wide = detail::Wide<T>;
  Wide buffer[block];
  Exponents<Wide> all{-infinity<Wide>, 0};
  for (std::int64_t start = 0; start < count; start += block) {
    std::int64_t here = std::min(block, count - start);
    const Wide* x = widened_block(row + start, here, buffer);
    Wide most = largest_of(x, here);
    if (most == -infinity<Wide>) continue;
    if (most > all.largest || most != most) {
      all.sum *= all.sum == 0 ? Wide(0) : std::exp(all.largest - most);
      all.largest = most;
    }
    all.sum += sum_of_exponentials(x, here, all.largest);
  }
  return all;
}

std::int64_t target_at(const View& targets, std::int64_t n) {
  return targets.dtype == DType::i64 ? targets.as<std::int64_t>()[n] : targets.as<std::int32_t>()[n];
}

bool targets_fit(const View& targets, std::int64_t classes, std::int64_t ignored, std::int64_t& bad) {
  for (std::int64_t n = 0; n < targets.numel; ++n) {
    bad = target_at(targets, n);
    if (bad != ignored && (bad < 0 || bad >= classes)) return false;
  }
  return true;
}

std::int64_t rows_at_least(std::int64_t classes) {
  return std::max<std::int64_t>(1, parallel_grain / std::max<std::int64_t>(1, classes));
}

struct CrossEntropy {
  template <class T>
  static void run(const View& losses, const View& exponents, const View& logits, const View& targets,
                  std::int64_t ignored) {
    using Wide = detail::Wide<T>;
    std::int64_t classes = logits.dims[1];
    parallel_for(losses.numel, rows_at_least(classes), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        const T* row = logits.as<T>() + n * classes;
        auto* kept = exponents.as<Wide>() + 2 * n;
        std::int64_t target = target_at(targets, n);
        if (target == ignored) {
          kept[0] = kept[1] = 0;
          losses.as<Wide>()[n] = 0;
          continue;
        }
        auto [largest, sum] = exponents_of(row, classes);
        kept[0] = largest;
        kept[1] = sum;
        losses.as<Wide>()[n] = std::log(sum) - (static_cast<Wide>(row[target]) - largest);
      }
    });
  }
};

bool cross_entropy(const View& losses, const View& exponents, const View& logits, const View& targets,
                   std::int64_t ignored, std::int64_t& bad) {
  if (!targets_fit(targets, logits.dims[1], ignored, bad)) return false;
  with_floating(logits.dtype, [&]<class T>(std::type_identity<T>) {
    CrossEntropy::run<T>(losses, exponents, logits, targets, ignored);
  });
  return true;
}

struct CrossEntropyGradient {
  // (e^(x − largest) / sum) · d
  template <class T>
  static void write(T* to, const T* row, std::int64_t count, Exponents<Wide<T>> exponents, Wide<T> d, bool large) {
    using Wide = detail::Wide<T>;
    using V = Vector<Wide>;
    alignas(64) Wide buffer[block + V::lanes], results[block + V::lanes];
    [[maybe_unused]] alignas(64) T rounded[block];
    V shift = V::repeat(exponents.largest), scale = V::repeat(d / exponents.sum);
    for (std::int64_t start = 0; start < count; start += block) {
      std::int64_t here = std::min(block, count - start), i = 0;
      const Wide* x = widened_block(row + start, here, buffer);
      for (; i + V::lanes <= here; i += V::lanes) (exp_below(V::load(x + i) - shift) * scale).store(results + i);
      if (i < here) (exp_below(load_or_lowest(x + i, here - i) - shift) * scale).store(results + i);
      const T* from;
      if constexpr (std::is_same_v<T, Wide>) {
        from = results;
      } else {
        for (std::int64_t j = 0; j < here; ++j) rounded[j] = narrowed<T>(results[j]);
        from = rounded;
      }
      auto bytes = here * static_cast<std::int64_t>(sizeof(T));
      if (large)
        copy_streaming(to + start, from, bytes);
      else
        std::memcpy(to + start, from, static_cast<std::size_t>(bytes));
    }
  }

  template <class T>
  static void run(const View& out, const View& d, const View& logits, const View& targets, const View& exponents,
                  std::int64_t ignored) {
    using Wide = detail::Wide<T>;
    std::int64_t classes = logits.dims[1];
    bool large = out.numel * static_cast<std::int64_t>(sizeof(T)) >= streaming_bytes;
    parallel_for(logits.dims[0], rows_at_least(classes), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        const T* row = logits.as<T>() + n * classes;
        T* to = out.as<T>() + n * classes;
        std::int64_t target = target_at(targets, n);
        if (target == ignored) {
          std::fill_n(to, classes, T(Wide(0)));
          continue;
        }
        const auto* kept = exponents.as<Wide>() + 2 * n;
        Wide gradient = d.as<Wide>()[d.rank == 0 ? 0 : n * d.strides[0]];
        write(to, row, classes, {kept[0], kept[1]}, gradient, large);
        // p − 1 is computed in f32, without rounding p first.
        auto chosen = static_cast<Wide>(row[target]);
        to[target] = static_cast<T>(gradient * (static_cast<Wide>(std::exp(chosen - kept[0])) / kept[1] - Wide(1)));
      }
      if (large) end_streaming();
    });
  }
};

void cross_entropy_gradient(const View& out, const View& d, const View& logits, const View& targets,
                            const View& exponents, std::int64_t ignored) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    CrossEntropyGradient::run<T>(out, d, logits, targets, exponents, ignored);
  });
}

bool nll_loss(const View& losses, const View& x, const View& targets, std::int64_t ignored, std::int64_t& bad) {
  std::int64_t classes = x.dims[1];
  if (!targets_fit(targets, classes, ignored, bad)) return false;
  with_floating(x.dtype, [&]<class T>(std::type_identity<T>) {
    for (std::int64_t n = 0; n < losses.numel; ++n) {
      std::int64_t target = target_at(targets, n);
      losses.as<Wide<T>>()[n] = target == ignored ? Wide<T>(0) : -static_cast<Wide<T>>(x.as<T>()[n * classes + target]);
    }
  });
  return true;
}

template <class F, class T, std::size_t... k>
void element_loop(void* out, const void* const* inputs, std::int64_t count) {
  using V = Vector<T>;
  auto* y = static_cast<T*>(out);
  std::int64_t i = 0;
  for (; i + V::lanes <= count; i += V::lanes) F()(V::load(static_cast<const T*>(inputs[k]) + i)...).store(y + i);
  if (i < count) F()(V::load(static_cast<const T*>(inputs[k]) + i, count - i)...).store(y + i, count - i);
}

// Applies a formula to operands and a parameter, in f32 or, for x of f64, in f64.
template <class F, class... Views>
void run_elements(const View& out, const View& x, double parameter, const Views&... operands) {
  float single = static_cast<float>(parameter);
  bool wide = x.dtype == DType::f64;
  View number{
      wide ? static_cast<void*>(&parameter) : &single, nullptr, nullptr, 1, 0, wide ? DType::f64 : DType::f32, true};
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    run_loop(out, {&operands..., &number}, wide ? element_loop<F, double, k...> : element_loop<F, float, k...>,
             {.parallel_from = 1 << 15});
  }(std::make_index_sequence<sizeof...(Views) + 1>());
}

template <class F, class G>
constexpr ElementLossKernels element_loss{
    [](const View& out, const View& x, const View& t, double parameter) { run_elements<F>(out, x, parameter, x, t); },
    [](const View& out, const View& d, const View& x, const View& t, double parameter) {
      run_elements<G>(out, x, parameter, d, x, t);
    }};

constexpr LossKernels loss_kernels{
    .elements = {element_loss<formulas::SquaredError, formulas::SquaredErrorGradient>,
                 element_loss<formulas::AbsoluteError, formulas::AbsoluteErrorGradient>,
                 element_loss<formulas::Huber, formulas::HuberGradient>,
                 element_loss<formulas::SmoothL1, formulas::SmoothL1Gradient>,
                 element_loss<formulas::BinaryCrossEntropy, formulas::BinaryCrossEntropyGradient>,
                 element_loss<formulas::LogitsCrossEntropy, formulas::LogitsCrossEntropyGradient>,
                 element_loss<formulas::Divergence, formulas::DivergenceGradient>},
    .cross_entropy = cross_entropy,
    .cross_entropy_gradient = cross_entropy_gradient,
    .nll_loss = nll_loss,
    .mean_of_targets = nullptr,
    .ctc_loss = ctc_loss,
    .ctc_loss_gradient = ctc_loss_gradient,
};

}  // namespace

void fill_loss(KernelTable& table) { table.loss = &loss_kernels; }

}  // namespace reel::detail::inline REEL_TARGET
