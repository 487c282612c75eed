#include "fit_progress.h"

#include <bit>
#include <cmath>
#include <utility>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/in_place.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/op_error.h"
#include "../ops/if_needed.h"
#include "../optim/state_reader.h"

namespace reel::nn::inline training {

using namespace detail;

namespace {

constexpr const char* progress_name = "train::fit";

std::vector<NamedTensor> weights_of_module(const Module& module) {
  std::vector<NamedTensor> weights = module.named_parameters();
  for (NamedTensor& buffer : module.named_buffers()) weights.push_back(std::move(buffer));
  return weights;
}

// Tensors whose names begin with a prefix, which they lose, are moved out of a state.
std::vector<NamedTensor> taken_by_prefix(std::vector<NamedTensor>& state, const std::string& prefix) {
  std::vector<NamedTensor> taken, left;
  for (NamedTensor& one : state) {
    bool fits = one.name.starts_with(prefix);
    if (fits) one.name.erase(0, prefix.size());
    (fits ? taken : left).push_back(std::move(one));
  }
  state = std::move(left);
  return taken;
}

void add_with_prefix(std::vector<NamedTensor>& state, const std::string& prefix, std::vector<NamedTensor> added) {
  for (NamedTensor& one : added) state.push_back({prefix + one.name, std::move(one.tensor)});
}

}  // namespace

void FitWeights::keep() {
  NoRecord pause;
  std::vector<NamedTensor> copies;
  for (const NamedTensor& named : weights_of_module(module_)) copies.push_back({named.name, copy(named.tensor)});
  kept_ = std::move(copies);
}

void FitWeights::restore(Location where) const {
  NoRecord pause;
  std::size_t i = 0;
  if (!kept_.empty())
    for (const NamedTensor& named : weights_of_module(module_))
      copy_(Destination(named.tensor, where), kept_[i++].tensor);
}

void FitWeights::take(std::vector<NamedTensor> kept, Location where) {
  NoRecord pause;
  std::vector<NamedTensor> found;
  StateReader reader(progress_name, kept, where);
  if (!kept.empty())
    for (const NamedTensor& named : weights_of_module(module_)) {
      const Tensor& own = named.tensor;
      found.push_back({named.name, to_if_needed(reader.find(named.name, own.shape(), own.dtype()), own.device())});
    }
  reader.finish();
  kept_ = std::move(found);
}

FitProgress::FitProgress(const Module& module, const Data& training, const FitOptions& options)
    : sums(2 + options.metrics.size()), best(module), training_(training), options_(options) {
  epoch = options.first_epoch;
  if (options.autocast == DType::f16) scaler.emplace();
}

void FitProgress::finish_epoch() {
  ++epoch;
  batches = 0;
  seconds = 0;
  sums.assign(sums.size(), 0);
}

double FitProgress::loss_of(const EpochReport& one) const {
  double loss = options_.validation.defined() ? one.validation_loss : one.loss;
  return std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss;
}

int FitProgress::last_improvement() const {
  int last = options_.first_epoch - 1;
  double reference = std::numeric_limits<double>::infinity();
  for (const EpochReport& one : report.epochs)
    if (one.epoch == options_.first_epoch || loss_of(one) < reference - options_.least_improvement) {
      last = one.epoch;
      reference = loss_of(one);
    }
  return last;
}

// A row for each epoch: loss, validation loss, seconds, metrics, metrics of validation.
Tensor FitProgress::reports() const {
  std::vector<double> rows;
  for (const EpochReport& one : report.epochs) {
    for (double value : {one.loss, one.validation_loss, one.seconds}) rows.push_back(value);
    for (std::size_t i = 0; i < metrics(); ++i) rows.push_back(one.metrics[i]);
    for (std::size_t i = 0; i < metrics(); ++i)
      rows.push_back(one.validation_metrics.empty() ? std::nan("") : one.validation_metrics[i]);
  }
  return reshape(tensor(rows), {std::ssize(report.epochs), static_cast<std::int64_t>(3 + 2 * metrics())});
}

std::vector<EpochReport> FitProgress::reports_of(const Tensor& rows) const {
  auto values = rows.to_vector<double>();
  std::vector<EpochReport> reports;
  auto next = values.begin();
  auto take = [&](std::size_t count) {
    std::vector<double> taken(next, next + static_cast<std::ptrdiff_t>(count));
    next += static_cast<std::ptrdiff_t>(count);
    return taken;
  };
  for (std::int64_t row = 0; row < rows.size(0); ++row) {
    EpochReport one{.epoch = options_.first_epoch + static_cast<int>(row)};
    std::vector<double> numbers = take(3);
    one.loss = numbers[0];
    one.validation_loss = numbers[1];
    one.seconds = numbers[2];
    one.metrics = take(metrics());
    one.validation_metrics = take(metrics());
    // Without validation there are no metrics of it.
    if (!options_.validation.defined()) one.validation_metrics.clear();
    reports.push_back(std::move(one));
  }
  return reports;
}

std::vector<NamedTensor> FitProgress::state(Location where) const {
  std::vector<NamedTensor> state;
  state.push_back(
      {"position", tensor({epoch, batches, std::int64_t{0}, std::int64_t{report.best}, steps,
                           std::bit_cast<std::int64_t>(order.seed()), std::bit_cast<std::int64_t>(order.calls()),
                           options_.batch_size, training_.size()})});
  state.push_back({"seconds", tensor({seconds})});
  state.push_back({"least_loss", tensor({least})});
  state.push_back({"sums", tensor(sums)});
  state.push_back({"reports", reports()});
  if (scaler)
    state.push_back({"scaler", tensor({scaler->current_scale(), static_cast<double>(scaler->growth_progress())})});
  add_with_prefix(state, "best.", best.kept());
  if (training_.position().state) add_with_prefix(state, "training.", training_.position().state(where));
  if (options_.validation.position().state)
    add_with_prefix(state, "validation.", options_.validation.position().state(where));
  return state;
}

void FitProgress::load(std::span<const NamedTensor> given, Location where) {
  if (given.empty()) return;
  std::vector<NamedTensor> own(given.begin(), given.end());
  std::vector<NamedTensor> weights = taken_by_prefix(own, "best."), training = taken_by_prefix(own, "training."),
                           validation = taken_by_prefix(own, "validation.");
  StateReader reader(progress_name, own, where);
  auto position = reader.list<std::int64_t>("position", 9);
  auto elapsed = reader.number<double>("seconds"), loss = reader.number<double>("least_loss");
  auto found_sums = reader.list<double>("sums", sums.size());
  std::int64_t rows = reader.rows("reports"), columns = static_cast<std::int64_t>(3 + 2 * metrics());
  std::vector<EpochReport> reports = reports_of(reader.find("reports", {rows, columns}, DType::f64));
  std::vector<double> scale;
  if (scaler) scale = reader.list<double>("scaler", 2);
  reader.finish();
  if (position[0] != rows + options_.first_epoch || position[1] < 0 || position[3] < 0 || position[3] >= position[0])
    fail<Error>(progress_name, where, "the state's 'position' is not one of a training of {} epochs from epoch {}",
                rows, options_.first_epoch);
  // Within an epoch the position is a number of batches.
  if (position[1] > 0 && training_.size() >= 0 &&
      (position[7] != options_.batch_size || position[8] != training_.size()))
    fail<Error>(progress_name, where,
                "the state is within an epoch of {} examples in batches of {}, not of {} in batches of {}", position[8],
                position[7], training_.size(), options_.batch_size);
  best.take(std::move(weights), where);
  if (training_.position().load) training_.position().load(training, where);
  if (options_.validation.position().load) options_.validation.position().load(validation, where);
  if (scaler) scaler->restore(scale[0], static_cast<std::int64_t>(scale[1]), where);
  epoch = position[0];
  batches = position[1];
  steps = position[4];
  report = {std::move(reports), static_cast<int>(position[3])};
  order = Generator(std::bit_cast<std::uint64_t>(position[5]));
  order.set_calls(std::bit_cast<std::uint64_t>(position[6]));
  seconds = elapsed;
  least = loss;
  sums = std::move(found_sums);
}

}  // namespace reel::nn::inline training
