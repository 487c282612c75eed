#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <reel/detail/immovable.h>
#include <reel/named_tensor.h>
#include <reel/tensor.h>

namespace reel::detail {
class UpdateStep;
class StateReader;
}  // namespace reel::detail

namespace reel::optim {

/// Base class of the optimisers: updates parameters from their accumulated gradients. An optimiser of your own derives
/// from CustomOptimiser.
///
///     tape.backward(loss);
///     optimiser.step();
///     optimiser.zero_grad();
///
/// Gradients of several backward passes accumulate until `zero_grad`; for the mean of n losses divide each by n, or all
/// at the end with `scale_grad(parameters, 1.0 / n)`.
///
/// Parameters come in groups, each with options of its own: those of the constructor are group 0. A parameter that is
/// frozen (requires_grad(false)) is not updated while it is, and one whose module has replaced it by another tensor
/// since, as `to(dtype)` does, is an error.
///
/// A parameter that no optimiser holds, such as one of a layer that is not registered with its module, stays as it is:
/// where a backward pass gives gradients to it and to those of an optimiser, and does so again after a step that did
/// not update it, a warning on stderr names it, once.
class Optimiser : detail::Immovable {
 public:
  /// Releases the parameters.
  virtual ~Optimiser();

  /// Updates every parameter that has a gradient; the others stay as they are. For one with a gradient by rows, only
  /// those rows are updated, and the state that the optimiser keeps for them: the time does not depend on the number of
  /// other rows. An open tape that still needs the old values throws in its backward pass. After an exception nothing
  /// has changed.
  /// Throws: Error for a parameter that its module has replaced, and for a gradient by rows unless this is SGD, Adagrad
  /// or Adam; what `update` of a CustomOptimiser throws.
  void step(Location where = Location::here());
  /// Clears the gradients, calls `loss`, which computes a loss, differentiates it and returns its value, and makes a
  /// step; LBFGS calls it several times. Returns the first value.
  /// Throws: Error for a parameter that its module has replaced, and for a gradient by rows unless this is SGD,
  /// Adagrad, Adam or LBFGS; what `loss` throws.
  double step(const std::function<double()>& loss, Location where = Location::here());
  /// Clears the gradient of every parameter: `grad()` is undefined afterwards.
  void zero_grad() const;

  /// The parameters of all groups, one group after another.
  const std::vector<Tensor>& parameters() const { return parameters_; }
  /// The number of groups.
  virtual std::size_t group_count() const = 0;

  /// The learning rate of a group. Throws: IndexError for a group that does not exist.
  double learning_rate(std::size_t group = 0, Location where = Location::here()) const;
  /// Sets the learning rate of all groups, at least 0; takes effect with the next step.
  /// Throws: Error unless it is 0 or more.
  void set_learning_rate(double rate, Location where = Location::here());
  /// Sets the learning rate of one group, at least 0; takes effect with the next step.
  /// Throws: Error unless it is 0 or more; IndexError for a group that does not exist.
  void set_learning_rate(std::size_t group, double rate, Location where = Location::here());
  /// True for an optimiser with a momentum: that of SGD and RMSprop, β₁ of Adam and its variants and of Lion.
  bool has_momentum() const;
  /// The momentum of a group, or its β₁.
  /// Throws: Error if the optimiser has none; IndexError for a group that does not exist.
  double momentum(std::size_t group = 0, Location where = Location::here()) const;
  /// Sets the momentum of a group, or its β₁, in [0, 1); takes effect with the next step.
  /// Throws: Error if the optimiser has none, or unless it is in [0, 1); IndexError for a group that does not exist.
  void set_momentum(std::size_t group, double momentum, Location where = Location::here());

  /// Copies of all that a step depends on beside parameters, gradients and the other options: "optimiser", its name in
  /// u8; "steps" (parameters), i64; "learning_rate" and "momentum" (groups), f64; "rate_factor" (groups), f64, if a
  /// Plateau has reduced a rate, which is "learning_rate" times that; "groups" (parameters), i64, if there are several;
  /// for each parameter that has made a step, "7.mean" and the like, by the index of the parameter in `parameters()`;
  /// for a velocity that begins with the next step, no elements.
  std::vector<NamedTensor> state(Location where = Location::here()) const;
  /// Restores, to the bit, what `state()` of an optimiser of this kind gave for parameters of equal shapes, order and
  /// groups. A state of another kind is refused, also where the names agree, as those of Adam and AdamW do; options
  /// need not be equal: SGD takes its momentum from the state, Adam with `amsgrad` lacks a tensor in a state without.
  /// After an exception nothing has changed.
  /// Throws: Error for another kind, for other groups, and for a name that is missing or unknown; ShapeError or
  /// DTypeError for a tensor that does not fit.
  void load_state(std::span<const NamedTensor> state, Location where = Location::here());
  /// Restores, to the bit, what `state()` of an optimiser of this kind gave for parameters of equal shapes, order and
  /// groups. A state of another kind is refused, also where the names agree, as those of Adam and AdamW do; options
  /// need not be equal: SGD takes its momentum from the state, Adam with `amsgrad` lacks a tensor in a state without.
  /// After an exception nothing has changed.
  /// Throws: Error for another kind, for other groups, and for a name that is missing or unknown; ShapeError or
  /// DTypeError for a tensor that does not fit.
  void load_state(const std::vector<NamedTensor>& state, Location where = Location::here());

 protected:
  /// A parameter's progress.
  struct Progress {
    std::int64_t steps = 0;  ///< the steps that it has made
    double product = 1;      ///< the product of NAdam's momenta
    bool moves = false;      ///< true if it has made a step with a momentum, which began a velocity
    /// True if all members are equal.
    friend bool operator==(const Progress&, const Progress&) = default;
  };
  /// A tensor of state that an optimiser keeps for each parameter.
  struct Kept {
    /// When a step needs the tensor; a tensor that no step needs stays as it is.
    enum class Need { always, never, with_momentum };

    const char* name;  ///< its name in `state()`; null: none
    Need need;         ///< when a step needs it
    /// A tensor of the given name.
    Kept(const char* name = nullptr, Need need = Need::always) : name(name), need(need) {}
    /// A tensor of the given name that steps always need, or never.
    Kept(const char* name, bool needed) : Kept(name, needed ? Need::always : Need::never) {}
    /// True if a step with the given momentum needs it.
    bool needed(double momentum) const {
      return name && (need == Need::always || (need == Need::with_momentum && momentum > 0));
    }
  };
  /// The largest number of tensors of state of a parameter.
  static constexpr std::size_t most_kept = 8;
  /// The tensors of state of each parameter; the rest of the array has no names.
  using KeptNames = std::array<Kept, most_kept>;

  /// An optimiser of the given name, which must outlive it, without parameters.
  explicit Optimiser(const char* name) : name_(name) {}
  /// The name of the optimiser, for errors and `state()`.
  const char* name() const { return name_; }

  /// Adds parameters to a group.
  /// Throws: Error for an undefined tensor, one that is not a parameter or that some group has already, and if there is
  /// none for the first group; DTypeError unless f32 or f64; ShapeError unless contiguous.
  void add_parameters(std::vector<Tensor> parameters, std::size_t group, Location where);
  /// Checks the learning rate and the momentum, unless it is NaN, of options.
  /// Throws: Error unless the rate is 0 or more and the momentum in [0, 1).
  void check_rate_and_momentum(double rate, double momentum, Location where) const;
  /// Checks the index of a group. Throws: IndexError for a group that does not exist.
  void check_group(std::size_t group, Location where) const;

  /// The learning rate of a group.
  virtual double rate_of(std::size_t group) const = 0;
  /// Sets the learning rate of a group.
  virtual void put_rate(std::size_t group, double rate) = 0;
  /// The momentum of a group; NaN if the optimiser has none.
  virtual double momentum_of(std::size_t group) const = 0;
  /// Sets the momentum of a group.
  virtual void put_momentum(std::size_t group, double momentum) = 0;

  /// A group's learning rate, in two factors, so that a Scheduler and a Plateau do not undo each other's changes.
  struct Rate {
    double scheduled = 0,  ///< the rate without the reductions of a Plateau, which a Scheduler sets
        factor = 1;        ///< the reductions, which a Plateau sets
  };
  /// A group's learning rate in two factors; a rate that was set otherwise is scheduled, with factor 1.
  Rate rate_parts(std::size_t group) const;
  /// Sets a group's learning rate by its two factors.
  void put_rate_parts(std::size_t group, const Rate& rate);
  /// Adds "learning_rate" and, if a rate was reduced, "rate_factor" to a state.
  void add_rates(std::vector<NamedTensor>& state) const;
  /// Reads the learning rates of all groups from a state. Throws: Error for a rate or a factor out of range.
  std::vector<Rate> read_rates(detail::StateReader& reader, Location where) const;
  /// Checks that a state is that of this kind of optimiser. Throws: Error if it is not.
  void check_kind(detail::StateReader& reader, Location where) const;

  /// Tensors of state that steps always need.
  /// Throws: Error for an empty name or one with other characters than letters, digits and '_', for two equal names, for
  /// more than `most_kept`, and for an optimiser's name with other characters than letters and digits.
  static KeptNames named_state(const char* optimiser, std::initializer_list<const char*> names, Location where);
  /// The tensors of state that a parameter of a group has; by default none.
  virtual KeptNames kept_names(std::size_t) const { return {}; }
  /// The initial value of such a tensor, by its index, for a parameter of a group; by default zeros of the parameter's
  /// shape.
  virtual Tensor new_kept(const Tensor& parameter, std::size_t group, std::size_t index) const;
  /// The coefficients of an update step of a parameter on a device; `progress` includes this step.
  virtual detail::UpdateStep update_step(std::size_t group, Progress& progress, Device device) const;
  /// True if the optimiser accepts gradients by rows; by default false.
  virtual bool takes_rows() const { return false; }
  /// True if `Progress::product` belongs to the state; by default false.
  virtual bool keeps_product() const { return false; }

  /// Makes a step; an optimiser whose update is not elementwise overrides it.
  virtual void make_step(Location where);
  /// Updates copies of a parameter of the given group and of its state; the last argument is the number of the step.
  using UpdateFunction = std::function<void(std::size_t group, Tensor& parameter, Tensor gradient,
                                            std::span<Tensor> state, std::int64_t step)>;
  /// Makes a step: calls `update` for every parameter that has a gradient, and takes over all results when all calls
  /// have returned.
  /// Throws: Error for a gradient by rows, an undefined result, and while a graph is recorded; ShapeError, DTypeError or
  /// DeviceError for a result that differs from the tensor it replaces in shape, dtype or device; what `update` throws.
  void make_step_of_ops(const UpdateFunction& update, Location where);
  /// Makes a step with a function that computes the loss and its gradients; returns the first value.
  virtual double minimise(const std::function<double()>& loss, Location where);
  /// Adds the tensors of `state()` to a list.
  virtual void add_state(std::vector<NamedTensor>& state) const;
  /// Restores the optimiser from a state.
  /// Throws: Error, ShapeError or DTypeError for one that does not fit, and changes nothing then.
  virtual void take_state(std::span<const NamedTensor> state, Location where);

 private:
  friend class Plateau;
  friend class Scheduler;
  class Step;
  class RecordedStep;
  class StepOfOps;
  // The state of the parameter with that index.
  struct Memory {
    std::size_t group;
    Progress progress = {};
    std::array<Tensor, most_kept> kept = {};
  };

  /// Throws: ShapeError, Error for a state of other groups.
  void check_groups(detail::StateReader& reader, Location where) const;
  /// The group of each parameter.
  std::vector<std::int64_t> groups() const;
  Tensor no_velocity(std::size_t index) const;

  const char* name_;
  std::vector<Tensor> parameters_;
  std::vector<Memory> memories_;
  std::vector<Rate> rates_;               // of each group, as a Scheduler, a Plateau or a state put it last
  std::shared_ptr<const char> presence_;  // what a graph that repeats a step knows this by
};

/// An optimiser whose groups have options of one type, which has a learning rate and perhaps a momentum.
template <class Options>
class OptimiserWith : public Optimiser {
 public:
  /// Adds a group of parameters with options of its own.
  /// Throws: Error for options out of range, for an undefined tensor, and for one that is not a parameter or that a
  /// group has already; DTypeError unless f32 or f64; ShapeError unless contiguous.
  void add_group(std::vector<Tensor> parameters, const Options& options = {}, Location where = Location::here()) {
    check(options, where);
    add_parameters(std::move(parameters), options_.size(), where);
    options_.push_back(options);
  }
  /// The number of groups.
  std::size_t group_count() const override { return options_.size(); }
  /// The options of a group. Throws: IndexError for a group that does not exist.
  const Options& options(std::size_t group = 0, Location where = Location::here()) const {
    check_group(group, where);
    return options_[group];
  }
  /// Replaces the options of a group; takes effect with the next step.
  /// Throws: IndexError for a group that does not exist; Error for options out of range.
  void set_options(std::size_t group, const Options& options, Location where = Location::here()) {
    check_group(group, where);
    check(options, where);
    options_[group] = options;
  }

 protected:
  using Optimiser::Optimiser;
  /// Checks options. Throws: Error for options out of range.
  virtual void check(const Options& options, Location where) const = 0;
  /// The momentum of options, or their β₁; NaN if they have none.
  static double momentum_in(Options options) {
    const double* momentum = find_momentum(options);
    return momentum ? *momentum : std::numeric_limits<double>::quiet_NaN();
  }

 private:
  static double* find_momentum(Options& options) {
    if constexpr (requires { options.momentum; })
      return &options.momentum;
    else if constexpr (requires { options.beta1; })
      return &options.beta1;
    else
      return nullptr;
  }
  double rate_of(std::size_t group) const override { return options_[group].learning_rate; }
  void put_rate(std::size_t group, double rate) override { options_[group].learning_rate = rate; }
  double momentum_of(std::size_t group) const override { return momentum_in(options_[group]); }
  void put_momentum(std::size_t group, double momentum) override { *find_momentum(options_[group]) = momentum; }

  std::vector<Options> options_;
};

}  // namespace reel::optim
