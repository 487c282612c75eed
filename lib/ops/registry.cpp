#include "registry.h"

namespace reel::detail {

std::span<const OpFamily> registered_ops() {
  static const OpFamily families[] = {
      {"create", create_ops()},
      {"random", random_ops()},
      {"unary", unary_ops()},
      {"exponential", exponential_ops()},
      {"trigonometric", trigonometric_ops()},
      {"special", special_ops()},
      {"arithmetic", arithmetic_ops()},
      {"comparison", comparison_ops()},
      {"selection", selection_ops()},
      {"cast", cast_ops()},
      {"reduce", reduce_ops()},
      {"reduce", statistics_ops()},
      {"reduce", scan_ops()},
      {"shape", shape_ops()},
      {"shape", slice_ops()},
      {"shape", concat_ops()},
      {"shape", pad_ops()},
      {"shape", diagonal_ops()},
      {"index", index_ops()},
      {"index", indexing_ops()},
      {"index", sort_ops()},
      {"in_place", in_place_ops()},
      {"access", access_ops()},
      {"matmul", matmul_ops()},
      {"softmax", softmax_ops()},
      {"loss", loss_ops()},
      {"tape", tape_ops()},
      {"tape", walk_ops()},
      {"index", mask_ops()},
      {"shape", repeat_ops()},
      {"reduce", norm_ops()},
      {"index", take_ops()},
  };
  return families;
}

}  // namespace reel::detail
