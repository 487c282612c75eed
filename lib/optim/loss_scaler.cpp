#include <reel/optim/loss_scaler.h>

#include <algorithm>
#include <cmath>

#include <reel/ops.h>
#include <reel/optim/clip.h>
#include <reel/tape.h>

#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../ops/if_needed.h"
#include "norm_on_device.h"

namespace reel::optim {

using namespace detail;

namespace {

constexpr const char* name = "LossScaler";
// The range of f32, in which losses can be scaled and gradients divided.
constexpr double least_scale = 0x1p-126, largest_scale = 0x1p127;

// Allocates no memory; a flag instead of a branch, so that the loop is vectorised.
template <class T>
bool are_finite(const Tensor& x) {
  bool finite = true;
  for (T value : std::span(x.data<T>(), static_cast<std::size_t>(x.numel()))) finite &= std::isfinite(value);
  return finite;
}

// Returns true if all gradients, which are contiguous after scaling, are finite. On the CPU it allocates no memory: a
// failure would come between the scaling and its record, and the next call would scale again. Gradients on a device are
// checked there, and the answer is read once.
bool are_finite(std::span<const Tensor> parameters) {
  // For each device, an answer for gradients of f64, and those of f32: their norm in f64 is finite if all of them are.
  std::vector<Tensor> answers;
  std::vector<std::vector<Tensor>> narrow;
  for (const Tensor& parameter : parameters) {
    // The other rows of a row gradient are zeros.
    RowGradient rows = parameter.row_grad();
    Tensor gradient = rows.defined() ? rows.values : parameter.grad();
    if (!gradient.defined()) continue;
    if (gradient.device() == cpu) {
      if (!(gradient.dtype() == DType::f32 ? are_finite<float>(gradient) : are_finite<double>(gradient))) return false;
      continue;
    }
    if (gradient.dtype() == DType::f32) {
      auto group = std::ranges::find(narrow, gradient.device(), [](const auto& some) { return some[0].device(); });
      if (group == narrow.end()) group = narrow.insert(group, std::vector<Tensor>());
      group->push_back(contiguous_if_needed(gradient));
      continue;
    }
    Tensor answer = all(isfinite(gradient));
    auto found = std::find_if(answers.begin(), answers.end(),
                              [&](const Tensor& other) { return other.device() == answer.device(); });
    if (found == answers.end())
      answers.push_back(answer);
    else
      *found = logical_and(*found, answer);
  }
  return std::ranges::all_of(answers, [](const Tensor& answer) { return answer.item<bool>(); }) &&
         std::ranges::all_of(narrow, [&](const std::vector<Tensor>& gradients) {
           return std::isfinite(norm_on_device(name, gradients, {}).item());
         });
}

void check_scale(double scale, Location where) {
  if (!(scale >= least_scale && scale <= largest_scale))
    fail<Error>(name, where, "the scale {} does not lie in [2⁻¹²⁶, 2¹²⁷]", scale);
}

}  // namespace

LossScaler::LossScaler(LossScalerOptions options, Location where) : options_(options), scale_(options.scale) {
  check_scale(options.scale, where);
  if (!(options.growth > 1 && std::isfinite(options.growth)))
    fail<Error>(name, where, "the growth {} is not a number above 1", options.growth);
  if (!(options.backoff > 0 && options.backoff < 1))
    fail<Error>(name, where, "the backoff {} does not lie in (0, 1)", options.backoff);
  if (options.growth_interval < 1)
    fail<Error>(name, where, "the growth interval {} is not 1 or more", options.growth_interval);
}

LossScaler::Seen* LossScaler::find(const Optimiser& optimiser) {
  auto found = std::find_if(seen_.begin(), seen_.end(), [&](const Seen& seen) { return seen.optimiser == &optimiser; });
  return found == seen_.end() ? nullptr : &*found;
}

Tensor LossScaler::scale(const Arg& loss) const {
  const Tensor& value = tensor_of(name, loss);
  check_floating(name, value, loss.location());
  CallerScope caller(loss.location());
  return mul(widened(value), scale_);
}

void LossScaler::unscale(Optimiser& optimiser, Location where) {
  with_memory_error(name, where, [&] {
    if (find(optimiser))
      fail<Error>(name, where, "the gradients have been unscaled since the last update; call update() after each step");
    NoRecord pause;
    CallerScope caller(where);
    const std::vector<Tensor>& parameters = optimiser.parameters();
    seen_.reserve(seen_.size() + 1);
    scale_grad(parameters, 1 / scale_, where);
    // Checked after the division, which may overflow if the scale is below 1.
    bool finite = are_finite(parameters);
    seen_.push_back({&optimiser, finite, false});
  });
}

bool LossScaler::step(Optimiser& optimiser, Location where) {
  if (!find(optimiser)) unscale(optimiser, where);
  Seen& seen = *find(optimiser);
  if (seen.stepped) fail<Error>(name, where, "there was a step since the last update; call update() after each step");
  if (seen.finite) optimiser.step(where);
  seen.stepped = true;
  return seen.finite;
}

void LossScaler::update(Location where) {
  if (seen_.empty()) fail<Error>(name, where, "there was no step since the last update");
  bool finite = std::all_of(seen_.begin(), seen_.end(), [](const Seen& seen) { return seen.finite; });
  seen_.clear();
  finite_updates_ = finite ? finite_updates_ + 1 : 0;
  if (!finite) {
    scale_ = std::max(scale_ * options_.backoff, least_scale);
  } else if (finite_updates_ >= options_.growth_interval) {  // more after loading a state with a longer interval
    if (scale_ * options_.growth <= largest_scale) scale_ *= options_.growth;
    finite_updates_ = 0;
  }
}

void LossScaler::restore(double scale, std::int64_t growth_progress, Location where) {
  check_scale(scale, where);
  if (growth_progress < 0) fail<Error>(name, where, "the growth's progress {} is less than 0", growth_progress);
  scale_ = scale;
  finite_updates_ = growth_progress;
}

}  // namespace reel::optim
