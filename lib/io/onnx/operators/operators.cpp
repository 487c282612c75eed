#include "operators.h"

#include <array>
#include <unordered_map>

namespace reel::io::onnx {

WriteOp operator_of(std::string_view op) {
  static const auto table = [] {
    std::unordered_map<std::string_view, WriteOp> made;
    for (auto family :
         {elementwise_operators(), reduce_operators(), shape_operators(), index_operators(), product_operators(),
          convolution_operators(), normalise_operators(), loss_operators(), recurrent_operators()})
      for (const Operator& one : family) made.emplace(one.op, one.write);
    return made;
  }();
  auto found = table.find(op);
  return found == table.end() ? nullptr : found->second;
}

bool is_random(std::string_view op) {
  static constexpr std::array<std::string_view, 8> drawn{"rand",    "randn",    "gumbel",  "bernoulli",
                                                         "randint", "randperm", "dropout", "multinomial"};
  for (std::string_view name : drawn)
    if (name == op) return true;
  return false;
}

}  // namespace reel::io::onnx
