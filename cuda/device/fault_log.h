#pragma once

#include <cstdint>
#include <vector>

#include <reel/dtype.h>
#include <reel/location.h>
#include <reel/shape.h>

#include "../runtime/faults.h"

namespace reel::detail::inline REEL_TARGET {

/// The op that a fault names.
struct FaultSource {
  const char* op = nullptr;
  Location where = {};
  Shape shape = {};  // of its first input
  DType dtype = DType::f32;
};
/// The op that is running.
FaultSource running_op();

[[noreturn]] void throw_fault(const FaultRecord& found, const FaultSource& source);

/// The faults that kernels of one queue have found, with the op of each kernel.
class FaultLog {
 public:
  /// A fault reporter for a kernel of the running op. The op of a kernel in a graph is remembered permanently, others until 4096
  /// more ops have run.
  FaultReporter reporter(bool in_graph);
  FaultReporter reporter(const FaultSource& source, bool in_graph);
  /// Throws an error for the fault that was found, if any; further faults of earlier ops are forgotten.
  void check() {
    if (record_ && record_->state != 0) [[unlikely]]
      throw_found();
  }
  /// Forgets the present fault and all that queued kernels may still find, for another thread that takes over the
  /// queue.
  void forget() { forgotten_ = last_; }

 private:
  void throw_found();

  static constexpr std::uint64_t remembered = 1 << 12, of_graph = std::uint64_t{1} << 63;
  volatile FaultRecord* record_ = nullptr;
  std::vector<FaultSource> sources_, graph_sources_;  // by ticket; a ring buffer for sources_
  std::uint64_t last_ = 0, forgotten_ = 0;
};

}  // namespace reel::detail::inline REEL_TARGET
