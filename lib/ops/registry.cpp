#include "registry.h"

namespace reel::detail {

std::span<const OpFamily> registered_ops() {
  static const OpFamily families[] = {
      {"create", create_ops()},   {"elementwise", elementwise_ops()},
      {"reduce", reduce_ops()},   {"shape", shape_ops()},
      {"shape", slice_ops()},     {"shape", concat_ops()},
      {"shape", repeat_ops()},    {"shape", pad_ops()},
      {"shape", diagonal_ops()},  {"index", index_ops()},
      {"matmul", matmul_ops()},   {"random", random_ops()},
      {"softmax", softmax_ops()}, {"loss", loss_ops()},
  };
  return families;
}

}  // namespace reel::detail
