#include "../kernels/kernel_table.h"

#include "../cpu/cpu_kernels.h"
#include "../kernels/optimise.h"

namespace reel::detail {
constinit KernelTable cpu_kernel_table{};
constinit OptimiserKernels cpu_optimiser_kernels{};

const OptimiserKernels& optimiser_kernels(Device device) {
  return device.type == Device::Type::cpu ? cpu_optimiser_kernels : enter_device_optimisers(device);
}

void fill_kernel_tables() { fill_cpu_kernels(cpu_kernel_table); }

}  // namespace reel::detail
