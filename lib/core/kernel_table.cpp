#include "kernel_table.h"

#include <reel/error.h>

#include "../cpu/cpu_kernels.h"
#include "context.h"

namespace reel::detail {
namespace {

constinit KernelTable cpu_table{};

}  // namespace

const KernelTable& kernels(Device device) {
  if (device.type == Device::Type::cpu) [[likely]]
    return cpu_table;
  throw DeviceError("there are no kernels for " + to_string(device) + ": the CUDA backend is not built in",
                    context().resolve({}));
}

void fill_kernel_tables() { fill_cpu_kernels(cpu_table); }

}  // namespace reel::detail
