#include <reel/debug/session.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

#include <reel/debug/ops.h>
#include <reel/no_record.h>

#include "../core/op_error.h"
#include "../core/printable.h"
#include "recording/recorder.h"

namespace reel::debug {

using namespace detail;

namespace {

void print_to_terminal(std::string_view text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

double magnitude_of(const RecordedStatistics& statistics) {
  return std::max(std::abs(statistics.min), std::abs(statistics.max));
}

}  // namespace

class Session::Live final : public Recorder {
 public:
  explicit Live(SessionOptions options)
      : Recorder({.statistics = true,
                  .fingerprints = true,
                  .updates = false,
                  .value_elements = options.value_elements,
                  .every = 1}),
        options_(std::move(options)),
        debugger_(run_, {.output = options_.output ? options_.output : print_to_terminal,
                         .source_folders = options_.source_folders,
                         .resume = [this](auto stop_at) { stop_at_ = std::move(stop_at); }}) {
    if (options_.stop_at_start) stop_at_ = [](const RecordedOp& op) { return op.kind != OpKind::source; };
    first_stop_ = options_.stop_at_start;
  }

  /// The innermost session of this thread; null if there is none.
  static Live* of_thread() {
    auto* listener = dynamic_cast<ListenerScope*>(detail::context().listener);
    while (listener) {
      if (auto* live = dynamic_cast<Live*>(listener)) return live;
      listener = dynamic_cast<ListenerScope*>(listener->outer());
    }
    return nullptr;
  }

  const RecordedRun& run() const { return run_; }
  Debugger& debugger() { return debugger_; }
  void add(const Watch& watch) { watches_.push_back(watch); }
  void add_breakpoint(std::string_view op, std::function<bool(const RecordedOp&)> predicate) {
    breakpoints_.push_back({std::string(op), std::move(predicate)});
  }
  void stop(Location where) {
    if (!attached_) return;
    if (run_.ops().empty()) return;
    stop_after(run_.ops().back(), "stop() at " + to_string(where));
  }

 private:
  struct Breakpoint {
    std::string op;
    std::function<bool(const RecordedOp&)> predicate;
  };
  // A line that is executed again and again, in a step and in the next one.
  struct Execution {
    std::string_view file, op, module;
    int line;
    std::int64_t index;
    auto operator<=>(const Execution&) const = default;
  };

  void record(const RecordedOp& op) override {
    if (!attached_) return;
    RecordedOp kept = op;
    for (std::string_view* text : {&kept.op, &kept.file, &kept.module, &kept.notes, &kept.error})
      *text = run_.intern(*text);
    for (RecordedTensor& output : kept.outputs) output.name = run_.intern(output.name);
    const RecordedOp& added = run_.add(std::move(kept));
    if (run_.ops().size() > options_.most_ops) run_.keep_last(options_.most_ops);
    if (stopped_) return;
    if (std::optional<std::string> reason = reason_to_stop(added)) stop_after(added, *reason);
  }
  void record_update(const RecordedUpdate&) override {}
  void record_name(TensorId id, std::string_view name) override { run_.rename(id, name); }

  std::optional<std::string> reason_to_stop(const RecordedOp& op) {
    if (!op.error.empty() && options_.stop_on_error) return "error";
    if (stop_at_ && stop_at_(op)) return std::exchange(first_stop_, false) ? "the first op" : "stopped";
    for (const Breakpoint& breakpoint : breakpoints_)
      if (op.op == breakpoint.op && op.kind != OpKind::gradient && op.kind != OpKind::source &&
          (!breakpoint.predicate || breakpoint.predicate(op)))
        return "breakpoint";
    double before = norm_before(op);
    for (const Watch& watch : watches_)
      for (const RecordedTensor& output : op.outputs)
        if (output.has_statistics)
          if (std::optional<std::string> reason = seen(watch, op, output, before)) return reason;
    return std::nullopt;
  }

  static std::optional<std::string> seen(const Watch& watch, const RecordedOp& op, const RecordedTensor& output,
                                         double before) {
    const RecordedStatistics& statistics = output.statistics;
    std::int64_t numel = output.shape.numel();
    if (watch.anomalies && statistics.nans + statistics.infinities > 0) return "watch: NaN or infinity";
    if (watch.all_zero && numel > 1 && statistics.zeros == numel) return "watch: all zero";
    if (magnitude_of(statistics) > watch.bound) return fmt::format("watch: a magnitude above {:g}", watch.bound);
    if (op.kind == OpKind::gradient && statistics.norm > watch.gradient_norm)
      return fmt::format("watch: a gradient's norm above {:g}", watch.gradient_norm);
    double change = before > 0 ? statistics.norm / before : 1;
    if (std::max(change, 1 / change) > watch.scale_change)
      return fmt::format("watch: the norm is {:.3g} times that of the step before", change);
    return std::nullopt;
  }

  // The norm that the line's execution of the same index gave in the step before; 0 if there was none.
  double norm_before(const RecordedOp& op) {
    bool asked = std::ranges::any_of(watches_, [](const Watch& watch) { return std::isfinite(watch.scale_change); });
    if (!asked || op.outputs.empty() || op.kind == OpKind::source) return 0;
    if (op.step != counted_step_) {
      norms_before_ = std::exchange(norms_, {});
      executions_.clear();
      counted_step_ = op.step;
    }
    Execution execution{op.file, op.op, op.module, op.line * 4 + static_cast<int>(op.kind), 0};
    execution.index = executions_[execution]++;
    norms_[execution] = op.outputs[0].statistics.norm;
    auto found = norms_before_.find(execution);
    return found != norms_before_.end() ? found->second : 0;
  }

  void stop_after(const RecordedOp& op, const std::string& reason) {
    stopped_ = true;
    stop_at_ = {};
    Unobserved unobserved(detail::context());
    NoRecord pause;
    debugger_.stop_at(op, reason);
    Debugger::Next next = options_.commands ? options_.commands(debugger_) : run_commands(debugger_);
    // At the end of the input there is no way to resume the program later.
    if (next != Debugger::Next::resume) attached_ = false;
    stopped_ = false;
  }

  SessionOptions options_;
  RecordedRun run_;
  Debugger debugger_;
  std::function<bool(const RecordedOp&)> stop_at_;
  bool first_stop_ = false, stopped_ = false, attached_ = true;
  std::vector<Breakpoint> breakpoints_;
  std::vector<Watch> watches_;
  std::int64_t counted_step_ = 0;
  std::map<Execution, std::int64_t> executions_;
  std::map<Execution, double> norms_, norms_before_;
};

Session::Session(SessionOptions options) : live_(std::make_unique<Live>(std::move(options))) {}
Session::~Session() = default;

const RecordedRun& Session::run() const { return live_->run(); }

void Session::add_filter(std::string_view name, TensorFilter filter, Location where) {
  live_->debugger().add_filter(name, std::move(filter), where);
}

void watch(const Watch& what, Location where) {
  if (!(what.bound >= 0) || !(what.gradient_norm >= 0) || !(what.scale_change > 1))
    fail<Error>("debug::watch", where,
                ".bound is {:g}, .gradient_norm {:g}, .scale_change {:g}; the first two must be at least 0, the last "
                "one above 1",
                what.bound, what.gradient_norm, what.scale_change);
  if (Session::Live* live = Session::Live::of_thread()) live->add(what);
}

void break_on(std::string_view op, std::function<bool(const RecordedOp&)> predicate, Location where) {
  std::vector<OpDescription> all = ops();
  if (std::ranges::none_of(all, [&](const OpDescription& one) { return one.name == op; }))
    fail<Error>("debug::break_on", where, "there is no op {}; `reel ops` lists them", shown(op));
  if (Session::Live* live = Session::Live::of_thread()) live->add_breakpoint(op, std::move(predicate));
}

void stop(Location where) {
  if (Session::Live* live = Session::Live::of_thread()) live->stop(context().call_site(where));
}

}  // namespace reel::debug
