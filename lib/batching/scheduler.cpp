#include "scheduler.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../core/per_thread.h"
#include "../core/storage.h"
#include "../dispatch/invoke.h"
#include "../dispatch/listener_scope.h"
#include "../ops/few.h"
#include "../record/origin.h"
#include "../record/tape_list.h"
#include "group_listener.h"
#include "verify.h"

namespace reel::detail {
namespace {

// Thrown in a task that is to end because another one has failed. No std::exception, so that few catch clauses meet it.
struct Cancelled {};

// Where a group would save little: an op with an operand or a result of more elements runs at once.
constexpr std::int64_t most_elements = 1 << 15;
// With more tasks under way, siblings run one after the other, and so do the examples of an inner batch: their stacks would
// not fit into the caches. A tagger of words spelt by an inner batch takes 0.82 of the time that it takes without this bound.
constexpr std::size_t most_tasks = 256;

// Stacks of finished tasks are kept for the thread's next batches, of one size at a time.
StackPool& stacks_of_thread(std::size_t bytes) {
  static constinit PerThread<std::unique_ptr<StackPool>> pool;
  std::unique_ptr<StackPool>& kept = pool.get();
  if (!kept || kept->bytes() != bytes) kept = std::make_unique<StackPool>(bytes);
  return *kept;
}

// What is pending runs when there are as many calls, or bytes of results, of all examples: what one op computes is then still in
// the caches when the next one reads it. An example waits for others when it has a share of them.
constexpr std::size_t most_calls = 1 << 12, most_bytes = std::size_t{16} << 20, shares = 8;

// Properties of a call's operands that decide whether it waits for others.
struct OperandSummary {
  bool any_empty = false;
  bool large = false;
  bool tracked = false;     // by a tape, or will be
  bool any_unsafe = false;  // its elements may change without an op, or the tape may refuse it
  std::uint32_t depth = 0;  // of the calls that compute operands; 0: all are there

  // `runs_again`: a checkpoint may run the call again, with other tensors tracked; what it decides is the same then.
  OperandSummary(const Call& call, const Joining& joining, const TapeList& tapes, bool runs_again) {
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      const Body& x = call.inputs[i]->body();
      any_empty |= x.numel == 0;
      if (!has_input(joining.shared, i)) elements = std::max(elements, x.numel);
      if (x.marks & Body::pending) {
        tracked |= (x.marks & Body::to_track) != 0;
        depth = std::max(depth, x.slot_version);
      } else {
        tracked = tracked || x.requires_grad || tapes.is_live(x);
        any_unsafe |= x.storage->is_foreign() || x.storage->writers.load(std::memory_order_relaxed) != 0 ||
                      (!runs_again && tapes.may_refuse(x));
      }
    }
    for (const OutputSpec& spec : call.specs) {
      std::int64_t count = 1;
      for (int i = 0; i < spec.rank; ++i) count *= spec.dims[i];
      elements = std::max(elements, count);
    }
    large = elements > most_elements;
  }
};

// The calls of a bucket were made one by one, between others: their memory, and that of their operands, is fetched together.
void prefetch_operands(std::span<QueuedCall* const> calls) {
  constexpr std::size_t ahead = 8;
  auto fetch = [](const void* from) { __builtin_prefetch(from, 1); };
  for (std::size_t k = 0; k < calls.size() + ahead; ++k) {
    if (k < calls.size())
      for (std::size_t line = 0; line < 4; ++line) fetch(reinterpret_cast<const char*>(calls[k]) + line * 64);
    if (k < ahead) continue;
    const Call& call = calls[k - ahead]->call;
    for (const Tensor* input : call.inputs) fetch(&input->body());
    for (const Tensor& output : call.outputs)
      if (output.defined()) fetch(&output.body());
  }
}

// Views are joined where their operands are rows of one tensor, which several tensors share then, or one parameter; not where
// a checkpoint may run them again, because what a tape keeps shares elements, too. Other ops on a parameter run at once:
// autocast keeps their results for all examples.
bool runs_at_once(const Call& call, bool runs_again) {
  const Body& x = call.input(0);
  if (x.marks & Body::pending) return call.specs.empty() && runs_again;
  if (call.specs.empty()) return runs_again || (!x.requires_grad && x.storage->references.unique());
  return call.inputs.size() == 1 && x.requires_grad;
}

}  // namespace

Generator stream_of(const Generator& from, std::uint64_t call, std::uint64_t index) {
  auto mixed = [](std::uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
  };
  return Generator(mixed(mixed(mixed(from.seed() + 0x9E3779B97F4A7C15u) + call) + index));
}

Scheduler::Scheduler(Context& outer, const BatchOptions& options, Location where) try
    : outer_(&outer),
      groups_(outer),
      options_(options),
      where_(where),
      tapes_(outer.tapes),
      scopes_(tapes_->scopes()),
      changes_seen_(scopes_.changes()),
      depth_(outer.tapes->depth),
      backward_passes_(outer.backward_passes),
      runs_again_(tapes_->outer() != nullptr),
      stacks_(stacks_of_thread(options.stack_bytes)) {
  // Ops of groups have passed autocast and reached listeners one by one.
  groups_.listener = nullptr;
  groups_.interceptor = nullptr;
  groups_.casts = nullptr;
  groups_.first_inner_scope = ~std::uint64_t{0};
  groups_.flags &= Context::on_device;
  groups_.flags |= Context::caller_named | Context::grouped;
  nothing_ = allocate(groups_, {Shape{0}, f32, cpu}, "batch_map", where);
} catch (const std::bad_alloc&) {
  fail_for_memory("batch_map", where);
}

Scheduler::~Scheduler() = default;

Scheduler* Scheduler::of(const Context& context) { return dynamic_cast<Scheduler*>(context.interceptor); }

// Within an inner tape or an isolated function, and in a backward pass, no other task may run: they use the thread's list.
// On the thread's own stack none can.
bool Scheduler::may_suspend(const Context& context) const {
  return context.tapes == tapes_ && tapes_->depth == depth_ && context.backward_passes == backward_passes_ &&
         !context.has(Context::runs_alone) && current_->fibre.runs_here();
}

void Scheduler::check_stack(const Task& task, const char* caller, Location where) const {
  if (task.fibre.stack_left() < reserved_bytes)
    fail<Error>(caller, where, "the example's recursion fills its stack of {} KB; give batch_map a larger stack_bytes",
                options_.stack_bytes >> 10);
}

// Keeps an error for a call whose result or gradient is not that of the op alone.
void Scheduler::verify(std::span<QueuedCall* const> calls, const Joining& joining) {
  std::size_t differing = 0;
  std::string text;
  try {
    text = verify_group(groups_, calls, joining, differing);
  } catch (...) {
    fail_later(*calls[0], std::current_exception());
  }
  if (text.empty()) return;
  const QueuedCall& one = *calls[differing];
  fail_later(one, std::make_exception_ptr(Error(fmt::format("{}: run for {} examples at once {} than alone",
                                                            one.call.op.name, calls.size(), text),
                                                one.call.where)));
}

void Scheduler::fail_later(const QueuedCall& one, std::exception_ptr error) noexcept {
  any_failed_ = true;
  if (Task& task = *one.task; task.start == one.task_start && !task.fibre.ended()) {
    if (!task.error) task.error = std::move(error);
    return;
  }
  if (outermost_->error && outermost_->failed <= one.example) return;
  outermost_->error = std::move(error);
  outermost_->failed = one.example;
  cancel(*outermost_, one.example);
}

// Other listeners than those of groups see each call with its elements, on the stack of its example.
bool Scheduler::makes_pending(const Call& call, const Context& context) const {
  if (context.listener || context.has(Context::on_device)) return false;
  return !call.op.accepts_elements || call.op.accepts_elements(call);
}

// Makes pending results, which the calling function may give to other ops. Views are of elements that start at null, if their
// operand is pending.
std::size_t Scheduler::make_outputs(Call& call, const Joining& joining, std::uint32_t depth, bool tracked) {
  Context& context = current_->context;
  bool may_track = tracked && context.has(Context::recording) && call.op.gradient;
  std::size_t bytes = 0;
  if (call.specs.empty()) call.op.forward(call);
  for (std::size_t j = 0; j < call.outputs.size(); ++j) {
    if (!call.specs.empty()) {
      if (joining.dropped_outputs >> j & 1) continue;
      call.outputs[j] = pending_tensor(context, call.specs[j], *nothing_.body().storage, call.where);
      bytes += static_cast<std::size_t>(call.output(static_cast<int>(j)).numel) * size_of(call.specs[j].dtype);
    }
    Body& body = call.outputs[j].body();
    body.slot_version = depth;
    body.marks = Body::pending;
    if (may_track && is_floating(body.dtype)) body.marks |= Body::to_track;
  }
  return bytes;
}

void Scheduler::run(Call& call) {
  Task& task = *current_;
  if (task.cancelled && std::uncaught_exceptions() == 0 && task.fibre.runs_here()) throw Cancelled();
  check_stack(task, call.op.name, call.where);
  if (task.error && std::uncaught_exceptions() == 0) std::rethrow_exception(std::exchange(task.error, nullptr));
  auto run_alone = [&](Alone why) {
    for (const Tensor* input : call.inputs) detail::settle(*input, call.where);
    if (task.report) task.report->count_alone(call, task.context.call_site(call.where), why);
    if (auto* listener = find_listener<GroupListener>(task.context.listener)) listener->runs_alone(call);
    detail::run_with_stack(task.context, [&] { run_and_record(call); });
  };
  if (!may_suspend(task.context)) return run_alone(Alone::scope);
  Joining joining = joining_of(call);
  // A hook on the op sees each call.
  if (joining.by == Joining::By::none || tapes_->is_hooked(call.op.name) || runs_at_once(call, runs_again_))
    return run_alone(Alone::op);
  OperandSummary operands(call, joining, *task.context.tapes, runs_again_);
  if (operands.any_empty) return run_alone(Alone::op);
  if (operands.large) return run_alone(Alone::large);
  if (live_ + unstarted_ == 1 && queue_.is_empty()) return run_alone(Alone::waited);
  // A checkpoint that runs its function again may track other tensors, but must form equal groups.
  CallKind& kind = queue_.kind_of(call, joining, task.context, operands.tracked && !runs_again_);
  auto name_example = [&](QueuedCall& queued) -> QueuedCall& {
    queued.task = &task;
    queued.task_start = task.start;
    queued.report = task.report;
    queued.example = static_cast<std::uint32_t>(task.example);
    queued.scope_id = task.context.scope_id;
    queued.recording = task.context.has(Context::recording);
    return queued;
  };
  const Location& where = task.context.has(Context::caller_named) ? task.context.caller : call.where;
  std::uint32_t depth = operands.depth + 1;
  if (!operands.any_unsafe && makes_pending(call, task.context)) {
    std::size_t bytes = make_outputs(call, joining, depth, operands.tracked);
    queue_.add(name_example(queue_.keep(call, where)), kind, depth);
    task.context.tapes->record_uses(task.context, call);
    Task& root = *task.root;
    if (std::exchange(root.delayed_in, queue_.filling()) != queue_.filling())
      root.delayed_calls = root.delayed_bytes = 0;
    root.delayed_bytes += bytes;
    queue_.count_bytes(bytes);
    if (queue_.size() >= most_calls || queue_.bytes() >= most_bytes)
      run_queue_now();
    else if (++root.delayed_calls * shares >= most_calls || root.delayed_bytes * shares >= most_bytes)
      wait();
    return;
  }

  // The caller's handles may be assigned while the call waits, by what the example shares with others.
  Few<Tensor> held(call.inputs.size());
  Few<const Tensor*> inputs(call.inputs.size());
  for (std::size_t i = 0; i < held.size(); ++i) inputs[i] = &(held[i] = *call.inputs[i]);
  QueuedCall queued{{call.op, inputs, call.attribute_bytes, call.specs, call.outputs, where}, &task.context};
  queue_.add(name_example(queued), kind, depth);
  task.fibre.suspend();
  if (task.cancelled && std::uncaught_exceptions() == 0) throw Cancelled();
  if (task.error) std::rethrow_exception(std::exchange(task.error, nullptr));
  if (!std::exchange(task.runs_alone, false) && !task.cancelled) return;
  ScopedValue<std::span<const Tensor* const>> own(call.inputs, inputs);
  run_alone(Alone::waited);
}

void Scheduler::settle(const Tensor& x) {
  while (!queue_.is_empty() && x.body().marks & Body::pending) wait();
}

void Scheduler::settle_uses(const Tensor& x) {
  while (!queue_.is_empty() && queue_.reads(x.body())) wait();
}

void Scheduler::settle_all() {
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

void Scheduler::report_group(std::span<QueuedCall* const> calls) noexcept try {
  ++groups_run_;
  for (const QueuedCall* one : calls)
    if (one->report) one->report->count_grouped(one->call, one->call.where, groups_run_);
} catch (const std::bad_alloc&) {  // without memory the examples go on, uncounted
}

void Scheduler::enter_groups(const QueuedCall& one) {
  groups_.parent = one.context ? one.context : outer_;
  groups_.set(Context::autocasting, false);
  groups_.set(Context::recording, one.recording);
  groups_.scope_id = one.scope_id;
  groups_.caller = one.call.where;
  groups_.module_call = one.context ? one.context->module_call : nullptr;
  groups_.notes = one.context ? one.context->notes : nullptr;
  groups_.listener = dynamic_cast<Listener*>(find_listener<GroupListener>(outer_->listener));
  groups_.set(Context::intercepted, groups_.listener != nullptr);
}

void Scheduler::run_queue() {
  ScopedValue<Context*> entered(current_context, &groups_);
  while (const CallBucket* first = queue_.take_level())
    for (const CallBucket* bucket = first; bucket; bucket = bucket->next) run_bucket(*bucket);
  queue_.clear();
  any_failed_ = false;
  for (Task* task : waiters_) make_ready(*task);
  waiters_.clear();
}

void Scheduler::run_bucket(const CallBucket& bucket) {
  std::span<QueuedCall*> left(bucket.calls, bucket.count);
  prefetch_operands(left);
  if (any_failed_) left = left.first(drop_without_operands(left));
  while (!left.empty()) {
    std::size_t count = Group::choose(*tapes_, left, bucket.kind->joining);
    run_chosen(left.first(count), bucket.kind->joining);
    left = left.subspan(count);
  }
}

// Moves the calls whose operands have been computed to the front; returns their number. The others fail like those.
std::size_t Scheduler::drop_without_operands(std::span<QueuedCall*> calls) noexcept {
  auto end = std::remove_if(calls.begin(), calls.end(), [&](const QueuedCall* one) {
    bool fails = std::ranges::any_of(one->call.inputs, [](const Tensor* x) { return x->body().marks & Body::pending; });
    if (fails && !one->is_pending()) {
      one->task->runs_alone = true;
      make_ready(*one->task);
    }
    return fails;
  });
  return static_cast<std::size_t>(end - calls.begin());
}

void Scheduler::run_chosen(std::span<QueuedCall* const> calls, const Joining& joining) {
  bool ran = false;
  if (calls.size() > 1) {
    enter_groups(*calls[0]);
    try {
      Group(groups_, calls, joining, joined_before_).run();
      ran = true;
    } catch (...) {
      // Each call runs by itself then: the one at fault throws in its own task, with its own line and operands.
    }
    if (ran && options_.verify) {
      groups_.listener = nullptr;
      groups_.set(Context::intercepted, false);
      verify(calls, joining);
    }
  }
  if (ran && reports_) report_group(calls);
  for (QueuedCall* one : calls) {
    if (!one->is_pending()) {
      one->task->runs_alone = !ran;
      make_ready(*one->task);
    } else if (!ran) {
      run_pending_alone(*one);
    }
  }
}

void Scheduler::run_pending_alone(QueuedCall& one) try {
  enter_groups(one);
  FlagScope own(groups_, Context::grouped, false);
  if (one.report) one.report->count_alone(one.call, one.call.where, Alone::waited);
  const Call& given = one.call;
  Few<Tensor> made(given.outputs.size());
  Call call{given.op, given.inputs, given.attribute_bytes, given.specs, {made.begin(), made.size()}, one.call.where};
  invoke(call);
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

[[gnu::noinline]] void Scheduler::update_contexts() noexcept {
  changes_seen_ = scopes_.changes();
  scopes_.update(*outer_);
  for (const std::unique_ptr<Task>& task : tasks_) scopes_.update(task->context);
}

void Scheduler::switch_to(Task& task, bool starts) {
  struct Switch {
    Switch(Scheduler& scheduler, Task& task) : scheduler(scheduler), before(std::exchange(scheduler.current_, &task)) {
      enter(task.context);
    }
    ~Switch() {
      enter(*context_before);
      scheduler.current_ = before;
    }
    void enter(Context& context) const {
      current_context = &context;
      // One comparison for all contexts: the task's own is not in the caches yet.
      if (scheduler.changes_seen_ != scheduler.scopes_.changes()) [[unlikely]]
        scheduler.update_contexts();
    }
    Scheduler& scheduler;
    Task* before;
    Context* context_before = current_context;
  };
  // Counters of the thread.
  task.context.isolated_scopes = groups_.isolated_scopes;
  task.context.multiplications = groups_.multiplications;
  {
    Switch switched(*this, task);
    if (starts)
      task.fibre.start(stacks_, run_task, &task);
    else
      task.fibre.resume();
    while (Errand* errand = std::exchange(task.errand, nullptr)) {
      if (Task* entered_by = switched.before) {
        entered_by->errand = errand;
        entered_by->fibre.suspend();
      } else {
        try {
          errand->function(errand->data);
        } catch (...) {
          errand->error = std::current_exception();
        }
      }
      task.fibre.resume();
    }
  }
  groups_.isolated_scopes = task.context.isolated_scopes;
  groups_.multiplications = task.context.multiplications;
  if (task.fibre.ended()) end(task);
}

void Scheduler::run_task(void* argument) noexcept {
  auto& task = *static_cast<Task*>(argument);
  try {
    task.function.call(task.function.function, task.index);
  } catch (const Cancelled&) {
  } catch (...) {
    // Examples before it go on. An exception of a cancelled example is no error of its own.
    if (Family& family = *task.family; !family.error || (task.index < family.failed && !task.cancelled)) {
      family.error = std::current_exception();
      family.failed = task.index;
    }
  }
}

void Scheduler::end(Task& task) {
  --live_;
  Family& family = *task.family;
  --family.active;
  if (family.awaited) {
    family.awaited = false;
    if (family.parent) make_ready(*family.parent);
  }
  if (std::exception_ptr error = std::exchange(task.error, nullptr); error && !task.cancelled)
    if (!family.error || task.index < family.failed) {
      family.error = error;
      family.failed = task.index;
    }
  free_.push_back(&task);
  scopes_.end_fibre(task.context);
  if (family.error && family.active > 0) cancel(family, family.failed);
}

void Scheduler::start(Family& family, const Context& parent, Generator generator, IndexedFunction function,
                      std::size_t index) {
  with_memory_error("batch_map", where_, [&] {
    if (free_.empty()) {
      free_.reserve(tasks_.size() + 1);
      waiters_.reserve(tasks_.size() + 1);
      tasks_.push_back(std::make_unique<Task>());
      free_.push_back(tasks_.back().get());
    }
    Task& task = *free_.back();
    free_.pop_back();
    task.context = parent;
    task.context.parent = &parent;
    task.context.set(Context::intercepted, true);
    task.context.interceptor = this;
    task.context.generator = &task.generator;
    task.context.running = nullptr;
    task.generator = generator;
    task.family = &family;
    task.function = function;
    task.index = index;
    task.example = family.parent ? family.parent->example : index;
    task.root = family.parent ? family.parent->root : &task;
    task.delayed_in = 0;
    task.start = ++starts_;
    task.report = family.report;
    task.error = nullptr;
    task.cancelled = task.runs_alone = false;
    scopes_.begin_fibre(task.context);
    ++live_;
    ++family.active;
    try {
      switch_to(task, true);
    } catch (...) {
      --live_;
      --family.active;
      free_.push_back(&task);
      throw;
    }
  });
}

void Scheduler::make_ready(Task& task) noexcept {
  task.next_ready = nullptr;
  (first_ready_ ? last_ready_->next_ready : first_ready_) = &task;
  last_ready_ = &task;
}

void Scheduler::advance() {
  if (!first_ready_) return run_queue();
  Task& task = *std::exchange(first_ready_, first_ready_->next_ready);
  switch_to(task, false);
}

void Scheduler::await(Family& family, std::size_t limit) {
  while (family.active >= (family.parent && live_ >= most_tasks ? 1 : limit)) {
    if (!family.parent) {
      advance();
      continue;
    }
    family.awaited = true;
    family.parent->fibre.suspend();
  }
}

// Tasks that wait for an op are resumed to end; what they have started ends with them.
void Scheduler::cancel(const Family& family, std::size_t from) noexcept {
  bool more = true;
  while (std::exchange(more, false))
    for (const std::unique_ptr<Task>& task : tasks_) {
      if (task->fibre.ended() || task->cancelled) continue;
      const Task* parent = task->family->parent;
      if ((task->family == &family && task->index >= from) || (parent && parent->cancelled))
        task->cancelled = more = true;
    }
  auto ends = [&](Task& task) {
    if (task.cancelled) make_ready(task);
    return task.cancelled;
  };
  queue_.remove_if([&](const QueuedCall& one) { return !one.is_pending() && ends(*one.task); });
  std::erase_if(waiters_, [&](Task* task) { return ends(*task); });
}

void Scheduler::run_all(std::size_t count, IndexedFunction function, std::size_t limit, ReportBuilder* report,
                        std::size_t& failed) {
  if (current_) check_stack(*current_, "batch_map", {});
  Context& context = current_ ? current_->context : *outer_;
  std::uint64_t call = context.generator->next_call();
  Family family;
  family.parent = current_;
  if (!current_) outermost_ = &family;
  family.report = report;
  reports_ |= report != nullptr;
  unstarted_ += count;
  std::size_t started = 0;
  try {
    while (started < count && !family.error && !(current_ && current_->cancelled)) {
      std::size_t i = started++;
      --unstarted_;
      start(family, context, stream_of(*context.generator, call, i), function, i);
      await(family, limit);
    }
  } catch (...) {
    // There is no memory for another example.
    if (!family.error) {
      family.error = std::current_exception();
      family.failed = started - 1;
    }
    cancel(family, 0);
  }
  unstarted_ -= count - started;
  await(family, 1);
  if (!current_) {
    run_queue();
    outer_->multiplications = groups_.multiplications;
    outer_->isolated_scopes = groups_.isolated_scopes;
  }
  // The tasks have ended without results.
  if (current_ && current_->cancelled) throw Cancelled();
  if (!family.error) return;
  failed = family.failed;
  std::rethrow_exception(family.error);
}

void Scheduler::run_both(IndexedFunction functions) {
  Task& task = *current_;
  check_stack(task, "both", {});
  Generator& drawn_from = *task.context.generator;
  Generator second = stream_of(drawn_from, drawn_from.next_call(), 1);
  if (live_ >= most_tasks) {
    functions.call(functions.function, 0);
    ScopedValue<Generator*> drawn(task.context.generator, &second);
    return functions.call(functions.function, 1);
  }
  Family family;
  family.parent = &task;
  family.report = task.report;
  start(family, task.context, second, functions, 1);
  try {
    functions.call(functions.function, 0);
  } catch (...) {
    cancel(family, 0);
    await(family, 1);
    throw;
  }
  await(family, 1);
  if (task.cancelled) throw Cancelled();
  if (family.error) std::rethrow_exception(family.error);
}

}  // namespace reel::detail
