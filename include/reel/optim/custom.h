#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

#include <reel/optim/optimiser.h>

namespace reel::optim {

/// Base class of an optimiser of your own, whose update is written with ops:
///
///     struct LionOptions {
///       double learning_rate = 1e-4, beta1 = 0.9, beta2 = 0.99;
///     };
///
///     struct OwnLion : optim::CustomOptimiser<LionOptions> {
///       OwnLion(std::vector<Tensor> parameters, const LionOptions& options) : CustomOptimiser("OwnLion", {"mean"}) {
///         add_group(std::move(parameters), options);
///       }
///       void update(Tensor& w, Tensor g, std::span<Tensor> state, const LionOptions& o, std::int64_t) const override {
///         Tensor& m = state[0];
///         w -= o.learning_rate * sign(o.beta1 * m + (1 - o.beta1) * g);
///         m = o.beta2 * m + (1 - o.beta2) * g;
///       }
///     };
///
/// Groups, schedules, `state()` and `load_state` are those of any optimiser. `Options` is an aggregate with a member
/// `double learning_rate` and, for an optimiser with a momentum, `double momentum` or `double beta1`.
///
/// A step calls `update` for one parameter after the other and takes over the results at the end: if a call throws,
/// nothing has changed. Until then the new values of all parameters and of their state are in memory beside the old
/// ones. Gradients by rows are an error, as is a step while a `cuda::Graph` is recorded.
template <class Options>
class CustomOptimiser : public OptimiserWith<Options> {
 protected:
  /// An optimiser without parameters. `name`: letters and digits, by which its states are told from those of others.
  /// `state`: the names of the tensors that it keeps for each parameter, 8 at most. Both must outlive the optimiser, as
  /// literals do.
  /// Throws: Error for a name that is empty or has other characters, for two equal names and for more than 8.
  explicit CustomOptimiser(const char* name, std::initializer_list<const char*> state = {},
                           Location where = Location::here())
      : OptimiserWith<Options>(name), state_(Optimiser::named_state(name, state, where)) {}

  /// Updates a parameter. `parameter`, `gradient` and `state` are copies, on which nothing records: they may be
  /// overwritten or replaced by tensors of equal shape, dtype and device. The parameter and its state become what they
  /// are when the function returns. `step`: the number of the step that the parameter makes, from 1.
  virtual void update(Tensor& parameter, Tensor gradient, std::span<Tensor> state, const Options& options,
                      std::int64_t step) const = 0;
  /// The value of a tensor of state before a parameter's first step, of any shape and dtype; by default zeros of the
  /// parameter's. `index`: that of its name.
  virtual Tensor initial_state(const Tensor& parameter, std::size_t index, const Options& options) const {
    static_cast<void>(options);
    return this->Optimiser::new_kept(parameter, 0, index);
  }
  /// Checks options; by default the learning rate, at least 0, and the momentum, in [0, 1).
  /// Throws: Error for options out of range.
  void check(const Options& options, Location where) const override {
    this->check_rate_and_momentum(options.learning_rate, this->momentum_in(options), where);
  }

 private:
  Optimiser::KeptNames kept_names(std::size_t) const final { return state_; }
  Tensor new_kept(const Tensor& parameter, std::size_t group, std::size_t index) const final {
    return initial_state(parameter, index, this->options(group));
  }
  void make_step(Location where) final {
    this->make_step_of_ops(
        [this](std::size_t group, Tensor& parameter, Tensor gradient, std::span<Tensor> state, std::int64_t step) {
          update(parameter, std::move(gradient), state, this->options(group), step);
        },
        where);
  }

  Optimiser::KeptNames state_;
};

}  // namespace reel::optim
