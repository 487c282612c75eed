#include "scheduler.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "../core/joint_body.h"
#include "../core/storage.h"
#include "../dispatch/invoke.h"
#include "../dispatch/listener_scope.h"
#include "../ops/few.h"
#include "../record/origin.h"
#include "../record/tape_list.h"
#include "group_listener.h"

// A task's calls: whether they run at once, wait or have pending results, and what waits for these.

namespace reel::detail {
namespace {

// With as many calls pending, or bytes of results, of all examples, they run: they and what one op computes are then still in the
// caches when the next one reads it. An example waits for others when it has its share of half as many. Tried: two to eight
// times as many. Taggers of 32 sentences took 1.3 times as long to evaluate, trees 0.95 to 1.1.
constexpr std::size_t most_calls = 1 << 12, most_bytes = std::size_t{32} << 20;
static_assert(most_calls >> (32 - PendingMark::kind_bits) == 0);

// The properties of a call's operands that its form does not have.
struct OperandSummary {
  bool tracked = false;     // by a tape, or will be
  bool any_unsafe = false;  // its elements may change without an op, or the tape may refuse it
  bool any_lost = false;    // no call in the queue computes it: that has failed, or is of another thread
  PendingMark mark;         // the greatest of the calls that compute operands

  // `runs_again`: a checkpoint may repeat the call with other tensors tracked, and both runs must form equal groups.
  OperandSummary(const Call& call, const Context& context, bool runs_again) {
    const TapeList& tapes = *context.tapes;
    for (const Tensor* input : call.inputs) {
      const Body& x = input->body();
      if (x.marks & Body::pending) {
        tracked |= (x.marks & Body::to_track) != 0;
        mark = std::max(mark, PendingMark(x));
        any_lost |= has_failed(input) || Heap::owner_of(&x) != context.heap;
      } else {
        tracked = tracked || x.requires_grad || tapes.is_live(x);
        any_unsafe |= x.storage->is_foreign() || x.storage->writers.load(std::memory_order_relaxed) != 0 ||
                      (!runs_again && tapes.may_refuse(x));
      }
    }
  }
};

// Views are joined where their operands are rows of one tensor, which several tensors share then, or one parameter; not where
// a checkpoint may run them again, because what a tape keeps shares elements, too. Other ops on a parameter run at once:
// autocast keeps their results for all examples.
bool is_not_delayed(const Call& call, bool runs_again) {
  const Body& x = call.input(0);
  if (x.marks & Body::pending) return call.specs.empty() && runs_again;
  if (call.specs.empty()) return runs_again || (!x.requires_grad && x.storage->references.unique());
  return call.inputs.size() == 1 && x.requires_grad;
}

// The operands of a call that waits: the caller's handles may be assigned meanwhile, by what the example shares with others.
class HeldInputs : Immovable {
 public:
  explicit HeldInputs(Call& call) : call_(call), before_(call.inputs), held_(before_.size()), inputs_(before_.size()) {
    for (std::size_t i = 0; i < before_.size(); ++i) inputs_[i] = &(held_[i] = *before_[i]);
    call.inputs = inputs_;
  }
  ~HeldInputs() { call_.inputs = before_; }

 private:
  Call& call_;
  std::span<const Tensor* const> before_;
  Few<Tensor> held_;
  Few<const Tensor*> inputs_;
};

// Stores in a call which task has made it.
QueuedCall& made_by(Task& task, QueuedCall& queued) {
  queued.task = &task;
  queued.root = task.root;
  queued.root_start = task.root->start;
  queued.report = task.report;
  queued.example = static_cast<std::uint32_t>(task.example);
  return queued;
}

}  // namespace

// Other listeners than those of groups see each call with its elements, on the stack of its example.
bool Scheduler::makes_pending(const Call& call, const Context& context) const {
  if (context.listener || context.has(Context::on_device)) return false;
  return !call.op.accepts_elements || call.op.accepts_elements(call);
}

// Makes pending results, which the calling function may give to other ops. Views are of elements that start at null, if their
// operand is pending.
void Scheduler::make_outputs(Call& call, const CallForm& form, PendingMark mark, bool tracked) {
  Context& context = current_->context;
  std::uint8_t marks = Body::pending, floating_marks = marks;
  if (tracked && context.has(Context::recording) && call.op.gradient) floating_marks |= Body::to_track;
  if (form.specs.empty()) call.op.forward(call);
  for (std::size_t j = 0; j < call.outputs.size(); ++j) {
    if (!form.specs.empty()) {
      if (form.joining.dropped_outputs >> j & 1) continue;
      call.outputs[j] = pending_tensor(context, form.specs[j], form.counts[j], *nothing_.body().storage, call.where);
    }
    Body& body = call.outputs[j].body();
    body.slot_version = mark.bits;
    body.marks = is_floating(body.dtype) ? floating_marks : marks;
  }
}

void Scheduler::run_here(Call& call, Alone why) {
  Task& task = *current_;
  Location where = task.context.call_site(call.where);
  if (task.report) task.report->count_alone(call, where, why);
  if (task.context.listener)
    if (auto* listener = find_listener<GroupListener>(task.context.listener)) listener->runs_alone(call);
  Stopwatch time(task.report != nullptr);
  run_with_stack([](void* given) { run_and_record(*static_cast<Call*>(given)); }, &call);
  if (task.report) task.report->count_time(call, where, time.seconds());
}

void Scheduler::run_alone(Call& call, Alone why) {
  if (std::ranges::none_of(call.inputs, is_pending)) return run_here(call, why);
  HeldInputs held(call);
  for (const Tensor* input : call.inputs) detail::wait_for(*input, call.where);
  run_here(call, why);
}

void Scheduler::intercept(Task& task) noexcept {
  bool weights_only = !joins_all() && !task.report && !task.cancelled && !any_failed_ && queue_.is_empty();
  std::uintptr_t below = weights_only ? task.fibre.address_with(kernel_bytes) : UINTPTR_MAX;
  if (task.context.intercepted_below != below) task.context.intercept_below(below);
}

bool Scheduler::runs_at_once(const Call& call, const Context& context) {
  const GroupExpectation& expected = current_->expected;
  bool recording = context.has(Context::recording) || runs_again_;
  // A view of a parameter is to be one view for all examples, because products by several would not be joined.
  if (!call.op.shares_weight && !(recording && call.views_parameter())) return true;
  if (call.op.run_joined) return false;
  if (call.op.accepts_elements)
    return !expected.lookup_pays(recording) || std::ranges::count(losing_tables_, call.input(0).storage) > 0;
  return std::ranges::none_of(
      call.inputs, [&](const Tensor* input) { return expected.pays(recording, element_bytes(input->body())); });
}

void Scheduler::run(Call& call) {
  Task& task = *current_;
  Context& context = task.context;
  // A listener makes calls wait; without it the results of groups would be pending here. On a device each group saves the cost
  // of launching kernels.
  std::uint8_t delayed = context.listener ? Body::pending | Body::grouped : Body::pending;
  bool may_run_at_once =
      !joins_all() && !call.inputs.empty() && call.input(0).device == cpu &&
      std::ranges::none_of(call.inputs, [=](const Tensor* input) { return input->body().marks & delayed; });
  bool at_once = may_run_at_once && runs_at_once(call, context);
  // The usual case: nothing listens or counts.
  bool observed = task.report || context.listener || task.cancelled || task.error;
  if (at_once && !observed && task.fibre.stack_left() >= kernel_bytes) return run_and_record(call);
  if ((task.cancelled || task.error) && std::uncaught_exceptions() == 0) [[unlikely]] {
    if (task.cancelled && task.fibre.runs_here()) throw Cancelled();
    if (task.error) std::rethrow_exception(std::exchange(task.error, nullptr));
  }
  check_stack(task, call.op.name, call.where);
  if (!may_suspend(context)) return run_alone(call, Alone::scope);
  // Ops that overwrite, or that have no operand, run at once. A hook on the op sees each call.
  if (!call.op.joining || call.inputs.empty() || call.outputs.empty() || call.outputs[0].defined() ||
      tapes_->is_hooked(call.op.name))
    return run_alone(call, Alone::op);
  if (live_ + unstarted_ == 1 && queue_.is_empty()) return run_alone(call, Alone::waited);
  if (at_once) return run_here(call, Alone::cheaper);
  CallForm& form = forms_.form_of(call, context, task.expected);
  if (form.large && !call.views_parameter()) return run_alone(call, Alone::large);
  bool never_joined = form.joining.by == Joining::By::none;
  if (form.at_once || is_not_delayed(call, runs_again_)) return run_alone(call, Alone::op);
  // A listener would see outputs that it has not.
  if (form.joining.own_rows && context.listener) return run_alone(call, Alone::op);
  OperandSummary operands(call, context, runs_again_);
  if (operands.any_lost) return run_alone(call, Alone::op);
  bool waits = operands.any_unsafe || !makes_pending(call, context);
  // Whatever has no operand to wait for runs at once.
  if (never_joined && (operands.mark.depth() == 0 || waits)) return run_alone(call, Alone::op);
  // A checkpoint that runs its function again may track other tensors, but must form equal groups.
  CallKind& kind = forms_.kind_of(call, context, form, operands.tracked && !runs_again_);
  bool recorded = (operands.tracked && context.has(Context::recording)) || runs_again_;
  bool pays = call.views_parameter() || (form.pays[recorded] && kind.balance >= 0);
  if (may_run_at_once && !pays) {
    // Further lookups in a parameter whose chains have lost are told by it alone.
    if (call.op.shares_weight && call.op.accepts_elements && call.input(0).requires_grad && losing_tables_.size() < 8)
      losing_tables_.push_back(call.input(0).storage);
    return run_here(call, Alone::cheaper);
  }
  CallKind& first = operands.mark.depth() > 0 ? forms_.kind(operands.mark.kind()) : kind;
  first.balance = std::min(first.balance + form.gains[recorded], 10 * CallKind::first_balance);
  PendingMark mark(operands.mark.depth() + 1, first.number);
  if (waits) return run_suspended(call, kind, mark);
  delay(call, form, kind, mark, operands.tracked);
}

// Makes pending results, and waits for other examples if this one has delayed its share.
inline void Scheduler::delay(Call& call, const CallForm& form, CallKind& kind, PendingMark mark, bool tracked) {
  Task& task = *current_;
  if (task.context.intercepted_below != UINTPTR_MAX) task.context.intercept_below(UINTPTR_MAX);
  make_outputs(call, form, mark, tracked);
  queue_.add(made_by(task, queue_.keep(call, form, task.context.call_site(call.where))), kind, mark.depth());
  task.context.tapes->record_uses(task.context, call);
  Task& root = *task.root;
  if (std::exchange(root.delayed_in, queue_.filling()) != queue_.filling()) root.delayed_calls = root.delayed_bytes = 0;
  root.delayed_bytes += form.bytes;
  queue_.count_bytes(form.bytes);
  if (queue_.size() >= most_calls || queue_.bytes() >= most_bytes)
    run_queue_now();
  else if (++root.delayed_calls * under_way_ >= most_calls / 2 || root.delayed_bytes * under_way_ >= most_bytes / 2)
    wait();
}

// Runs a call with others of its kind, for which its task waits.
void Scheduler::run_suspended(Call& call, CallKind& kind, PendingMark mark) {
  Task& task = *current_;
  HeldInputs held(call);
  QueuedCall queued{
      {call.op, call.inputs, call.attribute_bytes, call.specs, call.outputs, task.context.call_site(call.where)},
      &task.context};
  queue_.add(made_by(task, queued), kind, mark.depth());
  task.fibre.suspend();
  if (std::uncaught_exceptions() == 0) {
    if (task.cancelled) throw Cancelled();
    if (task.error) std::rethrow_exception(std::exchange(task.error, nullptr));
  }
  if (std::exchange(task.runs_alone, false) || task.cancelled) run_alone(call, Alone::waited);
}

void Scheduler::wait_for(const Tensor& x) {
  while (!queue_.is_empty() && x.body().marks & Body::pending) wait();
}

void Scheduler::wait_for_uses(const Tensor& x) {
  while (!queue_.is_empty() && queue_.reads(x.body())) wait();
}

void Scheduler::wait_for_all() {
  while (current_->root->delayed_in == queue_.filling()) wait();
}

void Scheduler::run_delayed() noexcept {
  if (!queue_.is_empty()) run_queue_now();
}

void Scheduler::wait() {
  Task& task = *current_;
  // Other examples may have more calls to run with this one's.
  if (!may_suspend(task.context) || std::uncaught_exceptions() > 0) return run_queue_now();
  waiters_.push_back(&task);
  task.fibre.suspend();
  if (task.cancelled) throw Cancelled();
  if (task.error) std::rethrow_exception(std::exchange(task.error, nullptr));
}

void Scheduler::run_queue_now() {
  Task& task = *current_;
  if (!task.fibre.runs_here()) return run_queue();
  Errand errand{[](void* scheduler) { static_cast<Scheduler*>(scheduler)->run_queue(); }, this, nullptr};
  task.errand = &errand;
  task.fibre.suspend();
  intercept(task);
  if (errand.error) std::rethrow_exception(errand.error);
}

void Scheduler::run_with_stack(void (*run)(void* data), void* data) {
  Task& task = *current_;
  if (task.fibre.stack_left() >= kernel_bytes) return run(data);
  Errand errand{run, data, nullptr};
  task.errand = &errand;
  task.fibre.suspend();
  if (errand.error) std::rethrow_exception(errand.error);
}

}  // namespace reel::detail
