#include "../../kernels/formulas/polygamma.h"

#include "../../core/dtype_dispatch.h"
#include "../../core/iteration.h"
#include "../../core/threads/parallel.h"
#include "../cpu_kernels.h"

namespace reel::detail {
namespace {

template <class T>
void polygamma_typed(const View& out, const View& x, int order) {
  Iteration<2> iteration({&out, &x});
  iteration.for_each_row([&](const std::int64_t* offset) {
    T* to = out.as<T>() + offset[0];
    const T* from = x.as<T>() + offset[1];
    std::int64_t to_stride = iteration.strides[0][0], from_stride = iteration.strides[1][0];
    parallel_for(iteration.dims[0], 1 << 10, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        double value = formulas::polygamma(order, static_cast<double>(from[i * from_stride]));
        if constexpr (std::is_same_v<T, double>)
          to[i * to_stride] = value;
        else
          to[i * to_stride] = T(static_cast<float>(value));
      }
    });
  });
}

void polygamma_kernel(const View& out, const View& x, std::int64_t order) {
  with_floating(out.dtype,
                [&]<class T>(std::type_identity<T>) { polygamma_typed<T>(out, x, static_cast<int>(order)); });
}

}  // namespace

void fill_polygamma(KernelTable& table) { table.polygamma = polygamma_kernel; }

}  // namespace reel::detail
