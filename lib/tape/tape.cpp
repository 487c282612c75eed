#include <reel/tape.h>

#include <algorithm>
#include <mutex>
#include <new>

#include <reel/ops.h>

#include "../core/device_module.h"
#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../core/storage.h"
#include "../ops/registry.h"
#include "differentiation.h"
#include "hooks.h"
#include "owned.h"
#include "row_gradient.h"
#include "untrained.h"
#include "walk.h"

namespace reel {

using namespace detail;

namespace {

constexpr const char* gradient_name = "gradient";
constexpr const char* backward_name = "backward";

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
                    "tape was open; call requires_grad() or tape.watch on what it depends on before it is computed",
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

Tensor seed_for(const char* op, const Tensor& target, const Tensor& seed, Location where) {
  if (!seed.defined()) {
    if (target.numel() != 1)
      fail<TapeError>(op, where, "the target {} is not a single element; reduce it, or give its own gradient as .seed",
                      describe(target));
    return ones_like(target);
  }
  if (seed.shape() != target.shape() || seed.dtype() != target.dtype())
    fail<ShapeError>(op, where, "the seed {} does not fit the target {}; give one of its shape and dtype",
                     describe(seed), describe(target));
  return seed;
}

struct Commit {
  Tensor parameter;
  LeafGradient found, before, after;
};

bool is_empty(const LeafGradient& held) { return !held.gradient.defined() && !held.row_gradient.defined(); }

// What a parameter holds after a backward has found more.
LeafGradient accumulated(const Commit& commit) {
  const LeafGradient &found = commit.found, &before = commit.before;
  const RowGradient &old_rows = before.row_gradient, &new_rows = found.row_gradient;
  if (is_empty(before)) return found;
  if (old_rows.defined() && new_rows.defined()) return {{}, combined(old_rows, new_rows, commit.parameter.size(0))};
  if (new_rows.defined()) return {with_rows(before.gradient, new_rows.rows, new_rows.values), {}};
  if (old_rows.defined()) return {with_rows(found.gradient, old_rows.rows, old_rows.values), {}};
  return {add(before.gradient, found.gradient), {}};
}

void swap_gradients(LeafGradient& a, LeafGradient& b) { std::swap(a, b); }

bool is_same(const LeafGradient& a, const LeafGradient& b) {
  return a.gradient.is(b.gradient) && a.row_gradient.values.is(b.row_gradient.values);
}

// A graph would add to the same ones at each replay.
void refuse_earlier_gradients(std::span<const Commit> commits) {
  for (const Commit& commit : commits)
    if (const Tensor& gradient = commit.before.gradient;
        gradient.defined() && !recording_module()->has_recorded(gradient.body()))
      throw TapeError(
          "backward: a parameter has a gradient from before the graph that is recorded, which each replay "
          "would start from; call zero_grad() at the start of the step",
          context().resolve({}));
}

// All sums are formed before the first is stored, so that a failure changes none. They are formed outside the lock,
// because ops may run other people's code; if another thread was faster, they are formed again.
void commit(std::vector<Commit>& commits) {
  for (Commit& commit : commits) {
    Tensor& gradient = commit.found.gradient;
    if (gradient.defined()) gradient = owned(std::move(gradient));
  }
  while (true) {
    {
      std::lock_guard lock(gradient_mutex());
      if (std::ranges::all_of(commits, [](const Commit& commit) { return is_empty(*commit.parameter.body().leaf); })) {
        for (Commit& commit : commits) swap_gradients(*commit.parameter.body().leaf, commit.found);
        return;
      }
      for (Commit& commit : commits) commit.before = *commit.parameter.body().leaf;
    }
    if (recording_module()) refuse_earlier_gradients(commits);
    for (Commit& commit : commits) commit.after = accumulated(commit);
    std::lock_guard lock(gradient_mutex());
    bool unchanged = true;
    for (Commit& commit : commits) unchanged &= is_same(*commit.parameter.body().leaf, commit.before);
    if (!unchanged) continue;
    for (Commit& commit : commits) swap_gradients(*commit.parameter.body().leaf, commit.after);
    return;
  }
}

// Whether optimisers hold some of the parameters, but not all; those that were reported no longer matter.
bool are_partly_held(std::span<const Commit> commits) {
  std::lock_guard lock(gradient_mutex());
  bool any_held = false, all_known = true;
  for (const Commit& commit : commits) {
    const LeafTraining& training = commit.parameter.body().leaf->training;
    any_held |= training.optimisers > 0;
    all_known &= training.optimisers > 0 || training.reported;
  }
  return any_held && !all_known;
}

// The gradients are stored by now, so nothing may be thrown.
void report_untrained(std::span<const Commit> commits) noexcept {
  try {
    if (!are_partly_held(commits)) return;
    std::vector<Tensor> parameters;
    for (const Commit& commit : commits) parameters.push_back(commit.parameter);
    detail::report_untrained(parameters);
  } catch (...) {
    // A warning that cannot be built is not worth an exception.
  }
}

}  // namespace

Tape::Tape(TapeOptions options, Location where) : options_(options), list_(*detail::context().tapes) {
  Context& context = detail::context();
  TapeList& list = list_;
  recorded_before_ = context.has(Context::recording);
  if (list.depth > 0 && !recorded_before_)
    throw TapeError(
        "Tape: cannot open inside NoRecord or a hook while an outer tape is open, because that tape would see what "
        "this one records; open it outside",
        context.resolve(where));
  depth_ = ++list.depth;
  first_slot_ = list.slot_count();
  if (depth_ == 1) {
    list.warn_bytes = options.warn_bytes;
    list.reset_peak();
  }
  context.set(Context::recording, true);
}

Tape::~Tape() {
  detail::context().set(Context::recording, recorded_before_);
  list_.close();
}

TapeList& Tape::usable(const char* function, Location where) const {
  const TapeList& current = *detail::context().tapes;
  if (&list_ != &current) current.refuse_tape(function, list_, where);
  if (differentiating_)
    fail<TapeError>(function, where,
                    "the tape is being differentiated, so what runs meanwhile, such as a hook, cannot use it; do it "
                    "afterwards");
  return list_;
}

void Tape::watch(const Arg& x) try {
  const Tensor& tensor = tensor_of("watch", x);
  check_floating("watch", tensor, x.location());
  usable("watch", x.location()).track("watch", tensor, x.location());
} catch (const std::bad_alloc&) {
  fail_for_memory("watch", x.location());
}

std::vector<Tensor> Tape::gradient(const Arg& target, std::span<const Tensor> sources,
                                   const GradientOptions& options) try {
  return Differentiation(gradient_name, *this, target, sources, options.unconnected).gradients(options.seed);
} catch (const std::bad_alloc&) {
  fail_for_memory(gradient_name, target.location());
}

Differentiation::Differentiation(const char* op, Tape& tape, const Arg& target, std::span<const Tensor> sources,
                                 Unconnected unconnected, Constants constants)
    : op_(op),
      tape_(tape),
      context_(detail::context()),
      where_(target.location()),
      list_(tape.usable(op, where_)),
      target_(tensor_of(op, target)),
      sources_(sources),
      unconnected_(unconnected) {
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Tensor& source = sources[i];
    if (!source.defined()) fail<Error>(op, where_, "source {} is an undefined tensor: it was never given a value", i);
    if (!is_floating(source.dtype()))
      fail<DTypeError>(
          op, where_,
          "source {}, {} made at {}, is not floating, and only floating tensors have gradients; convert it "
          "with to(x, f32) before it is used",
          i, describe(source), to_string(source.made_at()));
    std::uint32_t slot = list_.slot_of(source.body());
    if (!slot && source.is_parameter()) slot = list_.track(op, source, where_);
    if (!slot && unconnected == Unconnected::error)
      fail<TapeError>(op, where_,
                      "source {}, {} made at {}, is not tracked; call requires_grad() on it, or tape.watch before it "
                      "is used",
                      i, describe(source), to_string(source.made_at()));
    slots_.push_back(slot);
  }
  bool constant = constants == Constants::allowed && is_constant();
  target_slot_ = constant ? 0 : target_slot(op, list_, target_, is_source() ? 0 : tape.first_slot_, where_);
}

// Then it needs no recorded way, so it may be older than the tape.
bool Differentiation::is_source() const {
  return std::find(slots_.begin(), slots_.end(), list_.slot_of(target_.body())) != slots_.end();
}

bool Differentiation::is_constant() const {
  const Body& body = target_.body();
  std::uint32_t slot = list_.slot_of(body);
  if (slot == 0) return body.requires_grad || body.epoch.load(std::memory_order_relaxed) == 0;
  return slot < tape_.first_slot_ && !is_source();
}

void Differentiation::check_connected(const Walk& walk) const {
  if (unconnected_ == Unconnected::zeros) return;
  for (std::size_t i = 0; i < sources_.size(); ++i)
    if (!walk.depends_on(slots_[i]))
      fail<TapeError>(op_, where_,
                      "the target {} does not depend on source {}, {} made at {}; ask with .unconnected = "
                      "Unconnected::zeros if zeros will do",
                      describe(target_), i, describe(sources_[i]), to_string(sources_[i].made_at()));
}

void Differentiation::prepare(Walk& walk) const {
  std::vector<std::uint32_t> wanted = slots_;
  if (Hooks* hooks = tape_.prepare(walk)) wanted.insert(wanted.end(), hooks->slots().begin(), hooks->slots().end());
  walk.restrict_to(wanted);
  check_connected(walk);
}

std::vector<Tensor> Differentiation::gradients(const Tensor& given_seed) {
  CallerScope caller(where_);
  Tensor seed = seed_for(op_, target_, given_seed, where_);
  // While a tape differentiates, only the tapes around it record.
  FlagScope record(context_, Context::recording, tape_.depth_ > 1 && context_.has(Context::recording));
  Differentiating differentiating(tape_.differentiating_);
  std::vector<Tensor> found(slots_.size());
  if (target_slot_ != 0) {
    Walk walk(context_, list_, target_slot_);
    prepare(walk);
    bool consumes = tape_.consumes_list();
    Consumption consumption(list_, consumes);
    walk.run(std::move(seed), consumes);
    for (std::size_t i = 0; i < slots_.size(); ++i) found[i] = walk.gradient(slots_[i]);
    walk.forget();
  }
  for (std::size_t i = 0; i < sources_.size(); ++i)
    found[i] = found[i].defined() ? owned(std::move(found[i])) : zeros_like(sources_[i]);
  return found;
}

void Tape::backward(const Arg& target, const GradientOptions& options) try {
  Context& context = detail::context();
  Location where = target.location();
  TapeList& list = usable(backward_name, where);
  const Tensor& goal = tensor_of(backward_name, target);
  CallerScope caller(where);
  std::uint32_t slot = target_slot(backward_name, list, goal, first_slot_, where);
  Tensor seed = seed_for(backward_name, goal, options.seed, where);

  Differentiating differentiating(differentiating_);
  std::vector<Commit> commits;
  {
    FlagScope record(context, Context::recording, depth_ > 1 && context.has(Context::recording));
    Walk walk(context, list, slot);
    Hooks* hooks = prepare(walk);
    const std::vector<TapeList::LeafSlot>& leaves = list.leaves();
    if (std::ranges::any_of(leaves, [](const auto& leaf) { return !leaf.tensor.is_parameter(); })) {
      std::vector<std::uint32_t> parameters;
      for (const TapeList::LeafSlot& leaf : leaves)
        if (leaf.tensor.is_parameter()) parameters.push_back(leaf.slot);
      std::vector<std::uint32_t> wanted = parameters;
      if (hooks) wanted.insert(wanted.end(), hooks->slots().begin(), hooks->slots().end());
      walk.restrict_to(wanted);
      if (!std::ranges::any_of(parameters, [&](std::uint32_t parameter) { return walk.depends_on(parameter); }))
        fail<TapeError>(backward_name, where,
                        "the target {}, computed at {}, does not depend on any parameter; ask tape.gradient for the "
                        "gradients of watched tensors",
                        describe(goal), to_string(goal.made_at()));
    }
    bool consumes = consumes_list();
    Consumption consumption(list, consumes);
    walk.run(std::move(seed), consumes);
    commits.reserve(leaves.size());
    for (const TapeList::LeafSlot& leaf : leaves)
      if (LeafGradient found = walk.leaf_gradient(leaf.slot, leaf.tensor);
          (found.gradient.defined() || found.row_gradient.defined()) && leaf.tensor.is_parameter())
        commits.push_back({leaf.tensor, std::move(found), {}, {}});
    walk.let_go_of_leaves();
  }
  FlagScope pause(context, Context::recording, false);
  commit(commits);
  report_untrained(std::span<const Commit>(commits));
} catch (const std::bad_alloc&) {
  fail_for_memory(backward_name, target.location());
}

Hooks* Tape::prepare(Walk& walk) {
  if (!options_.deferred_products) walk.defer_nothing();
  if (!hooks_ && list_.traces().empty()) return nullptr;
  hooks().begin(list_, depth_);
  if (hooks_->idle()) return nullptr;
  walk.attend(*hooks_);
  return hooks_.get();
}

bool Tape::consumes_list() const { return depth_ == 1 && !options_.persistent && list_.depth == 1; }

std::size_t Tape::size() const { return list_.entry_count(); }

std::size_t Tape::bytes() const { return list_.bytes(); }

std::size_t Tape::peak_bytes() const { return list_.peak_bytes(); }

void Tape::reset_peak() { list_.reset_peak(); }

std::size_t Tape::capacity() const { return list_.capacity(); }

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
          if (std::uint32_t& birth = call.outputs[0].body().slot; birth != 0) birth |= TapeList::constant_birth;
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
