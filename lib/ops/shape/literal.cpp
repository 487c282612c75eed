#include <reel/ops/create.h>

#include <reel/no_record.h>

#include "../../core/op_error.h"
#include "../if_needed.h"

namespace reel {

using namespace detail;

/// Reads nested braces into numbers in row-major order.
struct NestedNumbersReader {
  Location where;
  std::vector<double> floating = {};
  std::vector<std::int64_t> integers = {};
  std::optional<DType> dtype = {};

  // Appends the numbers, and returns their shape.
  Shape read(const NestedNumbers& given, int depth = 0) {
    if (!given.is_list_) {
      floating.push_back(given.floating_);
      integers.push_back(given.integer_);
      dtype = dtype ? promote(*dtype, given.dtype_) : given.dtype_;
      return {};
    }
    if (depth == max_rank)
      fail<ShapeError>("tensor", where, "braces are nested deeper than {} times, the most axes there can be", max_rank);
    Shape part;
    for (const NestedNumbers& one : given.parts_) {
      Shape found = read(one, depth + 1);
      if (&one != given.parts_.data() && found != part)
        fail<ShapeError>("tensor", where, "the lists beside each other are not of one shape: {} and {}",
                         to_string(part), to_string(found));
      part = found;
    }
    Shape shape{std::ssize(given.parts_)};
    for (std::int64_t size : part) shape.push_back(size);
    return shape;
  }
};

Tensor detail::with_options(const Tensor& values, const LiteralOptions& options, Location where) {
  DType dtype = options.dtype.value_or(values.dtype());
  if (is_floating(values.dtype()) && !is_floating(dtype))
    fail<DTypeError>("tensor", where, "floating numbers do not fit into {}; round them, or give a floating dtype",
                     name_of(dtype));
  NoRecord pause;
  return to_if_needed(Arg(to_if_needed(Arg(values, where), dtype), where), options.device);
}

Tensor tensor(const NestedNumbers& numbers, const LiteralOptions& options, Location where) {
  NestedNumbersReader reader{where};
  Shape shape = reader.read(numbers);
  DType dtype = reader.dtype.value_or(DType::f32);
  LiteralOptions wanted{options.dtype.value_or(dtype), options.device};
  return is_floating(dtype) ? with_options(tensor(reader.floating, shape, where), wanted, where)
                            : with_options(tensor(reader.integers, shape, where), wanted, where);
}

}  // namespace reel
