#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <reel/logging/writer.h>
#include <nlohmann/json_fwd.hpp>

#include "../io/image_codec.h"
#include "appended_file.h"
#include "line_log.h"

namespace reel::logging {

/// The open files of a Writer. Its functions are called with the mutex held, but for `log`, `add_picture` and those that only return a member.
class Writer::Files {
 public:
  /// The time, step and name that all values of one call share.
  struct Entry {
    double now;  ///< seconds since 1970
    std::int64_t step;
    Location where;
  };

  /// Throws: FileError.
  Files(std::string directory, const WriterOptions& options, Location where);

  /// Calls f with an entry of the present time while the mutex is held, then writes what waits, if it is time.
  template <class F>
  void log(std::int64_t step, Location where, F f) {
    std::lock_guard lock(mutex_);
    double now = wall_time();
    f(Entry{now, step, where});
    flush_if_due(now, where);
  }

  bool has_events() const { return options_.events; }
  bool has_json() const { return options_.json; }
  const std::string& directory() const { return directory_; }
  std::mutex& mutex() { return mutex_; }
  /// Seconds since 1970.
  static double wall_time();

  /// Adds an event, a message, to the event file of a run; the run "" is that of the folder itself.
  void add_event(std::string_view run_name, double now, std::string_view event, Location where);
  /// Adds a number to the event file of a run and to the logs of lines.
  void add_scalar(std::string_view run_name, std::string_view tag, double value, Entry entry);
  /// Adds a line to the log of JSON lines, if there is one.
  void add_json(std::string_view tag, std::string_view member, const nlohmann::ordered_json& value, Entry entry);
  /// Adds a picture to the event file, with the mutex not held.
  void add_picture(std::string_view tag, const detail::Pixels& pixels, std::int64_t step, Location where);

  void purge(std::int64_t step, Location where);
  void flush(double now, Location where);

 private:
  AppendedFile& run(std::string_view name, double now, Location where);
  static std::string json_begin(std::string_view run_name, std::string_view tag, const Entry& entry);
  void flush_if_due(double now, Location where);

  std::string directory_;
  WriterOptions options_;
  std::mutex mutex_;
  std::map<std::string, AppendedFile, std::less<>> runs_;
  std::optional<LineLog> csv_, json_;
  std::optional<std::int64_t> purge_step_;
  std::string record_;
  double last_flush_ = 0;
};

}  // namespace reel::logging
