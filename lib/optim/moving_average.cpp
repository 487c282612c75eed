#include <reel/optim/moving_average.h>

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/device/device_module.h"
#include "../core/storage.h"
#include "../core/threads/parallel.h"
#include "../kernels/kernel_table.h"
#include "../record/tape_list.h"
#include "state_reader.h"
#include "update_step.h"

namespace reel::optim {

using namespace detail;

namespace {

constexpr const char* moving_average_name = "MovingAverage";

ParameterSlice slice_of(const Tensor& average, const Tensor& tensor) {
  return {tensor.dtype(), tensor.numel(), average.body().data, tensor.body().data, {}};
}

void add_on_cpu(const Tensor& average, const Tensor& tensor, const AverageNumbers& numbers) {
  auto kernel = kernel_of<formulas::Average>(cpu_optimiser_kernels);
  auto size = static_cast<std::int64_t>(size_of(tensor.dtype()));
  parallel_for(tensor.numel(), parallel_grain, [&](std::int64_t begin, std::int64_t end) {
    ParameterSlice slice = slice_of(average, tensor);
    slice.count = end - begin;
    slice.values = static_cast<char*>(slice.values) + begin * size;
    slice.gradient = static_cast<const char*>(slice.gradient) + begin * size;
    kernel({&slice, 1}, numbers, nullptr);
  });
}

// a = δ a + (1 − δ) w for all tensors, on each device in one call.
void add_all(std::span<const Tensor> averages, std::span<const Tensor> tensors, const AverageNumbers& numbers,
             const void* recorded) {
  run_delayed(context());
  std::vector<std::pair<Device, std::vector<ParameterSlice>>> by_device;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Device device = tensors[i].device();
    if (device == cpu) {
      add_on_cpu(averages[i], tensors[i], numbers);
      continue;
    }
    prepare_on_device(averages[i].body(), true);
    prepare_on_device(tensors[i].body(), false);
    auto found = std::ranges::find(by_device, device, [](const auto& slices) { return slices.first; });
    if (found == by_device.end()) {
      by_device.push_back({device, {}});
      found = by_device.end() - 1;
    }
    found->second.push_back(slice_of(averages[i], tensors[i]));
  }
  for (const auto& [device, slices] : by_device)
    kernel_of<formulas::Average>(optimiser_kernels(device))(slices, numbers, recorded);
}

// Swaps by way of a third tensor.
void swap_on_device(const Tensor& tensor, const Tensor& average, const Tensor& spare) {
  for (const Tensor* x : {&tensor, &average, &spare}) prepare_on_device(x->body(), true);
  View between = tensor.body();
  between.data = spare.body().data;
  auto copy = kernels(tensor.device()).copy;
  copy(between, tensor.body());
  copy(tensor.body(), average.body());
  copy(average.body(), between);
}

// Does not throw: at the end of a scope an error could not be reported, and a failing device has reported one before.
void swap_elements(Tensor& tensor, Tensor& average, std::span<const Tensor> spares, Location where) noexcept {
  run_delayed(context());
  Storage& storage = *tensor.body().storage;
  storage.writers.fetch_add(1, std::memory_order_relaxed);
  storage.overwritten(where);
  auto bytes = tensor.numel() * static_cast<std::int64_t>(size_of(tensor.dtype()));
  if (tensor.device() == cpu) {
    char *a = static_cast<char*>(tensor.body().data), *b = static_cast<char*>(average.body().data);
    std::swap_ranges(a, a + bytes, b);
  } else {
    for (const Tensor& spare : spares) {
      if (spare.device() != tensor.device()) continue;
      try {
        swap_on_device(tensor, average, spare);
      } catch (const Error&) {
      }
    }
  }
  // Elements written meanwhile are treated as another overwrite: an op may have read them in between.
  storage.overwritten(where);
  storage.writers.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

MovingAverage::MovingAverage(std::vector<Tensor> tensors, MovingAverageOptions options, Location where)
    : options_(options), tensors_(std::move(tensors)) {
  NoRecord pause;
  if (!(options.decay >= 0 && options.decay <= 1))
    fail<Error>(moving_average_name, where, "the decay {} lies outside [0, 1]", options.decay);
  std::unordered_set<const Body*> seen;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    if (!tensor.defined()) fail<Error>(moving_average_name, where, "tensor {} is undefined", i);
    if (tensor.dtype() != DType::f32 && tensor.dtype() != DType::f64)
      fail<DTypeError>(moving_average_name, where, "tensor {}, {}, is neither f32 nor f64", i, describe(tensor));
    if (!tensor.is_contiguous())
      fail<ShapeError>(moving_average_name, where, "tensor {}, {}, is not contiguous; make it so with contiguous(x)", i,
                       describe(tensor));
    if (!seen.insert(&tensor.body()).second)
      fail<Error>(moving_average_name, where, "tensor {}, {}, is listed twice", i, describe(tensor));
    averages_.push_back(copy(Arg(tensor, where)));
  }
}

void MovingAverage::check_own(const char* what, Location where) const {
  if (in_place_) fail<Error>(moving_average_name, where, "{} while the averages are in place of the tensors", what);
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    if (const Leaf* leaf = tensors_[i].body().leaf; leaf && leaf->replaced_at.file)
      fail<Error>(moving_average_name, where,
                  "tensor {}, {}, is its module's no more: another one took its place at {}; make the moving average "
                  "after that",
                  i, describe(tensors_[i]), to_string(leaf->replaced_at));
}

void MovingAverage::update(Location where) {
  check_own("it cannot be updated", where);
  ++steps_;
  if (recording_module()) return update_at_replays();
  add_all(averages_, tensors_, numbers_of(steps_), nullptr);
}

AverageNumbers MovingAverage::numbers_of(std::int64_t steps) const {
  auto step = static_cast<double>(steps);
  double kept = options_.warms_up ? std::min(options_.decay, (1 + step) / (10 + step)) : options_.decay;
  return {kept, 1 - kept};
}

// Updates that a graph repeats are counted before each replay, with the numbers of that time.
void MovingAverage::update_at_replays() {
  if (!presence_) presence_ = std::make_shared<const char>('\0');
  auto numbers = std::make_shared<AverageNumbers>(numbers_of(steps_));
  DeviceModule& module = *recording_module();
  const void* recorded = module.recorded_numbers(numbers.get(), sizeof *numbers);
  add_all(averages_, tensors_, *numbers, recorded);
  module.before_launch([this, numbers, presence = std::weak_ptr<const char>(presence_)] {
    if (presence.expired())
      fail<Error>(moving_average_name, {}, "a moving average whose update is replayed is there no more");
    *numbers = numbers_of(++steps_);
  });
}

Tensor MovingAverage::average(std::size_t index, Location where) const {
  NoRecord pause;
  if (index >= tensors_.size())
    fail<IndexError>(moving_average_name, where, "there is no tensor {}; it has {}", index, tensors_.size());
  return copy(Arg(in_place_ ? tensors_[index] : averages_[index], where));
}

void MovingAverage::check_untracked(Location where) const {
  const TapeList& tapes = *context().tapes;
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    if (const Body& body = tensors_[i].body(); !body.requires_grad && tapes.is_live(body))
      fail<TapeError>(
          moving_average_name, where,
          "tensor {}, {}, made at {}, is tracked by an open tape, whose gradients would be those of the old "
          "values; put the averages in place before, or when it has gone",
          i, describe(tensors_[i]), to_string(tensors_[i].made_at()));
}

void MovingAverage::swap(Location where) noexcept {
  // Swapped back in reverse order, because tensors may share elements.
  for (std::size_t k = 0; k < tensors_.size(); ++k) {
    std::size_t i = in_place_ ? tensors_.size() - 1 - k : k;
    swap_elements(tensors_[i], averages_[i], spares_, where);
  }
  in_place_ = !in_place_;
  if (!in_place_) spares_.clear();
}

// For each device, a buffer for the largest tensor on it.
void MovingAverage::make_spares(Location where) {
  for (const Tensor& tensor : tensors_) {
    if (tensor.device() == cpu) continue;
    auto bytes = tensor.numel() * static_cast<std::int64_t>(size_of(tensor.dtype()));
    auto found = std::find_if(spares_.begin(), spares_.end(),
                              [&](const Tensor& spare) { return spare.device() == tensor.device(); });
    if (found != spares_.end() && found->numel() >= bytes) continue;
    Tensor spare = allocate(context(), {Shape{bytes}, DType::u8, tensor.device()}, moving_average_name, where);
    if (found == spares_.end())
      spares_.push_back(std::move(spare));
    else
      *found = std::move(spare);
  }
}

MovingAverage::Scope::Scope(MovingAverage& average, Location where)
    : average_(average), where_(context().call_site(where)) {
  average.check_own("it cannot have a second scope", where);
  average.check_untracked(where);
  average.make_spares(where);
  average.swap(where_);
}

MovingAverage::Scope::~Scope() { average_.swap(where_); }

MovingAverage::Scope MovingAverage::in_place(Location where) { return {*this, where}; }

std::vector<NamedTensor> MovingAverage::state(Location where) const {
  std::vector<NamedTensor> state{{"steps", tensor({steps_})}};
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    state.push_back({std::to_string(i) + ".average", average(i, where)});
  return state;
}

void MovingAverage::load_state(std::span<const NamedTensor> state, Location where) {
  NoRecord pause;
  check_own("it cannot load a state", where);
  StateReader reader(moving_average_name, state, where);
  auto steps = reader.number<std::int64_t>("steps");
  if (steps < 0) fail<Error>(moving_average_name, where, "the state's 'steps' is {}", steps);
  std::vector<Tensor> averages;
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    averages.push_back(
        to(reader.find(fmt::format("{}.average", i), tensors_[i].shape(), tensors_[i].dtype()), tensors_[i].device()));
  reader.finish();
  steps_ = steps;
  averages_ = std::move(averages);
}

void MovingAverage::load_state(const std::vector<NamedTensor>& state, Location where) {
  load_state(std::span<const NamedTensor>(state), where);
}

}  // namespace reel::optim
