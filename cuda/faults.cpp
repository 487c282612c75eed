#include "faults.h"

#include "../lib/core/op_error.h"
#include "runtime.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void throw_fault(const FaultRecord& found, const FaultSource& source) {
  switch (found.kind) {
    case Fault::index:
      fail<IndexError>(source.op, source.where, "index {} is out of range for an axis of size {}", found.first,
                       found.second);
    case Fault::class_index:
      fail<IndexError>(source.op, source.where, "the class {} does not lie in [0, {})", found.first, found.second);
    case Fault::probability: fail<Error>(source.op, source.where, "{} is no probability", found.number);
    case Fault::target:
      fail<IndexError>(source.op, source.where, "target {} is not a class of the input, which has {}", found.first,
                       found.second);
    case Fault::ctc_input_length:
      fail<IndexError>(source.op, source.where,
                       "the input length {} of example {} is not one that the log-probabilities can have", found.first,
                       found.second);
    case Fault::ctc_target_length:
      fail<IndexError>(source.op, source.where,
                       "the target length {} of example {} is not one that the targets can have", found.first,
                       found.second);
    case Fault::ctc_label:
      fail<IndexError>(source.op, source.where,
                       "label {} of example {} is no class of the log-probabilities, or is the blank", found.first,
                       found.second);
    case Fault::none: break;
  }
  throw InternalError("a kernel reported no fault");
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
