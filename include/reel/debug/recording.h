#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <reel/location.h>

namespace reel::debug {

/// Options of `Recording`.
struct RecordingOptions {
  /// The largest size of the file, in bytes, at least 1 MB; the oldest ops are overwritten. Default 256 MB.
  std::size_t max_bytes = std::size_t{256} << 20;
  /// Whether statistics of all tensors are recorded. Default true.
  bool statistics = true;
  /// Whether fingerprints are recorded, by which `reel diff` compares runs. Default true.
  bool fingerprints = true;
  /// The largest number of elements of a tensor whose values are recorded, at most 65,536. Default 64.
  std::int64_t value_elements = 64;
  /// Whether weight, gradient and update norms of all parameters are recorded at each step of an optimiser, which needs
  /// a copy of the parameters during the step. Default true.
  bool updates = true;
  /// Every n-th step of optimisers is recorded, n at least 1. Default 1: all.
  std::int64_t every = 1;
  /// Folders whose source files the recording keeps if ops name them, `max_bytes` / 64 in all at most, so that readers
  /// can show lines where the files are not. Default none.
  std::vector<std::string> sources = {};
};

/// A scope that records to a file every op of this thread, forward and backward: its line, module, notes, inputs,
/// outputs, time, statistics and fingerprints. `reel debug`, `reel diff` and `reel report` read the file, whose format
/// lib/debug/recording/README.md describes. Ops recorded before an exception, or before the process died, stay in
/// the file, which may be read while it grows; an op that threw, or in which the process died, is its last.
///
/// Results do not change while a run is recorded. If the disk becomes full, a warning says so, once, and the oldest ops
/// are overwritten earlier.
class Recording : detail::Immovable {
 public:
  /// Creates the file, or replaces it, and begins to record.
  /// Throws: FileError if it cannot be written; Error for options out of range.
  explicit Recording(const std::string& file, const RecordingOptions& options = {}, Location where = Location::here());
  /// Ends the recording and closes its file.
  ~Recording();

 private:
  class Writer;
  std::unique_ptr<Writer> writer_;
};

}  // namespace reel::debug
