#include <reel/ops/create.h>

#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "../../core/storage.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../if_needed.h"
#include "../index/index_checks.h"
#include "../index/places.h"
#include "../number.h"
#include "../operand.h"
#include "../registry.h"
#include "attributes.h"

namespace reel {

using namespace detail;

namespace {

constexpr OpInfo full_op{
    .name = "full",
    .forward =
        [](Call& call) {
          const auto& value = call.attributes<FillAttributes>();
          kernels(call.output().device).fill(call.output(), value.number, value.integer);
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

// arange: y_i = start + i step

namespace {

constexpr OpInfo arange_op{
    .name = "arange",
    .forward =
        [](Call& call) {
          const auto& at = call.attributes<ArangeAttributes>();
          kernels(call.output().device).arange(call.output(), at.start, at.step, at.integer_start, at.integer_step);
        },
};

// ⌈(stop − start) / step⌉, at least 0 and at most `most_elements`.
std::int64_t range_count(std::int64_t start, std::int64_t stop, std::int64_t step) {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  // Computed as unsigned numbers, so that nothing overflows.
  auto low = static_cast<std::uint64_t>(step > 0 ? start : stop),
       high = static_cast<std::uint64_t>(step > 0 ? stop : start);
  std::uint64_t size = step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  return static_cast<std::int64_t>(std::min<std::uint64_t>((high - low - 1) / size + 1, most_elements));
}

std::int64_t range_count(double start, double stop, double step) {
  double count = std::ceil((stop - start) / step);
  return count > 0 ? static_cast<std::int64_t>(std::min(count, static_cast<double>(most_elements))) : 0;
}

std::string range_text(const Arg& start, const Arg& stop, const Arg& step) {
  auto text = [](const Arg& number) {
    return number.kind() == Arg::Kind::floating ? fmt::format("{}", number.number())
                                                : fmt::format("{}", number.integer());
  };
  return fmt::format("from {} to {} by {}", text(start), text(stop), text(step));
}

}  // namespace

namespace {

Tensor range(const Arg& start, const Arg& stop, const Arg& step, const RangeOptions& options, Location where) {
  const char* name = arange_op.name;
  bool floating = false;
  for (const Arg* number : {&start, &stop, &step}) {
    if (number->is_tensor())
      fail<DTypeError>(name, where, "takes plain numbers, not the tensor {}", describe(tensor_of(name, *number)));
    floating |= number->kind() == Arg::Kind::floating;
  }
  DType dtype = options.dtype.value_or(floating ? DType::f32 : DType::i64);
  if (dtype == DType::boolean || (floating && !is_floating(dtype)))
    fail<DTypeError>(name, where, "the numbers {} make no {} tensor", range_text(start, stop, step), name_of(dtype));
  for (const Arg* number : {&start, &stop, &step})
    if (!std::isfinite(number->number()))
      fail<ShapeError>(name, where, "the numbers {} must be finite", range_text(start, stop, step));
  if (step.number() == 0) fail<ShapeError>(name, where, "a step of 0 goes nowhere, {}", range_text(start, stop, step));
  std::int64_t count = floating ? range_count(start.number(), stop.number(), step.number())
                                : range_count(start.integer(), stop.integer(), step.integer());
  if (count == most_elements)
    fail<ShapeError>(name, where, "the numbers {} are more than any memory holds", range_text(start, stop, step));
  ArangeAttributes attributes{start.number(), step.number(), floating ? 0 : start.integer(),
                              floating ? 0 : step.integer()};
  return invoke(arange_op, {}, {{count}, dtype, options.device}, where, bytes_of(attributes));
}

}  // namespace

Tensor arange(const Arg& start, const Arg& stop, const Arg& step, RangeOptions options) {
  return range(start, stop, step, options, start.location());
}

Tensor arange(const Arg& stop, RangeOptions options) {
  if (!stop.is_tensor() && stop.kind() != Arg::Kind::floating && stop.integer() < 0)
    fail<ShapeError>("arange", stop.location(), "there are no {} numbers", stop.integer());
  return range(0, stop, 1, options, stop.location());
}

// linspace: y_i = start + i (stop − start) / (count − 1)

namespace {

struct LinspaceAttributes {
  FloatBits start, stop;
};

constexpr OpInfo linspace_op{
    .name = "linspace",
    .forward =
        [](Call& call) {
          const auto& at = call.attributes<LinspaceAttributes>();
          kernels(call.output().device).linspace(call.output(), at.start, at.stop);
        },
};

}  // namespace

Tensor linspace(double start, double stop, std::int64_t count, TensorOptions options, Location where) {
  if (count < 0) fail<ShapeError>("linspace", where, "there are no {} numbers", count);
  if (!std::isfinite(start) || !std::isfinite(stop))
    fail<ShapeError>("linspace", where, "the ends {} and {} must be finite", start, stop);
  if (!is_floating(options.dtype))
    fail<DTypeError>("linspace", where, "gives floating numbers, not {}; round them with to()", name_of(options.dtype));
  return invoke(linspace_op, {}, {{count}, options.dtype, options.device}, where,
                bytes_of(LinspaceAttributes{start, stop}));
}

// eye: zeros, and ones on a diagonal

namespace {

struct EyeAttributes {
  std::int64_t diagonal;
};

constexpr OpInfo eye_op{
    .name = "eye",
    .forward =
        [](Call& call) {
          const KernelTable& table = kernels(call.output().device);
          table.fill(call.output(), 0, 0);
          Tensor ones = diagonal_view(call.outputs[0], call.attributes<EyeAttributes>().diagonal, call.where);
          table.fill(ones.body(), 1, 1);
        },
};

Shape matrix_shape(const char* op, std::int64_t rows, const DiagonalOptions& options, Location where) {
  std::int64_t columns = options.columns == -1 ? rows : options.columns;
  if (rows < 0 || columns < 0)
    fail<ShapeError>(op, where, "a matrix cannot have {} rows and {} columns", rows, columns);
  return {rows, columns};
}

}  // namespace

Tensor eye(std::int64_t rows, DiagonalOptions options, Location where) {
  return invoke(eye_op, {}, {matrix_shape("eye", rows, options, where), options.dtype, options.device}, where,
                bytes_of(EyeAttributes{options.diagonal}));
}

Tensor tri(std::int64_t rows, DiagonalOptions options, Location where) {
  Shape shape = matrix_shape("tri", rows, options, where);
  Tensor one = ones({}, {.dtype = options.dtype, .device = options.device}, where);
  return tril(Arg(expand(Arg(one, where), shape), where), options.diagonal);
}

// one_hot: y[…, c] = 1 where c is the index

namespace {

constexpr OpInfo one_hot_op{
    .name = "one_hot",
    .forward =
        [](Call& call) {
          std::int64_t bad;
          if (!kernels(call.output().device).one_hot(call.output(), call.input(0), bad))
            fail<IndexError>("one_hot", call.where, "index {} is none of the {} classes, for the indices {}", bad,
                             call.output().dims[call.output().rank - 1], describe(*call.inputs[0]));
        },
    .joining = [](const Call& call) -> Joining {
      if (call.specs[0].rank == max_rank) return {};
      return {.by = call.input(0).rank > 0 ? Joining::By::rows : Joining::By::stacked};
    },
    .accepts_elements =
        [](const Call& call) { return are_classes(call.input(0), call.specs[0].dims[call.specs[0].rank - 1]); },
};

}  // namespace

Tensor one_hot(const Arg& indices, std::int64_t classes, DType dtype) {
  const Tensor& tensor = tensor_of("one_hot", indices);
  Location where = indices.location();
  if (tensor.dtype() != DType::i32 && tensor.dtype() != DType::i64)
    fail<DTypeError>("one_hot", where, "indices are i32 or i64, not {}; convert them with to(indices, i64)",
                     describe(tensor));
  if (classes < 0) fail<ShapeError>("one_hot", where, "there cannot be {} classes", classes);
  if (tensor.rank() == max_rank)
    fail<ShapeError>("one_hot", where, "the indices {} have 8 axes already, the most there can be", describe(tensor));
  Shape shape = tensor.shape();
  shape.push_back(classes);
  return invoke(one_hot_op, {&tensor}, {shape, dtype, tensor.device()}, where);
}

Tensor zeros_like(const Arg& x) {
  const Body& body = tensor_of("zeros_like", x).body();
  return filled({body, body.dtype}, 0, 0, x.location());
}

Tensor ones_like(const Arg& x) {
  const Body& body = tensor_of("ones_like", x).body();
  return filled({body, body.dtype}, 1, 1, x.location());
}

Tensor full_like(const Arg& x, const Arg& value) {
  const Body& body = tensor_of("full_like", x).body();
  if (value.is_tensor())
    fail<DTypeError>("full_like", x.location(), "takes a plain number, not the tensor {}",
                     describe(tensor_of("full_like", value)));
  check_fits("full_like", value, body.dtype);
  return filled({body, body.dtype}, value.number(), integer_of(value, body.dtype), x.location());
}

Tensor detail::copy_in(const void* elements, std::size_t count, DType dtype, const Shape& shape, Location where) {
  if (checked("tensor", shape, where).numel() != static_cast<std::int64_t>(count))
    fail<ShapeError>("tensor", where, "{} values do not fill the shape {}", count, to_string(shape));
  Tensor made = allocate(context(), {shape, dtype, cpu}, "tensor", where);
  if (count != 0) std::memcpy(made.body().data, elements, count * size_of(dtype));
  return to_if_needed(Arg(made, where), default_device());
}

Tensor logspace(double start, double stop, std::int64_t count, LogspaceOptions options, Location where) {
  const char* name = "logspace";
  if (!is_floating(options.dtype))
    fail<DTypeError>(name, where, "the dtype is floating, not {}", name_of(options.dtype));
  if (count < 0) fail<ShapeError>(name, where, "there cannot be {} numbers", count);
  if (!std::isfinite(start) || !std::isfinite(stop))
    fail<ShapeError>(name, where, "the ends {} and {} are not finite", start, stop);
  OpScope caller(where, name);
  Tensor exponents = linspace(start, stop, count, {.dtype = DType::f64, .device = options.device});
  return to_if_needed(pow(options.base, exponents), options.dtype);
}

OpList detail::create_ops() {
  static constexpr const OpInfo* ops[] = {&full_op, &arange_op, &linspace_op, &eye_op, &one_hot_op};
  return ops;
}

}  // namespace reel
