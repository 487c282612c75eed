#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>

#include <cstring>

#include "../core/convert.h"
#include "../core/invoke.h"
#include "../core/kernel_table.h"
#include "operand.h"
#include "registry.h"

namespace reel {

using namespace detail;

namespace {

struct FillAttributes {
  FloatBits number;
  std::int64_t integer;
};

constexpr OpInfo full_op{
    .name = "full",
    .arity = 0,
    .batching = Batching::elementwise,
    .forward =
        [](Call& call) {
          const auto& value = call.attributes<FillAttributes>();
          kernels(call.output().device).fill(call.output(), value.number, value.integer);
        },
};

constexpr OpInfo arange_op{
    .name = "arange",
    .arity = 0,
    .batching = Batching::loop,
    .forward =
        [](Call& call) {
          const Body& out = call.output();
          std::int64_t* values = static_cast<std::int64_t*>(out.data);
          for (std::int64_t i = 0; i < out.numel; ++i) values[i] = i;
        },
};

Shape checked(const char* op, const Shape& shape, Location where) {
  for (std::int64_t size : shape)
    if (size < 0) fail<ShapeError>(op, where, "the shape {} has a negative size", to_string(shape));
  return shape;
}

Tensor filled(const OutputSpec& spec, double number, std::int64_t integer, Location where) {
  return invoke(full_op, {}, spec, where, bytes_of(FillAttributes{number, integer}));
}

// What a number is in an integer dtype.
std::int64_t integer_of(const Arg& value, DType dtype) {
  if (value.kind() != Arg::Kind::floating) return value.integer();
  switch (dtype) {
    case DType::i32: return convert<std::int32_t>(value.number());
    case DType::u8: return convert<std::uint8_t>(value.number());
    case DType::boolean: return convert<bool>(value.number());
    default: return convert<std::int64_t>(value.number());
  }
}

}  // namespace

Tensor zeros(const Shape& shape, TensorOptions options, Location where) {
  return filled({checked("zeros", shape, where), options.dtype, options.device}, 0, 0, where);
}

Tensor ones(const Shape& shape, TensorOptions options, Location where) {
  return filled({checked("ones", shape, where), options.dtype, options.device}, 1, 1, where);
}

Tensor full(const Shape& shape, const Arg& value, TensorOptions options) {
  Location where = value.location();
  if (value.is_tensor())
    fail<DTypeError>("full", where, "takes a plain number, not the tensor {}", describe(tensor_of("full", value)));
  check_fits("full", value, options.dtype);
  return filled({checked("full", shape, where), options.dtype, options.device}, value.number(),
                integer_of(value, options.dtype), where);
}

Tensor arange(std::int64_t count, TensorOptions options, Location where) {
  Tensor numbers = invoke(arange_op, {}, {checked("arange", {count}, where), DType::i64, options.device}, where);
  return options.dtype == DType::i64 ? numbers : to(Arg(numbers, where), options.dtype);
}

Tensor zeros_like(const Arg& x) {
  const Body& body = tensor_of("zeros_like", x).body();
  return filled({body, body.dtype}, 0, 0, x.location());
}

Tensor ones_like(const Arg& x) {
  const Body& body = tensor_of("ones_like", x).body();
  return filled({body, body.dtype}, 1, 1, x.location());
}

Tensor detail::copy_in(const void* elements, std::size_t count, DType dtype, const Shape& shape, Location where) {
  if (checked("tensor", shape, where).numel() != static_cast<std::int64_t>(count))
    fail<ShapeError>("tensor", where, "{} values do not fill the shape {}", count, to_string(shape));
  Tensor made = allocate(context(), {shape, dtype, cpu}, "tensor", where);
  if (count != 0) std::memcpy(made.body().data, elements, count * size_of(dtype));
  return made;
}

std::span<const RegisteredOp> detail::create_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "zeros", .info = &full_op},
      {.name = "ones", .info = &full_op},
      {.name = "full", .info = &full_op},
      {.name = "arange", .info = &arange_op},
      {.name = "zeros_like", .info = &full_op},
      {.name = "ones_like", .info = &full_op},
      {.name = "tensor"},
  };
  return ops;
}

}  // namespace reel
