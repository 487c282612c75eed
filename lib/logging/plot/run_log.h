#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <reel/location.h>

#include "../histogram.h"

namespace reel::logging {

/// Something that was logged at a step.
template <class T>
struct At {
  std::int64_t step;
  double wall_time;  ///< seconds since 1970
  T value;
};

/// All that was logged under a tag, in ascending order of the steps.
template <class T>
using Logged = std::map<std::string, std::vector<At<T>>, std::less<>>;

/// The logs of one run in a folder. For long runs it keeps the last pictures and texts, and histograms at steps that are
/// spread evenly.
struct RunLog {
  std::string name;  ///< the folder relative to that which is read; empty for that itself
  Logged<double> numbers;
  Logged<Histogram> histograms;
  Logged<std::string> pictures;  ///< the bytes of a file each
  Logged<std::string> texts;
  std::vector<std::pair<std::string, std::string>> hyper_parameters;

  void add_histogram(std::string_view tag, At<Histogram> histogram);
  void add_picture(std::string_view tag, At<std::string> picture);
  void add_text(std::string_view tag, At<std::string> text);
  /// Removes what is of a step or later ones.
  void purge(std::int64_t step);
  void sort();
  bool empty() const;
};

/// The logs of all runs in a folder and in those within it.
struct FolderLog {
  std::vector<RunLog> runs;           ///< in the order of their names
  std::vector<std::string> left_out;  ///< a sentence for each file that could not be read whole
};

/// Reads the event files of a folder and all those within it; where a folder has none, its log.jsonl, and where that is
/// missing, its scalars.csv.
/// Throws: FileError if the folder cannot be read, or there are no logs.
FolderLog read_folder(const std::string& directory, Location where);

/// Adds the lines of log.jsonl to runs, each named by its line. Throws: FileError for a line that is no object of a log.
void read_json_lines(const std::string& path, std::map<std::string, RunLog>& runs, Location where);
/// Adds the lines of scalars.csv to runs, each named by its line. Throws: FileError for a line that is no row of a log.
void read_csv(const std::string& path, std::map<std::string, RunLog>& runs, Location where);

}  // namespace reel::logging
