#include "snapshot_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "../core/op_error.h"
#include "../core/printable.h"
#include "../dispatch/listener_scope.h"
#include "../io/atomic_file.h"
#include "../io/safetensors/own_file.h"
#include "checksum.h"

namespace reel::detail {

namespace {

constexpr const char* folder_name = "train::Checkpoint";
constexpr std::string_view snapshot_prefix = "step-", snapshot_suffix = ".safetensors";
constexpr const char *format_key = "format", *version_key = "checkpoint", *step_key = "step", *score_key = "score";

std::string name_of_snapshot(std::int64_t step) {
  return fmt::format("{}{:09}{}", snapshot_prefix, step, snapshot_suffix);
}

template <class T>
std::optional<T> whole_number(std::string_view text) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// Only of names as they are written: "step-000000100.safetensors".
std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(snapshot_prefix) || !name.ends_with(snapshot_suffix)) return {};
  if (name.size() < snapshot_prefix.size() + snapshot_suffix.size()) return {};
  std::string_view digits = name.substr(snapshot_prefix.size());
  digits.remove_suffix(snapshot_suffix.size());
  std::optional<std::int64_t> step = whole_number<std::int64_t>(digits);
  if (!step || *step < 0 || name_of_snapshot(*step) != name) return {};
  return step;
}

bool is_own_name(std::string_view name) { return step_of(name) || name == "latest" || name == "best"; }

}  // namespace

SnapshotFolder::SnapshotFolder(std::string path, int keep_last, bool read_only, Location where)
    : path_(std::move(path)), keep_last_(keep_last) {
  if (read_only) return;
  io::create_folder(folder_name, path_, where);
  // The lock ends with the process, however that ends. File systems without locks, and some over a network, refuse.
  lock_ = io::Descriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock_.is_open() && flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    fail<io::FileError>(folder_name, where,
                        "the directory '{}' is in use by another Checkpoint, of this process or another one",
                        printable(path_));
  std::string latest = path_ + "/latest";
  io::AtomicFile probe(folder_name, latest, where, 1);
}

std::string SnapshotFolder::path_of(std::int64_t step) const { return path_ + "/" + name_of_snapshot(step); }

std::vector<std::int64_t> SnapshotFolder::steps() const {
  std::vector<std::int64_t> steps;
  std::error_code ignored;
  for (std::filesystem::directory_iterator next(path_, ignored), end; next != end; next.increment(ignored))
    if (std::optional<std::int64_t> step = step_of(next->path().filename().string())) steps.push_back(*step);
  std::ranges::sort(steps);
  return steps;
}

std::optional<std::int64_t> SnapshotFolder::named_by(const char* name) const {
  try {
    Unobserved trying(context());  // there may be no such file
    std::string path = path_ + "/" + name, text = io::Reader(folder_name, path, {}, 1).beginning(1024);
    if (!text.ends_with('\n')) return {};
    text.pop_back();
    return step_of(text);
  } catch (const io::FileError&) {
    return {};
  }
}

void SnapshotFolder::write_name(const char* name, std::int64_t step, Location where) const {
  std::string path = path_ + "/" + name, text = name_of_snapshot(step) + "\n";
  io::AtomicFile file(folder_name, path, where, 1);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

void SnapshotFolder::write(const Snapshot& snapshot, Location where) const {
  io::remove_abandoned(path_, is_own_name);
  io::Metadata metadata{{format_key, "reel"}, {version_key, "1"}, {step_key, fmt::format("{}", snapshot.step)}};
  if (snapshot.score) metadata.emplace(score_key, fmt::format("{}", *snapshot.score));
  metadata.emplace(checksums_key, checksums_of(snapshot.tensors, metadata));
  io::save(path_of(snapshot.step), 1, snapshot.tensors, metadata, where);
  write_name("latest", snapshot.step, where);
  if (snapshot.is_best) write_name("best", snapshot.step, where);
  remove_old(snapshot.step);
}

// Snapshots of later steps are of a course that was left when an earlier one was restored.
void SnapshotFolder::remove_old(std::int64_t step) const {
  if (keep_last_ == 0) return;
  std::vector<std::int64_t> all = steps();
  std::optional<std::int64_t> best = this->best();
  auto end = std::ranges::upper_bound(all, step);
  auto kept = end - std::min<std::ptrdiff_t>(end - all.begin(), keep_last_);
  for (auto one = all.begin(); one != all.end(); ++one)
    if ((one < kept || one >= end) && *one != best) static_cast<void>(unlink(path_of(*one).c_str()));
}

Snapshot SnapshotFolder::read(std::int64_t step, Location where) const {
  std::string path = path_of(step);
  io::Contents contents = io::load_own(path, where);
  auto refuse = [&](const std::string& why) {
    fail<io::FileError>(folder_name, where, "'{}' {}", printable(path), why);
  };
  std::string damage = damage_of(contents);
  io::Metadata& metadata = contents.metadata;
  const std::string& version = metadata[version_key];
  // The checksums of a newer version may be others.
  if (!damage.empty() && whole_number<std::int64_t>(version).value_or(0) <= 1) refuse(damage);
  if (version != "1")
    fail<SnapshotVersionError>(folder_name, where,
                               "'{}' is a checkpoint of version {}, which this version of reel does not read: resume "
                               "with the one that saved it, or move the file away",
                               printable(path), shown(version));
  Snapshot snapshot{.step = step, .tensors = std::move(contents.tensors)};
  if (metadata.contains(score_key)) snapshot.score = whole_number<double>(metadata[score_key]);
  if (whole_number<std::int64_t>(metadata[step_key]) != step)
    refuse(fmt::format("is that of step {}, under another name", shown(metadata[step_key])));
  return snapshot;
}

}  // namespace reel::detail
