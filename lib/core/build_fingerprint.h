#pragma once

#include "context.h"
#include "invoke.h"
#include "kernel_table.h"
#include "kernels/optimise.h"

namespace reel::detail {

/// The sizes of what passes between the library and a device module: one of another build is refused by them.
constexpr std::uint64_t build_fingerprint() {
  std::uint64_t print = 1;
  for (std::size_t part : {sizeof(KernelTable), sizeof(OptimiserKernels), sizeof(Body), sizeof(Storage), sizeof(Call),
                           sizeof(OpInfo), sizeof(Context), static_cast<std::size_t>(Unary::count),
                           static_cast<std::size_t>(Binary::count), static_cast<std::size_t>(Reduction::count)})
    print = print * 1000003 + part;
  return print;
}

}  // namespace reel::detail
