#include <charconv>
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <reel/io/safetensors.h>
#include <reel/io/text.h>

#include "../../core/op_error.h"
#include "../line_log.h"
#include "run_log.h"

namespace reel::logging {

namespace {

using nlohmann::json;

// Texts and histograms are longer than lines of other files.
constexpr std::uint64_t most_line_bytes = std::uint64_t{1} << 26;

[[noreturn]] void refuse_line(const std::string& path, std::size_t line, const std::string& words, Location where) {
  detail::fail<io::FileError>("logging::plot", where, "line {} of '{}' {}", line, io::printable(path), words);
}

// Calls f with each line and its number, from 1. A last line that is cut off is passed over.
template <class F>
void for_each_log_line(const std::string& path, Location where, F f) {
  std::string text = io::read_text(path, {.most_bytes = std::numeric_limits<std::uint64_t>::max()}, where);
  std::size_t number = 0;
  for (std::size_t start = 0, end; (end = text.find('\n', start)) != text.npos; start = end + 1) {
    ++number;
    if (end - start > most_line_bytes) refuse_line(path, number, "is too long", where);
    f(std::string_view(text).substr(start, end - start), number);
  }
}

double number_in(const json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string& text = value.get_ref<const std::string&>();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  throw std::runtime_error("a number is a text");
}

// A conversion of a number that std::int64_t lacks is undefined.
std::int64_t integer_in(const json& value) {
  if (!value.is_number_integer()) throw std::runtime_error("a step or a count is no integer");
  return value.get<std::int64_t>();
}

Histogram histogram_in(const json& value) {
  Histogram histogram;
  histogram.min = number_in(value.at("min"));
  histogram.max = number_in(value.at("max"));
  histogram.count = integer_in(value.at("count"));
  for (const json& limit : value.at("limits")) histogram.limits.push_back(number_in(limit));
  for (const json& count : value.at("in_bucket")) histogram.in_bucket.push_back(number_in(count));
  if (histogram.limits.size() != histogram.in_bucket.size()) throw std::runtime_error("a histogram is not whole");
  return histogram;
}

void add_line(const json& line, std::map<std::string, RunLog>& runs) {
  RunLog& run = runs[line.at("run").get<std::string>()];
  std::int64_t step = integer_in(line.at("step"));
  auto wall_time = line.at("wall_time").get<double>();
  auto tag = line.at("tag").get<std::string>();
  if (line.contains("value")) {
    // Before the tag has a list, which a value that is refused would leave empty.
    double value = number_in(line["value"]);
    run.numbers[tag].push_back({step, wall_time, value});
  }
  if (line.contains("histogram")) run.add_histogram(tag, {step, wall_time, histogram_in(line["histogram"])});
  if (line.contains("text")) run.add_text(tag, {step, wall_time, line["text"].get<std::string>()});
  if (!line.contains("hyper_parameters")) return;
  run.hyper_parameters.clear();
  for (const auto& [name, value] : line["hyper_parameters"].items())
    run.hyper_parameters.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
}

// The fields of a row; nothing if a quote is not closed.
std::optional<std::vector<std::string>> fields_of(std::string_view row) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (quoted && row[i] == '"' && i + 1 < row.size() && row[i + 1] == '"')
      fields.back() += row[i++];
    else if (row[i] == '"')
      quoted = !quoted;
    else if (row[i] == ',' && !quoted)
      fields.emplace_back();
    else
      fields.back() += row[i];
  }
  if (quoted) return {};
  return fields;
}

template <class T>
bool parse_whole(const std::string& text, T& value) {
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size();
}

}  // namespace

void read_json_lines(const std::string& path, std::map<std::string, RunLog>& runs, Location where) {
  for_each_log_line(path, where, [&](std::string_view text, std::size_t number) {
    try {
      // A log is flat, and a parser would follow other nesting by recursion.
      add_line(json::parse(text,
                           [](int depth, json::parse_event_t, json&) {
                             if (depth > 3) throw std::runtime_error("it is nested too deeply");
                             return true;
                           }),
               runs);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      refuse_line(path, number, fmt::format("is no entry of a log: {}", io::printable(error.what())), where);
    }
  });
}

void read_csv(const std::string& path, std::map<std::string, RunLog>& runs, Location where) {
  for_each_log_line(path, where, [&](std::string_view text, std::size_t number) {
    if (number == 1) {
      if (text != LineLog::csv.header.substr(0, LineLog::csv.header.size() - 1))
        refuse_line(path, number, "is not the header of a log", where);
      return;
    }
    auto fields = fields_of(text);
    std::int64_t step;
    double wall_time, value;
    if (!fields || fields->size() != 5 || !parse_whole((*fields)[0], step) || !parse_whole((*fields)[1], wall_time) ||
        !parse_whole((*fields)[4], value))
      refuse_line(path, number, "is not a step, a time, a run, a tag and a number", where);
    runs[(*fields)[2]].numbers[(*fields)[3]].push_back({step, wall_time, value});
  });
}

}  // namespace reel::logging
