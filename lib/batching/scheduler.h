#pragma once

#include <array>
#include <exception>
#include <memory>
#include <unordered_map>
#include <vector>

#include <reel/batching.h>
#include <reel/random.h>

#include "../core/context.h"
#include "fibre.h"
#include "group.h"
#include "report.h"

namespace reel::detail {

class Scheduler;
class Scopes;

/// The stream of random numbers of one example or sibling: that of `from`, if it has taken this call number, with an index.
Generator stream_of(const Generator& from, std::uint64_t call, std::uint64_t index);

/// Tasks that are started together, and that their starter awaits.
struct Family {
  Task* parent = nullptr;  // null: the thread itself
  std::size_t active = 0;
  bool awaited = false;  // the parent is suspended until a task ends
  std::exception_ptr error;
  std::size_t failed = 0;  // the index of the task whose error it is
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
  Context context;
  Generator generator;
  Fibre fibre;
  Family* family = nullptr;
  IndexedFunction function{};
  std::size_t index = 0;
  std::exception_ptr error;  // of verification, for the call that it waits for
  ReportBuilder* report = nullptr;
  Errand* errand = nullptr;  // to be run before it is resumed
  Task* next_ready = nullptr;
  bool cancelled = false;
  bool runs_alone = false;  // the call that it waits for is to be run by itself
};

/// Runs the tasks of one thread: each until it waits for an op, then the op for all that wait for an equal one.
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
  /// Called by the dispatcher on a task's fibre: suspends it until the call has run.
  void run(Call& call) override;
  void run_with_stack(void (*run)(void* data), void* data) override;
  /// The scheduler of the task that runs on this thread; null if there is none.
  static Scheduler* of(const Context& context);
  /// Returns true if the task may be suspended here.
  bool may_suspend(const Context& context) const;
  /// Counts the calls of the task that runs; null: nothing does.
  ReportBuilder*& report() { return current_->report; }

 private:
  struct Bucket {
    std::vector<std::uint64_t> key;
    Joining joining;
    std::vector<Waiting> waiting;
    const std::size_t& buckets_of_op;
    /// Returns true if one call waits, and is no view.
    bool is_single() const;
    /// Returns true if calls of the op wait in other buckets, too, and have no parameter in common: waiting for more of one
    /// form would gain little.
    bool is_scattered() const;
  };
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
  /// Continues a task, or runs a group.
  void advance();
  std::size_t next_to_run() const;
  void run_next();
  void report_group(std::span<const Waiting> calls) noexcept;
  Bucket& bucket_for(const Call& call, const GroupKey& key, const Joining& joining);
  void verify(std::span<const Waiting> calls, const Joining& joining);
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
  bool runs_again_;  // within a function that a checkpoint may run again
  StackPool& stacks_;
  Task* current_ = nullptr;
  std::size_t live_ = 0;
  std::size_t unstarted_ = 0;                 // examples that are still to be started
  std::vector<std::unique_ptr<Task>> tasks_;  // all that were made
  std::vector<Task*> free_;
  Task *first_ready_ = nullptr, *last_ready_ = nullptr;  // those that can continue, in a list
  std::unordered_map<std::uint64_t, std::vector<std::unique_ptr<Bucket>>> buckets_;
  std::unordered_map<const OpInfo*, std::size_t> buckets_of_op_;
  std::array<Bucket*, 512> recent_ = {};  // by hash
  std::vector<Bucket*> occupied_;
  std::size_t singles_ = 0;  // of the occupied buckets
  JoinedParts joined_before_;
  std::uint64_t groups_run_ = 0;
};

}  // namespace reel::detail
