#include "batching/random_program.h"

#include <algorithm>

#include "failing_allocator.h"

// Random programs, and how one is run.

namespace reel_test {

using namespace reel;

Program::Program(std::uint64_t seed, unsigned chosen_from) : seed(seed) {
  std::mt19937_64 random(seed);
  auto below = [&](std::uint64_t count) { return random() % count; };
  manual_seed(seed);
  features = chosen_from & static_cast<unsigned>(random());
  std::size_t examples = 2 + below(6), kinds = 1 + below(2);
  std::int64_t rows = below(2) ? 0 : 1 + static_cast<std::int64_t>(below(3));  // 0: each its own
  for (std::size_t i = 0; i < examples; ++i) {
    inputs.push_back(draw({rows ? rows : 1 + static_cast<std::int64_t>(below(3)), width}));
    seeds.push_back(seed * 10 + below(kinds));
  }
  origin = static_cast<Origin>(std::max<std::uint64_t>(below(10), 3) - 3);
  persistent = below(2);
  rows_apart = below(2);
  late_kind = static_cast<int>(below(3));
  late_parameter = below(2);
  late = below(examples);
  if (has(Feature::around)) around = static_cast<Around>(1 + below(4));
  second_order = below(3) == 0 && !(features & (scopes | in_place | Feature::around | hooks | late_watch | outer_tape));
  if (has(exceptions) && below(4) == 0) {
    stopped = below(examples);
    stops_at = static_cast<int>(below(8));
    stopping = static_cast<Stopping>(below(3));
  }
}

namespace {

Tensor common_rows(const Program& program, const Parameters& parameters, Tape& tape) {
  Tensor made = draw({16, width});
  switch (program.origin) {
    case Origin::plain: break;
    case Origin::overwritten: mul_(made, 0.5); break;
    case Origin::watched: tape.watch(made); break;
    case Origin::parameter: made.requires_grad(); break;
    case Origin::computed: return tanh(made * parameters.bias);
    case Origin::paused: {
      NoRecord paused;
      return tanh(made * parameters.bias);
    }
    case Origin::view: return slice(draw({18, width}), 0, 1, 17);
  }
  return made;
}

// Runs the examples on a tape.
class Runner {
 public:
  Runner(const Program& program, const Parameters& parameters, const BatchOptions& options, Tape& tape,
         std::vector<std::string>& texts)
      : program_(program),
        options_(options),
        tape_(tape),
        taken_(program.inputs.size()),
        common_{parameters, program, options, nullptr, common_rows(program, parameters, tape), {}, {}, taken_, texts},
        examples_(program.inputs.size()) {
    bool records = program.around != Around::checkpoint && program.around != Around::no_record;
    if (records && !program.second_order) common_.tape = &tape;
    Tensor all = draw({static_cast<std::int64_t>(examples_.size()), width});
    for (std::size_t i = 0; i < examples_.size(); ++i) {
      examples_[i] = i;
      auto row = static_cast<std::int64_t>(i);
      common_.numbers.push_back(full({}, 0.5 + static_cast<double>(i / 2 % 2), {.dtype = f64}));
      common_.own.push_back(program.rows_apart ? draw({1, width}) : slice(all, 0, row, row + 1));
    }
  }

  const Tensor& rows() const { return common_.rows; }

  Tensor values() {
    switch (program_.around) {
      case Around::nothing: break;
      case Around::checkpoint: return checkpoint([this](const Tensor&) { return batch(); }, common_.parameters.W);
      case Around::no_record: {
        NoRecord paused;
        return batch();
      }
      case Around::anomaly: {
        auto scope = debug::detect_anomaly();
        return batch();
      }
      case Around::profile: {
        debug::Profile profile;
        return batch();
      }
    }
    return batch();
  }

  // Tracks a tensor of an example late; returns it, or an undefined one if that is refused.
  Tensor watch_late() {
    const std::vector<Tensor>* kinds[] = {&common_.numbers, &common_.own, &taken_};
    Tensor late = (*kinds[program_.late_kind])[program_.late];
    if (!late.defined()) return {};
    try {
      if (program_.late_parameter)
        late.requires_grad();
      else
        tape_.watch(late);
    } catch (const TapeError& error) {
      Uncounted uncounted;
      std::string text = error.what();
      // A tape within any example begins a period, in which the first use is a new one: which is named depends on the order.
      if (program_.has(scopes)) text.resize(text.find(" was used by "));
      common_.texts.back() += text;
      return {};
    }
    common_.texts.back() += "accepted";
    return late;
  }

 private:
  Tensor batch() {
    return stack(batch_map(
        examples_, [this](std::size_t i) { return Run(common_, i).result(); }, options_));
  }

  const Program& program_;
  const BatchOptions& options_;
  Tape& tape_;
  std::vector<Tensor> taken_;
  Common common_;
  std::vector<std::size_t> examples_;
};

std::vector<Tensor> second_order(const Program& program, const Parameters& parameters, const BatchOptions& options,
                                 Outcome& made) {
  std::vector<Tensor> sources = parameters.all(), first;
  sources.insert(sources.end(), program.inputs.begin(), program.inputs.end());
  Tape tape;
  for (const Tensor& x : program.inputs) tape.watch(x);
  {
    Tape inner;
    for (const Tensor& x : program.inputs) inner.watch(x);
    Runner runner(program, parameters, options, inner, made.texts);
    first = inner.gradient(sum(runner.values()), sources, {.unconnected = Unconnected::zeros});
  }
  Tensor total = zeros({}, {.dtype = f64});
  for (const Tensor& source : sources) total = total + 0 * sum(source);
  for (const Tensor& gradient : first) total = total + sum(square(gradient));
  return tape.gradient(total, sources, {.unconnected = Unconnected::zeros});
}

std::vector<Tensor> first_order(const Program& program, const Parameters& parameters, const BatchOptions& options,
                                Outcome& made) {
  std::vector<Tensor> sources = parameters.all();
  sources.insert(sources.end(), program.inputs.begin(), program.inputs.end());
  for (const Tensor& parameter : parameters.all()) parameter.set_grad({});
  Tape tape({.persistent = program.persistent});
  for (const Tensor& x : program.inputs) tape.watch(x);
  Runner runner(program, parameters, options, tape, made.texts);
  if (program.origin == Origin::watched || program.origin == Origin::parameter) sources.push_back(runner.rows());
  Tensor y = runner.values(), total = sum(y) + 0 * sum(parameters.W);
  if (program.has(late_watch))
    if (Tensor late = runner.watch_late(); late.defined()) {
      total = total + sum(late);
      sources.push_back(late);
    }
  std::vector<Tensor> found = tape.gradient(total, sources, {.unconnected = Unconnected::zeros});
  Tensor traced = zeros({}, {.dtype = f64});
  for (const Traced& one : tape.traced())
    if (one.gradient.defined()) traced = traced + sum(square(one.gradient));
  made.values = y;
  found.insert(found.end(), {y, traced, parameters.bias.grad()});
  return found;
}

}  // namespace

Outcome outcome_of(const Program& program, const Parameters& parameters, const BatchOptions& options) {
  manual_seed(program.seed);
  Outcome made;
  made.texts.resize(program.inputs.size() + 1);
  try {
    made.tensors = (program.second_order ? second_order : first_order)(program, parameters, options, made);
    return made;
  } catch (const Error& error) {
    Uncounted uncounted;
    made.texts = {error.what()};
  } catch (const Stop& stop) {
    made.texts = {stop.what()};
  }
  return made;
}

}  // namespace reel_test
