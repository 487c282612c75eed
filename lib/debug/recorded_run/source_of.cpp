#include "source_of.h"

#include <filesystem>

#include "../recording/sources.h"

namespace reel::debug {

std::string source_of(const RecordedRun& run, std::string_view file, std::vector<std::string> folders, bool is_own) {
  if (std::string_view kept = run.source(file); !kept.empty()) return std::string(kept);
  folders.insert(folders.begin(), ".");
  if (is_own) folders.push_back(std::filesystem::path(file).parent_path());
  return source_below(file, folders);
}

}  // namespace reel::debug
