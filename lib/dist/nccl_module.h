#pragma once

#include "device_collectives.h"

namespace reel::detail {

/// The function of libreel_nccl.so that makes its collectives: on the GPU that `default_device()` names. The caller owns
/// the result. Throws: DeviceError with NCCL's message.
using NcclEntryPoint = DeviceCollectives*(int rank, int size, const BroadcastBytes& broadcast);
constexpr const char* nccl_entry_point = "reel_make_nccl_collectives";

}  // namespace reel::detail
