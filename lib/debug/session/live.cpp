#include "live.h"

#include <cstdio>
#include <utility>

#include <reel/no_record.h>

#include "../../core/op_error.h"

namespace reel::debug {

namespace {

constexpr std::size_t most_updates = 200'000;

void print_to_terminal(std::string_view text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

}  // namespace

Session::Live::Live(SessionOptions options, Location where)
    : Recorder({.statistics = true,
                .fingerprints = true,
                .updates = options.serve,  // the page draws them
                .value_elements = options.value_elements,
                .every = 1}),
      options_(std::move(options)),
      debugger_(run_, {.output = [this](std::string_view text) { print(text); },
                       .source_folders = options_.source_folders,
                       .resume = [this](auto stop_at) { stop_at_ = std::move(stop_at); }}) {
  if (options_.serve) {
    if (options_.commands)
      detail::fail<Error>("debug::Session", where, "commands come from .serve or from .commands, not from both");
    page_ = std::make_unique<LivePage>(run_, debugger_, options_.source_folders, options_.logs);
    server_ = std::make_unique<PageServer>(options_.port, where);
    tell(fmt::format("reel: the session is at {}{}\n", server_->address(),
                     options_.stop_at_start ? "; the program waits there at its first op" : ""));
  }
  if (options_.stop_at_start) stop_at_ = [](const RecordedOp& op) { return op.kind != OpKind::source; };
  first_stop_ = options_.stop_at_start;
}

Session::Live::~Live() {
  if (!options_.stop_at_end || !attached_ || run_.ops().empty()) return;
  try {
    if (server_) tell("reel: the program is at the end of the session, and waits for the page; `continue` ends it\n");
    stop_after(run_.ops().back(), "the end of the session");
  } catch (...) {  // Exceptions, those of commands too, cannot leave a destructor.
  }
}

Session::Live* Session::Live::of_thread() { return detail::find_listener<Live>(detail::context().listener); }

void Session::Live::stop(Location where) {
  if (!attached_) return;
  if (run_.ops().empty()) return;
  stop_after(run_.ops().back(), "stop() at " + to_string(where));
}

void Session::Live::tell(std::string_view text) const {
  options_.output ? options_.output(text) : print_to_terminal(text);
}

void Session::Live::print(std::string_view text) {
  if (page_) page_->print(text);
  if (!page_ || options_.output) tell(text);
}

void Session::Live::record(const RecordedOp& op) {
  if (!attached_) return;
  RecordedOp kept = op;
  for (std::string_view* text : {&kept.op, &kept.file, &kept.module, &kept.notes, &kept.error})
    *text = run_.intern(*text);
  for (RecordedTensor& output : kept.outputs) output.name = run_.intern(output.name);
  const RecordedOp& added = run_.add(std::move(kept));
  if (page_) page_->added(added.id);
  if (run_.ops().size() > options_.most_ops) run_.keep_last(options_.most_ops);
  if (stopped_) return;
  if (std::optional<std::string> reason = reason_to_stop(added)) return stop_after(added, *reason);
  if (!server_ || !server_->has_requests()) return;
  Unobserved unobserved(detail::context());
  NoRecord pause;
  server_->answer_all([this](const PageRequest& request) { return page_->answer(request); });
  if (page_->has_quit()) attached_ = false;
}

void Session::Live::record_update(const RecordedUpdate& update) {
  RecordedUpdate kept = update;
  kept.parameter = run_.intern(update.parameter);
  run_.add_update(kept);
  if (run_.updates().size() <= 2 * most_updates) return;
  std::size_t dropped = run_.keep_last_updates(most_updates);
  if (page_) page_->dropped_updates(dropped);
}

void Session::Live::record_name(TensorId id, std::string_view name) {
  run_.rename(id, name);
  if (page_) page_->renamed(id);
}

std::optional<std::string> Session::Live::reason_to_stop(const RecordedOp& op) {
  if (!op.error.empty() && options_.stop_on_error) return "error";
  if (stop_at_ && stop_at_(op)) return std::exchange(first_stop_, false) ? "the first op" : "stopped";
  for (const Breakpoint& breakpoint : breakpoints_)
    if (op.op == breakpoint.op && op.kind != OpKind::gradient && op.kind != OpKind::source &&
        (!breakpoint.predicate || breakpoint.predicate(op)))
      return "breakpoint";
  if (std::optional<std::string> reason = watches_.found_in(op)) return reason;
  return page_ ? page_->reason_to_stop(op) : std::nullopt;
}

void Session::Live::stop_after(const RecordedOp& op, const std::string& reason) {
  stopped_ = true;
  stop_at_ = {};
  attached_ = false;  // also if a signal ends the wait
  Unobserved unobserved(detail::context());
  NoRecord pause;
  debugger_.stop_at(op, reason);
  if (page_) page_->stopped(op.id, reason);
  Debugger::Next next = server_             ? serve_until_resumed()
                        : options_.commands ? options_.commands(debugger_)
                                            : run_commands(debugger_);
  // At the end of the input there is no way to resume the program later.
  attached_ = next == Debugger::Next::resume;
  stopped_ = false;
}

Debugger::Next Session::Live::serve_until_resumed() {
  while (page_->is_stopped())
    server_->answer_next([this](const PageRequest& request) { return page_->answer(request); });
  if (!page_->has_quit()) return Debugger::Next::resume;
  server_->end();
  return Debugger::Next::quit;
}

}  // namespace reel::debug
