#include "report.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace reel {

void detail::ReportBuilder::count_alone(const Call& call, Location where, Alone why) {
  if (around_) around_->count_alone(call, where, why);
  BatchedLine& counts = report_.lines[line(call, where)];
  ++counts.calls;
  switch (why) {
    case Alone::op: ++counts.alone_by_op; return;
    case Alone::large: ++counts.alone_large; return;
    case Alone::scope: ++counts.alone_scope; return;
    case Alone::waited: ++counts.alone_waited; return;
    case Alone::cheaper: ++counts.alone_cheaper; return;
  }
}

void detail::ReportBuilder::count_grouped(const Call& call, Location where, std::uint64_t group) {
  if (around_) around_->count_grouped(call, where, group);
  std::size_t index = line(call, where);
  BatchedLine& counts = report_.lines[index];
  ++counts.calls;
  ++counts.grouped;
  counts.groups += std::exchange(last_groups_[index], group) != group;
}

void detail::ReportBuilder::count_time(const Call& call, Location where, double seconds) {
  if (around_) around_->count_time(call, where, seconds);
  report_.lines[line(call, where)].seconds += seconds;
}

std::size_t detail::ReportBuilder::line(const Call& call, Location where) {
  last_groups_.resize(report_.lines.size() + 1);
  std::tuple key{&call.op, where.file, where.line};
  if (auto found = index_.find(key); found != index_.end()) return found->second;
  report_.lines.push_back({.op = call.op.name, .where = where});
  return index_.emplace(key, report_.lines.size() - 1).first->second;
}

std::string BatchReport::to_string() const {
  std::size_t width = 4;
  for (const BatchedLine& line : lines) width = std::max(width, reel::to_string(line.where).size());
  std::string text =
      fmt::format("{:<{}}  {:<22} {:>9} {:>9} {:>9}  {}\n", "line", width, "op", "calls", "in group", "ms", "alone");
  for (const BatchedLine& line : lines) {
    std::string alone;
    auto add = [&](std::int64_t count, const char* why) {
      if (count > 0) alone += fmt::format("{}{} {}", alone.empty() ? "" : ", ", count, why);
    };
    add(line.alone_waited, "without an equal one");
    add(line.alone_cheaper, "cheaper alone");
    add(line.alone_by_op, "not joined");
    add(line.alone_large, "large");
    add(line.alone_scope, "in an inner scope");
    double mean = line.groups > 0 ? static_cast<double>(line.grouped) / static_cast<double>(line.groups) : 1;
    text += fmt::format("{:<{}}  {:<22} {:>9} {:>9.1f} {:>9.2f}  {}\n", reel::to_string(line.where), width, line.op,
                        line.calls, mean, line.seconds * 1e3, alone);
  }
  return text;
}

}  // namespace reel
