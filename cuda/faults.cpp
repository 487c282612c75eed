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
    case Fault::bag_start:
      fail<IndexError>(source.op, source.where,
                       "the offset {} does not fit: they start with 0, ascend, and are at most {}", found.first,
                       found.second);
    case Fault::none: break;
  }
  throw InternalError("a kernel reported no fault");
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
