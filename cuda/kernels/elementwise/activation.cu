#include "activation.h"

#include "../../runtime/cuda_kernels.h"
#include "activation_rows.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_activation(KernelTable& table) {
  static ActivationKernels kernels{};
  add_all_kernels(kernels, RowsWithout<kernel_lists::Activations, Smooth>());
  fill_smooth(kernels);
  fill_masked_softmax(kernels);
  table.activation = &kernels;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
