#include <reel/cuda.h>

#include <utility>

#include <reel/ops/elementwise.h>
#include <reel/ops/in_place.h>
#include <reel/ops/shape.h>
#include <reel/random.h>
#include <reel/tape.h>

#include "../core/context.h"
#include "../core/device/device_module.h"
#include "../core/op_error.h"
#include "../ops/if_needed.h"

namespace reel::cuda {

using namespace detail;

namespace {

constexpr const char* name = "cuda::Graph";

std::string form_of(const Tensor& x) { return fmt::format("{} on {}", describe(x), to_string(x.device())); }

}  // namespace

struct Graph::State {
  Steps function;
  std::vector<Tensor> inputs;  // read by the recorded step
  Device device;
  int calls = 0;
  std::unique_ptr<RecordedGraph> recorded;
  std::vector<Tensor> results;                // written by the recorded step
  std::uint64_t calls_before = 0, draws = 0;  // calls of the generator: when the step was recorded, and in each step

  void check(const std::vector<Tensor>& given, Location where) const {
    if (context().has(Context::recording))
      fail<TapeError>(name, where, "a tape is open, which would not see the step's ops; open one within the step");
    if (given.size() != inputs.size())
      fail<Error>(name, where, "its step takes {} inputs, not {}", inputs.size(), given.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!given[i].defined()) fail<Error>(name, where, "input {} is undefined", i);
      if (given[i].shape() != inputs[i].shape())
        fail<ShapeError>(name, where,
                         "input {} is {}, but the graph was made for {}; make another one for other shapes", i,
                         describe(given[i]), describe(inputs[i]));
      if (given[i].dtype() != inputs[i].dtype())
        fail<DTypeError>(name, where, "input {} is {}, but the graph was made for {}", i, describe(given[i]),
                         describe(inputs[i]));
    }
  }

  void take(const std::vector<Tensor>& given, Location where) {
    NoRecord pause;
    for (std::size_t i = 0; i < given.size(); ++i)
      if (!given[i].is(inputs[i])) copy_(Destination(inputs[i], where), to_if_needed(Arg(given[i], where), device));
  }

  std::vector<Tensor> call() const {
    std::vector<Tensor> found = function(inputs);
    for (Tensor& result : found)
      if (result.defined()) result = stop_gradient(result);
    return found;
  }

  void record() {
    Generator& generator = default_generator();
    context().set(Context::on_device, true);
    calls_before = generator.calls();
    std::unique_ptr<RecordedGraph> graph = device_module().record(device.index, generator);
    results = call();
    graph->finish();
    draws = generator.calls() - calls_before;
    recorded = std::move(graph);
    recorded->launch(generator.seed(), 0);
  }

  void replay() const {
    Generator& generator = default_generator();
    recorded->launch(generator.seed(), generator.calls() - calls_before);
    generator.set_calls(generator.calls() + draws);
  }

  // The next replay overwrites the graph's own results.
  std::vector<Tensor> copies(Location where) const {
    NoRecord pause;
    std::vector<Tensor> found;
    for (const Tensor& result : results) found.push_back(result.defined() ? copy(Arg(result, where)) : Tensor());
    return found;
  }
};

Graph::Graph(Step function, std::vector<Tensor> inputs, Location where)
    : Graph(Steps([f = std::move(function)](std::span<const Tensor> x) { return std::vector<Tensor>{f(x)}; }),
            std::move(inputs), where) {}

Graph::Graph(Steps function, std::vector<Tensor> inputs, Location where) : state_(std::make_unique<State>()) {
  NoRecord pause;
  state_->function = std::move(function);
  if (inputs.empty()) state_->device = cuda::device(0, where);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& input = inputs[i];
    if (!input.defined()) fail<Error>(name, where, "input {} is undefined", i);
    if (input.device() == cpu)
      fail<DeviceError>(name, where, "input {} is {}; the inputs of a graph lie on its GPU", i, form_of(input));
    if (i > 0 && input.device() != state_->device)
      fail<DeviceError>(name, where, "input {} is {}, but those before lie on {}", i, form_of(input),
                        to_string(state_->device));
    state_->device = input.device();
    state_->inputs.push_back(copy(Arg(input, where)));
  }
}

Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

std::vector<Tensor> Graph::run(const std::vector<Tensor>& inputs, Location where) {
  State& state = *state_;
  state.check(inputs, where);
  state.take(inputs, where);
  if (state.calls == 0) {
    state.calls = 1;
    return state.call();
  }
  if (!state.recorded)
    state.record();
  else
    state.replay();
  return state.copies(where);
}

Tensor Graph::operator()(const std::vector<Tensor>& inputs, Location where) {
  std::vector<Tensor> results = run(inputs, where);
  if (results.empty()) fail<Error>(name, where, "its step gives no result; call run");
  return results[0];
}

bool Graph::is_recorded() const { return state_->recorded != nullptr; }

}  // namespace reel::cuda
