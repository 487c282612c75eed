#include <reel/tape.h>

#include <algorithm>
#include <mutex>

#include <reel/ops.h>

#include "../core/op_error.h"
#include "../core/storage.h"
#include "../ops/registry.h"
#include "row_gradient.h"
#include "walk.h"

namespace reel {

using namespace detail;

namespace {

constexpr const char* gradient_name = "gradient";
constexpr const char* backward_name = "backward";

// While a tape differentiates, only the tapes around it record.
class RecordAs {
 public:
  RecordAs(Context& context, bool recording) : context_(context), before_(context.has(Context::recording)) {
    context.set(Context::recording, recording);
  }
  ~RecordAs() { context_.set(Context::recording, before_); }
  RecordAs(const RecordAs&) = delete;
  RecordAs& operator=(const RecordAs&) = delete;

 private:
  Context& context_;
  bool before_;
};

// Forgets the list when a differentiation that consumes it ends, however it ends.
class Consumption {
 public:
  Consumption(TapeList& list, bool consumes) : list_(list), consumes_(consumes) {}
  ~Consumption() {
    if (consumes_) list_.clear();
  }
  Consumption(const Consumption&) = delete;
  Consumption& operator=(const Consumption&) = delete;

 private:
  TapeList& list_;
  bool consumes_;
};

std::uint32_t target_slot(const char* op, const TapeList& list, const Tensor& target, std::uint32_t first_slot,
                          Location where) {
  check_floating(op, target, where);
  const Body& body = target.body();
  std::uint32_t slot = list.slot_of(body);
  if (!slot) {
    if (body.epoch.load(std::memory_order_relaxed) != 0)
      fail<TapeError>(op, where,
                      "the target {}, computed at {}, belongs to a tape that has finished or has been differentiated "
                      "already; compute it again, or open the tape with {{.persistent = true}}",
                      describe(target), to_string(target.made_at()));
    fail<TapeError>(op, where,
                    "the target {}, computed at {}, was not recorded: nothing it was computed from was tracked while a "
                    "tape was open",
                    describe(target), to_string(target.made_at()));
  }
  if (slot < first_slot)
    fail<TapeError>(op, where, "the target {}, computed at {}, is older than this tape; ask an outer tape",
                    describe(target), to_string(target.made_at()));
  if (list.is_overwritten(body))
    fail<TapeError>(op, where,
                    "the target {}, computed at {}, was overwritten at {} through a tensor that shares its elements; "
                    "give that tensor, or overwrite a copy",
                    describe(target), to_string(target.made_at()), to_string(body.storage->last_overwrite()));
  return slot;
}

Tensor seed_for(const char* op, const Tensor& target, const GradientOptions& options, Location where) {
  if (!options.seed.defined()) {
    if (target.numel() != 1)
      fail<TapeError>(op, where, "the target {} is not a single element; reduce it, or give its own gradient as .seed",
                      describe(target));
    return ones_like(target);
  }
  if (options.seed.shape() != target.shape() || options.seed.dtype() != target.dtype())
    fail<ShapeError>(op, where, "the seed {} does not fit the target {}", describe(options.seed), describe(target));
  return options.seed;
}

// A value that is nobody else's, in row-major order.
Tensor sole(Tensor gradient) {
  Body& body = gradient.body();
  if (body.contiguous && body.references.unique() && body.storage->references.unique()) return gradient;
  return copy(gradient);
}

struct Commit {
  Tensor parameter;
  Leaf found;
};

// What a parameter holds after a backward has found more.
Leaf accumulated(const Leaf& before, const Commit& commit) {
  const Leaf& found = commit.found;
  const RowGradient &old_rows = before.row_gradient, &new_rows = found.row_gradient;
  if (!before.gradient.defined() && !old_rows.defined()) return found;
  if (old_rows.defined() && new_rows.defined()) return {{}, combined(old_rows, new_rows, commit.parameter.size(0))};
  if (new_rows.defined()) return {with_rows(before.gradient, new_rows.rows, new_rows.values), {}};
  if (old_rows.defined()) return {with_rows(found.gradient, old_rows.rows, old_rows.values), {}};
  return {add(before.gradient, found.gradient), {}};
}

bool is_same(const Leaf& a, const Leaf& b) {
  return a.gradient.is(b.gradient) && a.row_gradient.values.is(b.row_gradient.values);
}

// All sums are formed before the first is stored, so that a failure changes none. They are formed outside the lock,
// because ops may run other people's code; if another thread was faster, they are formed again.
void commit(std::vector<Commit>& commits) {
  for (Commit& commit : commits) {
    Tensor& gradient = commit.found.gradient;
    if (!gradient.defined()) continue;
    if (gradient.body().epoch.load(std::memory_order_relaxed) != 0) gradient = stop_gradient(gradient);
    gradient = sole(std::move(gradient));
  }
  std::vector<Leaf> before(commits.size()), after(commits.size());
  while (true) {
    {
      std::lock_guard lock(gradient_mutex());
      for (std::size_t i = 0; i < commits.size(); ++i) before[i] = *commits[i].parameter.body().leaf;
    }
    for (std::size_t i = 0; i < commits.size(); ++i) after[i] = accumulated(before[i], commits[i]);
    std::lock_guard lock(gradient_mutex());
    bool unchanged = true;
    for (std::size_t i = 0; i < commits.size(); ++i) unchanged &= is_same(*commits[i].parameter.body().leaf, before[i]);
    if (!unchanged) continue;
    for (std::size_t i = 0; i < commits.size(); ++i) std::swap(*commits[i].parameter.body().leaf, after[i]);
    return;
  }
}

}  // namespace

Tape::Tape(TapeOptions options, Location where) : options_(options) {
  Context& context = detail::context();
  TapeList& list = *context.tapes;
  recorded_before_ = context.has(Context::recording);
  if (list.depth > 0 && !recorded_before_)
    throw TapeError(
        "Tape: cannot open inside NoRecord while an outer tape is open, because that tape would see what "
        "this one records; open it outside NoRecord",
        context.resolve(where));
  depth_ = ++list.depth;
  first_slot_ = list.slot_count();
  if (depth_ == 1) list.warn_bytes = options.warn_bytes;
  context.set(Context::recording, true);
}

Tape::~Tape() {
  Context& context = detail::context();
  TapeList& list = *context.tapes;
  context.set(Context::recording, recorded_before_);
  if (--list.depth == 0) list.clear();
}

void Tape::watch(const Arg& x) {
  const Tensor& tensor = tensor_of("watch", x);
  check_floating("watch", tensor, x.location());
  detail::context().tapes->track("watch", tensor, x.location());
}

std::vector<Tensor> Tape::gradient(const Arg& target, std::span<const Tensor> sources, const GradientOptions& options) {
  Context& context = detail::context();
  TapeList& list = *context.tapes;
  Location where = target.location();
  const Tensor& goal = tensor_of(gradient_name, target);
  CallerScope caller(where);
  std::vector<std::uint32_t> slots;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Tensor& source = sources[i];
    if (!source.defined()) fail<Error>(gradient_name, where, "source {} is an undefined tensor", i);
    check_floating(gradient_name, source, where);
    std::uint32_t slot = list.slot_of(source.body());
    if (!slot && source.is_parameter()) slot = list.track(gradient_name, source, where);
    if (!slot && options.unconnected == Unconnected::error)
      fail<TapeError>(gradient_name, where,
                      "source {}, {} made at {}, is not tracked; call requires_grad() on it, or tape.watch before it "
                      "is used",
                      i, describe(source), to_string(source.made_at()));
    slots.push_back(slot);
  }
  // A target that is a source needs no recorded way, so it may be older.
  bool is_source = std::find(slots.begin(), slots.end(), list.slot_of(goal.body())) != slots.end();
  std::uint32_t slot = target_slot(gradient_name, list, goal, is_source ? 0 : first_slot_, where);
  Tensor seed = seed_for(gradient_name, goal, options, where);

  RecordAs record(context, recorded_before_ && context.has(Context::recording));
  Walk walk(context, list, slot);
  walk.restrict_to(slots);
  if (options.unconnected == Unconnected::error)
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (!walk.depends_on(slots[i]))
        fail<TapeError>(gradient_name, where,
                        "the target {} does not depend on source {}, {} made at {}; ask with .unconnected = "
                        "Unconnected::zeros if zeros will do",
                        describe(goal), i, describe(sources[i]), to_string(sources[i].made_at()));
  std::vector<Tensor> found;
  {
    bool consumes = consumes_list(list);
    Consumption consumption(list, consumes);
    walk.run(std::move(seed), consumes);
    for (std::uint32_t source : slots) found.push_back(walk.gradient(source));
    walk.forget();
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!found[i].defined())
      found[i] = zeros_like(sources[i]);
    else if (!context.has(Context::recording))
      found[i] = sole(std::move(found[i]));
  }
  return found;
}

void Tape::backward(const Arg& target, const GradientOptions& options) {
  Context& context = detail::context();
  TapeList& list = *context.tapes;
  Location where = target.location();
  const Tensor& goal = tensor_of(backward_name, target);
  CallerScope caller(where);
  std::uint32_t slot = target_slot(backward_name, list, goal, first_slot_, where);
  Tensor seed = seed_for(backward_name, goal, options, where);

  std::vector<Commit> commits;
  {
    RecordAs record(context, recorded_before_ && context.has(Context::recording));
    Walk walk(context, list, slot);
    std::vector<std::uint32_t> parameters;
    for (const TapeList::LeafSlot& leaf : list.leaves())
      if (leaf.tensor.is_parameter()) parameters.push_back(leaf.slot);
    if (parameters.size() < list.leaves().size()) {
      walk.restrict_to(parameters);
      if (!walk.depends_on_sources())
        fail<TapeError>(backward_name, where,
                        "the target {}, computed at {}, does not depend on any parameter; ask tape.gradient for the "
                        "gradients of watched tensors",
                        describe(goal), to_string(goal.made_at()));
    }
    bool consumes = consumes_list(list);
    Consumption consumption(list, consumes);
    walk.run(std::move(seed), consumes);
    for (const TapeList::LeafSlot& leaf : list.leaves())
      if (Leaf found = walk.leaf_gradient(leaf.slot, leaf.tensor);
          (found.gradient.defined() || found.row_gradient.defined()) && leaf.tensor.is_parameter())
        commits.push_back({leaf.tensor, std::move(found)});
  }
  RecordAs pause(context, false);
  commit(commits);
}

bool Tape::consumes_list(const TapeList& list) const { return depth_ == 1 && !options_.persistent && list.depth == 1; }

std::size_t Tape::size() const { return detail::context().tapes->entry_count(); }

std::size_t Tape::bytes() const { return detail::context().tapes->bytes(); }

NoRecord::NoRecord() {
  Context& context = detail::context();
  recorded_before_ = context.has(Context::recording);
  context.set(Context::recording, false);
}

NoRecord::~NoRecord() { detail::context().set(Context::recording, recorded_before_); }

bool is_recording() { return detail::context().has(Context::recording); }

// y = x, sharing its elements; nothing flows back

constexpr OpInfo stop_gradient_op{
    .name = "stop_gradient",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward =
        [](Call& call) {
          const Tensor& x = *call.inputs[0];
          call.outputs[0] = view_of(x, x.shape(), x.strides(), 0, call.where);
          // A custom op that saves this means it as a constant.
          call.outputs[0].body().slot = 0;
        },
};

Tensor stop_gradient(const Arg& x) {
  return invoke_view(stop_gradient_op, tensor_of("stop_gradient", x), x.location(), {});
}

std::span<const RegisteredOp> detail::tape_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "stop_gradient", .info = &stop_gradient_op},
  };
  return ops;
}

}  // namespace reel
