#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <reel/debug/session.h>

#include "../recording/recorder.h"
#include "live_page.h"
#include "page_server.h"
#include "watches.h"

namespace reel::debug {

/// A session: records in memory, stops, and runs commands.
class Session::Live final : public Recorder {
 public:
  Live(SessionOptions options, Location where);
  ~Live() override;

  /// The innermost session of this thread; null if there is none.
  static Live* of_thread();

  const RecordedRun& run() const { return run_; }
  Debugger& debugger() { return debugger_; }
  std::string_view address() const { return server_ ? server_->address() : std::string_view(); }
  void add(const Watch& watch) { watches_.add(watch); }
  void add_breakpoint(std::string_view op, std::function<bool(const RecordedOp&)> predicate) {
    breakpoints_.push_back({std::string(op), std::move(predicate)});
  }
  void stop(Location where);

 private:
  struct Breakpoint {
    std::string op;
    std::function<bool(const RecordedOp&)> predicate;
  };

  void record(const RecordedOp& op) override;
  void record_update(const RecordedUpdate& update) override;
  void record_name(TensorId id, std::string_view name) override;
  /// To the program's terminal.
  void tell(std::string_view text) const;
  /// Prints text of the debugger.
  void print(std::string_view text);

  std::optional<std::string> reason_to_stop(const RecordedOp& op);
  void stop_after(const RecordedOp& op, const std::string& reason);
  Debugger::Next serve_until_resumed();

  SessionOptions options_;
  RecordedRun run_;
  Debugger debugger_;
  std::function<bool(const RecordedOp&)> stop_at_;
  bool first_stop_ = false, stopped_ = false, attached_ = true;
  std::vector<Breakpoint> breakpoints_;
  Watches watches_;
  std::unique_ptr<LivePage> page_;
  std::unique_ptr<PageServer> server_;  // after what its requests use
};

}  // namespace reel::debug
