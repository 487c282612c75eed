#include "activation_rows.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_smooth(ActivationKernels& table) { add_all_kernels(table, RowsOf<kernel_lists::Activations, Smooth>()); }

}  // namespace REEL_TARGET
}  // namespace reel::detail
