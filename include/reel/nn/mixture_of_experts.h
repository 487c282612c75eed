#pragma once

#include <functional>
#include <string_view>

#include <reel/nn/module.h>
#include <reel/nn/module_list.h>

namespace reel::detail {
/// (…, in) as (N, in), and (N, out) as (…, out).
Tensor as_examples(const Tensor& x, std::int64_t in);
Tensor as_before(const Tensor& y, const Tensor& x);
}  // namespace reel::detail

namespace reel::nn {

/// The k largest along the last axis stay as they are, of equals the first; the others become −∞, and have no gradient:
/// x (…, n) → (…, n). A softmax of it shares its weight among k.
/// Throws: DTypeError unless floating; ShapeError unless 1 ≤ k ≤ n.
/// Source: Shazeer et al., Outrageously large neural networks (ICLR 2017), equation 5.
Tensor keep_topk(const Arg& x, std::int64_t k);

struct NoisyTopKGateOptions {
  /// How many experts each example goes to.
  std::int64_t k = 2;
  /// Adds noise while training, so that others than the best are tried.
  bool noisy = true;
  /// Of the two parts of the loss.
  double importance_weight = 0.1, load_weight = 0.1;
  /// Of both parameters; null: 0, so that experts start with equal chances.
  Initialiser initialiser = {};
  DType dtype = DType::f32;
  /// Of the parameters and of the noise; null: this thread's generator.
  Generator* generator = nullptr;
};

/// Which experts each example goes to.
struct Gates {
  Tensor weights;       ///< (N, experts): k of each row are not 0, and add up to 1
  Tensor balance_loss;  ///< rank 0; to be added to the loss, so that all experts are used
};

/// Chooses k experts for each example x (N, in), with tunable noise:
///
///     H = x W + ε σ            σ = softplus(x W_noise) + 10⁻²; ε standard normal, 0 unless training
///     weights = softmax(keep_topk(H, k))
///     balance_loss = w_importance CV(Σ_n weights)² + w_load CV(Σ_n P)²
///     P = Φ((x W − the k-th largest of the others' H) / σ)
///
/// where CV² is the variance over the square of the mean, over experts: P is the probability that an expert is chosen if
/// its own noise is drawn again. Without noise P is 1 for those that are chosen and has no gradient.
/// Source: Shazeer et al., Outrageously large neural networks (ICLR 2017), section 2.1, 4 and appendix A; 10⁻² from its
/// authors' program.
struct NoisyTopKGate : Module {
  Parameter weight, noise_weight;  ///< (in, experts); the latter undefined without noise

  /// Throws: ShapeError unless sizes are positive and 1 ≤ k ≤ experts; Error for weights of the loss below 0.
  NoisyTopKGate(std::int64_t in, std::int64_t experts, NoisyTopKGateOptions options = {},
                Location where = Location::here());
  NoisyTopKGate(Module& parent, std::string_view name, std::int64_t in, std::int64_t experts,
                NoisyTopKGateOptions options = {}, Location where = Location::here())
      : NoisyTopKGate(in, experts, options, where) {
    join(parent, name, where);
  }

  const NoisyTopKGateOptions& options() const { return options_; }
  /// Throws: ShapeError unless x is (N, in).
  Gates operator()(const Arg& x) const;

 private:
  NoisyTopKGateOptions options_;
};
inline std::vector<Tensor*> tensors_of(Gates& gates) { return {&gates.weights, &gates.balance_loss}; }

/// y_n = Σ_e weights[n, e] · expert(e, x)_n: x (N, …), weights (N, experts) → (N, …). An expert is called with the examples
/// that have a weight for it, and not at all without any; with no example at all, the first with none.
/// Throws: ShapeError unless the sizes fit, and an expert gives as many rows as it gets.
Tensor mix_experts(const Arg& x, const Tensor& weights,
                   const std::function<Tensor(std::size_t expert, const Tensor& x)>& expert);

struct MixtureOutput {
  Tensor output;
  Tensor balance_loss;  ///< rank 0
};
inline std::vector<Tensor*> tensors_of(MixtureOutput& result) { return {&result.output, &result.balance_loss}; }

/// Experts of one type, of which each example goes to k: x (…, in) → (…, out).
///
///     nn::MixtureOfExperts<nn::Linear> mixture{*this, "mixture", 64, 8, {.k = 2}, 64, 128};   // eight Linear(64, 128)
///     auto [y, balance] = mixture(x);
///     Tensor loss = … + balance;
///
/// The time is that of k experts, whatever their number. `Expert` is made of the last arguments, and gives a
/// tensor (n, out) for one (n, in).
template <class Expert>
struct MixtureOfExperts : Module {
  NoisyTopKGate gate;
  ModuleList<Expert> experts{*this, "experts"};

  template <class... Arguments>
  MixtureOfExperts(std::int64_t in, std::int64_t expert_count, NoisyTopKGateOptions options, Arguments&&... arguments)
      : gate(*this, "gate", in, expert_count, options) {
    for (std::int64_t i = 0; i < expert_count; ++i) experts.push_back(Expert(arguments...));
  }
  template <class... Arguments>
  MixtureOfExperts(Module& parent, Name name, std::int64_t in, std::int64_t expert_count, NoisyTopKGateOptions options,
                   Arguments&&... arguments)
      : MixtureOfExperts(in, expert_count, options, std::forward<Arguments>(arguments)...) {
    join(parent, name.text, name.where);
  }

  /// Throws: ShapeError unless x ends in an axis of size `in`.
  MixtureOutput operator()(const Arg& x) const {
    return call("MixtureOfExperts", x, [&](const Tensor& x) { return run(x); });
  }

 private:
  MixtureOutput run(const Tensor& x) const;
};

template <class Expert>
MixtureOutput MixtureOfExperts<Expert>::run(const Tensor& x) const {
  Tensor examples = reel::detail::as_examples(x, gate.weight.size(0));
  Gates gates = gate(examples);
  Tensor y = mix_experts(examples, gates.weights, [&](std::size_t i, const Tensor& rows) { return experts[i](rows); });
  return {reel::detail::as_before(y, x), gates.balance_loss};
}

}  // namespace reel::nn
