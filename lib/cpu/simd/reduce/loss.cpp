#include <cmath>
#include <type_traits>
#include <utility>

#include "../../../core/axis_last.h"
#include "../../../core/dtype_dispatch.h"
#include "../../../core/halves.h"
#include "../../../kernels/formulas/loss.h"
#include "../../../kernels/loss.h"
#include "../../plain/ctc.h"
#include "../instruction_set.h"
#include "../vector/block_loop.h"
#include "axis_strips.h"
#include "order_keys.h"
#include "row_exponentials.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

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

struct CrossEntropy {
  template <class T>
  static void run(const View& losses, const View& exponents, const View& logits, const View& targets,
                  std::int64_t ignored) {
    using Wide = detail::Wide<T>;
    AxisLast x(logits, 1);
    for_each_strip<T, false>(x, {&x.view()}, [&](const auto& strip, auto, const auto& from, std::int64_t first) {
      auto row = from[0].template as<T>();
      auto shift = strip.largest(row);
      auto sum =
          strip.sum([=](auto at) { return exp_below(at.padded(at.load(row), shift[at.slot]) - shift[at.slot]); });
      StripNumbers<Wide> largest(strip, shift), sums(strip, sum), logarithms(strip, strip.map(sum, [](auto s) {
        using std::log;
        return log(s);
      }));
      for (std::int64_t j = 0; j < strip.results(); ++j) {
        std::int64_t n = first + j, target = target_at(targets, n);
        bool counts = target != ignored;
        auto* kept = exponents.as<Wide>() + 2 * n;
        kept[0] = counts ? largest[j] : 0;
        kept[1] = counts ? sums[j] : 0;
        const T* chosen = row.data + (counts ? target * strip.axis_step(row.step) : 0) + j;
        losses.as<Wide>()[n] = counts ? logarithms[j] - (static_cast<Wide>(*chosen) - largest[j]) : 0;
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
  // (e^(x − largest) / sum) · d, from which d is subtracted at the target
  template <class T>
  static void run(const View& out, const View& d, const View& logits, const View& targets, const View& exponents,
                  std::int64_t ignored) {
    using Wide = detail::Wide<T>;
    AxisLast to(out, 1), x(logits, 1);
    std::int64_t step_of_d = d.rank == 0 ? 0 : d.strides[0];
    for_each_strip<T>(to, {&x.view()}, [&](const auto& strip, auto lines, const auto& from, std::int64_t first) {
      auto row = from[0].template as<T>();
      StripNumbers<Wide> largest, scales;
      for (std::int64_t j = 0; j < strip.results(); ++j) {
        const auto* kept = exponents.as<Wide>() + 2 * (first + j);
        largest[j] = kept[0];
        scales[j] = d.as<Wide>()[(first + j) * step_of_d] / kept[1];
      }
      auto shift = strip.load(&largest[0]), scale = strip.load(&scales[0]);
      strip.each([=](auto at) {
        at.store(lines, exp_below(at.padded(at.load(row), shift[at.slot]) - shift[at.slot]) * scale[at.slot]);
      });
      std::int64_t step = strip.axis_step(lines.step);
      for (std::int64_t j = 0; j < strip.results(); ++j) {
        std::int64_t n = first + j, target = target_at(targets, n);
        if (target == ignored) {
          for (std::int64_t i = 0; i < logits.dims[1]; ++i) lines.data[i * step + j] = 0;
          continue;
        }
        // p − 1 is computed in f32, without rounding p first.
        auto chosen = static_cast<Wide>(row.data[target * strip.axis_step(row.step) + j]);
        Wide gradient = d.as<Wide>()[n * step_of_d];
        lines.data[target * step + j] =
            gradient * (static_cast<Wide>(std::exp(chosen - largest[j])) / exponents.as<Wide>()[2 * n + 1] - Wide(1));
      }
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
  if (!targets_fit(targets, x.dims[1], ignored, bad)) return false;
  auto rows = rows_along<1>(1, {x});
  with_floating(x.dtype, [&]<class T>(std::type_identity<T>) {
    std::int64_t n = 0;
    rows.for_each_row([&](const std::int64_t* offset) {
      for (std::int64_t i = 0; i < rows.dims[0]; ++i, ++n) {
        std::int64_t target = target_at(targets, n), place = offset[0] + i * rows.strides[0][0] + target * x.strides[1];
        losses.as<Wide<T>>()[n] = target == ignored ? Wide<T>(0) : -static_cast<Wide<T>>(x.as<T>()[place]);
      }
    });
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
