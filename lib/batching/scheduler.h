#pragma once

#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <reel/batching.h>
#include <reel/random.h>

#include "../core/context.h"
#include "call_form.h"
#include "call_queue.h"
#include "fibre.h"
#include "group.h"
#include "report.h"

namespace reel::detail {

class Scheduler;
class Scopes;

/// The stream of random numbers of one example or sibling: that of `from`, if it has taken this call number, with an index.
Generator stream_of(const Generator& from, std::uint64_t call, std::uint64_t index);

/// Thrown in a task that is to end because another one has failed. No std::exception, so that few catch clauses meet it.
struct Cancelled {};

/// Tasks that are started together, and that their starter awaits.
struct Family {
  Task* parent = nullptr;  // null: the thread itself
  std::size_t active = 0;
  bool awaited = false;  // the parent is suspended until a task ends
  std::exception_ptr error;
  GroupExpectation expected{};  // see Task
  std::size_t failed = 0;       // the index of the task whose error it is
  ReportBuilder* report = nullptr;
};

/// A function that a task has run on the thread's own stack.
struct Errand {
  void (*function)(void* data);
  void* data;
  std::exception_ptr error;
};

/// A function on a fibre, with the context and the random numbers that are its own.
struct Task {
  Scheduler* scheduler;
  Context context{};
  Generator generator{};
  Fibre fibre{};
  Family* family = nullptr;
  IndexedFunction function{};
  std::size_t index = 0;
  std::size_t example = 0;  // of the outermost batch_map
  Task* root = nullptr;     // which runs that example's function
  // The root's: the last filling of the queue with pending results of the example, their number and bytes.
  std::uint64_t delayed_in = 0;
  std::size_t delayed_calls = 0, delayed_bytes = 0;
  GroupExpectation expected{};  // one call in each example, or in those of an inner batch, may be made in parallel
  std::uint64_t start = 0;      // counts the starts of tasks
  std::exception_ptr error;     // of a call that has run later, or of verification: thrown at its next op or wait
  ReportBuilder* report = nullptr;
  Errand* errand = nullptr;  // to be run before it is resumed
  Task* next_ready = nullptr;
  bool cancelled = false;
  bool runs_alone = false;  // the call that it waits for is to be run by itself
};

/// Runs the tasks of one thread, each until it waits for elements, then the calls that they have made until then: those of
/// one kind as one.
class Scheduler final : public Interceptor, Immovable {
 public:
  /// `where`: of the call of batch_map. Throws: MemoryError.
  Scheduler(Context& outer, const BatchOptions& options, Location where);
  ~Scheduler() override;

  /// Calls a function for each index, at most `limit` at a time, from the thread or from a task. Throws: the error of the
  /// first of them that fails, when all have ended; `failed` is its index.
  void run_all(std::size_t count, IndexedFunction function, std::size_t limit, ReportBuilder* report,
               std::size_t& failed);
  /// Within a task: calls function(0) on it, and function(1) on a task of its own.
  void run_both(IndexedFunction functions);
  /// Called by the dispatcher on a task's fibre: makes pending results, or suspends it until the call has run.
  void run(Call& call) override;
  void wait_for(const Tensor& x) override;
  void wait_for_all() override;
  void run_delayed() noexcept override;
  void wait_for_uses(const Tensor& x) override;
  void run_with_stack(void (*run)(void* data), void* data) override;
  /// The scheduler of the task that runs on this thread; null if there is none.
  static Scheduler* of(const Context& context);
  /// Returns true if the task may be suspended here.
  bool may_suspend(const Context& context) const;
  /// Counts the calls of the task that runs; null: nothing does.
  ReportBuilder* report() const { return current_->report; }
  /// Has another builder count them; returns the former one.
  ReportBuilder* exchange_report(ReportBuilder* report) noexcept {
    ReportBuilder* before = std::exchange(current_->report, report);
    intercept(*current_);
    return before;
  }

 private:
  void start(Family& family, const Context& parent, Generator generator, IndexedFunction function, std::size_t index);
  void switch_to(Task& task, bool starts);
  /// Applies the ends of scopes to the contexts of all tasks.
  void update_contexts() noexcept;
  static void run_task(void* task) noexcept;
  void end(Task& task);
  /// Waits until fewer than `limit` tasks of a family are active.
  void await(Family& family, std::size_t limit);
  /// Ends the tasks of a family from an index on, and what they have started.
  void cancel(const Family& family, std::size_t from) noexcept;
  void make_ready(Task& task) noexcept;
  /// Continues a task, or runs the calls that wait.
  void advance();
  /// Returns when all calls that are queued now have run, for which the task is suspended where it may be.
  void wait();
  /// Runs all calls at once, on the thread's own stack.
  void run_queue_now();
  void run_queue();
  void run_ready(std::span<QueuedCall*> calls, const CallKind& kind);
  std::size_t drop_without_operands(std::span<QueuedCall*> calls) noexcept;
  /// Runs calls that Group::choose has chosen.
  void run_chosen(std::span<QueuedCall* const> calls, const CallKind& kind);
  void run_pending_alone(QueuedCall& one, const CallKind& kind);
  /// Prepares the context in which groups run for calls like this one.
  void enter_groups(const QueuedCall& one, const CallKind& kind);
  /// Keeps the error of a call for the task that has made it, or of its example if the task has ended.
  void fail_later(const QueuedCall& one, std::exception_ptr error) noexcept;
  bool makes_pending(const Call& call, const Context& context) const;
  void make_outputs(Call& call, const CallForm& form, PendingMark mark, bool tracked);
  /// Returns true if a call whose operands are all there would gain nothing in a group, whatever its exact form.
  bool runs_at_once(const Call& call, const Context& context);
  /// Has the task's ops pass the scheduler, or only those that share a weight while all others run at once.
  void intercept(Task& task) noexcept;
  bool joins_all() const { return cost_factor_ == 0; }
  void run_here(Call& call, Alone why);
  void run_alone(Call& call, Alone why);
  void run_suspended(Call& call, CallKind& kind, PendingMark mark);
  void delay(Call& call, const CallForm& form, CallKind& kind, PendingMark mark, bool tracked);
  void report_group(std::span<QueuedCall* const> calls, double seconds) noexcept;
  void verify(std::span<QueuedCall* const> calls, const Joining& joining) noexcept;
  /// Throws: Error if the task's stack is nearly full.
  void check_stack(const Task& task, const char* caller, Location where) const;

  Context* outer_;
  Context groups_;  // in which the ops of groups run
  const BatchOptions& options_;
  Location where_;
  const TapeList* tapes_;
  Scopes& scopes_;
  std::uint32_t changes_seen_;  // the changes of scopes that the contexts of all tasks contain
  bool reports_ = false;
  int depth_;
  std::uint32_t backward_passes_;
  double cost_factor_;  // of groups; 0: all calls are joined that can be
  bool runs_again_;     // within a function that a checkpoint may run again
  StackPool& stacks_;
  Task* current_ = nullptr;
  std::size_t live_ = 0;
  std::size_t unstarted_ = 0;                 // examples that are still to be started
  std::vector<std::unique_ptr<Task>> tasks_;  // all that were made
  std::vector<Task*> free_;
  Task *first_ready_ = nullptr, *last_ready_ = nullptr;  // those that can continue, in a list
  CallForms forms_;
  CallQueue queue_;
  std::vector<const Storage*> losing_tables_;
  std::vector<Task*> waiters_;  // until all calls have run
  Tensor nothing_;              // its storage stands for that of pending tensors
  Family* outermost_ = nullptr;
  std::size_t under_way_ = 0;  // the most examples of the outermost batch_map at a time
  std::uint64_t starts_ = 0;
  bool any_failed_ = false;  // an operand may be pending for ever
  JoinedParts joined_before_;
  std::uint64_t groups_run_ = 0;
};

}  // namespace reel::detail
