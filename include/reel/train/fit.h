#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <reel/detail/saved_value.h>
#include <reel/nn/module.h>
#include <reel/optim/optimiser.h>
#include <reel/random.h>
#include <reel/tensor.h>

namespace reel::logging {
class Writer;
}  // namespace reel::logging

/// \namespace reel::nn::training
/// `fit`, metrics and progress, whose names are those of reel::train: include reel/train.h.
namespace reel::nn::inline training {

/// A mini-batch: inputs x (N, …) and targets y (N, …).
struct Batch {
  Tensor x,  ///< (N, …): inputs
      y;     ///< (N, …): targets
};

}  // namespace reel::nn::inline training

namespace reel::detail {

template <class Range>
concept BatchRange = requires(Range& range) {
  *range.begin();
  range.end();
};

// The type of a range's elements: batches of two tensors are `Batch`, also those that convert to it.
template <BatchRange Range>
struct BatchTypeOf {
  using Item = decltype(*std::declval<Range&>().begin());
  using Type = std::conditional_t<std::convertible_to<Item, const nn::Batch&>, nn::Batch, std::remove_cvref_t<Item>>;
};

}  // namespace reel::detail

namespace reel::nn::inline training {

/// The type of the batches that a range gives: `Batch` if they convert to it.
template <class Range>
using BatchOf = typename detail::BatchTypeOf<Range>::Type;

/// The result of a step function of `fit` for a batch: the loss, and the tensors that metrics need.
struct FitStep {
  Tensor loss;             ///< one number: the mean over the batch's examples, to be minimised
  Tensor prediction = {};  ///< for metrics; may be undefined without them
  Tensor y = {};           ///< the targets (N, …), for metrics; may be undefined without them
  /// The number of examples, by which the mean over batches is weighted. 0 (default): N of y; 1 if y is undefined.
  std::int64_t examples = 0;
};

/// A source of mini-batches: tensors in memory, a range of batches, or a function.
class Data {
 public:
  /// Called with each `Batch` of one epoch.
  using Use = std::function<void(const Batch&)>;

  /// No data.
  Data() = default;
  /// Examples in memory, x and y (N, …): `fit` divides them into mini-batches, in a new order each epoch if it
  /// shuffles.
  /// Throws: ShapeError unless x and y have one N; Error for an undefined tensor.
  Data(const Tensor& x, const Tensor& y, Location where = Location::here());
  /// Any range of batches, iterated once per epoch: of `Batch`, or, for a step function, of a type of the program's own.
  /// An lvalue range is held by reference and must outlive this object; an rvalue is moved in. The position of one with
  /// `state()` and `load_state(state)`, such as a data::Loader, is saved with a checkpoint.
  template <class Range>
    requires detail::BatchRange<Range> && (!std::same_as<std::remove_cvref_t<Range>, Data>)
  Data(Range&& range) : batch_type_(&typeid(BatchOf<Range>)) {
    if constexpr (std::is_lvalue_reference_v<Range>) {
      iterate_ = [&range](const UseAny& use) { pass(range, use); };
      keep_state(range);
    } else {
      auto kept = std::make_shared<Range>(std::forward<Range>(range));
      iterate_ = [kept](const UseAny& use) { pass(*kept, use); };
      keep_state(*kept);
    }
  }
  /// A function that returns the next batch, and nothing at the end of each epoch.
  template <class Next>
    requires std::is_invocable_r_v<std::optional<Batch>, Next&>
  Data(Next next) {
    iterate_ = [kept = std::make_shared<Next>(std::move(next))](const UseAny& use) {
      while (std::optional<Batch> batch = (*kept)()) use(&*batch);
    };
  }

  /// True unless there is no data.
  bool defined() const { return x_.defined() || iterate_; }
  /// The number of examples; −1 if it is not known in advance.
  std::int64_t size() const { return x_.defined() ? x_.size(0) : -1; }
  /// Calls `use` with each batch of one epoch. Examples in memory are divided into batches of `batch_size`, the last
  /// one smaller; in order without a generator, else shuffled by it. The first `passed` batches are left out.
  /// Throws: Error for batches of another type.
  void for_each(std::int64_t batch_size, Generator* generator, const Use& use, std::int64_t passed = 0) const;
  /// Calls `use` with the address of each batch of one epoch, of the type `batch_type()`. Examples in memory are divided
  /// into batches of `batch_size`, the last one smaller; in order without a generator, else shuffled by it. The first
  /// `passed` batches are left out.
  void for_each_address(std::int64_t batch_size, Generator* generator, const std::function<void(const void*)>& use,
                        std::int64_t passed = 0) const;
  /// The type of the batches.
  const std::type_info& batch_type() const { return *batch_type_; }
  /// Reads and restores the position of a range that keeps one; empty functions for other data. For the library's own
  /// use.
  const detail::SavedState& position() const { return position_; }

 private:
  using UseAny = std::function<void(const void*)>;

  template <class Range>
  static void pass(Range& range, const UseAny& use) {
    for (const BatchOf<Range>& batch : range) use(&batch);
  }

  template <class Range>
  void keep_state(Range& range) {
    if constexpr (detail::HasState<Range>) position_ = detail::saved_state(range);
  }

  Tensor x_, y_;
  std::function<void(const UseAny&)> iterate_;
  const std::type_info* batch_type_ = &typeid(Batch);
  detail::SavedState position_;
};

/// A loss function: maps (prediction, target) to a scalar tensor to be minimised. Any callable, or one of reel's losses
/// such as `cross_entropy`.
class FitLoss {
 public:
  /// A callable of prediction and target.
  template <class F>
    requires std::is_invocable_r_v<Tensor, const F&, const Tensor&, const Tensor&>
  FitLoss(F f) : f_(std::move(f)) {}
  /// One of reel's losses, with its default options.
  template <class Options>
  FitLoss(Tensor (*f)(const Arg&, const Arg&, Options))
      : f_([f](const Tensor& prediction, const Tensor& y) {
          return f(prediction, y, std::remove_cvref_t<Options>{});
        }) {}

  /// The loss of a prediction and its target.
  Tensor operator()(const Tensor& prediction, const Tensor& y) const { return f_(prediction, y); }

 private:
  std::function<Tensor(const Tensor&, const Tensor&)> f_;
};

/// A number that measures predictions; over several batches its mean, weighted by their numbers of examples.
struct Metric {
  std::string name;  ///< as it is printed
  /// Maps (prediction, target) to the number.
  std::function<double(const Tensor& prediction, const Tensor& y)> measure;
};

/// The share of correct predictions: of logits (N, C, …) with class indices (N, …) of i32 or i64; or, for one logit
/// each, in the shape of floating y, which are 0 or 1.
/// Throws: ShapeError unless the shapes fit.
double accuracy(const Tensor& prediction, const Tensor& y);

/// The results of an epoch.
struct EpochReport {
  int epoch = 0;    ///< its number, from `first_epoch` of the options
  double loss = 0;  ///< the mean loss over the training examples
  /// The mean loss over the validation examples; NaN without validation.
  double validation_loss = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> metrics = {};             ///< the metrics while training, in the order of the options
  std::vector<double> validation_metrics = {};  ///< the metrics on the validation data; empty without validation
  double seconds = 0;                           ///< its duration
};

/// The results of `fit`.
struct FitReport {
  std::vector<EpochReport> epochs = {};  ///< of each epoch
  int best = 0;                          ///< the number of the epoch with the least loss, of validation if there is any
};

/// Options of `fit`.
struct FitOptions {
  int epochs = 10;  ///< the last epoch, counted from 1; at least 0, default 10
  /// The first epoch, at least 1: for a training that goes on from weights of an earlier one. Default 1.
  int first_epoch = 1;
  /// The number of examples of a mini-batch, for examples in memory; at least 1. Default 32.
  std::int64_t batch_size = 32;
  bool shuffle = true;  ///< whether examples in memory are shuffled each epoch; default true
  /// The generator that shuffles; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
  /// Validation data, evaluated after each epoch with the model out of training mode. Default: none.
  Data validation = {};
  std::vector<Metric> metrics = {};  ///< metrics besides the loss; default none
  /// Stops after this many epochs in a row without an improvement of the loss, of validation if there is any, and
  /// restores the weights of the epoch with the least one. 0 (default): runs to the end and keeps the last weights.
  int patience = 0;
  /// By how much a loss must be smaller than at the last improvement to be one; at least 0. Default 0.
  double least_improvement = 0;
  /// The largest norm of all gradients, above 0; see optim::clip_grad_norm. Default ∞: no clipping.
  double clip_norm = std::numeric_limits<double>::infinity();
  /// bf16 or f16: the precision of products, as in `autocast`; f16 with an optim::LossScaler. Default f32.
  DType autocast = DType::f32;
  /// Called after each step of the optimiser: for a schedule, `[&] { scheduler.step(); }`. Default: none.
  std::function<void()> after_step = {};
  /// Called after each epoch; false ends the training, which a later `fit` with the checkpoint continues. Default: none.
  std::function<bool(const EpochReport&)> after_epoch = {};
  /// Where each epoch's results are logged, at the number of steps of the optimiser so far: "loss" and the metrics by
  /// their names, for the runs "train" and "validation"; "epoch", "learning_rate" (of further groups "learning_rate/1"
  /// and so on) and "seconds". A training that resumes from a checkpoint continues the curves. It must outlive the call;
  /// null (default): nowhere.
  logging::Writer* log = nullptr;
  /// Every how many steps the loss of the batch and the learning rate are logged, too, as "step/loss" and
  /// "step/learning_rate"; at least 0, default 0: never.
  std::int64_t log_steps = 0;
  /// A train::Checkpoint. Saves the run after each epoch, and after each `every` steps of its options, with what else it
  /// holds; model, optimiser and `generator` are added to it if they are missing. `fit` first resumes from it, unless the
  /// program has: at the batch where the run was. A later `fit` with this checkpoint continues the run, too, and
  /// returns at once if it has made its epochs. Data in memory, and a range that keeps its position, continue at that
  /// batch; another range, or a function, is iterated up to it. The score of a snapshot is the loss, of validation if
  /// there is any, or its negation where the checkpoint prefers larger scores. A signal ends the run after the step that
  /// it arrives in: see `train::Interruption`, which `fit` begins if none lives. Default: none.
  FitCheckpoint* checkpoint = nullptr;
  /// Whether a progress bar, and a line for each epoch, are printed to stdout. Default true.
  bool prints = true;
};

}  // namespace reel::nn::inline training

namespace reel::detail {

// A step function for a batch of a type that `fit` has checked.
using AnyFitStep = std::function<nn::FitStep(const void* batch)>;

nn::FitReport fit(nn::Module& model, const AnyFitStep& step, const std::type_info& batch_type,
                  optim::Optimiser& optimiser, const nn::Data& training, const nn::FitOptions& options, Location where);

}  // namespace reel::detail

namespace reel::nn::inline training {

/// Trains a model whose prediction is forward(x): in each epoch, for each batch, makes a step of the optimiser on the
/// gradients of the loss.
///
///     train::fit(net, [&](const Tensor& x) { return net(x); }, cross_entropy, adam, {x, y}, {.epochs = 20});
///
/// Training mode is set as needed, and restored for each part afterwards: parts that are out of training mode within a
/// model in training mode, such as a frozen BatchNorm, stay so; a model that is itself out of training mode is trained
/// as a whole. Losses are means over examples. A validation loss that is NaN is treated as +∞.
/// Throws: Error for a loss that is not finite, with a LossScaler for that of an epoch, for options out of range and
/// for no examples; FileError if the log cannot be written; with a checkpoint, train::Interrupted after a signal, once
/// the run is saved, and what saving and resuming throw; what the model and its loss throw.
FitReport fit(Module& model, const std::function<Tensor(const Tensor&)>& forward, const FitLoss& loss,
              optim::Optimiser& optimiser, const Data& training, const FitOptions& options = {},
              Location where = Location::here());
/// Trains a model whose prediction is model(x): in each epoch, for each batch, makes a step of the optimiser on the
/// gradients of the loss.
///
///     train::fit(net, cross_entropy, adam, {x, y}, {.epochs = 20, .metrics = {{"accuracy", train::accuracy}}});
///
/// Training mode is set as needed, and restored for each part afterwards: parts that are out of training mode within a
/// model in training mode, such as a frozen BatchNorm, stay so; a model that is itself out of training mode is trained
/// as a whole. Losses are means over examples. A validation loss that is NaN is treated as +∞.
/// Throws: Error for a loss that is not finite, with a LossScaler for that of an epoch, for options out of range and
/// for no examples; FileError if the log cannot be written; with a checkpoint, train::Interrupted after a signal, once
/// the run is saved, and what saving and resuming throw; what the model and its loss throw.
template <class Model>
  requires std::derived_from<Model, Module> && std::is_invocable_r_v<Tensor, Model&, const Tensor&>
FitReport fit(Model& model, const FitLoss& loss, optim::Optimiser& optimiser, const Data& training,
              const FitOptions& options = {}, Location where = Location::here()) {
  return fit(
      model, [&model](const Tensor& x) -> Tensor { return model(x); }, loss, optimiser, training, options, where);
}
/// Trains a model on batches of any type, such as several inputs, ragged sequences (`Packed`) or trees: in each epoch,
/// for each batch, makes a step of the optimiser on the gradients of step(batch).loss. `step` returns the loss, or a
/// FitStep, which metrics need; it is called for the validation data, too, with the model out of training mode.
///
///     auto step = [&](const Pair& pair) { return cross_entropy(model(pair.premise, pair.hypothesis), pair.label); };
///     train::fit(model, step, adam, loader, {.epochs = 20});
///
/// Training mode is set as needed, and restored for each part afterwards: parts that are out of training mode within a
/// model in training mode, such as a frozen BatchNorm, stay so; a model that is itself out of training mode is trained
/// as a whole. A validation loss that is NaN is treated as +∞.
/// Throws: Error for a loss that is not finite, with a LossScaler for that of an epoch, for options out of range, for no
/// examples, and for validation data of another type of batch; FileError if the log cannot be written; with a
/// checkpoint, train::Interrupted after a signal, once the run is saved, and what saving and resuming throw; what `step`
/// throws.
template <class Step, class Range>
  requires detail::BatchRange<Range> && std::is_invocable_v<Step&, const BatchOf<Range>&>
FitReport fit(Module& model, Step step, optim::Optimiser& optimiser, Range&& training, const FitOptions& options = {},
              Location where = Location::here()) {
  using B = BatchOf<Range>;
  const detail::AnyFitStep any = [&](const void* batch) -> FitStep {
    if constexpr (std::convertible_to<std::invoke_result_t<Step&, const B&>, Tensor>)
      return {.loss = step(*static_cast<const B*>(batch))};
    else
      return step(*static_cast<const B*>(batch));
  };
  return detail::fit(model, any, typeid(B), optimiser, Data(std::forward<Range>(training)), options, where);
}

}  // namespace reel::nn::inline training
