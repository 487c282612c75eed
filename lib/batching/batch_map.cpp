#include <reel/batching.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <typeinfo>

#include <fmt/format.h>

#include <reel/error.h>

#include "../core/context.h"
#include "../core/extended_error.h"
#include "../core/op_error.h"
#include "../dispatch/listener_scope.h"
#include "scheduler.h"

namespace reel {
namespace {

std::atomic<double> cost_factor = 1;

}  // namespace

void set_group_cost(double factor, Location where) {
  constexpr double most = 1e6;
  if (!(factor >= 0 && factor <= most))
    detail::fail<Error>("set_group_cost", where, "the factor is {}: it must be in [0, {}]", factor, most);
  cost_factor.store(factor, std::memory_order_relaxed);
}

double group_cost() { return cost_factor.load(std::memory_order_relaxed); }

}  // namespace reel

namespace reel::detail {
namespace {

// An error of one example, which catch clauses for E meet.
template <class E>
struct ErrorOfExample : E {
  ErrorOfExample(const Error& error, const std::string& text) : E(std::string(), error.where(), text) {}
};

// Throws the error with the example's index, if it is one of these.
template <class... E>
void throw_with_index(const Error& error, const std::string& text) {
  // An inner batch_map may have added its index.
  ((typeid(error) == typeid(E) || typeid(error) == typeid(ErrorOfExample<E>) ? throw ErrorOfExample<E>(error, text)
                                                                             : void()),
   ...);
}

// Throws the exception that is being handled.
[[noreturn]] void rethrow_with_index(std::size_t index, Location where) {
  try {
    throw;
  } catch (const MemoryError& error) {
    char text[80];
    auto end = fmt::format_to_n(text, sizeof text, ", in example {} of the batch_map at ", index);
    throw_extended(error, {text, end.size}, where);
    throw;
  } catch (const Error& error) {
    std::string text = error.what();
    // Further lines say more of the error.
    text.insert(std::min(text.find('\n'), text.size()),
                fmt::format(", in example {} of the batch_map at {}", index, to_string(where)));
    throw_with_index<Error, ShapeError, DTypeError, IndexError, DeviceError, TapeError>(error, text);
    if (auto* throw_other = throw_with_text.load()) throw_other(error, text);
    throw;
  }
}

// Counts the calls of examples that run one after the other.
class Counter : public ListenerScope {
 public:
  Counter(Context& context, ReportBuilder& report) : ListenerScope(context), report_(report) {}
  void starting(const Call& call, Location where) override {
    ListenerScope::starting(call, where);
    running_.emplace_back();
  }
  void finished(const Call& call, Location where) override {
    report_.count_alone(call, where, Alone::waited);
    report_.count_time(call, where, running_.back().seconds());
    running_.pop_back();
    pass_on(call, where);
  }
  void failed(const Call& call) noexcept override {
    running_.pop_back();
    ListenerScope::failed(call);
  }

 private:
  ReportBuilder& report_;
  std::vector<Stopwatch> running_;  // custom ops call others
};

// While it lives, a report counts the calls of the example in which a batch_map runs.
class CountedBy : Immovable {
 public:
  CountedBy(Scheduler* around, ReportBuilder* report)
      : around_(around), before_(around ? around->exchange_report(report) : nullptr) {}
  ~CountedBy() {
    if (around_) around_->exchange_report(before_);
  }

 private:
  Scheduler* around_;
  ReportBuilder* before_;
};

void run_immediately(std::size_t count, IndexedFunction function, std::size_t& failed) {
  Context& context = detail::context();
  std::uint64_t call = context.generator->next_call();
  for (std::size_t i = 0; i < count; ++i) {
    Generator own = stream_of(*context.generator, call, i);
    ScopedValue<Generator*> drawn(context.generator, &own);
    failed = i;
    function.call(function.function, i);
  }
}

void check(const BatchOptions& options, Location where) {
  if (options.in_flight < 1)
    fail<Error>("batch_map", where, "in_flight is {}: at least one example must be under way", options.in_flight);
  constexpr std::size_t least = 64 << 10, most = std::size_t{1} << 34;
  if (options.stack_bytes < least || options.stack_bytes > most || options.stack_bytes % 4096 != 0)
    fail<Error>("batch_map", where, "stack_bytes is {}: it must be a multiple of 4096 in [64 KiB, 16 GiB]",
                options.stack_bytes);
}

}  // namespace

void run_batch(std::size_t count, IndexedFunction function, const BatchOptions& options, Location where) {
  check(options, where);
  Context& context = detail::context();
  std::size_t failed = 0;
  Scheduler* around = Scheduler::of(context);
  std::optional<ReportBuilder> own;  // for calls that are delayed, too
  try {
    auto limit = static_cast<std::size_t>(options.in_flight);
    ReportBuilder* report = around ? around->report() : nullptr;
    if (options.report) report = &own.emplace(*options.report, report);
    bool batches = !options.immediate && count > 1;
    if (batches && !context.interceptor)
      return Scheduler(context, options, where).run_all(count, function, limit, report, failed);
    if (batches && around && around->may_suspend(context)) {
      around->run_all(count, function, limit, report, failed);
    } else {
      std::optional<Counter> counter;
      if (own && !around) counter.emplace(context, *own);
      CountedBy counted(around, report);
      run_immediately(count, function, failed);
    }
  } catch (...) {
    run_delayed(context);
    rethrow_with_index(failed, where);
  }
  wait_for_all(context);
}

void run_both(IndexedFunction functions) {
  Context& context = detail::context();
  if (Scheduler* scheduler = Scheduler::of(context); scheduler && scheduler->may_suspend(context))
    return scheduler->run_both(functions);
  Generator second = stream_of(*context.generator, context.generator->next_call(), 1);
  functions.call(functions.function, 0);
  ScopedValue<Generator*> drawn(context.generator, &second);
  functions.call(functions.function, 1);
}

}  // namespace reel::detail
