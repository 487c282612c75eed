#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <reel/location.h>

#include "../../io/file.h"
#include "shared_mapping.h"

namespace reel::debug {

/// A file of segments in which what is appended is safe at once from the end of the process: it is mapped, not written.
/// When the bound on its size is reached, the oldest segment is overwritten. If another process truncates the file, what
/// is appended from then on is lost, and a warning says so.
class SegmentFile : detail::Immovable {
 public:
  /// Creates or replaces the file. Throws: FileError if that is not possible, as on a full disk.
  SegmentFile(const char* function, std::string path, std::size_t max_bytes, std::string_view program, Location where);
  /// Marks the file as complete and cuts what is unused at its end.
  ~SegmentFile();

  /// The largest record that can be appended.
  std::size_t most_record_bytes() const { return segment_bytes_ / 4; }
  /// Returns true if a record of `bytes` bytes fits into the segment.
  bool has_room(std::size_t bytes) const { return used_ + bytes <= segment_bytes_; }
  /// Begins the next segment.
  void begin_segment();
  /// Appends a record, for which there must be room.
  void append(std::string_view record);
  /// Says in the header that an op runs, until `clear_running` is called.
  /// Texts must live as long as this object: their addresses identify them.
  void set_running(std::string_view op, std::string_view file, std::int32_t line) noexcept;
  void clear_running() noexcept;
  /// False in a forked process, which must not write.
  bool is_owner() const;

 private:
  std::unique_ptr<SharedMapping> map(std::size_t offset, std::size_t bytes);
  void map_segment(std::size_t index);
  // True if the file was truncated.
  bool is_lost() noexcept;
  // Has the memory of the mapped segment's first `least` bytes at hand, and of some more.
  void populate(std::size_t least) noexcept;
  bool grow(std::size_t count, int& error) noexcept;
  std::uint64_t& word(std::size_t index) { return reinterpret_cast<std::uint64_t*>(segment_->data())[index]; }

  const char* function_;
  std::string path_;
  Location where_;
  io::Descriptor file_;
  std::size_t segment_bytes_;
  std::size_t most_segments_;
  std::size_t segments_ = 0;  // that the file has room for
  std::size_t current_ = 0;
  std::uint64_t sequence_ = 0;
  std::unique_ptr<SharedMapping> header_, segment_;
  bool has_warned_ = false;
  const char* running_file_ = nullptr;
  std::size_t used_ = 0;  // bytes of the mapped segment, with its header
  std::size_t populated_ = 0;
  std::uint32_t forks_;  // before this process, when the file was created
};

}  // namespace reel::debug
