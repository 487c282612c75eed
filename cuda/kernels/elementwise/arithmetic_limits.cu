#include "arithmetic.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

void clamp_kernel(const View& out, const View& x, const View& low, const View& high) {
  run_number<formulas::Clamp, formulas::Clamp>(out, x, low, high);
}

}  // namespace

void fill_limits(KernelTable& table) {
  fill_binary_kernels(table, RowsOf<kernel_lists::BinaryArithmetic, Limits>());
  table.clamp = clamp_kernel;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
