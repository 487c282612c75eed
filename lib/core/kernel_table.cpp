#include "kernel_table.h"

#include <reel/error.h>

#include "../cpu/cpu_kernels.h"
#include "context.h"

namespace reel::detail {
constinit KernelTable cpu_kernel_table{};

void refuse_kernels(Device device) {
  throw DeviceError("there are no kernels for " + to_string(device) + ": the CUDA backend is not built in",
                    context().resolve({}));
}

void fill_kernel_tables() { fill_cpu_kernels(cpu_kernel_table); }

}  // namespace reel::detail
