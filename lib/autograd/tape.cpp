#include <reel/tape.h>

#include <algorithm>
#include <mutex>
#include <new>

#include <reel/ops.h>

#include "../core/device/device_module.h"
#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../core/storage.h"
#include "../ops/registry.h"
#include "backward_pass.h"
#include "differentiation.h"
#include "hooks.h"
#include "owned.h"
#include "row_gradient.h"
#include "untrained.h"

namespace reel {

using namespace detail;

namespace {

constexpr const char* gradient_name = "gradient";
constexpr const char* backward_name = "backward";

std::uint32_t target_slot(const char* op, TapeList& list, const Tensor& target, std::uint32_t first_slot,
                          Location where) {
  check_floating(op, target, where);
  const Body& body = target.body();
  // A parameter without uses has no slot yet; its gradient by itself is one.
  std::uint32_t slot = target.is_parameter() ? list.track(op, target, where) : list.slot_of(body);
  if (!slot) list.refuse_target(op, target, where);
  if (slot < first_slot && !list.is_leaf(body))
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

// The gradient that a parameter has after a backward has added to it.
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

// A graph would add to the gradients that exist now at each replay.
void refuse_earlier_gradients(std::span<const Commit> commits) {
  for (const Commit& commit : commits)
    if (const Tensor& gradient = commit.before.gradient;
        gradient.defined() && !recording_module()->has_recorded(gradient.body()))
      throw TapeError(
          "backward: a parameter has a gradient from before the graph that is recorded, which each replay "
          "would start from; call zero_grad() at the start of the step",
          context().call_site({}));
}

// All sums are computed before the first is stored, so that a failure changes none. They are computed without the lock,
// because ops may run user code; if another thread has changed a gradient meanwhile, they are computed again.
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

// Returns true if optimisers hold some of the parameters, but not all; those already reported are ignored.
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

// The gradients are already stored, so nothing may be thrown.
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

Tape::Tape(TapeOptions options, Location where) try : options_(options), list_(*detail::context().tapes) {
  Context& context = detail::context();
  TapeList& list = list_;
  list.scopes().apply_remote_ends(context);
  if (list.depth > 0 && !context.has(Context::recording))
    throw TapeError(
        "Tape: cannot open inside NoRecord or a hook while an outer tape is open, because that tape would see what "
        "this one records; open it outside",
        context.call_site(where));
  wait_for_all(context);
  first_slot_ = list.slot_count();
  opening_epoch_ = list.epoch();
  first_period_ = list.uses().begin_period();
  list.scopes().begin(context, {this, Setting::recording, static_cast<std::uint32_t>(Recording::tape), &list});
  list.update_depth(list.scopes());
  if (list.depth == 1) {
    list.warn_bytes = options.warn_bytes;
    list.reset_peak();
  }
} catch (const std::bad_alloc&) {
  fail_for_memory("Tape", where);
}

Tape::~Tape() { Scopes::end(this); }

TapeList& Tape::usable(const char* function, Location where) const {
  Context& context = detail::context();
  const TapeList& current = *context.tapes;
  wait_for_all(context);
  current.scopes().apply_remote_ends(context);
  if (&list_ != &current || !current.scopes().is_open(this)) current.refuse_tape(function, list_, where);
  if (differentiating_)
    fail<TapeError>(function, where,
                    "the tape is being differentiated, so what runs meanwhile, such as a hook, cannot use it; do it "
                    "afterwards");
  return list_;
}

void Tape::watch(const Arg& x) {
  with_memory_error("watch", x.location(), [&] {
    const Tensor& tensor = tensor_of("watch", x);
    check_floating("watch", tensor, x.location());
    wait_for(tensor, x.location());
    TapeList& list = usable("watch", x.location());
    check_unused("watch", tensor, x.location());
    list.track("watch", tensor, x.location());
  });
}

std::vector<Tensor> Tape::gradient(const Arg& target, std::span<const Tensor> sources, const GradientOptions& options) {
  return with_memory_error(gradient_name, target.location(), [&] {
    return Differentiation(gradient_name, *this, target, sources, options.unconnected).gradients(options.seed);
  });
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
  wait_for(target_, where_);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Tensor& source = sources[i];
    if (!source.defined()) fail<Error>(op, where_, "source {} is an undefined tensor: it was never given a value", i);
    if (!is_floating(source.dtype()))
      fail<DTypeError>(
          op, where_,
          "source {}, {} made at {}, is not floating, and only floating tensors have gradients; convert it "
          "with to(x, f32) before it is used",
          i, describe(source), to_string(source.made_at()));
    wait_for(source, where_);
    std::uint32_t slot = list_.slot_of(source.body());
    if (!slot && source.is_parameter()) slot = list_.track(op, source, where_);
    if (!slot && unconnected == Unconnected::error)
      fail<TapeError>(op, where_,
                      "source {}, {} made at {}, is not tracked; call requires_grad() on it, or tape.watch before it "
                      "is used",
                      i, describe(source), to_string(source.made_at()));
    if (slot && !source.is_parameter()) tape.check_unused(op, source, where_);
    // An example differentiates tensors of its own.
    if (!context_.parent) list_.check_own(op, source, where_);
    slots_.push_back(slot);
  }
  bool constant = constants == Constants::allowed && is_constant();
  target_slot_ = constant ? 0 : target_slot(op, list_, target_, is_source() ? 0 : tape.first_slot(), where_);
}

// The target is itself a source: then it needs no entry, so it may be older than the tape.
bool Differentiation::is_source() const {
  return std::find(slots_.begin(), slots_.end(), list_.slot_of(target_.body())) != slots_.end();
}

bool Differentiation::is_constant() const {
  const Body& body = target_.body();
  std::uint32_t slot = list_.slot_of(body);
  if (slot == 0) return body.requires_grad || is_untracked(body);
  return slot < tape_.first_slot() && !is_source();
}

void Differentiation::check_connected(const BackwardPass& pass) const {
  if (unconnected_ == Unconnected::zeros) return;
  for (std::size_t i = 0; i < sources_.size(); ++i)
    if (!pass.depends_on(slots_[i]))
      fail<TapeError>(op_, where_,
                      "the target {} does not depend on source {}, {} made at {}; ask with .unconnected = "
                      "Unconnected::zeros if zeros will do",
                      describe(target_), i, describe(sources_[i]), to_string(sources_[i].made_at()));
}

void Differentiation::prepare(BackwardPass& pass) const {
  std::vector<std::uint32_t> wanted = slots_;
  if (Hooks* hooks = tape_.prepare(pass)) wanted.insert(wanted.end(), hooks->slots().begin(), hooks->slots().end());
  pass.restrict_to(wanted);
  check_connected(pass);
}

std::vector<Tensor> Differentiation::gradients(const Tensor& given_seed) {
  CallerScope caller(where_);
  Tensor seed = seed_for(op_, target_, given_seed, where_);
  // While a tape differentiates, only the tapes around it record.
  DifferentiatingScope record(context_, tape_.is_enclosed());
  Differentiating differentiating(context_, tape_.differentiating_);
  std::vector<Tensor> found(slots_.size());
  if (target_slot_ != 0) {
    BackwardPass pass(context_, list_, target_slot_);
    prepare(pass);
    bool consumes = tape_.consumes_list();
    Consumption consumption(list_, consumes);
    pass.run(std::move(seed), consumes);
    for (std::size_t i = 0; i < slots_.size(); ++i) found[i] = pass.gradient(slots_[i]);
    if (context_.listener)
      for (std::size_t i = 0; i < slots_.size(); ++i)
        if (found[i].defined()) context_.listener->leaf_gradient(sources_[i], found[i]);
    pass.forget();
  }
  for (std::size_t i = 0; i < sources_.size(); ++i)
    found[i] = found[i].defined() ? owned(std::move(found[i])) : zeros_like(sources_[i]);
  return found;
}

void Tape::backward(const Arg& target, const GradientOptions& options) {
  with_memory_error(backward_name, target.location(), [&] {
    Context& context = detail::context();
    Location where = target.location();
    TapeList& list = usable(backward_name, where);
    const Tensor& goal = tensor_of(backward_name, target);
    wait_for(goal, where);
    CallerScope caller(where);
    std::uint32_t slot = target_slot(backward_name, list, goal, first_slot_, where);
    Tensor seed = seed_for(backward_name, goal, options.seed, where);

    Differentiating differentiating(context, differentiating_);
    std::vector<Commit> commits;
    {
      DifferentiatingScope record(context, is_enclosed());
      BackwardPass pass(context, list, slot);
      Hooks* hooks = prepare(pass);
      const std::vector<TapeList::LeafSlot>& leaves = list.leaves();
      if (std::ranges::any_of(leaves, [](const auto& leaf) { return !leaf.tensor.is_parameter(); })) {
        std::vector<std::uint32_t> parameters;
        for (const TapeList::LeafSlot& leaf : leaves)
          if (leaf.tensor.is_parameter()) parameters.push_back(leaf.slot);
        std::vector<std::uint32_t> wanted = parameters;
        if (hooks) wanted.insert(wanted.end(), hooks->slots().begin(), hooks->slots().end());
        pass.restrict_to(wanted);
        if (!std::ranges::any_of(parameters, [&](std::uint32_t parameter) { return pass.depends_on(parameter); }))
          fail<TapeError>(backward_name, where,
                          "the target {}, computed at {}, does not depend on any parameter; ask tape.gradient for the "
                          "gradients of watched tensors",
                          describe(goal), to_string(goal.made_at()));
      }
      bool consumes = consumes_list();
      Consumption consumption(list, consumes);
      pass.run(std::move(seed), consumes);
      commits.reserve(leaves.size());
      for (const TapeList::LeafSlot& leaf : leaves)
        if (LeafGradient found = pass.leaf_gradient(leaf.slot, leaf.tensor);
            (found.gradient.defined() || found.row_gradient.defined()) && leaf.tensor.is_parameter())
          commits.push_back({leaf.tensor, std::move(found), {}, {}});
      pass.release_leaves();
    }
    DifferentiatingScope pause(context, false);
    if (context.listener)
      for (const Commit& one : commits)
        context.listener->leaf_gradient(
            one.parameter, one.found.gradient.defined() ? one.found.gradient : one.found.row_gradient.values);
    commit(commits);
    report_untrained(std::span<const Commit>(commits));
  });
}

Hooks* Tape::prepare(BackwardPass& pass) {
  if (!options_.deferred_products) pass.defer_nothing();
  if (!hooks_ && list_.traces().empty()) return nullptr;
  hooks().begin(list_, *this);
  if (hooks_->idle()) return nullptr;
  pass.attend(*hooks_);
  return hooks_.get();
}

bool Tape::consumes_list() const { return !options_.persistent && list_.depth == 1; }

bool Tape::is_enclosed() const { return list_.scopes().outermost_on(&list_) != this; }

// An inner tape may have watched the tensor after this one had recorded a use of it.
void Tape::check_unused(const char* function, const Tensor& x, Location where) const {
  list_.check_unused(function, x, list_.epoch() == opening_epoch_ ? first_period_ : 0, where);
}

// A list that was cleared since then has no entries of outer tapes.
std::uint32_t Tape::first_slot() const { return list_.epoch() == opening_epoch_ ? first_slot_ : 0; }

std::size_t Tape::size() const {
  wait_for_all(context());
  return list_.entry_count();
}

std::size_t Tape::bytes() const {
  wait_for_all(context());
  return list_.bytes();
}

std::size_t Tape::peak_bytes() const { return list_.peak_bytes(); }

void Tape::reset_peak() { list_.reset_peak(); }

std::size_t Tape::capacity() const { return list_.capacity(); }

}  // namespace reel
