#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>
#include <reel/optim/optimiser.h>
#include <reel/tape.h>

#include "../core/memory_error.h"
#include "option_checks.h"
#include "state_reader.h"

namespace reel::optim {

using namespace detail;

std::vector<NamedTensor> Optimiser::state(Location where) const {
  return with_memory_error(name_, where, [&] {
    NoRecord pause;
    CallerScope caller(where);
    std::vector<NamedTensor> state;
    add_state(state);
    return state;
  });
}

Tensor Optimiser::new_kept(const Tensor& parameter, std::size_t, std::size_t) const {
  return full(parameter.shape(), 0, {.dtype = parameter.dtype(), .device = parameter.device()});
}

// The entry of a state for a velocity that starts with the next step.
Tensor Optimiser::no_velocity(std::size_t index) const {
  const Tensor& parameter = parameters_[index];
  return zeros({0}, {.dtype = parameter.dtype(), .device = parameter.device()});
}

std::vector<std::int64_t> Optimiser::groups() const {
  std::vector<std::int64_t> groups;
  for (const Memory& memory : memories_) groups.push_back(static_cast<std::int64_t>(memory.group));
  return groups;
}

void Optimiser::add_rates(std::vector<NamedTensor>& state) const {
  std::vector<double> rates, factors;
  for (std::size_t group = 0; group < group_count(); ++group) {
    Rate rate = rate_parts(group);
    rates.push_back(rate.scheduled);
    factors.push_back(rate.factor);
  }
  state.push_back({"learning_rate", tensor(rates)});
  if (std::ranges::any_of(factors, [](double factor) { return factor != 1; }))
    state.push_back({"rate_factor", tensor(factors)});
}

std::vector<Optimiser::Rate> Optimiser::read_rates(StateReader& reader, Location where) const {
  auto rates = reader.list<double>("learning_rate", group_count());
  std::vector<double> factors(group_count(), 1);
  if (reader.has("rate_factor")) factors = reader.list<double>("rate_factor", group_count());
  std::vector<Rate> parts;
  for (std::size_t group = 0; group < group_count(); ++group) {
    check_not_negative(name_, "learning rate", rates[group], where);
    check_not_negative(name_, "factor of a learning rate", factors[group], where);
    parts.push_back({rates[group], factors[group]});
  }
  return parts;
}

void Optimiser::add_state(std::vector<NamedTensor>& state) const {
  std::vector<std::int64_t> steps;
  std::vector<double> products, momenta;
  for (const Memory& memory : memories_) {
    steps.push_back(memory.progress.steps);
    products.push_back(memory.progress.product);
  }
  for (std::size_t group = 0; group < group_count(); ++group) momenta.push_back(momentum_of(group));
  state.push_back({"optimiser", text_tensor(name_)});
  state.push_back({"steps", tensor(steps)});
  if (group_count() > 1) state.push_back({"groups", tensor(groups())});
  if (keeps_product()) state.push_back({"momentum_product", tensor(products)});
  add_rates(state);
  if (has_momentum()) state.push_back({"momentum", tensor(momenta)});
  for (std::size_t i = 0; i < memories_.size(); ++i) {
    const Memory& memory = memories_[i];
    KeptNames names = kept_names(memory.group);
    for (std::size_t k = 0; k < names.size() && memory.progress.steps > 0; ++k) {
      bool is_velocity = names[k].need == Kept::Need::with_momentum;
      bool is_kept = memory.kept[k].defined() && (!is_velocity || memory.progress.moves);
      if (!is_kept && !names[k].needed(momentum_of(memory.group))) continue;
      // State that is needed because of an option set since the last step starts with the next one.
      Tensor kept = is_kept       ? copy(memory.kept[k])
                    : is_velocity ? no_velocity(i)
                                  : new_kept(parameters_[i], memory.group, k);
      state.push_back({std::to_string(i) + "." + names[k].name, std::move(kept)});
    }
  }
}

void Optimiser::load_state(std::span<const NamedTensor> state, Location where) {
  with_memory_error(name_, where, [&] {
    NoRecord pause;
    CallerScope caller(where);
    take_state(state, where);
  });
}

void Optimiser::load_state(const std::vector<NamedTensor>& state, Location where) {
  load_state(std::span<const NamedTensor>(state), where);
}

void Optimiser::check_kind(StateReader& reader, Location where) const {
  if (std::string kind = reader.text("optimiser"); kind != name_)
    fail<Error>(name_, where, "the state is one of {}, which it cannot go on from; load it into {}", kind, kind);
}

void Optimiser::check_groups(StateReader& reader, Location where) const {
  auto differs = [&](const char* name, std::size_t count) {
    return reader.has(name) && reader.rows(name) != static_cast<std::int64_t>(count);
  };
  if (differs("steps", memories_.size()))
    fail<ShapeError>(name_, where, "the state is of {} parameters, not of {}", reader.rows("steps"), memories_.size());
  if (differs("learning_rate", group_count()))
    fail<ShapeError>(name_, where, "the state is of {} groups of parameters, not of {}", reader.rows("learning_rate"),
                     group_count());
  if (group_count() > 1 && reader.list<std::int64_t>("groups", memories_.size()) != groups())
    fail<Error>(name_, where, "the state's parameters are divided into groups in another way");
}

void Optimiser::take_state(std::span<const NamedTensor> state, Location where) {
  StateReader reader(name_, state, where);
  check_kind(reader, where);
  check_groups(reader, where);
  auto steps = reader.list<std::int64_t>("steps", memories_.size());
  std::vector<double> products(memories_.size(), 1), momenta;
  if (keeps_product()) products = reader.list<double>("momentum_product", memories_.size());
  std::vector<Rate> rates = read_rates(reader, where);
  if (has_momentum()) momenta = reader.list<double>("momentum", group_count());
  for (double momentum : momenta) check_fraction(name_, "momentum", momentum, where);
  std::vector<Memory> memories;
  for (std::size_t i = 0; i < memories_.size(); ++i) {
    if (steps[i] < 0) fail<Error>(name_, where, "the state's 'steps' has a count of {}", steps[i]);
    Memory memory{memories_[i].group, {steps[i], products[i]}, {}};
    KeptNames names = kept_names(memory.group);
    for (std::size_t k = 0; k < names.size() && steps[i] > 0; ++k) {
      if (!names[k].name) continue;
      std::string kept = fmt::format("{}.{}", i, names[k].name);
      if (!reader.has(kept) && !names[k].needed(has_momentum() ? momenta[memory.group] : 0)) continue;
      bool is_velocity = names[k].need == Kept::Need::with_momentum;
      bool begins = is_velocity && reader.is_empty(kept);
      Tensor like = begins ? no_velocity(i) : new_kept(parameters_[i], memory.group, k);
      const Tensor& found = reader.find(kept, like.shape(), like.dtype());
      if (begins) continue;
      memory.kept[k] = to(found, parameters_[i].device());
      memory.progress.moves |= is_velocity;
    }
    memories.push_back(std::move(memory));
  }
  reader.finish();
  memories_ = std::move(memories);
  for (std::size_t group = 0; group < group_count(); ++group) {
    put_rate_parts(group, rates[group]);
    if (has_momentum()) put_momentum(group, momenta[group]);
  }
}

}  // namespace reel::optim
