#include <reel/train/fit.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include <reel/autocast.h>
#include <reel/logging/writer.h>
#include <reel/ops.h>
#include <reel/optim/clip.h>
#include <reel/optim/loss_scaler.h>
#include <reel/tape.h>
#include <reel/train/checkpoint.h>
#include <reel/train/interruption.h>
#include <reel/train/progress.h>

#include "../core/op_error.h"
#include "../logging/tag.h"
#include "../nn/type_name.h"
#include "../ops/if_needed.h"
#include "checkpoint_state.h"
#include "fit_progress.h"
#include "interruption_handler.h"

namespace reel::nn::inline training {

using namespace detail;

namespace {

constexpr const char* fit_name = "train::fit";

std::int64_t first_size(const Tensor& x) { return x.defined() && x.rank() > 0 ? x.size(0) : 1; }
std::int64_t examples_in(const FitStep& step) { return step.examples > 0 ? step.examples : first_size(step.y); }

void check(const Data& training, const std::type_info& batch_type, const FitOptions& options, Location where) {
  if (!training.defined()) fail<Error>(fit_name, where, "there is nothing to train on");
  for (const Data* data : {&training, &options.validation})
    if (data->defined() && data->batch_type() != batch_type)
      fail<Error>(fit_name, where, "the {} data give batches of type {}, and the step takes {}",
                  data == &training ? "training" : "validation", plain_type_name(data->batch_type()),
                  plain_type_name(batch_type));
  if (options.first_epoch < 1) fail<Error>(fit_name, where, "the first epoch {} is not 1 or more", options.first_epoch);
  if (options.epochs < 0) fail<Error>(fit_name, where, "{} epochs are not 0 or more", options.epochs);
  if (options.batch_size < 1) fail<Error>(fit_name, where, "the batch size {} is not 1 or more", options.batch_size);
  if (options.patience < 0) fail<Error>(fit_name, where, "the patience {} is not 0 or more", options.patience);
  if (!(options.least_improvement >= 0))
    fail<Error>(fit_name, where, "the least improvement {} is not 0 or more", options.least_improvement);
  if (options.log_steps < 0) fail<Error>(fit_name, where, "log_steps is {} and must be 0 or more", options.log_steps);
  if (options.log)
    for (const Metric& metric : options.metrics)
      logging::check_tag(fit_name, "the name of a metric", metric.name, where);
  if (!(options.clip_norm > 0)) fail<Error>(fit_name, where, "the largest norm {} is not above 0", options.clip_norm);
}

// While it lives, a module trains or evaluates; afterwards each of its parts has its former mode. In a training module,
// parts that are set to evaluate stay so, because that was done on purpose.
class Mode : detail::Immovable {
 public:
  Mode(Module& module, bool training) {
    module.for_each_module([&](Module& part) { before_.emplace_back(&part, part.is_training()); });
    if (!training || !module.is_training()) module.train(training);
  }
  // Modules come before their own parts.
  ~Mode() {
    for (auto [part, training] : before_) part->train(training);
  }

 private:
  std::vector<std::pair<Module*, bool>> before_;
};

// Running means over examples, in sums that a caller keeps: the number of examples, of the loss, of the metrics.
class Means {
 public:
  Means(const std::vector<Metric>& metrics, std::vector<double>& sums) : metrics_(metrics), sums_(sums) {}

  void add(const FitStep& step, double loss) {
    NoRecord pause;
    auto examples = static_cast<double>(examples_in(step));
    sums_[0] += examples;
    sums_[1] += examples * loss;
    for (std::size_t i = 0; i < metrics_.size(); ++i)
      sums_[2 + i] += examples * metrics_[i].measure(step.prediction, step.y);
  }
  bool empty() const { return sums_[0] == 0; }
  std::int64_t count() const { return static_cast<std::int64_t>(sums_[0]); }
  double loss() const { return sums_[1] / sums_[0]; }
  std::vector<double> metrics() const {
    std::vector<double> means(sums_.begin() + 2, sums_.end());
    for (double& mean : means) mean /= sums_[0];
    return means;
  }

 private:
  const std::vector<Metric>& metrics_;
  std::vector<double>& sums_;
};

// While it lives, a fit's progress is saved with a checkpoint, and signals are intercepted.
class Keeping : detail::Immovable {
 public:
  Keeping(train::Checkpoint* checkpoint, FitProgress& progress, Location where)
      : checkpoint_(checkpoint), where_(where) {
    if (!checkpoint_) return;
    if (!interruption_lives()) interruption_.emplace();
    CheckpointForFit::begin(*checkpoint_, std::shared_ptr<CheckpointObject>(std::shared_ptr<void>(), &progress), where);
    began_ = true;
  }
  ~Keeping() {
    if (began_) CheckpointForFit::end(*checkpoint_, where_);
  }

  void finish_step() const {
    if (checkpoint_) checkpoint_->after_step(where_);
  }
  // Called between two steps when the source of batches has thrown the exception of a signal.
  void end_if_interrupted() const {
    if (checkpoint_) CheckpointForFit::end_if_interrupted(*checkpoint_, false, where_);
  }
  void finish_epoch(double loss) const {
    if (!checkpoint_) return;
    checkpoint_->save({.score = CheckpointForFit::larger_is_better(*checkpoint_) ? -loss : loss}, where_);
    CheckpointForFit::end_if_interrupted(*checkpoint_, true, where_);
  }
  void finish() const {
    if (checkpoint_) checkpoint_->wait(where_);
  }

 private:
  train::Checkpoint* checkpoint_;
  Location where_;
  std::optional<train::Interruption> interruption_;
  bool began_ = false;
};

// Logs what `fit` has computed, if it has a log.
class FitLog {
 public:
  FitLog(const FitOptions& options, const optim::Optimiser& optimiser, Location where)
      : options_(options), optimiser_(optimiser), where_(where) {}

  // Called before the first step, with the number of steps that are done: if there are some, the run continues.
  void begin(std::int64_t steps) const {
    if (options_.log && steps > 0) options_.log->purge(steps + 1, where_);
  }
  void add_step(std::int64_t step, double loss) const {
    if (!options_.log || options_.log_steps == 0 || step % options_.log_steps != 0) return;
    options_.log->scalar("step/loss", loss, step, where_);
    add_rates("step/learning_rate", step);
  }
  void add_epoch(std::int64_t step, const EpochReport& report) const {
    if (!options_.log) return;
    add("loss", step, report.loss, report.validation_loss);
    for (std::size_t i = 0; i < report.metrics.size(); ++i)
      add(options_.metrics[i].name, step, report.metrics[i],
          options_.validation.defined() ? report.validation_metrics[i] : 0);
    options_.log->scalar("epoch", report.epoch, step, where_);
    options_.log->scalar("seconds", report.seconds, step, where_);
    add_rates("learning_rate", step);
    options_.log->flush(where_);
  }

 private:
  void add(const std::string& tag, std::int64_t step, double training, double validation) const {
    if (options_.validation.defined())
      options_.log->scalars(tag, {{"train", training}, {"validation", validation}}, step, where_);
    else
      options_.log->scalars(tag, {{"train", training}}, step, where_);
  }
  void add_rates(const std::string& tag, std::int64_t step) const {
    for (std::size_t group = 0; group < optimiser_.group_count(); ++group)
      options_.log->scalar(group == 0 ? tag : fmt::format("{}/{}", tag, group), optimiser_.learning_rate(group, where_),
                           step, where_);
  }

  const FitOptions& options_;
  const optim::Optimiser& optimiser_;
  Location where_;
};

class Fitting {
 public:
  Fitting(Module& model, const AnyFitStep& step, optim::Optimiser& optimiser, const Data& training,
          const FitOptions& options, Location where)
      : model_(model),
        step_(step),
        optimiser_(optimiser),
        training_(training),
        options_(options),
        where_(where),
        log_(options, optimiser, where),
        progress_(model, training, options),
        scaler_(progress_.scaler) {}

  FitReport run() {
    auto* checkpoint = static_cast<train::Checkpoint*>(options_.checkpoint);
    if (checkpoint) add_parts(*checkpoint);
    Keeping keeping(checkpoint, progress_, where_);
    log_.begin(progress_.steps);
    FitReport& report = progress_.report;
    while (!is_over()) {
      int epoch = static_cast<int>(progress_.epoch);
      report.epochs.push_back(run_epoch(epoch, keeping));
      const EpochReport& now = report.epochs.back();
      double loss = progress_.loss_of(now);
      if (report.best == 0 || loss < progress_.least) {
        report.best = epoch;
        progress_.least = loss;
        if (options_.patience > 0) progress_.best.keep();
      }
      bool ends = options_.after_epoch && !options_.after_epoch(now);
      progress_.finish_epoch();
      keeping.finish_epoch(loss);
      if (ends) break;
    }
    keeping.finish();
    if (options_.patience > 0 && !report.epochs.empty() && report.best != report.epochs.back().epoch) {
      progress_.best.restore(where_);
      if (options_.prints) fmt::print("the weights are those of epoch {}\n", report.best);
    }
    return report;
  }

 private:
  void add_parts(train::Checkpoint& checkpoint) {
    CheckpointForFit::add_if_missing(checkpoint, "model", model_, &model_, where_);
    CheckpointForFit::add_if_missing(checkpoint, "optimiser", optimiser_, &optimiser_, where_);
    if (options_.generator)
      CheckpointForFit::add_if_missing(checkpoint, "order", *options_.generator, options_.generator, where_);
  }

  bool is_over() const {
    auto done = static_cast<int>(progress_.epoch - 1);
    return done >= options_.epochs ||
           (options_.patience > 0 && done - progress_.last_improvement() >= options_.patience);
  }

  // Calls use with the batches of an epoch that are not done yet.
  void for_each_batch(const std::function<void(const void*)>& use) {
    Generator* generator = options_.generator ? options_.generator : &default_generator();
    if (progress_.batches == 0) progress_.order = *generator;
    // In the middle of an epoch the generator has given its order already.
    Generator order = progress_.order;
    if (progress_.batches > 0) generator = &order;
    training_.for_each_address(options_.batch_size, options_.shuffle ? generator : nullptr, use,
                               training_.position().load ? 0 : progress_.batches);
  }

  EpochReport run_epoch(int epoch, const Keeping& keeping) {
    EpochReport report{.epoch = epoch};
    std::string label =
        fmt::format("epoch {:{}}/{}", epoch, fmt::formatted_size("{}", options_.epochs), options_.epochs);
    Progress progress(label, training_.size(), "examples");
    Means means(options_.metrics, progress_.sums);
    const double seconds_before = progress_.seconds;
    if (options_.prints && !means.empty()) progress.advance(means.count(), means.loss());
    bool is_between_steps = true;
    try {
      Mode mode(model_, true);
      for_each_batch([&](const void* batch) {
        is_between_steps = false;
        FitStep first;
        double loss = make_step(batch, first, epoch);
        log_.add_step(++progress_.steps, loss);
        means.add(first, loss);
        if (options_.prints) progress.advance(examples_in(first), loss);
        ++progress_.batches;
        progress_.seconds = seconds_before + progress.seconds();
        keeping.finish_step();
        is_between_steps = true;
      });
    } catch (const train::Interrupted&) {
      if (is_between_steps) keeping.end_if_interrupted();
      throw;
    }
    if (means.empty()) fail<Error>(fit_name, where_, "epoch {} has no examples to train on", epoch);
    report.loss = means.loss();
    check_finite(report.loss, epoch);
    report.metrics = means.metrics();
    if (options_.validation.defined()) validate(report);
    report.seconds = seconds_before + progress.seconds();
    log_.add_epoch(progress_.steps, report);
    progress.clear();
    if (options_.prints) print(label, report);
    return report;
  }

  void check_finite(double loss, int epoch) const {
    if (!std::isfinite(loss))
      fail<Error>(fit_name, where_,
                  "the loss is {} in epoch {}; a lower learning rate or .clip_norm may help if the data is finite",
                  loss, epoch);
  }

  FitStep evaluate(const void* batch) {
    AutocastScope scope = autocast(options_.autocast, where_);
    FitStep step = step_(batch);
    if (!options_.metrics.empty() && (!step.prediction.defined() || !step.y.defined()))
      fail<Error>(fit_name, where_,
                  "the metric '{}' needs a prediction and targets; return a train::FitStep that has them from the step "
                  "function",
                  options_.metrics[0].name);
    return step;
  }

  // Computes the loss and its gradients; stores the prediction if it is the first for this batch.
  double differentiate(const void* batch, FitStep& first, int epoch) {
    Tape tape;
    FitStep step = evaluate(batch);
    Tensor loss = std::move(step.loss);
    double value = loss.item(where_);
    // With a scaler, steps with infinities are skipped, and the epoch's mean shows lasting ones.
    if (!scaler_) check_finite(value, epoch);
    tape.backward(Arg(scaler_ ? scaler_->scale(Arg(loss, where_)) : loss, where_));
    if (first.examples == 0) {
      first = std::move(step);
      first.examples = examples_in(first);
    }
    return value;
  }

  void clip() {
    if (std::isfinite(options_.clip_norm)) optim::clip_grad_norm(optimiser_.parameters(), options_.clip_norm, where_);
  }

  double make_step(const void* batch, FitStep& first, int epoch) {
    double loss;
    if (scaler_) {
      optimiser_.zero_grad();
      loss = differentiate(batch, first, epoch);
      scaler_->unscale(optimiser_, where_);
      clip();
      scaler_->step(optimiser_, where_);
      scaler_->update(where_);
    } else {
      auto found = [&] {
        double value = differentiate(batch, first, epoch);
        clip();
        return value;
      };
      loss = optimiser_.step(found, where_);
    }
    if (options_.after_step) options_.after_step();
    return loss;
  }

  void validate(EpochReport& report) {
    Mode mode(model_, false);
    NoRecord pause;
    std::vector<double> sums(2 + options_.metrics.size());
    Means means(options_.metrics, sums);
    options_.validation.for_each_address(options_.batch_size, nullptr, [&](const void* batch) {
      FitStep step = evaluate(batch);
      means.add(step, step.loss.item(where_));
    });
    if (means.empty()) fail<Error>(fit_name, where_, "there are no examples to validate on");
    report.validation_loss = means.loss();
    report.validation_metrics = means.metrics();
  }

  void print(const std::string& label, const EpochReport& report) const {
    std::string text = fmt::format("{}  loss {:.4f}", label, report.loss);
    auto add_metrics = [&](const std::vector<double>& values) {
      for (std::size_t i = 0; i < values.size(); ++i)
        text += fmt::format("  {} {:.4f}", options_.metrics[i].name, values[i]);
    };
    add_metrics(report.metrics);
    if (options_.validation.defined()) text += fmt::format("  validation: loss {:.4f}", report.validation_loss);
    add_metrics(report.validation_metrics);
    fmt::print("{}  {:.1f} s\n", text, report.seconds);
    std::fflush(stdout);
  }

  Module& model_;
  const AnyFitStep& step_;
  optim::Optimiser& optimiser_;
  const Data& training_;
  const FitOptions& options_;
  Location where_;
  FitLog log_;
  FitProgress progress_;
  std::optional<optim::LossScaler>& scaler_;
};

}  // namespace

Data::Data(const Tensor& x, const Tensor& y, Location where) : x_(x), y_(y) {
  for (const Tensor* part : {&x, &y}) {
    if (!part->defined()) fail<Error>("train::Data", where, "{} is an undefined tensor", part == &x ? "x" : "y");
    if (part->rank() == 0)
      fail<ShapeError>("train::Data", where, "{} is a single number, and has no axis of examples",
                       part == &x ? "x" : "y");
  }
  if (x.size(0) != y.size(0))
    fail<ShapeError>("train::Data", where, "x {} and y {} have not as many examples", describe(x), describe(y));
}

void Data::for_each(std::int64_t batch_size, Generator* generator, const Use& use, std::int64_t passed) const {
  if (batch_type() != typeid(Batch))
    fail<Error>("train::Data", {}, "its batches are of another type than train::Batch");
  for_each_address(
      batch_size, generator, [&](const void* batch) { use(*static_cast<const Batch*>(batch)); }, passed);
}

void Data::for_each_address(std::int64_t batch_size, Generator* generator, const std::function<void(const void*)>& use,
                            std::int64_t passed) const {
  if (iterate_) {
    std::int64_t index = 0;
    return iterate_([&](const void* batch) {
      if (index++ >= passed) use(batch);
    });
  }
  if (!x_.defined()) return;
  std::int64_t count = x_.size(0);
  Tensor order = generator ? randperm(count, {.device = x_.device(), .generator = generator}) : Tensor();
  for (std::int64_t start = passed * batch_size; start < count; start += batch_size) {
    std::int64_t stop = std::min(start + batch_size, count);
    auto part = [&](const Tensor& whole) {
      return order.defined() ? index_select(whole, 0, slice(order, 0, start, stop)) : slice(whole, 0, start, stop);
    };
    Batch batch{part(x_), part(y_)};
    use(&batch);
  }
}

double accuracy(const Tensor& prediction, const Tensor& y) {
  if (!prediction.defined() || !y.defined()) throw Error("train::accuracy: takes no undefined tensors", {});
  NoRecord pause;
  bool by_class = !is_floating(y.dtype());
  Shape expected = prediction.shape();
  if (by_class && prediction.rank() > 0) {
    expected = {};
    for (int axis = 0; axis < prediction.rank(); ++axis)
      if (axis != (prediction.rank() > 1 ? 1 : 0)) expected.push_back(prediction.size(axis));
  }
  if (y.shape() != expected)
    fail<ShapeError>("train::accuracy", {}, "the prediction {} wants y {}, not {}", describe(prediction),
                     to_string(expected), describe(y));
  Tensor right = by_class ? argmax(prediction, prediction.rank() > 1 ? 1 : 0) == y : (prediction > 0) == (y > 0.5);
  return mean(to_if_needed(right, DType::f64)).item();
}

FitReport fit(Module& model, const std::function<Tensor(const Tensor&)>& forward, const FitLoss& loss,
              optim::Optimiser& optimiser, const Data& training, const FitOptions& options, Location where) {
  const AnyFitStep step = [&](const void* address) -> FitStep {
    const Batch& batch = *static_cast<const Batch*>(address);
    Tensor prediction = forward(batch.x);
    Tensor found = loss(prediction, batch.y);
    return {std::move(found), std::move(prediction), batch.y, first_size(batch.x)};
  };
  return reel::detail::fit(model, step, typeid(Batch), optimiser, training, options, where);
}

}  // namespace reel::nn::inline training

reel::nn::FitReport reel::detail::fit(nn::Module& model, const AnyFitStep& step, const std::type_info& batch_type,
                                      optim::Optimiser& optimiser, const nn::Data& training,
                                      const nn::FitOptions& options, Location where) {
  nn::check(training, batch_type, options, where);
  CallerScope caller(where);
  return nn::Fitting(model, step, optimiser, training, options, where).run();
}
