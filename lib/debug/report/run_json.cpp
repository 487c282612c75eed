#include "run_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "../../core/dtype_dispatch.h"
#include "../../core/printable.h"
#include "../recorded_run/source_of.h"
#include "op_columns.h"

namespace reel::debug {

namespace {

// Values are for looking at; a page with those of 10⁵ tensors would not open in time.
constexpr std::size_t most_value_bytes = std::size_t{3} << 20;
constexpr std::size_t most_source_bytes = std::size_t{4} << 20;
constexpr std::size_t histogram_bins = 20, most_histograms = 40, most_histogram_values = 4'000'000;

// The kept values of each line and op, over all their executions.
class LineValues {
 public:
  void add(const RecordedOp& op, const RecordedTensor& tensor) {
    if (!tensor.values.defined() || !is_floating(tensor.dtype) || count_ > most_histogram_values) return;
    auto [line, is_new] = lines_.try_emplace(fmt::format("{} at {}", op.op, op.location()), order_.size());
    if (is_new) order_.push_back({line->first, {}});
    std::vector<double>& values = order_[line->second].second;
    detail::with_floating(tensor.dtype, [&]<class T>(std::type_identity<T>) {
      for (std::int64_t i = 0; i < tensor.values.numel(); ++i)
        if (auto value = static_cast<double>(tensor.values.data<T>()[i]); std::isfinite(value)) values.push_back(value);
    });
    count_ += static_cast<std::size_t>(tensor.values.numel());
  }

  Json histograms() const {
    Json list = Json::array();
    std::size_t shown = 0;
    for (const auto& [line, values] : order_) {
      if (values.size() < 50) continue;
      if (shown++ == most_histograms) break;
      auto [low, high] = std::ranges::minmax(values);
      if (!(high > low)) continue;
      std::vector<std::size_t> counts(histogram_bins);
      for (double value : values)
        ++counts[std::min(histogram_bins - 1, static_cast<std::size_t>((value - low) / (high - low) *
                                                                       static_cast<double>(histogram_bins)))];
      list.push_back({detail::printable(line), rounded(low), rounded(high), counts});
    }
    return list;
  }

 private:
  std::map<std::string, std::size_t> lines_;
  std::vector<std::pair<std::string, std::vector<double>>> order_;
  std::size_t count_ = 0;
};

}  // namespace

Json histograms_json(const RecordedRun& run) {
  LineValues values;
  for (const RecordedOp& op : run.ops())
    if (op.kind == OpKind::forward)
      for (const RecordedTensor& output : op.outputs) values.add(op, output);
  return values.histograms();
}

Json json_of(const RecordedRun& run, std::string_view name, const std::vector<std::string>& source_folders) {
  PageTexts texts;
  OpColumns columns(texts, most_value_bytes);
  for (const RecordedOp& op : run.ops()) columns.add(op);
  Json updates = updates_json(run.updates(), texts), sources = Json::object();
  // A recording may name one large file in many ways.
  std::size_t bytes_left = most_source_bytes;
  for (const auto& [index, file] : columns.files()) {
    std::string text = source_of(run, file, source_folders);
    if (text.empty() || text.size() > bytes_left) continue;
    bytes_left -= text.size();
    sources[std::to_string(index)] = source_json(text);
  }
  Json data = {{"name", detail::printable(name)},   {"program", detail::printable(run.program())},
               {"complete", run.is_complete()},     {"dropped", run.dropped()},
               {"updates", std::move(updates)},     {"sources", std::move(sources)},
               {"histograms", histograms_json(run)}};
  columns.move_to(data);
  data["texts"] = texts.json();
  return data;
}

}  // namespace reel::debug
