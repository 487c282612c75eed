#include "sources.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "../../io/file.h"

namespace reel::debug {

namespace {

constexpr std::size_t most_source_bytes = std::size_t{4} << 20;

// The path may come from a hostile recording: folders are opened one by one without following links, and opening a pipe
// must not block.
std::string text_below(const std::string& folder, std::string_view path) {
  io::Descriptor at(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  while (at.is_open() && !path.empty()) {
    std::size_t slash = path.find('/');
    std::string part(path.substr(0, slash));
    path.remove_prefix(slash == path.npos ? path.size() : slash + 1);
    if (part.empty() || part == ".") continue;
    if (part.starts_with('.') || part.find('\0') != part.npos) return {};
    at = io::Descriptor(openat(
        at.get(), part.c_str(),
        (slash == path.npos ? O_RDONLY | O_NONBLOCK | O_NOCTTY : O_PATH | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC));
  }
  struct stat found = {};
  if (!at.is_open() || fstat(at.get(), &found) != 0 || !S_ISREG(found.st_mode)) return {};
  if (static_cast<std::uint64_t>(found.st_size) > most_source_bytes) return {};
  std::string text(static_cast<std::size_t>(found.st_size), '\0');
  ssize_t count = pread(at.get(), text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

}  // namespace

std::string source_below(std::string_view file, std::span<const std::string> folders) {
  for (const std::string& folder : folders) {
    std::string_view path = file;
    std::error_code ignored;
    std::string absolute = std::filesystem::canonical(folder, ignored).string() + "/";
    if (path.starts_with(absolute)) path.remove_prefix(absolute.size());
    if (std::string text = text_below(folder, path); !text.empty()) return text;
  }
  for (const std::string& folder : folders)
    if (std::string text = text_below(folder, file.substr(file.rfind('/') + 1)); !text.empty()) return text;
  return {};
}

}  // namespace reel::debug
