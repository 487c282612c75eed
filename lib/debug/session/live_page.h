#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <reel/debug/debugger.h>

#include "../report/op_columns.h"
#include "page_server.h"
#include "watches.h"

namespace reel::debug {

/// Answers the requests of a served page about a session: all on the session's thread.
class LivePage {
 public:
  /// All arguments must outlive it.
  LivePage(const RecordedRun& run, Debugger& debugger, std::span<const std::string> source_folders,
           const std::string& logs);

  /// Shows what the debugger prints.
  void print(std::string_view text);
  /// An op has come into the run.
  void added(std::uint64_t id);
  /// A tensor was named.
  void renamed(TensorId id);
  /// The run has dropped its oldest norms of parameters.
  void dropped_updates(std::size_t count) { updates_dropped_ += count; }
  /// The session has stopped after an op, until a command lets it run on.
  void stopped(std::uint64_t op, const std::string& reason);
  bool is_stopped() const { return is_stopped_; }
  /// True after the command `quit`.
  bool has_quit() const { return has_quit_; }
  /// Why the page's watches stop after an op; none: they do not. To be called for each op, once.
  std::optional<std::string> reason_to_stop(const RecordedOp& op);

  /// Answers a request, whose `what` is one of:
  /// - empty: the page; "logs": the page of the folder of logs;
  /// - "data": what is new. Body: the numbers of ops, texts, updates, names and bytes of printed text that the page has,
  ///   and "newest" or "next": which ops to send, if there are many;
  /// - "command": runs a command of the debugger. Body: the command;
  /// - "complete": what could follow at the end of an incomplete command. Body: the command;
  /// - "value": the kept elements of a tensor. Body: the op's id and the index of the output;
  /// - "source": the lines of a file. Body: the index of its name among the texts;
  /// - "histograms": those of the kept values. Body: empty;
  /// - "watch": where to stop, instead of what was so far. Body: lines such as "anomalies", "all_zero", "bound 10",
  ///   "gradient_norm 5", "scale_change 3", and "node", op, file, line and module with tabs between them.
  PageAnswer answer(const PageRequest& request);

 private:
  // An op of a line, in a module.
  struct Node {
    std::string op, file;
    int line;
    std::string module;
  };
  // The data that the page has, and its requests.
  struct Progress {
    std::size_t ops = 0, texts = 0, updates = 0, names = 0, printed = 0;
    bool newest = false;
  };

  void forget_dropped();
  std::string page() const;
  std::string data(std::string_view body);
  Json names_from(std::size_t first);
  Json completions(std::string_view line) const;
  std::string run_command(const std::string& command);
  std::string value(std::string_view body) const;
  std::string source(std::string_view body) const;
  void set_watches(std::string_view body);

  const RecordedRun& run_;
  Debugger& debugger_;
  std::span<const std::string> source_folders_;
  const std::string& logs_;
  PageTexts texts_;
  std::set<std::size_t> files_;
  std::deque<std::uint64_t> arrived_;  // ids, in the order in which ops were added
  std::deque<TensorId> renamed_;
  std::size_t arrived_dropped_ = 0, renamed_dropped_ = 0, updates_dropped_ = 0;
  std::string printed_;
  std::size_t printed_dropped_ = 0;
  Watches watches_;
  std::vector<Node> nodes_;
  bool is_stopped_ = false, has_quit_ = false;
  std::uint64_t stopped_at_ = 0;
  std::string reason_;
};

}  // namespace reel::debug
