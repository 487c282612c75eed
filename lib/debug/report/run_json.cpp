#include "run_json.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "../../core/dtype_dispatch.h"
#include "../../core/printable.h"
#include "../../logging/plot/html.h"

namespace reel::debug {

namespace {

// Values are for looking at; a page with those of 10⁵ tensors would not open in time.
constexpr std::size_t most_value_bytes = std::size_t{3} << 20;
constexpr std::size_t most_source_lines = 20'000;
constexpr std::size_t histogram_bins = 20, most_histograms = 40;

// A string of several lines; script_string alone would show where they end.
std::string json_lines(std::string_view text) {
  std::string json = "\"";
  while (true) {
    std::size_t end = text.find('\n');
    std::string line = logging::script_string(text.substr(0, end));
    json.append(line, 1, line.size() - 2);
    if (end == std::string_view::npos) return json + "\"";
    json += "\\n";
    text.remove_prefix(end + 1);
  }
}

class RunJson {
 public:
  RunJson(const RecordedRun& run, const std::vector<std::string>& folders) : run_(run), folders_(folders) {
    text_index("");
  }

  std::string json(std::string_view name) {
    for (const RecordedOp& op : run_.ops()) add(op);
    std::string updates;
    for (const RecordedUpdate& update : run_.updates())
      append(updates, "[{},{},{},{},{}]", update.step, text_index(update.parameter), number(update.weight_norm),
             number(update.gradient_norm), number(update.update_norm));
    std::string sources = this->sources(), histograms = this->histograms();
    std::string json = fmt::format(
        "{{\"name\":{},\"program\":{},\"complete\":{},\"dropped\":{},\"inputs\":[{}],\"out\":[{}],\"updates\":[{}],"
        "\"sources\":{{{}}},\"histograms\":[{}]",
        logging::script_string(name), logging::script_string(detail::printable(run_.program())), run_.is_complete(),
        run_.dropped(), inputs_, outputs_, updates, sources, histograms);
    for (const auto& [column, numbers] : columns_) json += fmt::format(",\"{}\":[{}]", column, numbers);
    return json + fmt::format(",\"texts\":[{}]}}", texts_);
  }

 private:
  template <class... T>
  static void append(std::string& list, fmt::format_string<T...> form, T&&... values) {
    if (!list.empty()) list += ',';
    fmt::format_to(std::back_inserter(list), form, std::forward<T>(values)...);
  }

  static std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.6g}", value) : "null"; }

  std::size_t text_index(std::string_view text) {
    auto [found, is_new] = indices_.try_emplace(std::string(text), indices_.size());
    if (is_new) append(texts_, "{}", logging::script_string(detail::printable(text)));
    return found->second;
  }

  void add(const RecordedOp& op) {
    auto column = [&](const char* name, auto value) { append(columns_[name], "{}", value); };
    column("id", op.id);
    column("kind", static_cast<int>(op.kind));
    column("op", text_index(op.op));
    column("file", text_index(op.file));
    column("line", op.line);
    column("module", text_index(op.module));
    column("notes", text_index(op.notes));
    column("error", text_index(op.error));
    column("step", op.step);
    column("start", op.start);
    column("duration", op.duration);
    column("forward", op.forward);
    if (!op.file.empty()) files_.try_emplace(text_index(op.file), op.file);
    std::string inputs, outputs;
    for (const TensorId& input : op.inputs) append(inputs, "{},{}", input.op, input.output);
    for (const RecordedTensor& output : op.outputs) append(outputs, "[{}]", json_of_output(output));
    append_list(inputs_, inputs);
    append_list(outputs_, outputs);
    if (op.kind == OpKind::forward)
      for (const RecordedTensor& output : op.outputs) add_values(op, output);
  }
  // Lists of lists, which may be empty.
  static void append_list(std::string& all, const std::string& list) {
    if (!all.empty()) all += ',';
    all.append("[").append(list).append("]");
  }

  std::string json_of_output(const RecordedTensor& tensor) {
    std::string form = fmt::format("{} {}", to_string(tensor.shape), name_of(tensor.dtype));
    std::string json = fmt::format("{},{},{}", text_index(form), text_index(tensor.name), tensor.bytes());
    if (!tensor.has_statistics) return json;
    const RecordedStatistics& found = tensor.statistics;
    json += fmt::format(",{},{},{},{},{},{},{},{}", number(found.min), number(found.max), number(found.mean),
                        number(found.norm), found.nans, found.infinities, found.zeros, tensor.shape.numel());
    if (!tensor.values.defined() || value_bytes_ > most_value_bytes) return json;
    std::string values = json_lines(to_string(tensor.values));
    value_bytes_ += values.size();
    return json.append(",").append(values);
  }

  // Histograms are of lines and ops, over all their executions.
  void add_values(const RecordedOp& op, const RecordedTensor& tensor) {
    if (!tensor.values.defined() || !is_floating(tensor.dtype) || kept_.size() > 4'000'000) return;
    std::string key = fmt::format("{} at {}", op.op, op.location());
    auto found = lines_.try_emplace(std::move(key), lines_.size()).first;
    detail::with_floating(tensor.dtype, [&]<class T>(std::type_identity<T>) {
      for (std::int64_t i = 0; i < tensor.values.numel(); ++i)
        if (auto value = static_cast<double>(tensor.values.data<T>()[i]); std::isfinite(value))
          kept_.push_back({found->second, value});
    });
  }

  std::string histograms() const {
    std::vector<std::vector<double>> values(lines_.size());
    for (const auto& [line, value] : kept_) values[line].push_back(value);
    std::vector<std::pair<std::size_t, std::string_view>> order;
    for (const auto& [name, line] : lines_)
      if (values[line].size() >= 50) order.emplace_back(line, name);
    std::ranges::sort(order);
    std::string json;
    for (std::size_t k = 0; k < std::min(order.size(), most_histograms); ++k) {
      const std::vector<double>& own = values[order[k].first];
      auto [low, high] = std::ranges::minmax(own);
      if (!(high > low)) continue;
      std::vector<std::size_t> counts(histogram_bins);
      for (double value : own)
        ++counts[std::min(histogram_bins - 1, static_cast<std::size_t>((value - low) / (high - low) *
                                                                       static_cast<double>(histogram_bins)))];
      append(json, "[{},{},{},[{}]]", logging::script_string(order[k].second), number(low), number(high),
             fmt::join(counts, ","));
    }
    return json;
  }

  std::string sources() const {
    std::string json;
    std::size_t lines = 0;
    for (const auto& [index, file] : files_) {
      std::vector<std::string> paths{file};
      for (const std::string& folder : folders_) paths.push_back(fmt::format("{}/{}", folder, file));
      for (const std::string& path : paths) {
        std::ifstream source(path);
        if (!source) continue;
        std::string list;
        for (std::string line; std::getline(source, line) && lines < most_source_lines; ++lines)
          append(list, "{}", logging::script_string(detail::printable(line)));
        append(json, "\"{}\":[{}]", index, list);
        break;
      }
    }
    return json;
  }

  const RecordedRun& run_;
  const std::vector<std::string>& folders_;
  std::unordered_map<std::string, std::size_t> indices_;
  std::string texts_, inputs_, outputs_;
  std::map<std::string, std::string> columns_ = {{"id", ""},   {"kind", ""},   {"op", ""},       {"file", ""},
                                                 {"line", ""}, {"module", ""}, {"notes", ""},    {"error", ""},
                                                 {"step", ""}, {"start", ""},  {"duration", ""}, {"forward", ""}};
  std::map<std::size_t, std::string> files_;
  std::map<std::string, std::size_t> lines_;
  struct KeptValue {
    std::size_t line;
    double value;
  };
  std::vector<KeptValue> kept_;
  std::size_t value_bytes_ = 0;
};

}  // namespace

std::string json_of(const RecordedRun& run, std::string_view name, const std::vector<std::string>& source_folders) {
  return RunJson(run, source_folders).json(name);
}

}  // namespace reel::debug
