#include "run_log.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include <reel/io/safetensors.h>
#include <reel/io/text.h>

#include "../../core/op_error.h"
#include "../../dispatch/listener_scope.h"
#include "../figure/axis.h"
#include "../protobuf.h"
#include "event_reader.h"

namespace reel::logging {

using detail::fail;

namespace {

constexpr std::size_t most_histograms = 96, most_pictures = 8, most_texts = 16;

template <class T>
void keep_last(std::vector<At<T>>& list, std::size_t most) {
  if (list.size() > most) list.erase(list.begin());
}

template <class T>
void purge_logged(Logged<T>& logged, std::int64_t step) {
  for (auto& [tag, list] : logged) std::erase_if(list, [&](const At<T>& at) { return at.step >= step; });
  std::erase_if(logged, [](const auto& entry) { return entry.second.empty(); });
}

template <class T>
void sort_logged(Logged<T>& logged) {
  for (auto& [tag, list] : logged)
    std::stable_sort(list.begin(), list.end(), [](const At<T>& a, const At<T>& b) { return a.step < b.step; });
}

template <class T>
std::vector<At<T>>& list_of(Logged<T>& logged, std::string_view tag) {
  auto found = logged.find(tag);
  return found != logged.end() ? found->second : logged.emplace(tag, std::vector<At<T>>()).first->second;
}

// The value of a hyper-parameter, a google.protobuf.Value, for people to read.
std::string shown_value(std::string_view bytes) {
  std::string text;
  for (Fields fields(bytes); fields.next();) {
    if (fields.field() == 2) text = short_number(fields.f64(), 6);
    if (fields.field() == 3) text = fields.text();
    if (fields.field() == 4) text = fields.integer() != 0 ? "true" : "false";
  }
  return text;
}

// Reads HParamsPluginData; others than those of the start of a session have nothing to show.
void add_hyper_parameters(RunLog& run, std::string_view message) {
  for (Fields data(message); data.next();) {
    if (data.field() != 3) continue;
    run.hyper_parameters.clear();
    for (Fields session(data.text()); session.next();) {
      if (session.field() != 1) continue;
      std::string key, value;
      for (Fields entry(session.text()); entry.next();) {
        if (entry.field() == 1) key = entry.text();
        if (entry.field() == 2) value = shown_value(entry.text());
      }
      run.hyper_parameters.emplace_back(key, value);
    }
  }
}

void add_event_to(RunLog& run, const LoggedEvent& event) {
  using Kind = LoggedValue::Kind;
  if (event.starts_session) run.purge(event.step);
  for (const LoggedValue& value : event.values) {
    if (value.kind == Kind::number)
      list_of(run.numbers, value.tag).push_back({event.step, event.wall_time, value.number});
    else if (value.kind == Kind::histogram)
      run.add_histogram(value.tag, {event.step, event.wall_time, value.histogram});
    else if (value.kind == Kind::picture)
      run.add_picture(value.tag, {event.step, event.wall_time, std::string(value.bytes)});
    else if (value.kind == Kind::text)
      run.add_text(value.tag, {event.step, event.wall_time, std::string(value.bytes)});
    else if (value.kind == Kind::hyper_parameters)
      add_hyper_parameters(run, value.bytes);
  }
}

// The logs in one folder, by kind.
struct LogFiles {
  std::vector<std::string> events;
  std::string json, csv;
};

std::map<std::string, LogFiles> find_logs(const std::string& directory, Location where) {
  namespace fs = std::filesystem;
  std::map<std::string, LogFiles> folders;
  std::error_code code;
  fs::recursive_directory_iterator next(directory, fs::directory_options::skip_permission_denied, code), end;
  for (; !code && next != end; next.increment(code)) {
    std::string name = next->path().filename().string();
    std::error_code ignored;
    if (!next->is_regular_file(ignored)) continue;
    std::string folder = next->path().parent_path().lexically_relative(directory).generic_string();
    if (folder == ".") folder.clear();
    if (name.find("tfevents") != name.npos) folders[folder].events.push_back(next->path().string());
    if (name == "log.jsonl") folders[folder].json = next->path().string();
    if (name == "scalars.csv") folders[folder].csv = next->path().string();
  }
  if (code)
    fail<io::FileError>("logging::plot", where, "cannot read the folder '{}': {}", io::printable(directory),
                        code.message());
  for (auto& [folder, files] : folders) std::sort(files.events.begin(), files.events.end());
  return folders;
}

void read_files(const std::string& folder, const LogFiles& files, std::map<std::string, RunLog>& runs,
                std::vector<std::string>& left_out, Location where) {
  auto attempt = [&](auto read) {
    try {
      detail::Unobserved trying(detail::context());
      read();
    } catch (const io::FileError& error) {
      left_out.push_back(error.what());
    }
  };
  if (!files.events.empty()) {
    for (const std::string& path : files.events)
      attempt([&] {
        read_events(
            path, [&](const LoggedEvent& event) { add_event_to(runs[folder], event); }, where);
      });
    return;
  }
  std::map<std::string, RunLog> named;
  attempt([&] { files.json.empty() ? read_csv(files.csv, named, where) : read_json_lines(files.json, named, where); });
  for (auto& [name, run] : named) {
    std::string path = fmt::format("{}{}{}", folder, folder.empty() || name.empty() ? "" : "/", name);
    runs.insert_or_assign(path, std::move(run));
  }
}

}  // namespace

void RunLog::add_histogram(std::string_view tag, At<Histogram> histogram) {
  auto& list = list_of(histograms, tag);
  list.push_back(std::move(histogram));
  if (list.size() <= most_histograms) return;
  // The one between the two nearest neighbours is left out, so that the others stay spread over all steps.
  auto gap_around = [&](std::size_t i) {
    return std::abs(static_cast<double>(list[i + 1].step) - static_cast<double>(list[i - 1].step));
  };
  std::size_t closest = 1;
  for (std::size_t i = 2; i + 1 < list.size(); ++i)
    if (gap_around(i) < gap_around(closest)) closest = i;
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(closest));
}

void RunLog::add_picture(std::string_view tag, At<std::string> picture) {
  auto& list = list_of(pictures, tag);
  list.push_back(std::move(picture));
  keep_last(list, most_pictures);
}

void RunLog::add_text(std::string_view tag, At<std::string> text) {
  auto& list = list_of(texts, tag);
  list.push_back(std::move(text));
  keep_last(list, most_texts);
}

void RunLog::purge(std::int64_t step) {
  purge_logged(numbers, step);
  purge_logged(histograms, step);
  purge_logged(pictures, step);
  purge_logged(texts, step);
}

void RunLog::sort() {
  sort_logged(numbers);
  sort_logged(histograms);
  sort_logged(pictures);
  sort_logged(texts);
}

bool RunLog::empty() const {
  return numbers.empty() && histograms.empty() && pictures.empty() && texts.empty() && hyper_parameters.empty();
}

FolderLog read_folder(const std::string& directory, Location where) {
  FolderLog log;
  std::map<std::string, RunLog> runs;
  std::map<std::string, LogFiles> folders = find_logs(directory, where);
  if (folders.empty())
    fail<io::FileError>("logging::plot", where,
                        "there are no logs in '{}': no event files, no log.jsonl and no scalars.csv",
                        io::printable(directory));
  for (const auto& [folder, files] : folders) read_files(folder, files, runs, log.left_out, where);
  for (auto& [name, run] : runs) {
    if (run.empty()) continue;
    run.name = name;
    run.sort();
    log.runs.push_back(std::move(run));
  }
  return log;
}

}  // namespace reel::logging
