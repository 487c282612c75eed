#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <reel/ops.h>
#include <reel/tape.h>

#include "core/printable.h"
#include "debug/debugger/state.h"
#include "debug/recorded_run/recording_summary.h"
#include "debug/recording/recorder.h"
#include "io/file.h"
#include "kernels/kernel_table.h"
#include "print.h"
#include "tensor_list.h"
#include "verb.h"

namespace {

struct Arguments {
  std::string file, other;
  bool statistics = false, json = false;
};

std::string form_of(const ListedTensor& tensor) {
  return fmt::format("{} {}", to_string(tensor.shape), name_of(tensor.dtype));
}

// JSON has no NaN: null.
nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(); }

reel::debug::RecordedStatistics statistics_of(const reel::Tensor& values) {
  // In place: a copy of a mapped file would need its size in memory.
  return reel::debug::statistics_of(reel::detail::kernels(reel::cpu).summarise(values.body(), true, false),
                                    values.numel());
}

nlohmann::json json_of(const ListedTensor& tensor, bool with_statistics) {
  nlohmann::json json = {{"name", tensor.name}, {"dtype", name_of(tensor.dtype)}, {"bytes", tensor.bytes()}};
  json["shape"] = std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end());
  if (!with_statistics) return json;
  reel::debug::RecordedStatistics found = statistics_of(tensor.values());
  json["min"] = number(found.min);
  json["max"] = number(found.max);
  json["mean"] = number(found.mean);
  json["nans"] = found.nans;
  json["infinities"] = found.infinities;
  json["zeros"] = found.zeros;
  return json;
}

std::vector<std::string> row_of(const ListedTensor& tensor, bool with_statistics) {
  std::vector<std::string> row{reel::detail::printable(tensor.name), form_of(tensor),
                               reel::debug::text_of_bytes(tensor.bytes())};
  if (!with_statistics) return row;
  reel::debug::RecordedStatistics found = statistics_of(tensor.values());
  for (double one : {found.min, found.max, found.mean})
    row.push_back(std::isnan(one) ? "" : fmt::format("{:.6g}", one));
  for (std::int64_t count : {found.nans, found.infinities, found.zeros}) row.push_back(fmt::format("{}", count));
  return row;
}

// How the elements of two tensors of one shape and dtype differ.
struct ElementDifference {
  std::int64_t count = 0;  // of places that are not equal; NaN equals NaN
  double largest = 0;      // the largest |x − y| where both are finite
};

ElementDifference difference_of(const reel::Tensor& x, const reel::Tensor& y) {
  constexpr std::int64_t most_at_once = 1 << 18;
  ElementDifference difference;
  reel::Tensor all_x = flatten(x), all_y = flatten(y);
  for (std::int64_t start = 0; start < x.numel(); start += most_at_once) {
    reel::Tensor a = slice(all_x, 0, start, start + most_at_once), b = slice(all_y, 0, start, start + most_at_once);
    reel::Tensor differs = a != b;
    if (is_floating(a.dtype())) differs = logical_and(differs, logical_not(logical_and(isnan(a), isnan(b))));
    auto count = static_cast<std::int64_t>(sum(to(differs, reel::DType::f64)).item());
    if (count == 0) continue;
    difference.count += count;
    reel::Tensor distance = abs(to(a, reel::DType::f64) - to(b, reel::DType::f64));
    difference.largest =
        std::max(difference.largest, max(where(isfinite(distance), distance, zeros_like(distance))).item());
  }
  return difference;
}

int show_tensors(const Arguments& given) {
  TensorList list = list_tensors(given.file, given.statistics);
  bool with_statistics = given.statistics || list.bytes <= most_unasked_bytes;
  if (given.json) {
    nlohmann::json json = {
        {"file", list.path}, {"format", list.format}, {"bytes", list.bytes}, {"metadata", list.metadata}};
    json["statistics"] = with_statistics;
    json["tensors"] = nlohmann::json::array();
    for (const ListedTensor& tensor : list.tensors) json["tensors"].push_back(json_of(tensor, with_statistics));
    print_json(json);
    return 0;
  }
  print("{}: {}, {} tensor{}, {}\n", list.path, list.format, list.tensors.size(), list.tensors.size() == 1 ? "" : "s",
        reel::debug::text_of_bytes(list.bytes));
  for (const auto& [key, value] : list.metadata)
    print("  {}: {}\n", reel::detail::printable(key), reel::detail::printable(value));
  std::vector<std::vector<std::string>> rows{{"name", "form", "size"}};
  if (with_statistics)
    for (const char* heading : {"min", "max", "mean", "NaN", "Inf", "zeros"}) rows[0].emplace_back(heading);
  for (const ListedTensor& tensor : list.tensors) rows.push_back(row_of(tensor, with_statistics));
  if (!list.tensors.empty()) print_table(rows, {2, 3, 4, 5, 6, 7, 8});
  if (!with_statistics)
    print("No statistics, since the elements have {}; --statistics reads them.\n",
          reel::debug::text_of_bytes(list.bytes));
  return 0;
}

bool is_recording(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) &&
         reel::io::Reader("inspect", path, {}).beginning(8) == "REELREC1";
}

int show_difference(const Arguments& given) {
  if (is_recording(given.file) || is_recording(given.other))
    throw std::runtime_error("recordings are compared by `reel diff A B`");
  TensorList a = list_tensors(given.file, true), b = list_tensors(given.other, true);
  std::map<std::string, std::pair<const ListedTensor*, const ListedTensor*>> names;
  for (const ListedTensor& tensor : a.tensors) names[tensor.name].first = &tensor;
  for (const ListedTensor& tensor : b.tensors) names[tensor.name].second = &tensor;
  std::vector<std::vector<std::string>> rows{{"name", "difference"}};
  nlohmann::json json = nlohmann::json::array();
  for (const auto& [name, pair] : names) {
    const auto& [x, y] = pair;
    std::string difference;
    nlohmann::json one = {{"name", name}};
    if (!x || !y) {
      difference = fmt::format("only in {}", x ? given.file : given.other);
    } else if (x->shape != y->shape || x->dtype != y->dtype) {
      difference = fmt::format("{} and {}", form_of(*x), form_of(*y));
    } else if (ElementDifference found = difference_of(x->values(), y->values()); found.count > 0) {
      difference = fmt::format("{} of {} elements differ", found.count, x->shape.numel());
      // Without a largest difference they are NaN, infinite, or too close for f64.
      if (found.largest > 0) difference += fmt::format(", by at most {:.6g}", found.largest);
      one["count"] = found.count;
      one["largest"] = found.largest;
    }
    if (difference.empty()) continue;
    one["difference"] = difference;
    json.push_back(one);
    rows.push_back({reel::detail::printable(name), difference});
  }
  if (given.json)
    print_json(json);
  else if (rows.size() == 1)
    print("No differences in {} tensor{}.\n", names.size(), names.size() == 1 ? "" : "s");
  else
    print_table(rows);
  return rows.size() == 1 ? 0 : 1;
}

int show_recording(const Arguments& given) {
  reel::debug::RecordingSummary run = reel::debug::summarise_recording(given.file, {});
  if (given.json) {
    nlohmann::json json = {{"file", given.file}, {"format", "recording"},      {"program", run.program},
                           {"ops", run.ops},     {"dropped", run.dropped},     {"complete", run.is_complete},
                           {"steps", run.steps}, {"anomalies", run.anomalies}, {"errors", run.errors}};
    for (const auto& [kind, count] : run.kinds) json["kinds"][std::string(kind)] = count;
    print_json(json);
    return 0;
  }
  print("{}: recording of `{}`{}\n", given.file, reel::detail::printable(run.program),
        run.is_complete ? "" : ", which ended without closing it");
  print("  {} ops, {} dropped, {} steps, {} tensors with NaN or infinity, {} errors\n", run.ops, run.dropped, run.steps,
        run.anomalies, run.errors);
  for (const auto& [kind, count] : run.kinds) print("  {}: {}\n", kind, count);
  return 0;
}

}  // namespace

std::function<int()> add_inspect(CLI::App& command) {
  auto given = std::make_shared<Arguments>();
  command
      .add_option("FILE", given->file,
                  "safetensors or its index, npy, npz, PyTorch, HDF5, a folder of checkpoints, or a recording")
      ->required();
  command.add_option("OTHER", given->other, "a file to compare with");
  command.add_flag("--statistics", given->statistics, "statistics of tensors of any size");
  command.add_flag("--json", given->json, "prints JSON");
  return [given] {
    reel::NoRecord pause;
    if (!given->other.empty()) return show_difference(*given);
    return is_recording(given->file) ? show_recording(*given) : show_tensors(*given);
  };
}
