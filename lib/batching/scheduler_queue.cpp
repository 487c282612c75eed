#include "scheduler.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "../core/memory_error.h"
#include "../dispatch/invoke.h"
#include "../dispatch/listener_scope.h"
#include "../ops/few.h"
#include "../record/tape_list.h"
#include "group_listener.h"
#include "verify.h"

// Running the calls that the tasks have made.

namespace reel::detail {
namespace {

// A tensor whose call has failed stays pending, which is an error for whatever reads its elements. They are NaN, or −1, for ops,
// and need no memory: all of them are one.
void poison(Body& body) noexcept {
  static std::uint64_t ones = ~std::uint64_t{0}, zeros = 0;  // other bools are undefined
  body.data = body.dtype == DType::boolean ? &zeros : &ones;
  std::fill_n(body.extents() + body.rank, body.rank, 0);
  body.contiguous = body.numel <= 1;
  body.slot_version = 0;
}

}  // namespace

// Keeps an error for a call whose result or gradient is not that of the op alone.
void Scheduler::verify(std::span<QueuedCall* const> calls, const Joining& joining) noexcept try {
  std::size_t differing = 0;
  std::string text = verify_group(groups_, calls, joining, differing);
  if (text.empty()) return;
  const QueuedCall& one = *calls[differing];
  fail_later(one, std::make_exception_ptr(Error(fmt::format("{}: run for {} examples at once {} than alone",
                                                            one.call.op.name, calls.size(), text),
                                                one.call.where)));
} catch (...) {
  fail_later(*calls[0], std::current_exception());
}

void Scheduler::fail_later(const QueuedCall& one, std::exception_ptr error) noexcept {
  any_failed_ = true;
  for (Tensor& output : one.call.outputs)
    if (output.defined() && output.body().marks & Body::pending) poison(output.body());
  Task& task = one.is_pending() ? *one.root : *one.task;
  if (!one.is_pending() || (task.start == one.root_start && !task.fibre.ended())) {
    if (!task.error) task.error = std::move(error);
    return;
  }
  if (outermost_->error && outermost_->failed <= one.example) return;
  outermost_->error = std::move(error);
  outermost_->failed = one.example;
  cancel(*outermost_, one.example);
}

void Scheduler::report_group(std::span<QueuedCall* const> calls, double seconds) noexcept try {
  ++groups_run_;
  for (const QueuedCall* one : calls)
    if (one->report) {
      one->report->count_grouped(one->call, one->call.where, groups_run_);
      one->report->count_time(one->call, one->call.where, seconds / static_cast<double>(calls.size()));
    }
} catch (const std::bad_alloc&) {  // without memory the examples go on, uncounted
}

void Scheduler::enter_groups(const QueuedCall& one, const CallKind& kind) {
  groups_.parent = one.context ? one.context : outer_;
  groups_.set(Context::autocasting, false);
  groups_.set(Context::recording, kind.recording);
  groups_.scope_id = kind.scope_id;
  groups_.caller = one.call.where;
  groups_.module_call = one.context ? one.context->module_call : nullptr;
  groups_.notes = one.context ? one.context->notes : nullptr;
  groups_.listener = dynamic_cast<Listener*>(find_listener<GroupListener>(outer_->listener));
  groups_.set(Context::intercepted, groups_.listener != nullptr);
}

void Scheduler::run_queue() {
  ScopedValue<Context*> entered(current_context, &groups_);
  // A task has its own count while it runs.
  if (current_) groups_.multiplications = current_->context.multiplications;
  std::span<QueuedCall*> ready;
  while (const CallKind* kind = queue_.take_ready(ready)) run_ready(ready, *kind);
  queue_.clear();
  for (Task* task : waiters_) make_ready(*task);
  waiters_.clear();
  if (current_) current_->context.multiplications = groups_.multiplications;
}

void Scheduler::run_ready(std::span<QueuedCall*> calls, const CallKind& kind) {
  std::span<QueuedCall*> left = any_failed_ ? calls.first(drop_without_operands(calls)) : calls;
  while (!left.empty()) {
    std::size_t count = Group::choose(*tapes_, left, kind.joining);
    run_chosen(left.first(count), kind);
    left = left.subspan(count);
  }
}

// Moves the calls whose operands have been computed to the front; returns their number. The others fail like those.
std::size_t Scheduler::drop_without_operands(std::span<QueuedCall*> calls) noexcept {
  auto end = std::remove_if(calls.begin(), calls.end(), [&](QueuedCall* one) {
    auto failed = std::ranges::find_if(one->call.inputs, detail::is_pending);
    if (failed == one->call.inputs.end()) return false;
    if (one->is_pending()) {
      try {
        wait_for_pending(**failed, one->call.where);
      } catch (...) {
        fail_later(*one, std::current_exception());
      }
    } else {
      one->task->runs_alone = true;
      make_ready(*one->task);
    }
    return true;
  });
  return static_cast<std::size_t>(end - calls.begin());
}

void Scheduler::run_chosen(std::span<QueuedCall* const> calls, const CallKind& kind) {
  bool ran = false;
  Stopwatch time(reports_);
  if (calls.size() > 1) {
    enter_groups(*calls[0], kind);
    try {
      Group(groups_, calls, kind.joining, joined_before_).run();
      ran = true;
    } catch (...) {
      // Each call runs by itself then: the one at fault throws in its own task, with its own line and operands.
    }
    if (ran && reports_) report_group(calls, time.seconds());
    if (ran && options_.verify) {
      groups_.listener = nullptr;
      groups_.set(Context::intercepted, false);
      verify(calls, kind.joining);
    }
  }
  for (QueuedCall* one : calls) {
    if (!one->is_pending()) {
      one->task->runs_alone = !ran;
      make_ready(*one->task);
    } else if (!ran) {
      run_pending_alone(*one, kind);
    }
  }
}

void Scheduler::run_pending_alone(QueuedCall& one, const CallKind& kind) try {
  enter_groups(one, kind);
  FlagScope own(groups_, Context::grouped, false);
  if (one.report)
    one.report->count_alone(one.call, one.call.where, kind.joining.by == Joining::By::none ? Alone::op : Alone::waited);
  const Call& given = one.call;
  Few<Tensor> made(given.outputs.size());
  Call call{given.op, given.inputs, given.attribute_bytes, given.specs, {made.begin(), made.size()}, one.call.where};
  Stopwatch time(one.report != nullptr);
  invoke(call);
  if (one.report) one.report->count_time(one.call, one.call.where, time.seconds());
  for (std::size_t j = 0; j < made.size(); ++j)
    if (given.outputs[j].defined()) fill_pending(given.outputs[j].body(), made[j].body());
} catch (const std::bad_alloc&) {
  try {
    fail_for_memory(one.call.op.name, one.call.where);
  } catch (const MemoryError&) {
    fail_later(one, std::current_exception());
  }
} catch (...) {
  fail_later(one, std::current_exception());
}

}  // namespace reel::detail
