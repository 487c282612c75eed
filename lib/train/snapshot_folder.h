#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <reel/io/safetensors.h>
#include <reel/location.h>

#include "../io/file.h"

namespace reel::detail {

/// The contents of a snapshot file, and what is decided when it is written.
struct Snapshot {
  std::int64_t step = 0;
  std::optional<double> score = {};
  bool is_best = false;  ///< the text file `best` is to name it
  std::vector<NamedTensor> tensors = {};
};

/// An error: a snapshot is of a version that this one of reel does not read.
class SnapshotVersionError : public io::FileError {
  using io::FileError::FileError;
};

/// The directory of a checkpoint: snapshots, and the text files `latest` and `best`, which name one.
class SnapshotFolder {
 public:
  /// Creates and locks the directory, and checks that it can be written; only names it if `read_only`.
  /// Throws: io::FileError.
  SnapshotFolder(std::string path, int keep_last, bool read_only, Location where);

  const std::string& path() const { return path_; }
  /// The path of a snapshot.
  std::string path_of(std::int64_t step) const;
  /// The steps of all snapshots, in ascending order.
  std::vector<std::int64_t> steps() const;
  /// The step that `latest` or `best` names; nothing if there is none, or it is not valid.
  std::optional<std::int64_t> latest() const { return named_by("latest"); }
  std::optional<std::int64_t> best() const { return named_by("best"); }

  /// Writes a snapshot, lets `latest` name it, and removes old ones. Throws: io::FileError.
  void write(const Snapshot& snapshot, Location where) const;
  /// Reads a snapshot and checks it. Throws: io::FileError if it cannot be read or is damaged; SnapshotVersionError;
  /// MemoryError.
  Snapshot read(std::int64_t step, Location where) const;

 private:
  std::optional<std::int64_t> named_by(const char* name) const;
  void write_name(const char* name, std::int64_t step, Location where) const;
  void remove_old(std::int64_t step) const;

  std::string path_;
  int keep_last_;
  io::Descriptor lock_;
};

}  // namespace reel::detail
