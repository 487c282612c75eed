#include "registry.h"

namespace reel::detail {

std::span<const OpFamily> registered_ops() {
  static const OpFamily families[] = {
      {"create", create_ops()},
      {"random", random_ops()},
      {"elementwise", elementwise_ops()},
      {"reduce", reduce_ops()},
      {"shape", shape_ops()},
      {"index", index_ops()},
      {"indexing", indexing_ops()},
      {"sort", sort_ops()},
      {"access", access_ops()},
      {"matmul", matmul_ops()},
      {"softmax", softmax_ops()},
      {"loss", loss_ops()},
      {"tape", tape_ops()},
      {"tape", walk_ops()},
      {"mask", mask_ops()},
      {"take", take_ops()},
  };
  return families;
}

}  // namespace reel::detail
