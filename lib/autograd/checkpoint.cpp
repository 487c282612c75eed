#include <reel/checkpoint.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include <reel/autocast.h>
#include <reel/ops/create.h>
#include <reel/ops/shape.h>
#include <reel/random.h>
#include <reel/tape.h>

#include "../core/device/device_module.h"
#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../dispatch/autocast.h"
#include "../dispatch/invoke.h"
#include "../ops/if_needed.h"
#include "../record/gradient.h"
#include "backward_pass.h"
#include "differentiation.h"
#include "isolated_tape_scope.h"

namespace reel::detail {
namespace {

constexpr const char* checkpoint_name = "checkpoint";

using Bytes = std::vector<std::byte>;

// A function, the state in which it started, and the form of its results. In an entry, the fingerprints of its results
// and its bytes follow.
struct Record {
  decltype(Segment::run) run;
  Generator generator;
  Location where;
  DType autocast;  // f32 if no autocast scope was open
  std::uint32_t inputs, outputs;
  std::uint64_t function_bytes;

  const std::uint64_t* fingerprints() const { return reinterpret_cast<const std::uint64_t*>(this + 1); }
  std::span<const std::byte> function() const {
    return {reinterpret_cast<const std::byte*>(fingerprints() + outputs), function_bytes};
  }
  std::size_t bytes() const { return sizeof(Record) + outputs * sizeof(std::uint64_t) + function_bytes; }
  static const Record& at(const std::byte* place) { return *reinterpret_cast<const Record*>(place); }
};

template <class T>
void append(Bytes& bytes, std::span<const T> values) {
  std::span<const std::byte> more = std::as_bytes(values);
  bytes.insert(bytes.end(), more.begin(), more.end());
}

std::uint64_t mixed(std::uint64_t state, std::uint64_t word) {
  state = (state ^ word) * 0x9E3779B97F4A7C15u;
  return std::rotl(state, 29);
}

std::uint64_t form_fingerprint(const Body& body) {
  std::uint64_t state = mixed(static_cast<std::uint64_t>(body.dtype), static_cast<std::uint64_t>(body.rank));
  for (int axis = 0; axis < body.rank; ++axis) state = mixed(state, static_cast<std::uint64_t>(body.dims[axis]));
  return state;
}

std::uint64_t fingerprint_on_cpu(const Body& body) {
  std::uint64_t state = form_fingerprint(body);
  const auto* bytes = static_cast<const std::byte*>(body.data);
  std::size_t count = static_cast<std::size_t>(body.numel) * size_of(body.dtype), i = 0;
  for (; i + 8 <= count; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes + i, sizeof word);
    state = mixed(state, word);
  }
  for (; i < count; ++i) state = mixed(state, std::to_integer<std::uint64_t>(bytes[i]));
  return state;
}

// On a device the module records the bits; a fingerprint then holds the shape and dtype, and the id of the module's
// record.
constexpr int form_shift = 32;

// A hash of the shape, the dtype and every bit of the elements: results with equal hashes are treated as equal.
std::uint64_t fingerprint(const Tensor& result) {
  NoRecord pause;
  Tensor packed = contiguous_if_needed(result);
  const Body& body = packed.body();
  if (body.device == cpu) return fingerprint_on_cpu(body);
  return form_fingerprint(body) >> form_shift << form_shift | device_module().record_fingerprint(body);
}

// Returns true if result k is unchanged; a device reports a change of elements later.
bool is_as_before(std::uint64_t print, const Tensor& result, std::size_t k, Location where) {
  if (result.device() == cpu) return fingerprint(result) == print;
  NoRecord pause;
  Tensor packed = contiguous_if_needed(result);
  if (form_fingerprint(packed.body()) >> form_shift != print >> form_shift) return false;
  device_module().check_values(static_cast<std::uint32_t>(print), packed.body(), checkpoint_name, where,
                               static_cast<int>(k));
  return true;
}

// While it lives, random ops draw the numbers of the first run again; afterwards the generator continues where it was.
class Replay : Immovable {
 public:
  Replay(Context& context, const Generator& generator) : generator_(*context.generator), now_(generator_) {
    generator_ = generator;
  }
  ~Replay() { generator_ = now_; }

 private:
  Generator& generator_;
  Generator now_;
};

// Runs a recorded function again. Throws: TapeError if its results differ from those of the first run.
std::vector<Tensor> run_again(const Record& record, std::span<const Tensor> inputs, std::span<const Tensor> captured) {
  Location where = record.where;
  std::vector<Tensor> results(record.outputs);
  {
    Replay replay(context(), record.generator);
    AutocastScope cast = autocast(record.autocast, where);
    record.run(record.function(), inputs, captured, results);
  }
  for (std::size_t k = 0; k < results.size(); ++k) {
    check_result(checkpoint_name, results[k], k, where);
    if (!is_as_before(record.fingerprints()[k], results[k], k, where))
      fail<TapeError>(checkpoint_name, where,
                      "its function, run again for the gradient, gave another result {}, {}, than the first time, so "
                      "that the gradient would be wrong: it depends on something that has changed, such as a generator "
                      "of its own, or what it counts; draw from the thread's generator, and pass what changes as an "
                      "input",
                      k, describe(results[k]));
  }
  return results;
}

struct CheckpointCall : Call {
  const Segment& segment;
  std::span<const Tensor> known;  // the tensors known to be captured
  std::vector<const Tensor*> all_inputs;
  std::vector<Tensor> captured;
  Bytes record;
};

void accumulate_gradients(Gradient& g);

constexpr OpInfo listed_op{
    .name = checkpoint_name,
    .forward = nullptr,
    .gradient = accumulate_gradients,
};

void check_inputs(const Aliases& aliases, std::span<const Tensor* const> inputs, Location where) {
  int i = aliases.overwritten();
  if (i < 0) return;
  const Tensor& input = *inputs[static_cast<std::size_t>(i)];
  fail<TapeError>(checkpoint_name, where,
                  "its function overwrote its input {}, {} made at {}, and could not be run again; overwrite a copy", i,
                  describe(input), to_string(input.made_at()));
}

void run_collecting_uses(Context& context, CheckpointCall& call, Location where) {
  Record record{.run = call.segment.run,
                .generator = *context.generator,
                .where = where,
                .autocast = context.has(Context::autocasting) ? context.casts->low() : DType::f32,
                .inputs = static_cast<std::uint32_t>(call.inputs.size()),
                .outputs = static_cast<std::uint32_t>(call.outputs.size()),
                .function_bytes = call.segment.function.size()};
  IsolatedTapeScope scope(context, IsolatedTapeScope::Purpose::collect_uses);
  Aliases inputs(call.inputs);
  for (const Tensor& tensor : call.known) scope.list().adopt(checkpoint_name, tensor, where);
  call.segment.run(call.segment.function, inputs.tensors(), call.known, call.outputs);
  check_inputs(inputs, call.inputs, where);
  make_outputs(checkpoint_name, scope, inputs, call.outputs, where);
  call.captured = scope.list().adopted();
  append(call.record, std::span<const Record>(&record, 1));
  for (const Tensor& output : call.outputs) {
    std::uint64_t print = fingerprint(output);
    append(call.record, std::span<const std::uint64_t>(&print, 1));
  }
  append(call.record, call.segment.function);
}

// When a checkpoint around this one only collects the tensors that are used, nothing is recorded. The inputs are collected as
// used, as they are when this checkpoint is recorded; and its ops run as they do then, when the one around runs again.
void run_within_collecting(TapeList& list, const Segment& segment, std::span<const Tensor* const> inputs,
                           std::span<Tensor> outputs, Location where) {
  wait_for_all(context());  // where the scope of a recorded checkpoint does
  for (const Tensor* input : inputs)
    if (list.is_tracked_outside(input->body())) list.adopt(checkpoint_name, *input, where);
  Aliases aliases(inputs);
  {
    // Within an example of batch_map the ops of a checkpoint that is recorded join no others.
    FlagScope alone(context(), Context::runs_alone, true);
    segment.run(segment.function, aliases.tensors(), {}, outputs);
  }
  check_inputs(aliases, inputs, where);
}

// The op that passes the dispatcher. It is not recorded in the ordinary way, because only this file knows what it
// saves.
constexpr OpInfo called_op{
    .name = checkpoint_name,
    .forward =
        [](Call& door_call) {
          auto& call = static_cast<CheckpointCall&>(door_call);
          Context& context = detail::context();
          Location where = context.call_site(call.where);
          run_collecting_uses(context, call, where);
          call.all_inputs.assign(call.inputs.begin(), call.inputs.end());
          for (const Tensor& tensor : call.captured) call.all_inputs.push_back(&tensor);
          std::vector<TapeList::ToSave> saved;
          for (std::size_t i = 0; i < call.all_inputs.size(); ++i)
            saved.push_back({*call.all_inputs[i], i < call.inputs.size() ? static_cast<int>(i) : int{Saved::captured}});
          call.inputs = call.all_inputs;
          call.attribute_bytes = call.record;
          if (context.tapes->record_saving(context, call, listed_op, saved, {}) && call.segment.owner)
            context.tapes->keep(call.segment.owner);
        },
};

std::vector<Tensor> run_segment(const Segment& segment, std::span<const Tensor* const> inputs,
                                std::span<const Tensor> known, std::size_t outputs, Location where) {
  std::vector<Tensor> results(outputs);
  CheckpointCall call{{called_op, inputs, {}, {}, results, where}, segment, known, {}, {}, {}};
  invoke(call);
  return results;
}

// The contents of an entry: its function's record, inputs and captured tensors.
struct Recorded {
  explicit Recorded(const Gradient& g) : record(Record::at(g.attribute_bytes().data())) {
    for (std::size_t i = 0; i < g.input_count(); ++i)
      (i < record.inputs ? inputs : captured).push_back(g.saved_value(i));
  }
  const Record& record;
  std::vector<Tensor> inputs, captured;
};

// Makes leaves of the inputs that need a gradient. The inputs become aliases, and captured tensors are adopted.
std::vector<std::uint32_t> leaf_slots(const Gradient& g, TapeList& list, Recorded& recorded) {
  std::size_t given = recorded.inputs.size();
  std::vector<std::uint32_t> slots(g.input_count(), 0);
  for (std::size_t i = 0; i < given; ++i) {
    recorded.inputs[i] = alias_of(recorded.inputs[i]);
    if (g.wants(i)) slots[i] = list.track(checkpoint_name, recorded.inputs[i], g.where());
  }
  for (std::size_t i = given; i < slots.size(); ++i) {
    const Tensor& tensor = recorded.captured[i - given];
    if (g.wants(i))
      slots[i] = list.adopt(checkpoint_name, tensor, g.where());
    else
      list.adopt_constant(checkpoint_name, tensor, g.where());
  }
  return slots;
}

void check_captured(const TapeList& list, const Recorded& recorded, Location where) {
  if (list.adopted().size() == recorded.captured.size()) return;
  const Tensor& other = list.adopted()[recorded.captured.size()];
  fail<TapeError>(
      checkpoint_name, where,
      "its function, run again for the gradient, uses {}, made at {}, which is tracked and was not used the "
      "first time; let it do the same each time",
      describe(other), to_string(other.made_at()));
}

// Propagates gradients from the results to the inputs with these slots. The sums of the outer backward pass are passed
// through the inner one, so that terms are added in the order in which they would be without a checkpoint.
void backward_from_results(Gradient& g, Context& context, TapeList& list, std::vector<Tensor> results,
                           std::vector<Tensor> seeds, std::span<const std::uint32_t> slots) {
  std::vector<std::uint32_t> from;
  for (std::size_t k = 0; k < results.size(); ++k)
    from.push_back(seeds[k].defined() ? list.slot_of(results[k].body()) : 0);
  std::uint32_t target = *std::max_element(from.begin(), from.end());
  if (target == 0) return;
  DifferentiatingScope pause(context, false);
  BackwardPass pass(context, list, target);
  auto is_passed = [&](std::size_t i) { return slots[i] != 0 && slots[i] <= target; };
  if (g.hand_totals_to(pass))
    for (std::size_t i = 0; i < slots.size(); ++i)
      if (is_passed(i)) g.hand_total(i, pass, slots[i]);
  for (std::size_t k = 0; k < from.size(); ++k)
    if (from[k] != 0) pass.begin_with(from[k], std::move(seeds[k]));
  results.clear();
  pass.run({}, true);
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (is_passed(i)) g.take_total_back(i, pass, slots[i]);
}

// Runs the function on the inner list, differentiates it there, and clears the list.
void accumulate_recomputed(Gradient& g) {
  Recorded recorded(g);
  std::vector<Tensor> seeds;
  for (std::size_t k = 0; k < g.output_count(); ++k) seeds.push_back(g.hand_over(k));
  Context& context = detail::context();
  IsolatedTapeScope scope(context, IsolatedTapeScope::Purpose::record);
  std::vector<std::uint32_t> slots = leaf_slots(g, scope.list(), recorded);
  std::vector<Tensor> results = run_again(recorded.record, recorded.inputs, recorded.captured);
  check_captured(scope.list(), recorded, g.where());
  backward_from_results(g, context, scope.list(), std::move(results), std::move(seeds), slots);
}

// The gradients of a recorded function as a function of its inputs and of the gradients of its results, which can be a
// checkpoint itself. Its bytes: the number of flags; which results have a gradient, and which inputs need one; the
// record itself.

Bytes gradient_function(const Gradient& g, const Record& record) {
  Bytes function;
  std::uint64_t flags = g.output_count() + g.input_count();
  append(function, std::span<const std::uint64_t>(&flags, 1));
  for (std::size_t k = 0; k < g.output_count(); ++k) function.push_back(std::byte{g.has_output(k)});
  for (std::size_t i = 0; i < g.input_count(); ++i) function.push_back(std::byte{g.wants(i)});
  function.resize((function.size() + 7) & ~std::size_t{7});
  std::span<const std::byte> whole = g.attribute_bytes();
  function.insert(function.end(), whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(record.bytes()));
  return function;
}

// Concatenates the elements of all tensors. The sum of their products with the seeds would serve, too, but could
// overflow.
Tensor in_line(std::span<const Tensor> tensors) {
  if (tensors.size() == 1) return tensors.front();
  std::vector<Tensor> lines;
  for (const Tensor& tensor : tensors) lines.push_back(reshape(tensor, {tensor.numel()}));
  return concat(lines);
}

void run_gradient_function(std::span<const std::byte> function, std::span<const Tensor> inputs,
                           std::span<const Tensor> captured, std::span<Tensor> gradients) {
  std::uint64_t flags;
  std::memcpy(&flags, function.data(), sizeof flags);
  function = function.subspan(sizeof flags);
  const Record& record = Record::at(function.data() + ((flags + 7) & ~std::uint64_t{7}));
  const std::byte* has_gradient = function.data();
  const std::byte* wants = has_gradient + record.outputs;

  Tape tape;
  std::vector<Tensor> sources;
  std::span<const Tensor> x = inputs.first(record.inputs), seeds = inputs.subspan(record.inputs);
  for (std::size_t i = 0; i < flags - record.outputs; ++i) {
    if (wants[i] == std::byte{0}) continue;
    sources.push_back(i < x.size() ? x[i] : captured[i - x.size()]);
    tape.watch(sources.back());
  }
  std::vector<Tensor> results = run_again(record, x, captured);
  std::vector<Tensor> targets;
  for (std::size_t k = 0; k < record.outputs; ++k)
    if (has_gradient[k] != std::byte{0}) targets.push_back(results[k]);
  Tensor target = in_line(targets);
  std::vector<Tensor> found(sources.size());
  if (context().tapes->is_live(target.body()))
    found = tape.gradient(target, sources, {.seed = in_line(seeds), .unconnected = Unconnected::zeros});
  for (std::size_t i = 0; i < found.size(); ++i) gradients[i] = found[i].defined() ? found[i] : zeros_like(sources[i]);
}

void accumulate_recorded(Gradient& g) {
  Recorded recorded(g);
  std::vector<Tensor> seeds;
  for (std::size_t k = 0; k < g.output_count(); ++k)
    if (g.has_output(k)) seeds.push_back(g.output(k));
  std::vector<const Tensor*> inputs;
  for (const Tensor& input : recorded.inputs) inputs.push_back(&input);
  for (const Tensor& seed : seeds) inputs.push_back(&seed);
  std::size_t wanted = 0;
  for (std::size_t i = 0; i < g.input_count(); ++i) wanted += g.wants(i);

  Bytes function = gradient_function(g, recorded.record);
  std::vector<Tensor> gradients =
      run_segment({run_gradient_function, function, nullptr}, inputs, recorded.captured, wanted, g.where());
  for (std::size_t i = 0, next = 0; i < g.input_count(); ++i)
    if (g.wants(i)) g.accumulate(i, std::move(gradients[next++]));
}

void accumulate_gradients(Gradient& g) { g.recording() ? accumulate_recorded(g) : accumulate_recomputed(g); }

}  // namespace

void run_checkpoint(const Segment& segment, std::span<const Arg> inputs, std::span<Tensor> outputs) {
  with_memory_error(checkpoint_name, inputs[0].location(), [&] {
    Location where = inputs[0].location();
    std::vector<const Tensor*> tensors;
    for (const Arg& input : inputs)
      tensors.push_back(&tensor_of(checkpoint_name, input.is_tensor() ? Arg(*input.tensor(), where) : input));
    Context& context = detail::context();
    if (!context.has(Context::recording)) {
      std::vector<Tensor> plain;
      for (const Tensor* tensor : tensors) plain.push_back(*tensor);
      segment.run(segment.function, plain, {}, outputs);
      return replace_aliased_results(checkpoint_name, plain, outputs, where);
    }
    TapeList& list = *context.tapes;
    if (list.only_collects_uses && list.depth == 1)
      return run_within_collecting(list, segment, tensors, outputs, where);
    std::vector<Tensor> results = run_segment(segment, tensors, {}, outputs.size(), where);
    std::move(results.begin(), results.end(), outputs.begin());
  });
}

}  // namespace reel::detail
