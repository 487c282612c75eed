#include <reel/ops/normalise.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <reel/ops/elementwise.h>
#include <reel/ops/norm.h>
#include <reel/ops/pad.h>
#include <reel/ops/shape.h>

#include "../../core/op_error.h"
#include "../../dispatch/autocast.h"
#include "../if_needed.h"

namespace reel {

using namespace detail;

// normalize: y = x / max(‖x‖_p, ε)

Tensor normalize(const Arg& x, NormalizeOptions options) {
  const char* name = "normalize";
  const Tensor& tensor = tensor_of(name, x);
  Location where = x.location();
  check_floating(name, tensor, where);
  if (std::isnan(options.p)) fail<Error>(name, where, "p is NaN");
  if (!(options.epsilon >= 0)) fail<Error>(name, where, "epsilon is {}, not at least 0", options.epsilon);
  int axis = check_axis(name, options.axis, tensor, where);
  OpScope caller(where, name);
  Tensor wide = widened(tensor);
  if (wide.numel() == 0) return to(tensor, autocast_dtype(Precision::full, tensor.dtype()));
  return to_if_needed(wide / maximum(norm(wide, axis, {.p = options.p, .keepdims = true}), options.epsilon),
                      autocast_dtype(Precision::full, tensor.dtype()));
}

// local_response_norm: y = x / (k + α / n Σ x²)^β

Tensor local_response_norm(const Arg& x, std::int64_t size, LocalResponseNormOptions options) {
  const char* name = "local_response_norm";
  const Tensor& tensor = tensor_of(name, x);
  Location where = x.location();
  check_floating(name, tensor, where);
  if (tensor.rank() < 3) fail<ShapeError>(name, where, "takes (N, C, d…), not {}", describe(tensor));
  if (size < 1) fail<ShapeError>(name, where, "the size {} is not at least 1", size);
  OpScope caller(where, name);
  Tensor wide = widened(tensor);
  std::int64_t channels = wide.size(1);
  // Channels further away than all of x's are 0.
  std::int64_t before = std::min(size / 2, channels), after = std::min((size - 1) / 2, channels);
  std::array<PadWidth, max_rank> widths{};
  widths[1] = {before, after};
  Tensor squares = pad(square(wide), std::span<const PadWidth>(widths.data(), static_cast<std::size_t>(wide.rank())));
  Tensor total;
  for (std::int64_t start = 0; start <= before + after; ++start) {
    Tensor part = slice(squares, 1, start, start + channels);
    total = total.defined() ? total + part : part;
  }
  Tensor divisor = pow(total * (options.alpha / static_cast<double>(size)) + options.k, options.beta);
  return to_if_needed(wide / divisor, autocast_dtype(Precision::full, tensor.dtype()));
}

}  // namespace reel
