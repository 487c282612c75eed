#pragma once

#include <cstdint>
#include <vector>

#include <reel/dtype.h>
#include <reel/location.h>
#include <reel/shape.h>

#include "faults.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// The op in whose name a fault is thrown.
struct FaultSource {
  const char* op = nullptr;
  Location where = {};
  Shape shape = {};  // of its first input
  DType dtype = DType::f32;
};
/// The op that runs now.
FaultSource running_op();

[[noreturn]] void throw_fault(const FaultRecord& found, const FaultSource& source);

/// What kernels of one queue have found wrong, and which op each of them belongs to.
class FaultLog {
 public:
  /// For a kernel of the op that runs now. One that goes into a graph is remembered for ever, others until 4096 more have
  /// been.
  FaultNote note(bool in_graph);
  FaultNote note(const FaultSource& source, bool in_graph);
  /// Throws what has been found; further faults that ops before now have are forgotten.
  void check() {
    if (record_ && record_->state != 0) [[unlikely]]
      throw_found();
  }
  /// Forgets what is there, and what kernels may still find, for a thread that has nothing to do with them.
  void forget() { forgotten_ = last_; }

 private:
  void throw_found();

  static constexpr std::uint64_t remembered = 1 << 12, of_graph = std::uint64_t{1} << 63;
  volatile FaultRecord* record_ = nullptr;
  std::vector<FaultSource> sources_, graph_sources_;  // by ticket; the first ones go round
  std::uint64_t last_ = 0, forgotten_ = 0;
};

}  // namespace REEL_TARGET
}  // namespace reel::detail
