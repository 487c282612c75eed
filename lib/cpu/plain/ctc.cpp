#include "ctc.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "../../core/dtype_dispatch.h"
#include "../../core/threads/parallel.h"
#include "../../kernels/formulas/ctc.h"

// Source: Graves et al., Connectionist temporal classification (2006). In logarithms and f64: sums over thousands of
// steps lose f32's digits.

namespace reel::detail {
namespace {

using namespace formulas;

// One example: its states are blank, label 0, blank, label 1, …, blank.
template <class T>
class Alignment {
 public:
  Alignment(const View& logs, const CtcTargets& given, std::int64_t n)
      : blank_(given.blank),
        labels_(given.targets.as<std::int64_t>() + n * given.targets.dims[1]),
        first_(logs.as<T>() + n * logs.dims[2]),
        step_(logs.dims[1] * logs.dims[2]),
        steps_(given.input_lengths.as<std::int64_t>()[n]),
        states_(2 * given.target_lengths.as<std::int64_t>()[n] + 1) {}

  std::int64_t steps() const { return steps_; }
  std::int64_t states() const { return states_; }
  std::int64_t symbol(std::int64_t s) const { return s % 2 == 0 ? blank_ : labels_[s / 2]; }
  double log_of(std::int64_t t, std::int64_t s) const {
    T log = first_[t * step_ + symbol(s)];
    if constexpr (std::is_floating_point_v<T>)
      return log;
    else
      return static_cast<float>(log);
  }
  /// Whether state s may follow s − 2.
  bool skips(std::int64_t s) const { return s >= 2 && s % 2 == 1 && symbol(s) != symbol(s - 2); }

  /// Fills the rows of `alphas`, whose leading dimension is `row`. Returns the logarithm of the target's probability.
  double forward(double* alphas, std::int64_t row) const {
    if (steps_ == 0) return states_ == 1 ? 0 : impossible;
    for (std::int64_t s = 0; s < states_; ++s) alphas[s] = s < 2 ? log_of(0, s) : impossible;
    for (std::int64_t t = 1; t < steps_; ++t) {
      const double* last = alphas + (t - 1) * row;
      for (std::int64_t s = 0; s < states_; ++s)
        alphas[t * row + s] =
            log_of(t, s) + log_of_sum(last[s], s >= 1 ? last[s - 1] : impossible, skips(s) ? last[s - 2] : impossible);
    }
    const double* end = alphas + (steps_ - 1) * row;
    return log_of_sum(end[states_ - 1], states_ > 1 ? end[states_ - 2] : impossible, impossible);
  }

  /// Steps backwards in place: the probabilities of what follows each state, without the state's own symbol.
  void back(double* betas, double* next, std::int64_t t) const {
    for (std::int64_t s = 0; s < states_; ++s) next[s] = betas[s] + log_of(t, s);
    for (std::int64_t s = 0; s < states_; ++s)
      betas[s] = log_of_sum(next[s], s + 1 < states_ ? next[s + 1] : impossible,
                            s + 2 < states_ && skips(s + 2) ? next[s + 2] : impossible);
  }

 private:
  std::int64_t blank_;
  const std::int64_t* labels_;
  const T* first_;
  std::int64_t step_, steps_, states_;
};

bool fits(const View& logs, const CtcTargets& given, CtcFault& fault) {
  std::int64_t longest = given.targets.dims[1];
  for (std::int64_t n = 0; n < logs.dims[1]; ++n) {
    std::int64_t steps = given.input_lengths.as<std::int64_t>()[n];
    fault = {CtcFault::What::input_length, steps, n};
    if (steps < 0 || steps > logs.dims[0]) return false;
    std::int64_t length = given.target_lengths.as<std::int64_t>()[n];
    fault = {CtcFault::What::target_length, length, n};
    if (length < 0 || length > longest) return false;
    for (std::int64_t s = 0; s < length; ++s) {
      std::int64_t label = given.targets.as<std::int64_t>()[n * longest + s];
      fault = {CtcFault::What::label, label, n};
      if (label < 0 || label >= logs.dims[2] || label == given.blank) return false;
    }
  }
  return true;
}

// The number of examples that is worth another thread: a step of a state takes some 30 ns.
std::int64_t examples_at_least(const View& logs, const CtcTargets& given) {
  std::int64_t cost = 30 * std::max<std::int64_t>(1, logs.dims[0]) * (2 * given.targets.dims[1] + 1);
  return std::max<std::int64_t>(1, parallel_grain / cost);
}

// The forward variables of an example, and their leading dimension.
struct Alphas {
  double* first;
  std::int64_t row;
};

Alphas alphas_of(const View& alphas, std::int64_t n) {
  return {alphas.as<double>() + n * alphas.dims[1] * alphas.dims[2], alphas.dims[2]};
}

struct Sums {
  std::vector<double> states;
  std::vector<double> classes;  // zeros between uses
};

template <class T>
void gradient_of(T* out, std::int64_t step, double d, const Alignment<T>& path, Alphas alphas, Sums& scratch) {
  if (path.steps() == 0) return;
  std::int64_t states = path.states();
  const double* end = alphas.first + (path.steps() - 1) * alphas.row;
  double total = log_of_sum(end[states - 1], states > 1 ? end[states - 2] : impossible, impossible);
  if (total == impossible) return;
  scratch.states.assign(static_cast<std::size_t>(2 * states), impossible);
  double *betas = scratch.states.data(), *next = betas + states, *sums = scratch.classes.data();
  for (std::int64_t s = std::max<std::int64_t>(0, states - 2); s < states; ++s) betas[s] = 0;
  for (std::int64_t t = path.steps(); t-- > 0;) {
    // Classes that occur several times in the target are summed in f64.
    for (std::int64_t s = 0; s < states; ++s)
      sums[path.symbol(s)] += std::exp(alphas.first[t * alphas.row + s] + betas[s] - total);
    for (std::int64_t s = 0; s < states; ++s)
      out[t * step + path.symbol(s)] =
          T(static_cast<std::conditional_t<sizeof(T) == 8, double, float>>(-d * sums[path.symbol(s)]));
    for (std::int64_t s = 0; s < states; ++s) sums[path.symbol(s)] = 0;
    if (t > 0) path.back(betas, next, t);
  }
}

}  // namespace

bool ctc_loss(const View& losses, const View& alphas, const View& logs, const CtcTargets& given, CtcFault& fault) {
  if (!fits(logs, given, fault)) return false;
  with_floating(logs.dtype, [&]<class T>(std::type_identity<T>) {
    parallel_for(logs.dims[1], examples_at_least(logs, given), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        Alphas own = alphas_of(alphas, n);
        std::fill_n(own.first, alphas.dims[1] * own.row, impossible);
        double loss = -Alignment<T>(logs, given, n).forward(own.first, own.row);
        if (losses.dtype == DType::f64)
          losses.as<double>()[n] = loss;
        else
          losses.as<float>()[n] = static_cast<float>(loss);
      }
    });
  });
  return true;
}

void ctc_loss_gradient(const View& out, const View& gradient, const View& logs, const View& alphas,
                       const CtcTargets& given) {
  with_floating(logs.dtype, [&]<class T>(std::type_identity<T>) {
    std::int64_t examples = logs.dims[1], classes = logs.dims[2], step = examples * classes;
    std::fill_n(out.as<T>(), out.numel, T());
    parallel_for(examples, examples_at_least(logs, given), [&](std::int64_t begin, std::int64_t end) {
      Sums scratch{{}, std::vector<double>(static_cast<std::size_t>(classes))};
      for (std::int64_t n = begin; n < end; ++n) {
        double d = gradient.dtype == DType::f64 ? gradient.as<double>()[n] : gradient.as<float>()[n];
        gradient_of(out.as<T>() + n * classes, step, d, Alignment<T>(logs, given, n), alphas_of(alphas, n), scratch);
      }
    });
  });
}

}  // namespace reel::detail
