#include "recurrent_weights.h"

#include <cmath>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include "../../core/op_error.h"

namespace reel::nn {

using namespace detail;

Initialiser by_gate(const Initialiser& given, int gates, std::int64_t hidden_size, double raised,
                    std::size_t raised_gate) {
  double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  return [=](const Shape& shape, const RandomOptions& options) {
    if (!given && raised == 0) return uniform(-bound, bound)(shape, options);
    std::vector<Tensor> blocks;
    Shape block = shape;
    block[shape.rank() - 1] = hidden_size;
    if (!given) blocks = split(uniform(-bound, bound)(shape, options), hidden_size, -1);
    while (std::ssize(blocks) < gates) blocks.push_back(given(block, options));
    if (raised != 0) blocks[raised_gate] = blocks[raised_gate] + raised;
    return concat(blocks, -1);
  };
}

void check_cell_sizes(const char* name, std::int64_t input_size, std::int64_t hidden_size, Location where) {
  if (input_size <= 0 || hidden_size <= 0)
    fail<ShapeError>(name, where, "sizes must be positive, not input {}, hidden {}", input_size, hidden_size);
}

bool has_shape(const Tensor& x, const Shape& shape) { return x.defined() && x.shape() == shape; }

std::string shape_of(const Tensor& x) { return x.defined() ? to_string(x.shape()) : "undefined"; }

}  // namespace reel::nn
