#include "event_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "../io/atomic_file.h"
#include "summary.h"

namespace reel::logging {

namespace {

// The largest time in the names of a folder's event files; 0 if there are none.
std::int64_t latest_event_file(const std::string& directory) {
  std::int64_t latest = 0;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(directory, code)) {
    std::string name = entry.path().filename().string();
    std::string_view rest = name;
    if (!rest.starts_with(event_file_prefix)) continue;
    rest.remove_prefix(std::string_view(event_file_prefix).size());
    std::int64_t time;
    // Names of more digits would sort before later ones.
    constexpr std::int64_t most = 9'999'999'998;
    if (std::from_chars(rest.data(), rest.data() + rest.size(), time).ec == std::errc() && time <= most)
      latest = std::max(latest, time);
  }
  return latest;
}

std::string name_of_host() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  std::string host = name.data();
  for (char& c : host)
    if (static_cast<unsigned char>(c) <= ' ' || c == '/' || c == '\x7f') c = '_';
  return host;
}

}  // namespace

AppendedFile create_event_file(const std::string& directory, double wall_time, Location where) {
  static std::atomic<std::uint64_t> count{0};
  io::create_folder("logging::Writer", directory, where);
  std::int64_t time = std::max(static_cast<std::int64_t>(wall_time), latest_event_file(directory) + 1);
  while (true) {
    std::string name = fmt::format("{}{:010}.{}.{}.{}", event_file_prefix, time, name_of_host(), getpid(),
                                   count.fetch_add(1, std::memory_order_relaxed));
    AppendedFile file((std::filesystem::path(directory) / name).string(), true, where);
    if (!file.is_open()) continue;
    std::string record;
    append_record(record, version_event(wall_time));
    file.append(record, where);
    file.flush(where);
    return file;
  }
}

}  // namespace reel::logging
