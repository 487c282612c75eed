#include <reel/optim/custom.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <reel/autocast.h>
#include <reel/ops/shape.h>

#include "../core/device/device_module.h"
#include "../core/op_error.h"
#include "../core/printable.h"
#include "../core/storage.h"
#include "../kernels/kernel_table.h"
#include "../ops/if_needed.h"
#include "option_checks.h"
#include "parameters.h"

namespace reel::optim {

using namespace detail;

namespace {

// Independent of the locale.
bool has_only(std::string_view name, std::string_view others) {
  auto fits = [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || others.find(c) != others.npos;
  };
  return !name.empty() && std::ranges::all_of(name, fits);
}

// The tensor that a call has made of `before`, ready to replace it.
Tensor checked(const char* optimiser, const std::string& what, const Tensor& before, const Tensor& after,
               Location where) {
  if (!after.defined()) fail<Error>(optimiser, where, "update left {} undefined", what);
  if (after.shape() != before.shape())
    fail<ShapeError>(optimiser, where, "update made {}, {}, of {}; the shape has to stay", what, describe(after),
                     describe(before));
  if (after.dtype() != before.dtype())
    fail<DTypeError>(optimiser, where, "update made {}, {}, of {}; convert it with to(x, {})", what, describe(after),
                     describe(before), name_of(before.dtype()));
  if (after.device() != before.device())
    fail<DeviceError>(optimiser, where, "update moved {} from {} to {}", what, to_string(before.device()),
                      to_string(after.device()));
  return contiguous_if_needed(after);
}

}  // namespace

Optimiser::KeptNames Optimiser::named_state(const char* optimiser, std::initializer_list<const char*> names,
                                            Location where) {
  if (!has_only(optimiser, {}))
    fail<Error>("CustomOptimiser", where, "the name '{}' is not one of letters and digits", printable(optimiser));
  if (names.size() > most_kept)
    fail<Error>(optimiser, where, "{} tensors of state are more than {}; stack some", names.size(), most_kept);
  KeptNames kept;
  std::size_t count = 0;
  for (const char* name : names) {
    if (!has_only(name, "_"))
      fail<Error>(optimiser, where, "the name '{}' of a tensor of state is not one of letters, digits and '_'",
                  printable(name));
    for (std::size_t k = 0; k < count; ++k)
      if (std::string_view(kept[k].name) == name)
        fail<Error>(optimiser, where, "two tensors of state have the name '{}'", name);
    kept[count++] = name;
  }
  return kept;
}

void Optimiser::check_rate_and_momentum(double rate, double momentum, Location where) const {
  check_not_negative(name_, "learning rate", rate, where);
  if (!std::isnan(momentum)) check_fraction(name_, "momentum", momentum, where);
}

/// A step by calls of a function, the results of which replace parameters and state when all have returned.
class Optimiser::StepOfOps {
 public:
  StepOfOps(Optimiser& optimiser, Location where) : optimiser_(optimiser), where_(where) {
    if (recording_module())
      fail<Error>(optimiser_.name_, where,
                  "its step is made by ops with the numbers of one step, which a graph would repeat; make it outside "
                  "of the graph");
    for_each_gradient(optimiser_.name_, optimiser_.parameters_, where,
                      [&](std::size_t index, const LeafGradient& found) {
                        const Tensor& parameter = optimiser_.parameters_[index];
                        if (found.row_gradient.defined()) refuse_rows(optimiser_.name_, index, parameter, where_);
                        parts_.push_back({index, optimiser_.memories_[index], found.gradient, {}});
                      });
  }

  void update(const UpdateFunction& function) {
    // The ops of a step are not those of the model.
    AutocastScope full_precision(DType::f32, where_);
    for (Part& part : parts_) update(part, function);
  }

  void commit() {
    std::vector<Storage*> storages;
    for (const Part& part : parts_) {
      const Body& body = optimiser_.parameters_[part.index].body();
      prepare_on_device(body, true);
      prepare_on_device(part.values.body(), false);
      storages.push_back(body.storage);
    }
    // On the CPU nothing fails after this.
    Writing writing(storages, where_);
    for (Part& part : parts_) {
      const Tensor& parameter = optimiser_.parameters_[part.index];
      kernels(parameter.device()).copy(parameter.body(), part.values.body());
      optimiser_.memories_[part.index] = std::move(part.memory);
    }
  }

 private:
  // A parameter that makes a step: its gradient, its new values and what the optimiser then keeps for it.
  struct Part {
    std::size_t index;
    Memory memory;
    Tensor gradient, values;
  };

  void update(Part& part, const UpdateFunction& function) {
    const Tensor& parameter = optimiser_.parameters_[part.index];
    KeptNames names = optimiser_.kept_names(part.memory.group);
    std::array<Tensor, most_kept>& kept = part.memory.kept;
    std::array<Tensor, most_kept> before;
    std::size_t count = 0;
    Tensor gradient;
    {
      CallerScope caller(where_);
      gradient = copy(part.gradient);
      part.gradient.reset();
      part.values = copy(parameter);
      for (; count < names.size() && names[count].name; ++count) {
        if (!kept[count].defined()) kept[count] = start(part, count);
        before[count] = std::exchange(kept[count], copy(kept[count]));
      }
    }
    function(part.memory.group, part.values, std::move(gradient), {kept.data(), count}, ++part.memory.progress.steps);
    CallerScope caller(where_);
    part.values = checked(optimiser_.name_, fmt::format("parameter {}", part.index), parameter, part.values, where_);
    for (std::size_t k = 0; k < count; ++k)
      kept[k] = checked(optimiser_.name_, fmt::format("'{}' of parameter {}", names[k].name, part.index), before[k],
                        kept[k], where_);
  }

  Tensor start(const Part& part, std::size_t number) const {
    Tensor start = optimiser_.new_kept(optimiser_.parameters_[part.index], part.memory.group, number);
    if (!start.defined())
      fail<Error>(optimiser_.name_, where_, "the initial state {} of parameter {} is undefined", number, part.index);
    return start;
  }

  Optimiser& optimiser_;
  Location where_;
  std::vector<Part> parts_;
};

void Optimiser::make_step_of_ops(const UpdateFunction& update, Location where) {
  StepOfOps step(*this, context().call_site(where));
  step.update(update);
  step.commit();
}

}  // namespace reel::optim
