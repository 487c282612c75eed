#include "scheduler.h"

#include <algorithm>
#include <new>
#include <utility>

#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../core/per_thread.h"
#include "../core/storage.h"
#include "../record/tape_list.h"

// Tasks: how they start, go on and end.

namespace reel::detail {
namespace {

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
      cost_factor_(group_cost()),
      runs_again_(tapes_->outer() != nullptr),
      stacks_(stacks_of_thread(options.stack_bytes)) {
  // Ops of groups have passed autocast and reached listeners one by one.
  groups_.listener = nullptr;
  groups_.interceptor = nullptr;
  groups_.casts = nullptr;
  groups_.first_inner_scope = ~std::uint64_t{0};
  groups_.set_flags((groups_.flags & Context::on_device) | Context::caller_named | Context::grouped);
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
    if (starts) {
      task.fibre.start(stacks_, run_task, &task);
    } else {
      intercept(task);
      task.fibre.resume();
    }
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
  if (current_) intercept(*current_);
}

void Scheduler::run_task(void* argument) noexcept {
  auto& task = *static_cast<Task*>(argument);
  task.scheduler->intercept(task);
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
      tasks_.push_back(std::make_unique<Task>(this));
      free_.push_back(tasks_.back().get());
    }
    Task& task = *free_.back();
    free_.pop_back();
    task.context = parent;
    task.context.parent = &parent;
    task.context.intercepted_below = UINTPTR_MAX;
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
    task.expected = family.expected;
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
  if (!current_) {
    outermost_ = &family;
    under_way_ = std::min(limit, count);
  }
  family.report = report;
  std::size_t together =
      current_ ? std::min(most_tasks, current_->expected.together() * std::min(limit, count)) : under_way_;
  family.expected = GroupExpectation(together, cost_factor_);
  reports_ |= report != nullptr;
  unstarted_ += count;
  std::size_t started = 0;
  try {
    while (started < count && !family.error && !(current_ && current_->cancelled)) {
      std::size_t i = started++;
      --unstarted_;
      start(family, context, stream_of(*context.generator, call, i), function, i);
      // Examples that start together have come equally far, so that their calls meet; with later ones they would not.
      await(family, !family.parent && family.active >= limit ? 1 : limit);
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
  family.expected = task.expected;
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
