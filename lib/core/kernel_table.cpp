#include "kernel_table.h"

#include <reel/error.h>

#include "../cpu/cpu_kernels.h"
#include "context.h"
#include "kernels/optimise.h"

namespace reel::detail {
constinit KernelTable cpu_kernel_table{};
constinit OptimiserKernels cpu_optimiser_kernels{};

const OptimiserKernels& optimiser_kernels(Device device) {
  kernels(device);
  return cpu_optimiser_kernels;
}

void refuse_kernels(Device device) {
  throw DeviceError("there are no kernels for " + to_string(device) + ": the CUDA backend is not built in",
                    context().resolve({}));
}

void fill_kernel_tables() { fill_cpu_kernels(cpu_kernel_table); }

}  // namespace reel::detail
