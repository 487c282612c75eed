#pragma once

#include <cstdint>

#include "../../lib/core/target.h"

// Errors in the values that kernels process. A kernel cannot throw, and waiting for it would cost more than the kernel:
// it records the first fault and continues with a harmless value, and the thread that has queued it throws when it next
// waits for the device or queues other work, in the name of the op.

namespace reel::detail::inline REEL_TARGET {

/// Each with a sentence in faults.cpp, which also defines `first`, `second`, `number`.
enum class Fault : std::uint32_t {
  none,
  index,        ///< `first` is out of range for an axis of size `second`
  class_index,  ///< the class `first` is not in [0, `second`)
  probability,  ///< `number` is no probability
  one_hot,      ///< index `first` is none of the `second` classes
  bag_start,    ///< a bag of `second` indices in all starts at `first`
  target,       ///< the target `first` is none of `second` classes
  // Faults of row `first` of probabilities.
  class_probability,  ///< `number` is no probability
  few_classes,        ///< `second` classes are above 0, and `number` are drawn
  few_classes_to_draw_once,
  // Faults of example `second`.
  ctc_input_length,
  ctc_target_length,
  ctc_label,
  // Faults of matrix `first` of the op's first input, counted along its leading axes.
  singular,
  singular_triangle,
  not_positive_definite,
  not_finite,
  changed,  ///< result `first` of a function that was run again differs
};

/// A record in memory that both the device and the CPU access.
struct FaultRecord {
  std::uint32_t state;  // 0: free, 1: being written, 2: written
  Fault kind;
  std::uint64_t ticket;  // of the op
  std::int64_t first, second;
  double number;
};

/// Passed to a kernel that may find faults.
class FaultReporter {
 public:
  FaultReporter(FaultRecord* record, std::uint64_t ticket) : record_(record), ticket_(ticket) {}
  REEL_DEVICE void report(Fault kind, std::int64_t first, std::int64_t second, double number = 0) const {
#if defined(__CUDA_ARCH__)
    // The record is in the CPU's memory: of many faults only the first few attempt to write.
    if (*static_cast<volatile std::uint32_t*>(&record_->state) != 0) return;
    if (atomicCAS_system(&record_->state, 0u, 1u) != 0) return;
#else
    if (record_->state != 0) return;
#endif
    record_->kind = kind;
    record_->ticket = ticket_;
    record_->first = first;
    record_->second = second;
    record_->number = number;
#if defined(__CUDA_ARCH__)
    __threadfence_system();
    *static_cast<volatile std::uint32_t*>(&record_->state) = 2;
#else
    record_->state = 2;
#endif
  }

 private:
  FaultRecord* record_;
  std::uint64_t ticket_;
};

/// A fault reporter for a kernel of the running op on the current device.
FaultReporter fault_reporter();

}  // namespace reel::detail::inline REEL_TARGET
