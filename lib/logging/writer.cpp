#include <reel/logging/writer.h>

#include <chrono>
#include <cmath>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "../core/op_error.h"
#include "../io/atomic_file.h"
#include "appended_file.h"
#include "event_file.h"
#include "histogram.h"
#include "hyper_parameters.h"
#include "json_number.h"
#include "json_writer.h"
#include "line_log.h"
#include "summary.h"
#include "tag.h"
#include "writer_files.h"

namespace reel::logging {

using detail::fail;

namespace {

void check_writer_options(const WriterOptions& options, Location where) {
  if (!(options.flush_seconds >= 0))
    fail<Error>("logging::Writer", where, "flush_seconds is {} and must be 0 or more", options.flush_seconds);
  if (!options.events && !options.csv && !options.json)
    fail<Error>("logging::Writer", where, "nothing would be written; set .events, .csv or .json");
}

nlohmann::ordered_json json_of(const std::vector<double>& values) {
  auto numbers = nlohmann::ordered_json::array();
  for (double value : values) numbers.push_back(json_number(value));
  return numbers;
}

nlohmann::ordered_json json_of(const Histogram& histogram) {
  return {{"min", json_number(histogram.min)},
          {"max", json_number(histogram.max)},
          {"count", histogram.count},
          {"sum", json_number(histogram.sum)},
          {"sum_of_squares", json_number(histogram.sum_of_squares)},
          {"nans", histogram.nans},
          {"infinities", histogram.infinities},
          {"limits", json_of(histogram.limits)},
          {"in_bucket", json_of(histogram.in_bucket)}};
}

nlohmann::ordered_json json_of(const std::vector<NamedHyperParameter>& parameters) {
  auto object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : parameters) {
    if (value.kind() == HyperParameter::Kind::text)
      object[name] = value.text();
    else if (value.kind() == HyperParameter::Kind::boolean)
      object[name] = value.number() != 0;
    else
      object[name] = json_number(value.number());
  }
  return object;
}

}  // namespace

Writer::Files::Files(std::string directory, const WriterOptions& options, Location where)
    : directory_(std::move(directory)), options_(options) {
  io::create_folder("logging::Writer", directory_, where);
  last_flush_ = wall_time();
  if (options.csv) csv_.emplace(directory_ + "/scalars.csv", LineLog::csv, where);
  if (options.json) json_.emplace(directory_ + "/log.jsonl", LineLog::json, where);
  if (options.purge_step) purge(*options.purge_step, where);
  if (options.events) run({}, last_flush_, where);
}

double Writer::Files::wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

AppendedFile& Writer::Files::run(std::string_view name, double now, Location where) {
  if (auto found = runs_.find(name); found != runs_.end()) return found->second;
  std::string folder = name.empty() ? directory_ : fmt::format("{}/{}", directory_, name);
  AppendedFile file = create_event_file(folder, now, where);
  if (purge_step_) {
    record_.clear();
    append_record(record_, session_start_event(now, *purge_step_));
    file.append(record_, where);
  }
  return runs_.emplace(name, std::move(file)).first->second;
}

void Writer::Files::add_event(std::string_view run_name, double now, std::string_view event, Location where) {
  AppendedFile& file = run(run_name, now, where);
  record_.clear();
  append_record(record_, event);
  file.append(record_, where);
}

void Writer::Files::add_scalar(std::string_view run_name, std::string_view tag, double value, Entry entry) {
  auto [now, step, where] = entry;
  if (options_.events) add_event(run_name, now, values_event(now, step, number_value(tag, value)), where);
  if (csv_)
    csv_->append(fmt::format("{},{:.6f},{},{},{}\n", step, now, csv_field(run_name), csv_field(tag), csv_number(value)),
                 where);
  if (json_) {
    std::string line = json_begin(run_name, tag, entry);
    JsonWriter(line).member("value", value).end();
    json_->append(line += '\n', where);
  }
}

void Writer::Files::add_json(std::string_view tag, std::string_view member, const nlohmann::ordered_json& value,
                             Entry entry) {
  if (!json_) return;
  std::string line = json_begin({}, tag, entry);
  JsonWriter(line).json(member, value.dump()).end();
  json_->append(line += '\n', entry.where);
}

std::string Writer::Files::json_begin(std::string_view run_name, std::string_view tag, const Entry& entry) {
  std::string line;
  JsonWriter(line)
      .begin()
      .member("step", entry.step)
      .rounded("wall_time", entry.now, 6)
      .member("run", run_name)
      .member("tag", tag);
  return line;
}

void Writer::Files::flush(double now, Location where) {
  for (auto& [name, file] : runs_) file.flush(where);
  if (csv_) csv_->flush(where);
  if (json_) json_->flush(where);
  last_flush_ = now;
}

void Writer::Files::flush_if_due(double now, Location where) {
  // The clock may be set back.
  if (std::abs(now - last_flush_) >= options_.flush_seconds) flush(now, where);
}

void Writer::Files::purge(std::int64_t step, Location where) {
  double now = wall_time();
  purge_step_ = step;
  for (auto& [name, file] : runs_) add_event(name, now, session_start_event(now, step), where);
  if (csv_) csv_->purge(step, where);
  if (json_) json_->purge(step, where);
  flush(now, where);
}

Writer::Writer(const std::string& directory, const WriterOptions& options, Location where) {
  check_writer_options(options, where);
  files_ = std::make_unique<Files>(directory, options, where);
}

Writer::~Writer() = default;

void Writer::scalar(std::string_view tag, double value, std::int64_t step, Location where) {
  check_tag("logging::Writer::scalar", "the tag", tag, where);
  files_->log(step, where, [&](const Files::Entry& entry) { files_->add_scalar({}, tag, value, entry); });
}

void Writer::scalars(std::string_view tag, const std::vector<NamedScalar>& values, std::int64_t step, Location where) {
  check_tag("logging::Writer::scalars", "the tag", tag, where);
  for (const NamedScalar& value : values) check_run("logging::Writer::scalars", value.name, where);
  files_->log(step, where, [&](const Files::Entry& entry) {
    for (const auto& [name, value] : values) files_->add_scalar(name, tag, value, entry);
  });
}

void Writer::histogram(std::string_view tag, const Tensor& values, std::int64_t step, Location where) {
  check_tag("logging::Writer::histogram", "the tag", tag, where);
  Histogram histogram = histogram_of(values, where);
  std::int64_t not_finite = histogram.nans + histogram.infinities;
  files_->log(step, where, [&](const Files::Entry& entry) {
    if (files_->has_events())
      files_->add_event({}, entry.now, values_event(entry.now, step, histogram_value(tag, histogram)), where);
    if (files_->has_json()) files_->add_json(tag, "histogram", json_of(histogram), entry);
    if (not_finite > 0)
      files_->add_scalar({}, std::string(tag) + "/not_finite", static_cast<double>(not_finite), entry);
  });
}

void Writer::text(std::string_view tag, std::string_view markdown, std::int64_t step, Location where) {
  check_tag("logging::Writer::text", "the tag", tag, where);
  check_text("logging::Writer::text", "the text of", tag, markdown, where);
  files_->log(step, where, [&](const Files::Entry& entry) {
    if (files_->has_events())
      files_->add_event({}, entry.now, values_event(entry.now, step, text_value(tag, markdown)), where);
    if (files_->has_json()) files_->add_json(tag, "text", markdown, entry);
  });
}

void Writer::hyper_parameters(const std::vector<NamedHyperParameter>& parameters,
                              const std::vector<NamedScalar>& metrics, std::int64_t step, Location where) {
  constexpr const char* name_of_function = "logging::Writer::hyper_parameters";
  for (const NamedHyperParameter& parameter : parameters) {
    check_tag(name_of_function, "the name of a hyper-parameter", parameter.name, where);
    check_text(name_of_function, "the text of", parameter.name, parameter.value.text(), where);
  }
  for (const NamedScalar& metric : metrics) check_tag(name_of_function, "the name of a metric", metric.name, where);
  files_->log(step, where, [&](const Files::Entry& entry) {
    if (files_->has_events()) {
      // Their step is 0, so that they stay when a run continues at a later one.
      std::string event = values_event(
          entry.now, 0, plugin_value(experiment_tag, "hparams", experiment_of(parameters, metrics, entry.now)),
          plugin_value(session_tag, "hparams", session_of(parameters, entry.now)));
      files_->add_event({}, entry.now, event, where);
    }
    if (files_->has_json())
      files_->add_json("hyper_parameters", "hyper_parameters", json_of(parameters), {entry.now, 0, where});
    for (const auto& [name, value] : metrics) files_->add_scalar({}, name, value, entry);
  });
}

void Writer::purge(std::int64_t step, Location where) {
  std::lock_guard lock(files_->mutex());
  files_->purge(step, where);
}

void Writer::flush(Location where) {
  std::lock_guard lock(files_->mutex());
  files_->flush(Files::wall_time(), where);
}

const std::string& Writer::directory() const { return files_->directory(); }

}  // namespace reel::logging
