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

/// Keeps the k largest elements along the last axis, of equals the first; the others become −∞, and have no gradient: x
/// (…, n) → (…, n). A softmax of it divides its weight among k.
/// Throws: DTypeError unless floating; ShapeError unless 1 ≤ k ≤ n.
/// Source: Shazeer et al., Outrageously large neural networks (ICLR 2017), equation 5.
Tensor keep_topk(const Arg& x, std::int64_t k);

/// Options of NoisyTopKGate.
struct NoisyTopKGateOptions {
  /// The number of experts that each example goes to, in [1, experts]. Default 2.
  std::int64_t k = 2;
  /// Whether noise is added while training, so that other experts than the best are tried. Default true.
  bool noisy = true;
  double importance_weight = 0.1,  ///< w_importance of the balance loss; at least 0, default 0.1
      load_weight = 0.1;           ///< w_load of the balance loss; at least 0, default 0.1
  /// The initial values of both parameters; null (default): 0, so that experts start with equal chances.
  Initialiser initialiser = {};
  DType dtype = DType::f32;  ///< the parameters' dtype, floating; default f32
  /// The generator of the initial values and of the noise; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// The experts of each example.
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
/// where CV² is the variance over experts, divided by the square of the mean + 10⁻¹⁰: P is the probability that an expert
/// is chosen if its own noise is drawn again. Without noise P is 1 for those that are chosen and has no gradient.
/// Source: Shazeer et al., Outrageously large neural networks (ICLR 2017), section 2.1, 4 and appendix A; 10⁻² and
/// 10⁻¹⁰ from its authors' program.
struct NoisyTopKGate : Module {
  Parameter weight,  ///< (in, experts)
      noise_weight;  ///< (in, experts); undefined without noise

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless sizes are positive and 1 ≤ k ≤ experts; Error for weights of the balance loss below 0.
  NoisyTopKGate(std::int64_t in, std::int64_t experts, NoisyTopKGateOptions options = {},
                Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless sizes are
  /// positive and 1 ≤ k ≤ experts; Error for weights of the balance loss below 0.
  NoisyTopKGate(Module& parent, std::string_view name, std::int64_t in, std::int64_t experts,
                NoisyTopKGateOptions options = {}, Location where = Location::here())
      : NoisyTopKGate(in, experts, options, where) {
    join(parent, name, where);
  }

  /// The options.
  const NoisyTopKGateOptions& options() const { return options_; }
  /// The experts of each example x (N, in). Throws: ShapeError unless x is (N, in).
  Gates operator()(const Arg& x) const;

 private:
  NoisyTopKGateOptions options_;
};
/// The tensors of a result, for hooks.
inline std::vector<Tensor*> tensors_of(Gates& gates) { return {&gates.weights, &gates.balance_loss}; }

/// The weighted sum of experts: y_n = Σ_e weights[n, e] · expert(e, x)_n: x (N, …), weights (N, experts) → (N, …). An
/// expert is called with the examples that have a weight for it, and not at all without any; if there is no example at
/// all, the first is called with none.
/// Throws: ShapeError unless the sizes fit, and an expert returns as many rows as it gets.
Tensor mix_experts(const Arg& x, const Tensor& weights,
                   const std::function<Tensor(std::size_t expert, const Tensor& x)>& expert);

/// The result of MixtureOfExperts.
struct MixtureOutput {
  Tensor output;        ///< (…, out)
  Tensor balance_loss;  ///< rank 0; to be added to the loss, so that all experts are used
};
/// The tensors of a result, for hooks.
inline std::vector<Tensor*> tensors_of(MixtureOutput& result) { return {&result.output, &result.balance_loss}; }

/// A mixture of experts of one type, of which each example goes to k: x (…, in) → (…, out).
///
///     nn::MixtureOfExperts<nn::Linear> mixture{*this, "mixture", 64, 8, {.k = 2}, 64, 128};   // eight Linear(64, 128)
///     auto [y, balance] = mixture(x);
///     Tensor loss = cross_entropy(y, targets) + balance;
///
/// The time is that of k experts, whatever their number. `Expert` is constructed from the last arguments, and maps a
/// tensor (n, in) to (n, out).
template <class Expert>
struct MixtureOfExperts : Module {
  NoisyTopKGate gate;                            ///< chooses the experts of each example
  ModuleList<Expert> experts{*this, "experts"};  ///< the experts

  /// A mixture by itself, not part of a module; `arguments` are those of the constructor of an expert.
  /// Throws: ShapeError unless sizes are positive and 1 ≤ k ≤ expert_count; Error for weights of the balance loss below
  /// 0.
  template <class... Arguments>
  MixtureOfExperts(std::int64_t in, std::int64_t expert_count, NoisyTopKGateOptions options, Arguments&&... arguments)
      : gate(*this, "gate", in, expert_count, options) {
    for (std::int64_t i = 0; i < expert_count; ++i) experts.push_back(Expert(arguments...));
  }
  /// A mixture that is registered in `parent` under `name`; `arguments` are those of the constructor of an expert.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot, and for weights of the balance loss
  /// below 0; ShapeError unless sizes are positive and 1 ≤ k ≤ expert_count.
  template <class... Arguments>
  MixtureOfExperts(Module& parent, Name name, std::int64_t in, std::int64_t expert_count, NoisyTopKGateOptions options,
                   Arguments&&... arguments)
      : MixtureOfExperts(in, expert_count, options, std::forward<Arguments>(arguments)...) {
    join(parent, name.text, name.where);
  }

  /// The weighted sum of the experts of each example, and the balance loss.
  /// Throws: ShapeError unless x ends in an axis of size `in`; Error if x is undefined.
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
