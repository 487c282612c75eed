#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <reel/tensor.h>

namespace reel::nn {
struct NamedTensor;
}
namespace reel::detail {
struct Descent;
class StateReader;
}  // namespace reel::detail

namespace reel::optim {

/// Changes parameters so that the loss whose gradients they hold becomes less.
///
///     tape.backward(loss);
///     optimiser.step();
///     optimiser.zero_grad();
///
/// Gradients of several backwards add up until `zero_grad`: that is gradient accumulation; of n losses take the mean by
/// dividing each by n, or all at the end with `scale_grad(parameters, 1.0 / n)`.
///
/// Parameters come in groups, each with options of its own: those of the constructor are group 0. A parameter that is
/// frozen (requires_grad(false)) is left alone while it is, and one whose module has taken another tensor in its place
/// since, as `to(dtype)` does, is an error.
///
/// A parameter that no optimiser holds, such as one of a layer that is not registered with its module, stays as it is:
/// where a backward gives gradients to it and to those of an optimiser, and does so again after a step that left it
/// alone, a warning on stderr names it, once.
class Optimiser {
 public:
  Optimiser(const Optimiser&) = delete;
  Optimiser& operator=(const Optimiser&) = delete;
  virtual ~Optimiser();

  /// Overwrites every parameter that has a gradient; the others stay as they are. Of one with a gradient by rows, only
  /// those rows are changed, and what the optimiser keeps for them: the time does not depend on how many others there
  /// are. An open tape that still needs the old values throws in its backward. What throws here changes nothing.
  /// Throws: Error for a parameter that its module has replaced, and for a gradient by rows unless this is SGD, Adagrad or
  /// Adam.
  void step(Location where = Location::here());
  /// Forgets the gradients, calls `loss`, which computes a loss, differentiates it and returns its value, and makes a step;
  /// LBFGS calls it several times. Returns the first value.
  double step(const std::function<double()>& loss, Location where = Location::here());
  /// Forgets the gradient of every parameter.
  void zero_grad() const;

  /// Those of all groups, one group after another.
  const std::vector<Tensor>& parameters() const { return parameters_; }
  virtual std::size_t group_count() const = 0;

  /// Throws: IndexError for a group that there is not.
  double learning_rate(std::size_t group = 0, Location where = Location::here()) const;
  /// Of all groups; takes effect with the next step. Throws: Error unless it is 0 or more.
  void set_learning_rate(double rate, Location where = Location::here());
  void set_learning_rate(std::size_t group, double rate, Location where = Location::here());
  /// The momentum of SGD and RMSprop, β₁ of the kinds of Adam and of Lion; the others have none.
  bool has_momentum() const;
  double momentum(std::size_t group = 0, Location where = Location::here()) const;
  /// Throws: Error unless it has one, and the momentum lies in [0, 1).
  void set_momentum(std::size_t group, double momentum, Location where = Location::here());

  /// All that a step depends on beside parameters, gradients and the other options: "optimiser", its name in u8; "steps"
  /// (parameters), i64; "learning_rate" and "momentum" (groups), f64; "rate_factor" (groups), f64, if a Plateau has reduced
  /// a rate, which is "learning_rate" times that; "groups" (parameters), i64, if there are several; for each parameter that has made a step, "7.mean" and the like, by the
  /// parameter's number in `parameters()`; of a velocity that begins with the next step, no elements. Copies: later steps leave them as they are.
  std::vector<nn::NamedTensor> state(Location where = Location::here()) const;
  /// Continues, to the bit, from what `state()` of an optimiser of the same kind gave for parameters of the same shapes
  /// in the same order and in the same groups. A state of another kind is refused, also where the names are the same, as
  /// of Adam and AdamW; of one kind, options need not be equal: SGD takes its momentum from the state, Adam with `amsgrad`
  /// lacks something in a state without. Throws: Error for another kind, for other groups, and for a name that is missing,
  /// or that it does not know; ShapeError, DTypeError; and changes nothing then.
  void load_state(std::span<const nn::NamedTensor> state, Location where = Location::here());
  void load_state(const std::vector<nn::NamedTensor>& state, Location where = Location::here());

 protected:
  /// How far a parameter has come.
  struct Progress {
    std::int64_t steps = 0;
    double product = 1;  ///< of NAdam's momenta
    bool moves = false;  ///< it has made a step with a momentum, which began a velocity
    friend bool operator==(const Progress&, const Progress&) = default;
  };
  /// What is kept for a parameter.
  struct Kept {
    /// What a step needs; what no step needs now stays as it is.
    enum class Need { always, never, with_momentum };

    const char* name;  ///< null: nothing
    Need need;
    Kept(const char* name = nullptr, Need need = Need::always) : name(name), need(need) {}
    Kept(const char* name, bool needed) : Kept(name, needed ? Need::always : Need::never) {}
    bool needed(double momentum) const {
      return name && (need == Need::always || (need == Need::with_momentum && momentum > 0));
    }
  };
  using KeptNames = std::array<Kept, 3>;

  explicit Optimiser(const char* name) : name_(name) {}
  const char* name() const { return name_; }

  /// Throws: Error unless every tensor is a contiguous parameter of f32 or f64 that no group has yet, or if there is none
  /// for the first group.
  void add_parameters(std::vector<Tensor> parameters, std::size_t group, Location where);
  /// Throws: IndexError.
  void check_group(std::size_t group, Location where) const;

  virtual double rate_of(std::size_t group) const = 0;
  virtual void put_rate(std::size_t group, double rate) = 0;
  /// NaN: it has none.
  virtual double momentum_of(std::size_t group) const = 0;
  virtual void put_momentum(std::size_t group, double momentum) = 0;

  /// A group's learning rate, in two parts: what it is without the reductions of a Plateau, and the factor that they are.
  /// A Scheduler sets the one and a Plateau the other, so that neither undoes what the other has done.
  struct Rate {
    double scheduled = 0, factor = 1;
  };
  Rate rate_parts(std::size_t group) const;
  void put_rate_parts(std::size_t group, const Rate& rate);
  void add_rates(std::vector<nn::NamedTensor>& state) const;
  /// Throws: Error for a rate or a factor out of range.
  std::vector<Rate> read_rates(detail::StateReader& reader, Location where) const;
  /// Throws: Error for a state of another kind of optimiser.
  void check_kind(detail::StateReader& reader, Location where) const;

  // What makes each optimiser what it is.

  virtual KeptNames kept_names(std::size_t) const { return {}; }
  /// What is kept starts with this.
  virtual double kept_start(std::size_t) const { return 0; }
  /// The numbers of a step on a device; `progress` counts it already.
  virtual detail::Descent descent(std::size_t group, Progress& progress, Device device) const;
  virtual bool takes_rows() const { return false; }
  virtual bool keeps_product() const { return false; }

  // What LBFGS has in their place.

  virtual void make_step(Location where);
  virtual double minimise(const std::function<double()>& loss, Location where);
  virtual void add_state(std::vector<nn::NamedTensor>& state) const;
  virtual void take_state(std::span<const nn::NamedTensor> state, Location where);

 private:
  friend class Plateau;
  friend class Scheduler;
  class Step;
  class RecordedStep;
  // Beside the parameter of the same number.
  struct Memory {
    std::size_t group;
    Progress progress = {};
    std::array<Tensor, 3> kept = {};
  };

  /// Throws: ShapeError, Error for a state of other groups.
  void check_groups(detail::StateReader& reader, Location where) const;
  /// Of each parameter.
  std::vector<std::int64_t> groups() const;
  Tensor new_kept(std::size_t number) const;
  Tensor no_velocity(std::size_t number) const;

  const char* name_;
  std::vector<Tensor> parameters_;
  std::vector<Memory> memories_;
  std::vector<Rate> rates_;               // of each group, as a Scheduler, a Plateau or a state put it last
  std::shared_ptr<const char> presence_;  // what a graph that repeats a step knows this by
};

/// An optimiser whose groups have options of this type, which have a learning rate and perhaps a momentum.
template <class Options>
class OptimiserWith : public Optimiser {
 public:
  /// Adds parameters with options of their own. Throws: Error, DTypeError, ShapeError as the constructor.
  void add_group(std::vector<Tensor> parameters, const Options& options = {}, Location where = Location::here()) {
    check(options, where);
    add_parameters(std::move(parameters), options_.size(), where);
    options_.push_back(options);
  }
  std::size_t group_count() const override { return options_.size(); }
  /// Throws: IndexError for a group that there is not.
  const Options& options(std::size_t group = 0, Location where = Location::here()) const {
    check_group(group, where);
    return options_[group];
  }
  /// Takes effect with the next step. Throws: IndexError; Error for options out of range.
  void set_options(std::size_t group, const Options& options, Location where = Location::here()) {
    check_group(group, where);
    check(options, where);
    options_[group] = options;
  }

 protected:
  using Optimiser::Optimiser;
  /// Throws: Error for options out of range.
  virtual void check(const Options& options, Location where) const = 0;

 private:
  static double* momentum_in(Options& options) {
    if constexpr (requires { options.momentum; })
      return &options.momentum;
    else if constexpr (requires { options.beta1; })
      return &options.beta1;
    else
      return nullptr;
  }
  double rate_of(std::size_t group) const override { return options_[group].learning_rate; }
  void put_rate(std::size_t group, double rate) override { options_[group].learning_rate = rate; }
  double momentum_of(std::size_t group) const override {
    Options options = options_[group];
    const double* momentum = momentum_in(options);
    return momentum ? *momentum : std::numeric_limits<double>::quiet_NaN();
  }
  void put_momentum(std::size_t group, double momentum) override { *momentum_in(options_[group]) = momentum; }

  std::vector<Options> options_;
};

}  // namespace reel::optim
