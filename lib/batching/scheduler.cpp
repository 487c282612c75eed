#include "scheduler.h"

#include <algorithm>
#include <new>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../core/per_thread.h"
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

// Properties of a call's operands that decide whether it waits for others.
struct OperandSummary {
  bool any_empty = false;
  bool large = false;
  bool tracked = false;  // by a tape

  OperandSummary(const Call& call, const Joining& joining, const TapeList& tapes) {
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      const Body& x = call.inputs[i]->body();
      any_empty |= x.numel == 0;
      if (!has_input(joining.shared, i)) elements = std::max(elements, x.numel);
      tracked = tracked || x.requires_grad || tapes.is_live(x);
    }
    for (const OutputSpec& spec : call.specs) {
      std::int64_t count = 1;
      for (int i = 0; i < spec.rank; ++i) count *= spec.dims[i];
      elements = std::max(elements, count);
    }
    large = elements > most_elements;
  }
};

// Reserves memory for one more element.
template <class T>
void make_room(std::vector<T>& list) {
  if (list.size() == list.capacity()) list.reserve(std::max<std::size_t>(8, 2 * list.size()));
}

// Views are joined where their operands are rows of one tensor, which several tensors share then, or one parameter; not where
// a checkpoint may run them again, because what a tape keeps shares elements, too. Other ops on a parameter run at once:
// autocast keeps their results for all examples.
bool runs_at_once(const Call& call, bool runs_again) {
  const Body& x = call.input(0);
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

// Sets the error of a call whose result or gradient is not that of the op alone.
void Scheduler::verify(std::span<const Waiting> calls, const Joining& joining) {
  std::size_t differing = 0;
  std::string text;
  try {
    text = verify_group(groups_, calls, joining, differing);
  } catch (...) {
    calls[0].task->error = std::current_exception();
  }
  if (text.empty()) return;
  const Waiting& one = calls[differing];
  one.task->error = std::make_exception_ptr(
      Error(fmt::format("{}: run for {} examples at once {} than alone", one.call->op.name, calls.size(), text),
            one.context->call_site(one.call->where)));
}

void Scheduler::run(Call& call) {
  Task& task = *current_;
  if (task.cancelled && std::uncaught_exceptions() == 0 && task.fibre.runs_here()) throw Cancelled();
  check_stack(task, call.op.name, call.where);
  auto run_alone = [&](Alone why) {
    if (task.report) task.report->count_alone(call, task.context.call_site(call.where), why);
    if (auto* listener = find_listener<GroupListener>(task.context.listener)) listener->runs_alone(call);
    detail::run_with_stack(task.context, [&] { run_and_record(call); });
  };
  if (!may_suspend(task.context)) return run_alone(Alone::scope);
  Joining joining = joining_of(call);
  // A hook on the op sees each call.
  if (joining.by == Joining::By::none || tapes_->is_hooked(call.op.name) || runs_at_once(call, runs_again_))
    return run_alone(Alone::op);
  OperandSummary operands(call, joining, *task.context.tapes);
  if (operands.any_empty) return run_alone(Alone::op);
  if (operands.large) return run_alone(Alone::large);
  if (live_ + unstarted_ == 1) return run_alone(Alone::waited);
  // A checkpoint that runs its function again may track other tensors, but must form equal groups.
  GroupKey key(call, joining, task.context, operands.tracked && !runs_again_);
  if (!key.valid()) return run_alone(Alone::op);

  // The caller's handles may be assigned while the call waits, by what the example shares with others.
  Few<Tensor> held(call.inputs.size());
  Few<const Tensor*> inputs(call.inputs.size());
  for (std::size_t i = 0; i < held.size(); ++i) inputs[i] = &(held[i] = *call.inputs[i]);
  struct Inputs {
    explicit Inputs(Call& call) : call(call), before(call.inputs) {}
    ~Inputs() { call.inputs = before; }
    Call& call;
    std::span<const Tensor* const> before;
  } restored(call);
  call.inputs = inputs;

  Bucket& bucket = bucket_for(call, key, joining);
  make_room(occupied_);
  make_room(bucket.waiting);
  // Nothing throws after this.
  if (bucket.waiting.empty())
    occupied_.push_back(&bucket);
  else
    singles_ -= bucket.is_single();
  bucket.waiting.push_back({&call, &task.context, &task});
  singles_ += bucket.is_single();
  task.fibre.suspend();
  if (task.cancelled && std::uncaught_exceptions() == 0) throw Cancelled();
  if (task.error) std::rethrow_exception(std::exchange(task.error, nullptr));
  if (std::exchange(task.runs_alone, false) || task.cancelled) run_alone(Alone::waited);
}

void Scheduler::run_with_stack(void (*run)(void* data), void* data) {
  Task& task = *current_;
  if (task.fibre.stack_left() >= kernel_bytes) return run(data);
  Errand errand{run, data, nullptr};
  task.errand = &errand;
  task.fibre.suspend();
  if (errand.error) std::rethrow_exception(errand.error);
}

Scheduler::Bucket& Scheduler::bucket_for(const Call& call, const GroupKey& key, const Joining& joining) {
  std::uint64_t hash = key.hash();
  Bucket*& recent = recent_[hash % recent_.size()];
  if (recent && key.matches(recent->key)) return *recent;
  std::vector<std::unique_ptr<Bucket>>& alike = buckets_[hash];
  for (const std::unique_ptr<Bucket>& bucket : alike)
    if (key.matches(bucket->key)) return *(recent = bucket.get());
  std::size_t& of_op = buckets_of_op_[&call.op];
  alike.push_back(std::make_unique<Bucket>(Bucket{
      .key = {key.words().begin(), key.words().end()}, .joining = joining, .waiting = {}, .buckets_of_op = of_op}));
  ++of_op;
  return *(recent = alike.back().get());
}

bool Scheduler::Bucket::is_scattered() const {
  if (buckets_of_op == 1) return false;
  const Call& call = *waiting[0].call;
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (has_input(joining.shared, i) && call.input(static_cast<int>(i)).requires_grad) return false;
  return true;
}

bool Scheduler::Bucket::is_single() const { return waiting.size() == 1 && !waiting[0].call->specs.empty(); }

// The index of the bucket to run next. Tried: that of the example which has waited for the fewest calls, unless the largest
// bucket holds a half, a quarter or all of those that wait. Groups of a parser and of an attention grew from 13 and 6 calls to
// 23 and 9, and neither they nor a tagger nor trees trained faster. Nor were layers of one form told apart by their parameters,
// so that the largest group was that of one layer. With all ops that read no parameter first, trees took 1.03 of the time:
// the rows that lead to a product were concatenated for fewer nodes at once.
std::size_t Scheduler::next_to_run() const {
  // Examples that share no op would search through all buckets for each of their ops.
  if (singles_ == occupied_.size()) return 0;
  // Views cost next to nothing, and ops of scattered shapes gain little from waiting. They run first, so that their examples
  // wait with others at an op that gains from it.
  auto rank = [](const Bucket& bucket) {
    return std::tuple(bucket.waiting[0].call->specs.empty(), bucket.is_scattered(), bucket.waiting.size());
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < occupied_.size(); ++i)
    if (rank(*occupied_[i]) > rank(*occupied_[best])) best = i;
  return best;
}

void Scheduler::report_group(std::span<const Waiting> calls) noexcept try {
  ++groups_run_;
  for (const Waiting& one : calls)
    if (ReportBuilder* report = one.task->report)
      report->count_grouped(*one.call, one.context->call_site(one.call->where), groups_run_);
} catch (const std::bad_alloc&) {  // without memory the examples go on, uncounted
}

void Scheduler::run_next() {
  std::size_t next = next_to_run();
  Bucket& bucket = *occupied_[next];
  singles_ -= bucket.is_single();
  std::size_t count = Group::choose(bucket.waiting, bucket.joining);
  std::span<const Waiting> chosen(bucket.waiting.data(), count);
  bool ran = false;
  if (count > 1) {
    const Context& first = *chosen[0].context;
    groups_.parent = &first;
    groups_.set(Context::autocasting, false);
    groups_.set(Context::recording, first.has(Context::recording));
    groups_.scope_id = first.scope_id;
    groups_.caller = first.call_site(chosen[0].call->where);
    groups_.module_call = first.module_call;
    groups_.notes = first.notes;
    groups_.listener = dynamic_cast<Listener*>(find_listener<GroupListener>(outer_->listener));
    groups_.set(Context::intercepted, groups_.listener != nullptr);
    Context* before = std::exchange(current_context, &groups_);
    try {
      Group(groups_, chosen, bucket.joining, joined_before_).run();
      ran = true;
    } catch (...) {
      // Each call runs by itself then: the one at fault throws in its own task, with its own line and operands.
    }
    if (ran && options_.verify) {
      groups_.listener = nullptr;
      groups_.set(Context::intercepted, false);
      verify(chosen, bucket.joining);
    }
    current_context = before;
  }
  if (ran && reports_) report_group(chosen);
  for (const Waiting& one : chosen) {
    one.task->runs_alone = !ran;
    make_ready(*one.task);
  }
  bucket.waiting.erase(bucket.waiting.begin(), bucket.waiting.begin() + static_cast<std::ptrdiff_t>(count));
  if (bucket.waiting.empty())
    occupied_.erase(occupied_.begin() + static_cast<std::ptrdiff_t>(next));
  else
    singles_ += bucket.is_single();
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
  free_.push_back(&task);
  scopes_.end_fibre(task.context);
  if (family.error && family.active > 0) cancel(family, family.failed);
}

void Scheduler::start(Family& family, const Context& parent, Generator generator, IndexedFunction function,
                      std::size_t index) {
  with_memory_error("batch_map", where_, [&] {
    if (free_.empty()) {
      free_.reserve(tasks_.size() + 1);
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
  if (!first_ready_) return run_next();
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
  for (Bucket* bucket : occupied_)
    std::erase_if(bucket->waiting, [&](const Waiting& one) {
      if (one.task->cancelled) make_ready(*one.task);
      return one.task->cancelled;
    });
  std::erase_if(occupied_, [](const Bucket* bucket) { return bucket->waiting.empty(); });
  singles_ = static_cast<std::size_t>(
      std::ranges::count_if(occupied_, [](const Bucket* bucket) { return bucket->is_single(); }));
}

void Scheduler::run_all(std::size_t count, IndexedFunction function, std::size_t limit, ReportBuilder* report,
                        std::size_t& failed) {
  if (current_) check_stack(*current_, "batch_map", {});
  Context& context = current_ ? current_->context : *outer_;
  std::uint64_t call = context.generator->next_call();
  Family family;
  family.parent = current_;
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
