#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <reel/ops/shape.h>
#include <reel/optim/optimiser.h>
#include <reel/tape.h>

#include "../core/context.h"
#include "../core/device/device_module.h"
#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../core/storage.h"
#include "../ops/if_needed.h"
#include "parameters.h"
#include "row_loop.h"

namespace reel::optim {

using namespace detail;

/// One step of an optimiser: collects and checks the work, then does it in one pass over the elements of all
/// parameters, as if they were one: many small parameters cost hardly more than a large one.
class Optimiser::Step {
 public:
  Step(Optimiser& optimiser, Location where) : optimiser_(optimiser), where_(where) {
    find_gradients();
    for (Part& part : parts_) prepare(part);
  }

  void make() {
    std::vector<std::int64_t> ends = dense_ends();
    std::vector<Storage*> storages;
    storages.reserve(parts_.size());
    for (const Part& part : parts_) storages.push_back(optimiser_.parameters_[part.index].body().storage);
    if (recording_module()) record();
    // On the CPU nothing fails after this: a step is made as a whole, or not at all.
    for (Part& part : parts_) begin_kept(part);
    Writing writing(storages, where_);
    descend_dense(ends);
    for (std::size_t number = 0; number < steps_.size(); ++number) descend_on_device(number);
    for (const Part& part : parts_) {
      if (part.rows.defined()) descend_rows(part);
      optimiser_.memories_[part.index].progress = part.progress;
    }
  }

 private:
  // A parameter with its gradient, dense or by rows.
  struct Part {
    std::size_t index;
    Tensor gradient;
    RowGradient rows;
    Progress progress = {};
    ParameterSlice elements = {};
    std::size_t update_step = 0;
    std::array<Tensor, ParameterSlice::most_kept> begun = {};  // state that begins with this step
  };

  // An update step that several parameters make, with what it was found for.
  struct SharedStep {
    std::size_t group;
    Device device;
    Progress before, after;
    UpdateStep update_step;
    const void* recorded = nullptr;
  };

  void find_gradients() {
    parts_.reserve(optimiser_.parameters_.size());
    for_each_gradient(optimiser_.name_, optimiser_.parameters_, where_,
                      [&](std::size_t index, const LeafGradient& found) {
                        parts_.push_back({index, found.gradient, found.row_gradient});
                      });
  }

  void prepare(Part& part) {
    const Tensor& parameter = optimiser_.parameters_[part.index];
    const Body& body = parameter.body();
    if (part.rows.defined()) {
      if (!optimiser_.takes_rows()) refuse_rows(optimiser_.name_, part.index, parameter, where_);
    } else {
      part.gradient = contiguous_if_needed(part.gradient);
    }
    Memory& memory = optimiser_.memories_[part.index];
    choose_update_step(part, memory);
    prepare_on_device(body, true);
    if (part.gradient.defined()) prepare_on_device(part.gradient.body(), false);
    part.elements = {body.dtype, body.numel, body.data, part.rows.defined() ? nullptr : part.gradient.body().data, {}};
    KeptNames names = optimiser_.kept_names(memory.group);
    for (std::size_t k = 0; k < part.begun.size(); ++k) {
      if (!names[k].needed(optimiser_.momentum_of(memory.group))) continue;
      if (!memory.kept[k].defined()) {
        refuse_new_memory(part.index);
        part.begun[k] = optimiser_.new_kept(parameter, memory.group, k);
      }
      const Tensor& kept = part.begun[k].defined() ? part.begun[k] : memory.kept[k];
      prepare_on_device(kept.body(), true);
      part.elements.kept[k] = kept.body().data;
    }
  }

  void begin_kept(Part& part) {
    Memory& memory = optimiser_.memories_[part.index];
    for (std::size_t k = 0; k < part.begun.size(); ++k)
      if (part.begun[k].defined()) memory.kept[k] = std::move(part.begun[k]);
  }

  // State allocated while recording would be initialised again by each replay.
  void refuse_new_memory(std::size_t index) const {
    if (recording_module())
      fail<Error>(optimiser_.name_, where_,
                  "parameter {} makes its first step while a graph is recorded, which would be the first at each "
                  "replay; let it make one before",
                  index);
  }

  // Parameters of one group and device with equally many steps share the numbers.
  void choose_update_step(Part& part, const Memory& memory) {
    Device device = optimiser_.parameters_[part.index].device();
    auto fits = [&](const SharedStep& step) {
      return step.group == memory.group && step.before == memory.progress && step.device == device;
    };
    auto found = steps_.empty() || !fits(steps_.back()) ? std::ranges::find_if(steps_, fits) : steps_.end() - 1;
    if (found == steps_.end()) {
      Progress after = memory.progress;
      ++after.steps;
      UpdateStep update_step = optimiser_.update_step(memory.group, after, device);
      steps_.push_back({memory.group, device, memory.progress, after, update_step});
      found = steps_.end() - 1;
    }
    part.progress = found->after;
    part.update_step = static_cast<std::size_t>(found - steps_.begin());
  }

  // For each part, the end of its elements among those of all.
  std::vector<std::int64_t> dense_ends() const {
    std::vector<std::int64_t> ends;
    ends.reserve(parts_.size());
    std::int64_t total = 0;
    for (const Part& part : parts_) ends.push_back(total += is_on_cpu_and_dense(part) ? part.elements.count : 0);
    return ends;
  }

  void descend_dense(const std::vector<std::int64_t>& ends) const {
    std::int64_t total = ends.empty() ? 0 : ends.back();
    parallel_for(total, parallel_grain, [&](std::int64_t begin, std::int64_t end) {
      auto i = static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
      for (; begin < end; ++i) {
        std::int64_t start = ends[i] - parts_[i].elements.count, next = std::min(end, ends[i]);
        if (!is_on_cpu_and_dense(parts_[i]) || next <= begin) continue;
        descend(parts_[i], begin - start, next - begin);
        begin = next;
      }
    });
  }

  void descend(const Part& part, std::int64_t start, std::int64_t count) const {
    ParameterSlice elements = part.elements;
    auto offset = start * static_cast<std::int64_t>(size_of(elements.dtype));
    elements.count = count;
    elements.values = static_cast<char*>(elements.values) + offset;
    elements.gradient = static_cast<const char*>(elements.gradient) + offset;
    for (void*& kept : elements.kept)
      if (kept) kept = static_cast<char*>(kept) + offset;
    steps_[part.update_step].update_step({&elements, 1});
  }

  bool is_on_device(const Part& part) const { return optimiser_.parameters_[part.index].device() != cpu; }
  bool is_on_cpu_and_dense(const Part& part) const { return !part.rows.defined() && !is_on_device(part); }

  // All parameters of a step on a device in one call.
  void descend_on_device(std::size_t number) const {
    const SharedStep& step = steps_[number];
    std::vector<ParameterSlice> slices;
    for (const Part& part : parts_)
      if (part.update_step == number && !part.rows.defined() && is_on_device(part)) slices.push_back(part.elements);
    if (slices.empty()) return;
    // Makes the device the one on which kernels run.
    static_cast<void>(kernels(step.device));
    step.update_step(slices, step.recorded);
  }

  void descend_rows(const Part& part) const {
    const SharedStep& step = steps_[part.update_step];
    if (!is_on_device(part)) return update_rows(part.elements, part.rows, step.update_step);
    static_cast<void>(kernels(step.device));
    std::array<Tensor, ParameterSlice::most_kept> kept;
    for (std::size_t k = 0; k < kept.size(); ++k)
      if (part.elements.kept[k]) kept[k] = optimiser_.memories_[part.index].kept[k];
    update_rows_on_device(optimiser_.parameters_[part.index], kept, part.rows, step.update_step, step.recorded);
  }

  void record();

  Optimiser& optimiser_;
  Location where_;
  std::vector<Part> parts_;
  std::vector<SharedStep> steps_;
};

/// A step that a graph repeats: each replay is counted before it runs, with the numbers of that time.
class Optimiser::RecordedStep {
 public:
  struct Part {
    std::size_t index, update_step;
  };
  struct Numbers {
    std::size_t group;
    Device device;
    UpdateStep update_step;
  };

  RecordedStep(Optimiser& optimiser, Location where) : optimiser_(optimiser), where_(where) {
    if (!optimiser.presence_) optimiser.presence_ = std::make_shared<const char>('\0');
    presence_ = optimiser.presence_;
  }

  void renew() {
    if (presence_.expired())
      throw Error("cuda::Graph: an optimiser whose step is replayed is there no more", context().call_site(where_));
    for (const Part& part : parts) {
      Memory& memory = optimiser_.memories_[part.index];
      ++memory.progress.steps;
      Numbers& known = numbers[part.update_step];
      UpdateStep update_step = optimiser_.update_step(known.group, memory.progress, known.device);
      if (!update_step.has_kernel_of(known.update_step))
        fail<Error>(optimiser_.name_, where_,
                    "options that decide which step it makes have changed since the graph was "
                    "recorded; record it again");
      known.update_step = update_step;
    }
  }

  std::vector<Part> parts;
  std::vector<Numbers> numbers;

 private:
  Optimiser& optimiser_;
  Location where_;
  std::weak_ptr<const char> presence_;
};

void Optimiser::Step::record() {
  auto recorded = std::make_shared<RecordedStep>(optimiser_, context().call_site(where_));
  for (const Part& part : parts_) {
    if (!is_on_device(part))
      fail<Error>(optimiser_.name_, where_,
                  "parameter {} lies on the CPU, where a graph that is recorded on a device does not reach it",
                  part.index);
    recorded->parts.push_back({part.index, part.update_step});
  }
  for (const SharedStep& step : steps_) recorded->numbers.push_back({step.group, step.device, step.update_step});
  DeviceModule& module = *recording_module();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    std::span<const std::byte> numbers = recorded->numbers[i].update_step.numbers();
    steps_[i].recorded = module.recorded_numbers(numbers.data(), numbers.size());
  }
  module.before_launch([recorded] { recorded->renew(); });
}

void Optimiser::make_step(Location where) {
  CallerScope caller(where);
  Step(*this, where).make();
}

double Optimiser::minimise(const std::function<double()>& loss, Location where) {
  zero_grad();
  double value = loss();
  step(where);
  return value;
}

void Optimiser::step(Location where) {
  with_memory_error(name_, where, [&] {
    NoRecord pause;
    Context& context = detail::context();
    if (context.listener) context.listener->updating(parameters_);
    make_step(where);
    if (context.listener) context.listener->updated(parameters_);
  });
}

double Optimiser::step(const std::function<double()>& loss, Location where) {
  return with_memory_error(name_, where, [&] { return minimise(loss, where); });
}

}  // namespace reel::optim
