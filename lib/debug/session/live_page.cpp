#include "live_page.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "../../core/op_error.h"
#include "../../core/printable.h"
#include "../recorded_run/source_of.h"
#include "../report/page.h"
#include "../report/run_json.h"

namespace reel::debug {

namespace {

// A page that asks while the program runs gets the newest ops, since a fast program makes more than a page can show.
constexpr std::size_t most_newest = 4'000, most_next = 20'000;
constexpr std::size_t most_printed = std::size_t{256} << 10;

[[noreturn]] void refuse(std::string_view what) {
  detail::fail<Error>("debug::Session", Location(), "the page's request has {}", what);
}

std::string_view next_word(std::string_view& text, char separator = ' ') {
  std::size_t end = text.find(separator);
  std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

template <class T>
T parse_number(std::string_view word) {
  T number = 0;
  auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (fault != std::errc() || end != word.data() + word.size()) refuse("no number where one must be");
  return number;
}

}  // namespace

LivePage::LivePage(const RecordedRun& run, Debugger& debugger, std::span<const std::string> source_folders,
                   const std::string& logs)
    : run_(run), debugger_(debugger), source_folders_(source_folders), logs_(logs) {}

void LivePage::added(std::uint64_t id) {
  arrived_.push_back(id);
  if (arrived_.size() > 2 * run_.ops().size() + most_newest) forget_dropped();
}

void LivePage::renamed(TensorId id) {
  renamed_.push_back(id);
  if (renamed_.size() > 2 * run_.ops().size() + most_newest) forget_dropped();
}

// Removes and counts the entries of ops that the run has dropped.
void LivePage::forget_dropped() {
  for (; !arrived_.empty() && !run_.find(arrived_.front()); ++arrived_dropped_) arrived_.pop_front();
  for (; !renamed_.empty() && !run_.tensor(renamed_.front()); ++renamed_dropped_) renamed_.pop_front();
}

void LivePage::print(std::string_view text) {
  printed_ += text;
  if (printed_.size() <= most_printed) return;
  std::size_t dropped = printed_.size() - most_printed / 2;
  dropped = std::min(printed_.size(), printed_.find('\n', dropped) + 1);
  printed_.erase(0, dropped);
  printed_dropped_ += dropped;
}

void LivePage::stopped(std::uint64_t op, const std::string& reason) {
  is_stopped_ = true;
  stopped_at_ = op;
  reason_ = reason;
}

std::optional<std::string> LivePage::reason_to_stop(const RecordedOp& op) {
  for (const Node& node : nodes_)
    if (op.line == node.line && op.op == node.op && op.file == node.file && op.module == node.module &&
        (op.kind == OpKind::forward || op.kind == OpKind::backward))
      return "watched op";
  return watches_.found_in(op);
}

PageAnswer LivePage::answer(const PageRequest& request) {
  const std::string &what = request.what, &body = request.body;
  if (what.empty()) return {200, "text/html; charset=utf-8", page()};
  if (what == "data") return {.text = data(body)};
  if (what == "command") return {.text = run_command(body)};
  if (what == "complete") return {.text = completions(body).dump()};
  if (what == "value") return {.text = value(body)};
  if (what == "source") return {.text = source(body)};
  if (what == "histograms") return {.text = histograms_json(run_).dump()};
  if (what == "watch") {
    set_watches(body);
    return {.text = "{}"};
  }
  if (what == "logs" && !logs_.empty())
    return {200, "text/html; charset=utf-8", page_of({.title = logs_, .logs = logs_}, Location())};
  return {404, "text/plain", "There is no such page.\n"};
}

std::string LivePage::page() const {
  PageTexts none;
  Json run = {{"name", "live"},
              {"program", ""},
              {"complete", false},
              {"dropped", 0},
              {"live", true},
              {"logs", !logs_.empty()},
              {"updates", Json::array()},
              {"sources", Json::object()},
              {"histograms", Json::array()}};
  OpColumns(none, 0).move_to(run);
  run["texts"] = none.json();
  return page_of({.title = "reel: a running program", .runs = Json::array({run}), .live = true}, Location());
}

std::string LivePage::data(std::string_view body) {
  Progress has;
  for (std::size_t* number : {&has.ops, &has.texts, &has.updates, &has.names, &has.printed})
    *number = parse_number<std::size_t>(next_word(body));
  has.newest = body == "newest";
  forget_dropped();
  std::size_t end = arrived_dropped_ + arrived_.size(), first = std::clamp(has.ops, arrived_dropped_, end);
  if (has.newest && end - first > most_newest) first = end - most_newest;
  std::size_t last = std::min(end, first + most_next);
  OpColumns columns(texts_, 0);
  for (std::size_t i = first; i < last; ++i)
    if (const RecordedOp* op = run_.find(arrived_[i - arrived_dropped_])) columns.add(*op);
  for (const auto& [index, file] : columns.files()) files_.insert(index);
  std::span<const RecordedUpdate> updates = run_.updates();
  std::size_t old_updates = has.updates - std::min(has.updates, updates_dropped_);
  Json norms = updates_json(updates.subspan(std::min(old_updates, updates.size())), texts_);
  Json names = names_from(has.names);
  std::size_t printed_from = std::clamp(has.printed, printed_dropped_, printed_dropped_ + printed_.size());
  std::string_view new_print = std::string_view(printed_).substr(printed_from - printed_dropped_);
  Json answer = {{"state", is_stopped_ ? "stopped" : "running"},
                 {"reason", detail::printable(reason_)},
                 {"at", stopped_at_},
                 {"nextOp", last},
                 {"skipped", first - std::min(has.ops, first)},
                 {"left", end - last},
                 {"nextUpdate", updates_dropped_ + updates.size()},
                 {"nextName", renamed_dropped_ + renamed_.size()},
                 {"nextPrinted", printed_dropped_ + printed_.size()},
                 {"printed", detail::printable_lines(new_print)},
                 {"names", std::move(names)},
                 {"updates", std::move(norms)}};
  columns.move_to(answer);
  answer["nextText"] = texts_.size();
  answer["texts"] = texts_.json(std::min(has.texts, texts_.size()));
  return answer.dump();
}

Json LivePage::names_from(std::size_t first) {
  Json list = Json::array();
  for (std::size_t i = first - std::min(first, renamed_dropped_); i < renamed_.size(); ++i)
    if (const RecordedTensor* tensor = run_.tensor(renamed_[i]))
      list.push_back({renamed_[i].op, renamed_[i].output, texts_.index(tensor->name)});
  return list;
}

Json LivePage::completions(std::string_view line) const {
  Json list = Json::array();
  for (const std::string& text : debugger_.completions(line)) list.push_back(detail::printable(text));
  return list;
}

std::string LivePage::run_command(const std::string& command) {
  print(fmt::format("(reel) {}\n", detail::printable(command)));
  Debugger::Next next = debugger_.execute(command);
  if (next != Debugger::Next::command) is_stopped_ = false;
  if (next == Debugger::Next::quit) has_quit_ = true;
  return Json{{"state", has_quit_ ? "ended" : is_stopped_ ? "stopped" : "running"}}.dump();
}

std::string LivePage::value(std::string_view body) const {
  auto op = parse_number<std::uint64_t>(next_word(body));
  const RecordedTensor* tensor = run_.tensor({op, parse_number<std::uint32_t>(body)});
  bool has_values = tensor && tensor->values.defined();
  return Json{{"text", has_values ? Json(detail::printable_lines(to_string(tensor->values))) : Json()}}.dump();
}

std::string LivePage::source(std::string_view body) const {
  auto index = parse_number<std::size_t>(body);
  if (!files_.contains(index)) refuse("no file of an op");
  return source_json(source_of(run_, texts_.text(index), {source_folders_.begin(), source_folders_.end()}, true))
      .dump();
}

void LivePage::set_watches(std::string_view body) {
  std::vector<Node> nodes;
  Watch watch;
  bool watches = false;
  while (!body.empty()) {
    std::string_view line = next_word(body, '\n');
    if (line.starts_with("node\t")) {
      next_word(line, '\t');
      std::string op(next_word(line, '\t')), file(next_word(line, '\t'));
      int number = parse_number<int>(next_word(line, '\t'));
      nodes.push_back({std::move(op), std::move(file), number, std::string(line)});
      continue;
    }
    std::string_view kind = next_word(line);
    watches = true;
    if (kind == "anomalies")
      watch.anomalies = true;
    else if (kind == "all_zero")
      watch.all_zero = true;
    else if (kind == "bound")
      watch.bound = parse_number<double>(line);
    else if (kind == "gradient_norm")
      watch.gradient_norm = parse_number<double>(line);
    else if (kind == "scale_change")
      watch.scale_change = parse_number<double>(line);
    else
      refuse("an unknown watch");
  }
  if (!(watch.bound >= 0) || !(watch.gradient_norm >= 0) || !(watch.scale_change > 1))
    refuse("a bound below 0, or a change of scale of at most 1");
  nodes_ = std::move(nodes);
  watches_.clear();
  if (watches) watches_.add(watch);
}

}  // namespace reel::debug
