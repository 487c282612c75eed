#include <reel/optim/moving_average.h>

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <reel/ops/create.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/storage.h"
#include "../cpu/parallel.h"
#include "../tape/tape_list.h"
#include "descent.h"
#include "state_reader.h"

namespace reel::optim {

using namespace detail;

namespace {

constexpr const char* name = "MovingAverage";

// a = δ a + (1 − δ) w.
void add_to(Tensor& average, const Tensor& tensor, const AverageNumbers& numbers) {
  OptimiserKernel kernel = optimiser_kernels(tensor.device()).average;
  auto size = static_cast<std::int64_t>(size_of(tensor.dtype()));
  char *a = static_cast<char*>(average.body().data), *w = static_cast<char*>(tensor.body().data);
  parallel_for(tensor.numel(), parallel_grain, [&](std::int64_t begin, std::int64_t end) {
    kernel({tensor.dtype(), end - begin, a + begin * size, w + begin * size, {}}, &numbers);
  });
}

// Cannot throw: at the end of a scope there is nobody to tell.
void swap_elements(Tensor& tensor, Tensor& average, Location where) noexcept {
  Storage& storage = *tensor.body().storage;
  storage.writers.fetch_add(1, std::memory_order_relaxed);
  storage.overwritten(where);
  auto bytes = tensor.numel() * static_cast<std::int64_t>(size_of(tensor.dtype()));
  char *a = static_cast<char*>(tensor.body().data), *b = static_cast<char*>(average.body().data);
  std::swap_ranges(a, a + bytes, b);
  // What was written meanwhile is an overwrite of its own: somebody may have read in between.
  storage.overwritten(where);
  storage.writers.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

MovingAverage::MovingAverage(std::vector<Tensor> tensors, MovingAverageOptions options, Location where)
    : options_(options), tensors_(std::move(tensors)) {
  NoRecord pause;
  if (!(options.decay >= 0 && options.decay <= 1))
    fail<Error>(name, where, "the decay {} lies outside [0, 1]", options.decay);
  std::unordered_set<const Body*> seen;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    if (!tensor.defined()) fail<Error>(name, where, "tensor {} is undefined", i);
    if (tensor.dtype() != DType::f32 && tensor.dtype() != DType::f64)
      fail<DTypeError>(name, where, "tensor {}, {}, is neither f32 nor f64", i, describe(tensor));
    if (!tensor.is_contiguous())
      fail<ShapeError>(name, where, "tensor {}, {}, is not contiguous; make it so with contiguous(x)", i,
                       describe(tensor));
    if (!seen.insert(&tensor.body()).second)
      fail<Error>(name, where, "tensor {}, {}, is listed twice", i, describe(tensor));
    averages_.push_back(copy(Arg(tensor, where)));
  }
}

void MovingAverage::check_own(const char* what, Location where) const {
  if (in_place_) fail<Error>(name, where, "{} while the averages are in place of the tensors", what);
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    if (const Leaf* leaf = tensors_[i].body().leaf; leaf && leaf->replaced_at.file)
      fail<Error>(name, where,
                  "tensor {}, {}, is its module's no more: another one took its place at {}; make the moving average "
                  "after that",
                  i, describe(tensors_[i]), to_string(leaf->replaced_at));
}

void MovingAverage::update(Location where) {
  check_own("it cannot be updated", where);
  ++steps_;
  auto step = static_cast<double>(steps_);
  double kept = options_.warms_up ? std::min(options_.decay, (1 + step) / (10 + step)) : options_.decay;
  for (std::size_t i = 0; i < tensors_.size(); ++i) add_to(averages_[i], tensors_[i], {kept, 1 - kept});
}

Tensor MovingAverage::average(std::size_t number, Location where) const {
  NoRecord pause;
  if (number >= tensors_.size())
    fail<IndexError>(name, where, "there is no tensor {}; it has {}", number, tensors_.size());
  return copy(Arg(in_place_ ? tensors_[number] : averages_[number], where));
}

void MovingAverage::check_untracked(Location where) const {
  const TapeList& tapes = *context().tapes;
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    if (const Body& body = tensors_[i].body(); !body.requires_grad && tapes.is_live(body))
      fail<TapeError>(
          name, where,
          "tensor {}, {}, made at {}, is tracked by an open tape, whose gradients would be those of the old "
          "values; put the averages in place before, or when it has gone",
          i, describe(tensors_[i]), to_string(tensors_[i].made_at()));
}

void MovingAverage::swap(Location where) noexcept {
  // Back in the other order, for tensors that share elements.
  for (std::size_t k = 0; k < tensors_.size(); ++k) {
    std::size_t i = in_place_ ? tensors_.size() - 1 - k : k;
    swap_elements(tensors_[i], averages_[i], where);
  }
  in_place_ = !in_place_;
}

MovingAverage::Scope::Scope(MovingAverage& average, Location where)
    : average_(average), where_(context().resolve(where)) {
  average.check_own("it cannot have a second scope", where);
  average.check_untracked(where);
  average.swap(where_);
}

MovingAverage::Scope::~Scope() { average_.swap(where_); }

MovingAverage::Scope MovingAverage::in_place(Location where) { return {*this, where}; }

std::vector<nn::NamedTensor> MovingAverage::state(Location where) const {
  std::vector<nn::NamedTensor> state{{"steps", tensor({steps_})}};
  for (std::size_t i = 0; i < tensors_.size(); ++i) state.push_back({fmt::format("{}.average", i), average(i, where)});
  return state;
}

void MovingAverage::load_state(std::span<const nn::NamedTensor> state, Location where) {
  NoRecord pause;
  check_own("it cannot load a state", where);
  StateReader reader(name, state, where);
  auto steps = reader.number<std::int64_t>("steps");
  if (steps < 0) fail<Error>(name, where, "the state's 'steps' is {}", steps);
  std::vector<Tensor> averages;
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    averages.push_back(copy(reader.find(fmt::format("{}.average", i), tensors_[i].shape(), tensors_[i].dtype())));
  reader.finish();
  steps_ = steps;
  averages_ = std::move(averages);
}

void MovingAverage::load_state(const std::vector<nn::NamedTensor>& state, Location where) {
  load_state(std::span<const nn::NamedTensor>(state), where);
}

}  // namespace reel::optim
