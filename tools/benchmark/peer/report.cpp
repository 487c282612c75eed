#include "report.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

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

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += letter;
  }
  return result + '"';
}

std::string quartiles(const Times& values) {
  return fmt::format("{{\"median\": {:.6g}, \"lower_quartile\": {:.6g}, \"upper_quartile\": {:.6g}}}", median(values),
                     quartile(values, 1), quartile(values, 3));
}

std::string written(const Finding& one) {
  std::string text = fmt::format("    {{\"group\": {}, \"name\": {}, ", quoted(one.group), quoted(one.name));
  text += one.threads ? fmt::format("\"threads\": {}, ", one.threads) : std::string("\"threads\": null, ");
  text += fmt::format(
      "\"unit\": {}, \"rounds\": {},\n     \"reel\": {},\n     \"libtorch\": {},\n     \"ratio\": {},\n",
      quoted(one.unit), one.ratios.size(), quartiles(one.ours), quartiles(one.theirs), quartiles(one.ratios));
  text += one.goal > 0 ? fmt::format("     \"goal\": {:.6g}, \"met\": {}, ", one.goal, one.met())
                       : std::string("     \"goal\": null, \"met\": null, ");
  if (one.elsewhere > 0) text += fmt::format("\"dynet_ratio_not_rerun_here\": {:.6g}, ", one.elsewhere);
  return text + fmt::format("\"slower_than_one_thread\": {}}}", one.slower);
}

}  // namespace

std::string processor_name() {
  std::string name = processor_field("model name");
  return name.empty() ? "unknown" : name;
}

bool write_report(const std::string& path, const std::vector<Finding>& findings) {
  std::string text = fmt::format("{{\n  \"processor\": {},\n  \"libtorch\": {},\n  \"cases\": [\n",
                                 quoted(processor_name()), quoted(torch_version()));
  for (std::size_t i = 0; i < findings.size(); ++i)
    text += written(findings[i]) + (i + 1 < findings.size() ? ",\n" : "\n");
  text += "  ]\n}\n";
  std::string unfinished = path + ".unfinished";
  std::ofstream file(unfinished);
  file << text;
  file.close();
  if (!file) return false;
  std::error_code failure;
  std::filesystem::rename(unfinished, path, failure);
  return !failure;
}

}  // namespace reel_bench
