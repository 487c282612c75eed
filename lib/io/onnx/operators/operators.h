#pragma once

#include <span>
#include <string_view>

#include "../run.h"
#include "../writer.h"

namespace reel::io::onnx {

/// A row of the table: ops of reel and the operator of ONNX that corresponds to them, in both directions.
struct Operator {
  std::string_view ops = {};           ///< names of ops, separated by spaces; empty: the operator is read only
  const char* type = nullptr;          ///< the operator; null: the ops are written with operators of other rows
  RunNode run = nullptr;               ///< runs a node of the operator
  void (*write)(Writer& w) = nullptr;  ///< writes a call of an op; null: as one node with the operands of the op
};

/// The rows of one family.
std::span<const Operator> elementwise_operators();
std::span<const Operator> reduce_operators();
std::span<const Operator> shape_operators();
std::span<const Operator> index_operators();
std::span<const Operator> product_operators();
std::span<const Operator> convolution_operators();
std::span<const Operator> normalise_operators();
std::span<const Operator> loss_operators();
std::span<const Operator> recurrent_operators();
std::span<const Operator> loop_operators();

}  // namespace reel::io::onnx
