#include "../../../lib/kernels/formulas/polygamma.h"

#include "../../device/formula_loop.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

struct Polygamma {
  int order;
  template <class V>
  REEL_DEVICE V operator()(V x) const {
    return static_cast<V>(formulas::polygamma(order, static_cast<double>(x)));
  }
};

void polygamma_kernel(const View& out, const View& x, std::int64_t order) {
  run_floating(Polygamma{static_cast<int>(order)}, out, x);
}

}  // namespace

void fill_polygamma(KernelTable& table) { table.polygamma = polygamma_kernel; }

}  // namespace reel::detail::inline REEL_TARGET
