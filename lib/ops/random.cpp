#include <reel/ops/random.h>

#include <reel/tape.h>

#include "../core/invoke.h"
#include "../core/kernel_table.h"
#include "../core/op_error.h"
#include "../tape/gradient.h"
#include "registry.h"

namespace reel {

using namespace detail;

namespace {

struct DrawAttributes {
  std::uint64_t seed, call;
  FloatBits probability;
  RandomCall random_call() const { return {seed, call}; }
};

DrawAttributes draw_from(Generator* generator, double probability = 0) {
  Generator& source = generator ? *generator : default_generator();
  return {source.seed(), source.next_call(), probability};
}

constexpr OpInfo rand_op{
    .name = "rand",
    .arity = 0,
    .batching = Batching::loop,
    .forward =
        [](Call& call) {
          kernels(call.output().device).uniform(call.output(), call.attributes<DrawAttributes>().random_call());
        },
};

constexpr OpInfo randn_op{
    .name = "randn",
    .arity = 0,
    .batching = Batching::loop,
    .forward =
        [](Call& call) {
          kernels(call.output().device).normal(call.output(), call.attributes<DrawAttributes>().random_call());
        },
};

Tensor drawn(const OpInfo& op, const Shape& shape, const RandomOptions& options, Location where) {
  for (std::int64_t size : shape)
    if (size < 0) fail<ShapeError>(op.name, where, "the shape {} has a negative size", to_string(shape));
  if (!is_floating(options.dtype))
    fail<DTypeError>(op.name, where, "draws floating numbers, not {}", name_of(options.dtype));
  return invoke(op, {}, {shape, options.dtype, options.device}, where, bytes_of(draw_from(options.generator)));
}

}  // namespace

Tensor rand(const Shape& shape, RandomOptions options, Location where) { return drawn(rand_op, shape, options, where); }

Tensor randn(const Shape& shape, RandomOptions options, Location where) {
  return drawn(randn_op, shape, options, where);
}

// y = m x / (1 − p), m drawn;  dx = m d / (1 − p), the same numbers drawn again

constexpr OpInfo dropout_op{
    .name = "dropout",
    .arity = 1,
    .batching = Batching::loop,
    .forward =
        [](Call& call) {
          const auto& draw = call.attributes<DrawAttributes>();
          kernels(call.output().device).dropout(call.output(), call.input(0), draw.probability, draw.random_call());
        },
    .gradient =
        [](Gradient& g) {
          const Tensor& d = g.output();
          g.give(0, invoke(*g.op(), {&d}, {d.body(), d.dtype()}, g.where(), g.attribute_bytes()));
        },
};

Tensor dropout(const Arg& x, DropoutOptions options) {
  const Tensor& tensor = tensor_of("dropout", x);
  check_floating("dropout", tensor, x.location());
  if (!(options.probability >= 0 && options.probability <= 1))
    fail<Error>("dropout", x.location(), "the probability {} lies outside [0, 1]", options.probability);
  return invoke(dropout_op, {&tensor}, {tensor.body(), tensor.dtype()}, x.location(),
                bytes_of(draw_from(options.generator, options.probability)));
}

std::span<const RegisteredOp> detail::random_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "rand", .info = &rand_op},
      {.name = "randn", .info = &randn_op},
      {.name = "dropout", .info = &dropout_op},
  };
  return ops;
}

}  // namespace reel
