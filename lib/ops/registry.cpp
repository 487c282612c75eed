#include "registry.h"

namespace reel::detail {

std::span<const OpFamily> registered_ops() {
  static const OpFamily families[] = {
      {"create", create_ops()},
      {"arithmetic", arithmetic_ops()},
      {"unary", unary_ops()},
      {"exponential", exponential_ops()},
      {"trigonometric", trigonometric_ops()},
      {"special", special_ops()},
      {"comparison", comparison_ops()},
      {"selection", selection_ops()},
      {"cast", cast_ops()},
      {"reduce", reduce_ops()},
      {"shape", shape_ops()},
      {"index", index_ops()},
      {"indexing", indexing_ops()},
      {"sort", sort_ops()},
      {"take", take_ops()},
      {"mask", mask_ops()},
      {"in_place", in_place_ops()},
      {"matmul", matmul_ops()},
      {"random", random_ops()},
      {"softmax", softmax_ops()},
      {"loss", loss_ops()},
  };
  return families;
}

}  // namespace reel::detail
