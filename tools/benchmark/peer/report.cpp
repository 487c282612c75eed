#include "report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "version.h"

namespace reel_bench {

namespace {

// The value of the first line of /proc/cpuinfo that begins with `key`.
std::string processor_field(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key))
      if (std::size_t colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return {};
}

using Json = nlohmann::ordered_json;

// Six digits: more is noise.
double rounded(double value) { return std::stod(fmt::format("{:.6g}", value)); }

Json quartiles(const Times& values) {
  return {{"median", rounded(median(values))},
          {"lower_quartile", rounded(quartile(values, 1))},
          {"upper_quartile", rounded(quartile(values, 3))}};
}

Json written(const Finding& one) {
  bool has_goal = one.goal > 0;
  Json found = {{"group", one.group},
                {"name", one.name},
                {"threads", one.threads ? Json(one.threads) : Json()},
                {"unit", one.unit},
                {"rounds", one.ratios.size()},
                {"reel", quartiles(one.ours)},
                {"libtorch", quartiles(one.theirs)},
                {"ratio", quartiles(one.ratios)},
                {"goal", has_goal ? Json(rounded(one.goal)) : Json()},
                {"met", has_goal ? Json(one.met()) : Json()}};
  if (one.elsewhere > 0) found["dynet_ratio_not_rerun_here"] = rounded(one.elsewhere);
  found["slower_than_one_thread"] = one.slower;
  return found;
}

}  // namespace

std::string processor_name() {
  std::string name = processor_field("model name");
  return name.empty() ? "unknown" : name;
}

bool write_report(const std::string& path, const std::vector<Finding>& findings) {
  Json report = {{"processor", processor_name()}, {"libtorch", torch_version()}, {"cases", Json::array()}};
  for (const Finding& finding : findings) report["cases"].push_back(written(finding));
  std::string unfinished = path + ".unfinished";
  std::ofstream file(unfinished);
  file << report.dump(1) << '\n';
  file.close();
  if (!file) return false;
  std::error_code failure;
  std::filesystem::rename(unfinished, path, failure);
  return !failure;
}

}  // namespace reel_bench
