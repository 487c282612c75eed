#include "../kernels/kernel_table.h"

#include "../core/context.h"
#include "../core/device/device_module.h"
#include "../cpu/cpu_kernels.h"
#include "../kernels/optimise.h"

namespace reel::detail {
constinit KernelTable cpu_kernel_table{};
constinit OptimiserKernels cpu_optimiser_kernels{};

const KernelTable& enter_device(Device device) {
  DeviceModule& module = device_module();
  context().set(Context::on_device, true);
  module.enter(device.index);
  return module.kernels();
}

const OptimiserKernels& optimiser_kernels(Device device) {
  if (device.type == Device::Type::cpu) return cpu_optimiser_kernels;
  enter_device(device);
  return device_module().optimiser_kernels();
}

void fill_kernel_tables() { fill_cpu_kernels(cpu_kernel_table, cpu_optimiser_kernels); }

}  // namespace reel::detail
