#include "segment_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <reel/io/safetensors.h>

#include "../../core/op_error.h"
#include "../../core/warning.h"
#include "format.h"

namespace reel::debug {

using namespace detail;

namespace {

constexpr std::size_t page_bytes = 4096, populated_at_once = std::size_t{1} << 18;

// The number of forks between the first process of the program and this one. Asking the system for the process at each
// record would cost a fifth of the recording.
constinit std::atomic<std::uint32_t> forks = 0;

std::uint32_t count_forks() {
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  return forks.load(std::memory_order_relaxed);
}

std::size_t segment_bytes_for(std::size_t max_bytes) {
  return std::clamp(max_bytes / 16, std::size_t{1} << 16, std::size_t{1} << 24) / page_bytes * page_bytes;
}

std::string header_of(std::size_t segment_bytes, std::size_t segments, std::string_view program) {
  RecordBytes header;
  header.append(recording_magic);
  header.fixed(std::uint64_t{segment_bytes});
  header.fixed(std::uint64_t{segments});
  header.fixed(std::uint64_t{0});
  program = program.substr(0, most_program_bytes);
  header.fixed(static_cast<std::uint32_t>(program.size()));
  header.append(program);
  return std::string(header.bytes());
}

constexpr std::size_t complete_offset = recording_magic.size() + 16;

}  // namespace

SegmentFile::SegmentFile(const char* function, std::string path, std::size_t max_bytes, std::string_view program,
                         Location where)
    : function_(function),
      path_(std::move(path)),
      where_(where),
      segment_bytes_(segment_bytes_for(max_bytes)),
      most_segments_(std::max<std::size_t>((max_bytes - recording_header_bytes) / segment_bytes_, 2)),
      forks_(count_forks()) {
  io::check_path(function, "cannot write", path_, where);
  auto refuse = [&](int error) {
    fail<io::FileError>(function, where, "cannot write {}: {}", path_, io::words_of(error));
  };
  struct stat found = {};
  if (stat(path_.c_str(), &found) == 0 && !S_ISREG(found.st_mode))
    fail<io::FileError>(function, where, "cannot write {}: it is no ordinary file", path_);
  // A file that another process records to is left to it.
  if (unlink(path_.c_str()) != 0 && errno != ENOENT) refuse(errno);
  file_ = io::Descriptor(open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file_.is_open()) refuse(errno);
  std::string header = header_of(segment_bytes_, most_segments_, program);
  int error = 0;
  if (!grow(1, error)) refuse(error);
  if (pwrite(file_.get(), header.data(), header.size(), 0) != static_cast<ssize_t>(header.size())) refuse(errno);
  header_ = map(0, recording_header_bytes);
  map_segment(0);
}

SegmentFile::~SegmentFile() {
  if (!is_owner()) return;
  clear_running();
  if (is_lost()) return;
  std::size_t end = recording_header_bytes + current_ * segment_bytes_ + used_;
  // A file that was not cut or marked can be read as well.
  if (current_ + 1 == segments_ && ftruncate(file_.get(), static_cast<off_t>(end)) != 0) return;
  const std::uint64_t complete = 1;
  if (pwrite(file_.get(), &complete, sizeof complete, complete_offset) < 0) return;
}

bool SegmentFile::is_owner() const { return forks.load(std::memory_order_relaxed) == forks_; }

bool SegmentFile::grow(std::size_t count, int& error) noexcept {
  // Space that is not allocated would be a fault of the memory, not an error, on a full disk.
  error = posix_fallocate(file_.get(), 0, static_cast<off_t>(recording_header_bytes + count * segment_bytes_));
  if (error == 0) segments_ = count;
  return error == 0;
}

std::unique_ptr<SharedMapping> SegmentFile::map(std::size_t offset, std::size_t bytes) {
  auto mapping = std::make_unique<SharedMapping>(file_.get(), offset, bytes);
  if (!mapping->data()) fail<io::FileError>(function_, where_, "cannot map {}: {}", path_, io::words_of(errno));
  return mapping;
}

bool SegmentFile::is_lost() noexcept {
  if (!header_->is_truncated() && !segment_->is_truncated()) return false;
  if (!std::exchange(has_warned_, true))
    warn([&] {
      return fmt::format("{}: {} was truncated by another process; ops are not recorded any more", function_, path_);
    });
  return true;
}

void SegmentFile::map_segment(std::size_t index) {
  segment_ = map(recording_header_bytes + index * segment_bytes_, segment_bytes_);
  current_ = index;
  used_ = segment_header_bytes;
  populated_ = 0;
  std::atomic_ref(word(1)).store(0, std::memory_order_release);
  std::atomic_ref(word(0)).store(++sequence_, std::memory_order_release);
}

void SegmentFile::begin_segment() {
  if (is_lost()) {
    used_ = segment_header_bytes;
    return;
  }
  std::size_t next = current_ + 1;
  if (next >= segments_ && segments_ < most_segments_) {
    int error = 0;
    if (!grow(segments_ + 1, error)) {
      most_segments_ = segments_;
      warn([&] {
        return fmt::format("{}: {} cannot grow: {}; from now on its oldest ops are overwritten", function_, path_,
                           io::words_of(error));
      });
    }
  }
  map_segment(next < segments_ ? next : 0);
}

void SegmentFile::populate(std::size_t least) noexcept {
  std::size_t end = std::min((least / populated_at_once + 1) * populated_at_once, segment_bytes_);
  // One call costs less than a page fault for each page. An older kernel refuses it, and has the faults.
  madvise(segment_->data() + populated_, end - populated_, MADV_POPULATE_WRITE);
  populated_ = end;
}

void SegmentFile::set_running(std::string_view op, std::string_view file, std::int32_t line) noexcept {
  char* to = header_->data() + running_op_offset;
  std::atomic_ref state(*reinterpret_cast<std::uint64_t*>(to));
  state.store(0, std::memory_order_release);
  std::memcpy(to + 8, &line, sizeof line);
  op = op.substr(0, most_running_op_bytes);
  to[12] = static_cast<char>(op.size());
  op.copy(to + running_op_name, op.size());
  if (file.data() != running_file_) {
    running_file_ = file.data();
    // The end of a path tells more than its beginning.
    if (file.size() > 255) file.remove_prefix(file.size() - 255);
    to[13] = static_cast<char>(file.size());
    file.copy(to + running_op_file, file.size());
  }
  state.store(1, std::memory_order_release);
}

void SegmentFile::clear_running() noexcept {
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(header_->data() + running_op_offset))
      .store(0, std::memory_order_release);
}

void SegmentFile::append(std::string_view record) {
  if (used_ + record.size() > populated_) populate(used_ + record.size());
  record.copy(segment_->data() + used_, record.size());
  used_ += record.size();
  std::atomic_ref(word(1)).store(used_ - segment_header_bytes, std::memory_order_release);
}

}  // namespace reel::debug
