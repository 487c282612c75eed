#pragma once

#include <concepts>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <reel/nn/module.h>
#include <reel/optim/optimiser.h>
#include <reel/random.h>
#include <reel/tensor.h>

namespace reel::nn {

/// Some examples, by the first axis, and what a model should make of them.
struct Batch {
  Tensor x, y;
};

/// Where batches come from.
class Data {
 public:
  /// Calls f with each batch of one pass.
  using Use = std::function<void(const Batch&)>;

  /// None.
  Data() = default;
  /// Examples in memory, (N, …) each: `fit` cuts them into batches, in another order each time if it is told to shuffle.
  /// Throws: ShapeError unless x and y have as many.
  Data(const Tensor& x, const Tensor& y, Location where = Location::here());
  /// Anything that can be walked through and gives batches, once for each pass. What is not a temporary is referred to.
  template <class Range>
    requires requires(Range& range) {
      { *range.begin() } -> std::convertible_to<const Batch&>;
      range.end();
    } && (!std::same_as<std::remove_cvref_t<Range>, Data>)
  Data(Range&& range) {
    if constexpr (std::is_lvalue_reference_v<Range>)
      walk_ = [&range](const Use& use) { pass(range, use); };
    else
      walk_ = [kept = std::make_shared<Range>(std::move(range))](const Use& use) { pass(*kept, use); };
  }
  /// A function that gives the next batch, and nothing at the end of each pass.
  template <class Next>
    requires std::is_invocable_r_v<std::optional<Batch>, Next&>
  Data(Next next) {
    walk_ = [kept = std::make_shared<Next>(std::move(next))](const Use& use) {
      while (std::optional<Batch> batch = (*kept)()) use(*batch);
    };
  }

  bool defined() const { return x_.defined() || walk_; }
  /// How many examples there are; -1: not known before.
  std::int64_t size() const { return x_.defined() ? x_.size(0) : -1; }
  /// One pass. Examples in memory come `batch_size` at a time, the last ones fewer; in order without a generator.
  void for_each(std::int64_t batch_size, Generator* generator, const Use& use) const;

 private:
  template <class Range>
  static void pass(Range& range, const Use& use) {
    for (const Batch& batch : range) use(batch);
  }

  Tensor x_, y_;
  std::function<void(const Use&)> walk_;
};

/// What is to become small: a function of a prediction and the y that goes with it, such as `cross_entropy`.
class FitLoss {
 public:
  template <class F>
    requires std::is_invocable_r_v<Tensor, const F&, const Tensor&, const Tensor&>
  FitLoss(F f) : f_(std::move(f)) {}
  /// One of reel's, with its options as they are by default.
  template <class Options>
  FitLoss(Tensor (*f)(const Arg&, const Arg&, Options))
      : f_([f](const Tensor& prediction, const Tensor& y) {
          return f(prediction, y, std::remove_cvref_t<Options>{});
        }) {}

  Tensor operator()(const Tensor& prediction, const Tensor& y) const { return f_(prediction, y); }

 private:
  std::function<Tensor(const Tensor&, const Tensor&)> f_;
};

/// A number that tells how good predictions are; of several batches it is the mean, weighted by their examples.
struct Metric {
  std::string name;
  std::function<double(const Tensor& prediction, const Tensor& y)> measure;
};

/// The share of right guesses: of logits (N, C, …) with class numbers (N, …) of i32 or i64, or of logits of 1 in the
/// shape of floating y, which are 0 or 1. Throws: ShapeError unless the shapes fit.
double accuracy(const Tensor& prediction, const Tensor& y);

/// What an epoch has given.
struct EpochReport {
  int epoch = 0;  ///< from 1
  double loss = 0;
  double validation_loss = std::numeric_limits<double>::quiet_NaN();  ///< NaN without validation
  std::vector<double> metrics = {};                                   ///< while training, in the order of the options
  std::vector<double> validation_metrics = {};                        ///< empty without validation
  double seconds = 0;
};

struct FitReport {
  std::vector<EpochReport> epochs = {};
  int best = 0;  ///< the epoch with the least loss, of validation where there is one
};

struct FitOptions {
  int epochs = 10;
  /// Of examples in memory.
  std::int64_t batch_size = 32;
  bool shuffle = true;
  /// Shuffles; null: this thread's.
  Generator* generator = nullptr;
  /// Looked at after each epoch, with the model in evaluation.
  Data validation = {};
  std::vector<Metric> metrics = {};
  /// Stops after so many epochs in a row without a smaller loss, of validation where there is one, and gives the model the
  /// weights of the best one. 0: goes to the end and keeps the last.
  int patience = 0;
  /// By how much a loss has to be smaller to count as that.
  double least_improvement = 0;
  /// The largest norm of all gradients; see optim::clip_grad_norm.
  double clip_norm = std::numeric_limits<double>::infinity();
  /// bf16 or f16: the precision of products, as in `autocast`; f16 with an optim::LossScaler.
  DType autocast = DType::f32;
  /// Called after each step of the optimiser: for a schedule, `[&] { scheduler.step(); }`.
  std::function<void()> after_step = {};
  /// Called after each epoch; false ends the training.
  std::function<bool(const EpochReport&)> after_epoch = {};
  /// Whether a progress bar, and a line for each epoch, go to stdout.
  bool prints = true;
};

/// Trains a model: for each epoch, all batches; for each batch, a step of the optimiser on the loss's gradients.
///
///     nn::fit(net, cross_entropy, adam, {x, y}, {.epochs = 20, .metrics = {{"accuracy", nn::accuracy}}});
///
/// The model trains or evaluates as it should, and each of its parts is afterwards as it was: parts that evaluate within a
/// model that trains, such as a frozen BatchNorm, do so all the time; a model that evaluates itself is trained as a whole.
/// Losses are means over examples. A validation loss that is NaN counts as +∞.
/// Throws: Error for a loss that is not finite, with a LossScaler for an epoch's; for options out of range; what the model
/// and its loss throw.
FitReport fit(Module& model, const std::function<Tensor(const Tensor&)>& forward, const FitLoss& loss,
              optim::Optimiser& optimiser, const Data& training, const FitOptions& options = {},
              Location where = Location::here());
template <class Model>
  requires std::derived_from<Model, Module> && std::is_invocable_r_v<Tensor, Model&, const Tensor&>
FitReport fit(Model& model, const FitLoss& loss, optim::Optimiser& optimiser, const Data& training,
              const FitOptions& options = {}, Location where = Location::here()) {
  return fit(
      model, [&model](const Tensor& x) -> Tensor { return model(x); }, loss, optimiser, training, options, where);
}

}  // namespace reel::nn
