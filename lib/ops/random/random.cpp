#include <reel/ops/random.h>

#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>
#include <reel/ops/stop_gradient.h>

#include <algorithm>

#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../joining.h"
#include "../operand.h"
#include "../registry.h"
#include "attributes.h"

namespace reel {

using namespace detail;

namespace {

DrawAttributes draw_from(Generator* generator, double probability = 0) {
  Generator& source = generator ? *generator : default_generator();
  return {0, source.seed(), source.next_call(), probability};
}

// Calls draw(attributes, y, x) with the rows of y and x of each call that is joined here.
template <class Draw>
void for_each_call(const Call& call, Draw draw) {
  auto calls = call.attributes_of_calls<DrawAttributes>();
  View views[] = {call.output(), call.input(0)};
  if (calls.size() == 1) return draw(calls[0], views[0], views[1]);
  // A number that all the calls have in common has no rows.
  std::span<View> divided(views, views[1].rank == views[0].rank ? 2 : 1);
  std::int64_t dims[2][max_rank];
  for (std::size_t i = 0; i < divided.size(); ++i) {
    std::copy_n(views[i].dims, views[i].rank, dims[i]);
    views[i].dims = dims[i];
  }
  for (const DrawAttributes& one : calls) {
    for (std::size_t i = 0; i < divided.size(); ++i) {
      views[i].numel = views[i].numel / dims[i][0] * one.rows;
      dims[i][0] = one.rows;
    }
    draw(one, views[0], views[1]);
    for (View& view : divided)
      view.data = view.as<char>() + one.rows * view.strides[0] * static_cast<std::int64_t>(size_of(view.dtype));
  }
}

// Joined calls are not joined again.
Joining joining_of_draw(const Call& call) {
  return call.attributes_of_calls<DrawAttributes>().size() == 1 ? by_elements(call) : Joining{};
}

template <void (*KernelTable::*kernel)(const View& out, RandomCall call)>
void draw_forward(Call& call) {
  (kernels(call.output().device).*kernel)(call.output(), call.attributes<DrawAttributes>().random_call());
}

constexpr OpInfo rand_op{.name = "rand", .forward = draw_forward<&KernelTable::uniform>};

constexpr OpInfo randn_op{.name = "randn", .forward = draw_forward<&KernelTable::normal>};

constexpr OpInfo gumbel_op{.name = "gumbel", .forward = draw_forward<&KernelTable::gumbel>};

void check_shape(const char* op, const Shape& shape, Location where) {
  for (std::int64_t size : shape)
    if (size < 0) fail<ShapeError>(op, where, "the shape {} has a negative size", to_string(shape));
}

Tensor drawn(const OpInfo& op, const Shape& shape, const RandomOptions& options, Location where) {
  check_shape(op.name, shape, where);
  if (!is_floating(options.dtype))
    fail<DTypeError>(op.name, where, "draws floating numbers, not {}", name_of(options.dtype));
  return invoke(op, {}, {shape, options.dtype, options.device}, where, bytes_of(draw_from(options.generator)));
}

Tensor drawn_like(const char* name, const OpInfo& op, const Arg& x, DrawOptions options) {
  const Tensor& tensor = tensor_of(name, x);
  check_floating(name, tensor, x.location());
  return invoke(op, {}, {tensor.body(), tensor.dtype()}, x.location(), bytes_of(draw_from(options.generator)));
}

}  // namespace

Tensor rand(const Shape& shape, RandomOptions options, Location where) { return drawn(rand_op, shape, options, where); }

Tensor randn(const Shape& shape, RandomOptions options, Location where) {
  return drawn(randn_op, shape, options, where);
}

Tensor gumbel(const Shape& shape, RandomOptions options, Location where) {
  return drawn(gumbel_op, shape, options, where);
}

Tensor rand_like(const Arg& x, DrawOptions options) { return drawn_like("rand_like", rand_op, x, options); }

Tensor randn_like(const Arg& x, DrawOptions options) { return drawn_like("randn_like", randn_op, x, options); }

// bernoulli: y = 1 where u < p, else 0

namespace {

constexpr OpInfo bernoulli_op{
    .name = "bernoulli",
    .forward =
        [](Call& call) {
          const KernelTable& table = kernels(call.output().device);
          for_each_call(call, [&](const DrawAttributes& draw, const View& y, const View& p) {
            double bad;
            if (!table.bernoulli(y, p, draw.random_call(), bad))
              fail<Error>("bernoulli", call.where, "the probability {} lies outside [0, 1]", bad);
          });
        },
    .joining = joining_of_draw,
    .own_attributes = true,
    .accepts_elements = [](const Call&) { return false; },
};

Tensor flags(const Tensor& p, const OutputSpec& spec, DType dtype, Generator* generator, Location where) {
  Tensor drawn = invoke(bernoulli_op, {&p}, spec, where, bytes_of(draw_from(generator)));
  return dtype == DType::boolean ? drawn : to(Arg(drawn, where), dtype);
}

}  // namespace

Tensor bernoulli(double p, const Shape& shape, RandomOptions options, Location where) {
  check_shape("bernoulli", shape, where);
  Tensor probability = full({}, Arg(p, where.file, where.line), {.dtype = DType::f64, .device = options.device});
  return flags(probability, {shape, DType::boolean, options.device}, options.dtype, options.generator, where);
}

Tensor bernoulli(const Arg& p, DrawOptions options) {
  Location where = p.location();
  if (!p.is_tensor())
    fail<DTypeError>("bernoulli", where, "a plain probability wants a shape: bernoulli({}, shape)", p.number());
  const Tensor& tensor = tensor_of("bernoulli", p);
  check_floating("bernoulli", tensor, where);
  Tensor packed = contiguous_if_needed(stop_gradient(p));
  return flags(packed, {packed.body(), DType::boolean}, tensor.dtype(), options.generator, where);
}

// randint: y = low + ⌊w (high − low) / 2^128⌋

namespace {

struct RandintAttributes {
  std::uint64_t seed, call;
  std::int64_t low;
  std::uint64_t count;
};

constexpr OpInfo randint_op{
    .name = "randint",
    .forward =
        [](Call& call) {
          const auto& draw = call.attributes<RandintAttributes>();
          kernels(call.output().device).randint(call.output(), draw.low, draw.count, {draw.seed, draw.call});
        },
};

constexpr OpInfo randperm_op{.name = "randperm", .forward = draw_forward<&KernelTable::randperm>};

// Throws: DTypeError unless the dtype can hold all of low … last.
void check_integers(const char* op, std::int64_t low, std::int64_t last, DType dtype, Location where) {
  if (is_floating(dtype) || dtype == DType::boolean)
    fail<DTypeError>(op, where, "draws integers, not {}", name_of(dtype));
  for (std::int64_t number : {low, last}) check_fits(op, Arg(number, where.file, where.line), dtype);
}

}  // namespace

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, IntegerOptions options, Location where) {
  check_shape("randint", shape, where);
  if (low >= high) fail<Error>("randint", where, "there is no integer in [{}, {})", low, high);
  check_integers("randint", low, high - 1, options.dtype, where);
  DrawAttributes draw = draw_from(options.generator);
  RandintAttributes attributes{draw.seed, draw.call, low,
                               static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low)};
  return invoke(randint_op, {}, {shape, options.dtype, options.device}, where, bytes_of(attributes));
}

Tensor randperm(std::int64_t count, IntegerOptions options, Location where) {
  if (count < 0) fail<ShapeError>("randperm", where, "there are no {} numbers", count);
  check_integers("randperm", 0, std::max<std::int64_t>(count - 1, 0), options.dtype, where);
  return invoke(randperm_op, {}, {{count}, options.dtype, options.device}, where,
                bytes_of(draw_from(options.generator)));
}

// y = m x / (1 − p), m random;  dx = m d / (1 − p), with the same random numbers

constexpr OpInfo dropout_op{
    .name = "dropout",
    .forward =
        [](Call& call) {
          const KernelTable& table = kernels(call.output().device);
          for_each_call(call, [&](const DrawAttributes& draw, const View& y, const View& x) {
            table.dropout(y, x, draw.probability, draw.random_call());
          });
        },
    .gradient =
        [](Gradient& g) {
          const Tensor& d = g.output();
          g.accumulate(0, invoke(*g.op(), {&d}, {d.body(), d.dtype()}, g.where(), g.attribute_bytes()));
        },
    .joining = joining_of_draw,
    .own_attributes = true,
};

Tensor dropout(const Arg& x, DropoutOptions options) {
  const Tensor& tensor = tensor_of("dropout", x);
  check_floating("dropout", tensor, x.location());
  if (!(options.probability >= 0 && options.probability <= 1))
    fail<Error>("dropout", x.location(), "the probability {} lies outside [0, 1]", options.probability);
  return invoke(dropout_op, {&tensor}, {tensor.body(), tensor.dtype()}, x.location(),
                bytes_of(draw_from(options.generator, options.probability)));
}

OpList detail::random_ops() {
  static constexpr const OpInfo* ops[] = {&rand_op,    &randn_op,    &gumbel_op, &bernoulli_op,
                                          &randint_op, &randperm_op, &dropout_op};
  return ops;
}

}  // namespace reel
