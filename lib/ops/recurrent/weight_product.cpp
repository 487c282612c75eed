#include "weight_product.h"

#include <reel/ops/matmul.h>
#include <reel/ops/shape.h>

#include "../../core/context.h"
#include "../../core/op_error.h"
#include "../../core/parameter_version.h"
#include "../../dispatch/autocast.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../linear_algebra/multiplications.h"
#include "../linear_algebra/transposed_product.h"
#include "../registry.h"

namespace reel::detail {

// weight_product: y = x round(W);  dx = dy round(W)ᵀ   dW = xᵀ dy, straight through the rounding

constexpr OpInfo weight_product_op{
    .name = "weight_product",
    .forward =
        [](Call& call) {
          multiply_by_weight(call, call.output(), call.input(0), call.input(1),
                             call.attributes<WeightAttributes>().rounding());
        },
    .gradient =
        [](Gradient& g) {
          DType rounding = g.attributes<WeightAttributes>().rounding();
          if (g.wants(0)) g.accumulate(0, times_transposed_weight(g, g.output(), g.saved_input(1), rounding));
          if (g.wants(1)) g.accumulate_transposed_product(1, g.saved_input(0), g.output());
        },
    .saves_input_for = {inputs({1}), inputs({0})},
    .joining = [](const Call&) -> Joining { return {.by = Joining::By::rows, .shared = inputs({1})}; },
    .shares_weight = true,
    .internal = true,
};

DType rounding_of(const char* op, std::optional<DType> weight_dtype, DType weights, Location where) {
  if (!weight_dtype || *weight_dtype == weights) return DType::f32;
  const char* name = name_of(*weight_dtype);
  if (*weight_dtype != DType::bf16 && *weight_dtype != DType::f16)
    fail<DTypeError>(op, where, "weight_dtype is {}; it must be bf16 or f16, or be left out", name);
  if (weights != DType::f32)
    fail<DTypeError>(op, where, "weight_dtype {} rounds weights of f32, not of {}; leave it out, or use weights of f32",
                     name, name_of(weights));
  return *weight_dtype;
}

Tensor weight_product(const Tensor& given_x, const Tensor& given_weight, DType rounding, Location where) {
  if (rounding == DType::f32) return matmul(Arg(given_x, where), given_weight);
  Tensor x = autocast_operand(Precision::full, given_x, where),
         W = autocast_operand(Precision::full, given_weight, where);
  const char* name = weight_product_op.name;
  for (const Tensor* operand : {&x, &W})
    if (operand->dtype() != DType::f32)
      fail<DTypeError>(name, where, "{} is not f32, as a product with weights of {} needs", describe(*operand),
                       name_of(rounding));
  if (x.rank() < 2 || x.size(-1) != W.size(0))
    fail<ShapeError>(name, where, "x {} is not (…, {}), which goes with the weight {}", describe(x), W.size(0),
                     describe(W));
  check_same_device(name, x, W, where);
  WeightAttributes attributes{static_cast<std::int64_t>(rounding)};
  Shape shape = x.shape();
  shape[x.rank() - 1] = W.size(1);
  bool is_matrix = x.rank() == 2;
  std::int64_t count = 1;
  for (int axis = 0; axis + 1 < x.rank(); ++axis) count *= x.size(axis);
  Tensor rows = is_matrix ? x : reshape(Arg(x, where), {count, W.size(0)});
  Tensor y =
      invoke(weight_product_op, {&rows, &W}, {{count, W.size(1)}, DType::f32, x.device()}, where, bytes_of(attributes));
  return is_matrix ? y : reshape(Arg(y, where), shape);
}

Tensor times_transposed_weight(const Gradient& g, const Tensor& a, const Tensor& W, DType rounding) {
  if (rounding == DType::f32) return times_transposed(g, a, W);
  return weight_product(a, transpose(W), rounding, g.where());
}

void multiply_by_weight(const Call& call, const Body& out, const Body& x, const Body& W, DType rounding) {
  const KernelTable& table = kernels(out.device);
  count_products(out, W.dims[0]);
  if (rounding == DType::f32) return table.matmul(out, x, W, version_of(W));
  if (table.weight_product) return table.weight_product(out, x, W, rounding, version_of(W));
  table.matmul(out, x, WeightOperand(call, W, rounding).body(), {});
}

WeightOperand::WeightOperand(const Call& call, const Body& W, DType rounding) : weight_(W), rounding_(rounding) {
  const KernelTable& table = kernels(W.device);
  if (rounding == DType::f32 || table.weight_product) return;
  rounding_ = DType::f32;
  auto converted = [&](const Body& from, DType dtype) {
    Tensor to = allocate(context(), {from, dtype}, call.op.name, call.where);
    table.copy(to.body(), from);
    return to;
  };
  copy_ = converted(converted(W, rounding).body(), DType::f32);
}

OpList weight_product_ops() {
  static constexpr const OpInfo* ops[] = {&weight_product_op};
  return ops;
}

}  // namespace reel::detail
