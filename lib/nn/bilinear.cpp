#include <reel/nn/bilinear.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/matmul.h>
#include <reel/ops/shape.h>

#include <algorithm>
#include <cmath>

#include "../core/op_error.h"
#include "weight_dtype.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* bilinear_name = "Bilinear";

// The initialiser of both the weight and the bias, unless one is given.
Initialiser first_values(const Initialiser& given, const Shape& weight, Location where) {
  if (std::ranges::any_of(weight, [](std::int64_t size) { return size <= 0; }))
    fail<ShapeError>(bilinear_name, where, "sizes must be positive, not in_1 {}, in_2 {}, out {}", weight[1], weight[2],
                     weight[0]);
  if (given) return given;
  double bound = 1 / std::sqrt(static_cast<double>(weight[1]));
  return uniform(-bound, bound);
}

RandomOptions draw(const BilinearOptions& options) { return {.dtype = options.dtype, .generator = options.generator}; }

bool same_leading_axes(const Tensor& a, const Tensor& b) {
  if (a.rank() != b.rank()) return false;
  for (int axis = 0; axis + 1 < a.rank(); ++axis)
    if (a.size(axis) != b.size(axis)) return false;
  return true;
}

}  // namespace

Bilinear::Bilinear(std::int64_t in_1, std::int64_t in_2, std::int64_t out, BilinearOptions options, Location where)
    : weight(*this, "weight", {out, in_1, in_2}, first_values(options.initialiser, {out, in_1, in_2}, where),
             draw(options), where),
      bias(options.bias
               ? Parameter(*this, "bias", {out}, first_values(options.bias_initialiser, {out, in_1, in_2}, where),
                           draw(options), where)
               : Parameter(*this, "bias", where)) {}

// (N, in_1) times (in_1, out · in_2), then each (out, in_2) times a b: all are matrix products, and W is read once.
Tensor Bilinear::operator()(const Arg& a, const Tensor& b) const {
  const Tensor inputs[] = {tensor_of(bilinear_name, a), b};
  tensor_of(bilinear_name, Arg(b, a.location()));
  return call(bilinear_name, inputs, a.location(), [&](const Tensor& a, const Tensor& b) {
    std::int64_t out = weight.size(0), in_1 = weight.size(1), in_2 = weight.size(2);
    if (a.rank() == 0 || !same_leading_axes(a, b) || a.size(-1) != in_1 || b.size(-1) != in_2)
      fail<ShapeError>(
          bilinear_name, {},
          "a {} and b {} do not end in axes of sizes {} and {} behind the same others, as the weight {} needs",
          to_string(a.shape()), to_string(b.shape()), in_1, in_2, to_string(weight.shape()));
    for (const Tensor* x : {&a, &b}) check_weight_dtype(bilinear_name, *x, weight);
    Shape shape = a.shape();
    shape[a.rank() - 1] = out;
    std::int64_t count = a.numel() / in_1;
    Tensor half = matmul(reshape(a, {count, in_1}), reshape(transpose(weight, 0, 1), {in_1, out * in_2}));
    Tensor y = matmul(reshape(half, {count, out, in_2}), reshape(b, {count, in_2, 1}));
    y = reshape(y, shape);
    return bias.defined() ? y + bias : y;
  });
}

}  // namespace reel::nn
