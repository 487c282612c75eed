#include <reel/ops/unfold.h>

#include <reel/ops/shape.h>

#include "../../core/context.h"
#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/resample.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../joining.h"
#include "../registry.h"

namespace reel {

using namespace detail;

namespace {

// Larger sizes are refused, so that sums and products of two sizes do not overflow.
constexpr std::int64_t limit = std::int64_t{1} << 31;

std::int64_t patches_along(const char* op, std::int64_t size, std::int64_t kernel, std::int64_t dilation,
                           std::int64_t padding, std::int64_t stride, Location where) {
  if (kernel < 1 || dilation < 1 || stride < 1 || padding < 0 || kernel > limit || dilation > limit || stride > limit ||
      padding > limit || size > limit)
    fail<Error>(op, where, "kernel {}, dilation {}, stride {} must lie in [1, 2^31], padding {} in [0, 2^31]", kernel,
                dilation, stride, padding);
  std::int64_t extent = dilation * (kernel - 1) + 1;
  if (extent > size + 2 * padding)
    fail<ShapeError>(op, where, "no patch of {} elements, {} apart, fits into {} with padding {}", kernel, dilation,
                     size, padding);
  return (size + 2 * padding - extent) / stride + 1;
}

PatchGrid grid_of(const char* op, RowsAndColumns size, RowsAndColumns kernel, const UnfoldOptions& o, Location where) {
  PatchGrid g{
      size.rows,      size.columns,      kernel.rows,   kernel.columns,  0, 0, o.dilation.rows, o.dilation.columns,
      o.padding.rows, o.padding.columns, o.stride.rows, o.stride.columns};
  g.rows = patches_along(op, size.rows, kernel.rows, o.dilation.rows, o.padding.rows, o.stride.rows, where);
  g.columns =
      patches_along(op, size.columns, kernel.columns, o.dilation.columns, o.padding.columns, o.stride.columns, where);
  return g;
}

// Throws: ShapeError if the product does not fit.
std::int64_t product(const char* op, Location where, std::initializer_list<std::int64_t> sizes) {
  std::int64_t result = 1;
  for (std::int64_t size : sizes)
    if (__builtin_mul_overflow(result, size, &result)) fail<ShapeError>(op, where, "the result is too large");
  return result;
}

extern const OpInfo unfold_op;
extern const OpInfo fold_op;

Tensor run_unfold(const Tensor& x, const PatchGrid& g, Location where) {
  std::int64_t columns = product("unfold", where, {x.size(1), g.kernel_rows, g.kernel_columns});
  std::int64_t patches = product("unfold", where, {g.rows, g.columns});
  Tensor packed = contiguous_if_needed(Arg(x, where));
  return invoke(unfold_op, {&packed}, {{x.size(0), columns, patches}, x.dtype(), x.device()}, where, bytes_of(g));
}

Tensor run_fold(const Tensor& patches, const PatchGrid& g, Location where) {
  std::int64_t channels = patches.size(1) / (g.kernel_rows * g.kernel_columns);
  Tensor packed = contiguous_if_needed(Arg(patches, where));
  return invoke(fold_op, {&packed}, {{patches.size(0), channels, g.height, g.width}, patches.dtype(), patches.device()},
                where, bytes_of(g));
}

// unfold: y = the patches of x;  dx = fold(d)

constexpr OpInfo unfold_op{
    .name = "unfold",
    .forward =
        [](Call& call) {
          kernels(call.output().device).resample->unfold(call.output(), call.input(0), call.attributes<PatchGrid>());
        },
    .gradient = [](Gradient& g) { g.accumulate(0, run_fold(g.output(), g.attributes<PatchGrid>(), g.where())); },
    .joining = by_rows,
};

// fold: y = Σ of the patches that cover an element;  dx = unfold(d)

constexpr OpInfo fold_op{
    .name = "fold",
    .forward =
        [](Call& call) {
          kernels(call.output().device).resample->fold(call.output(), call.input(0), call.attributes<PatchGrid>());
        },
    .gradient = [](Gradient& g) { g.accumulate(0, run_unfold(g.output(), g.attributes<PatchGrid>(), g.where())); },
    .joining = by_rows,
};

}  // namespace

Tensor unfold(const Arg& x, RowsAndColumns kernel, UnfoldOptions options) {
  const Tensor& tensor = tensor_of("unfold", x);
  Location where = x.location();
  check_floating("unfold", tensor, where);
  if (tensor.rank() != 3 && tensor.rank() != 4)
    fail<ShapeError>("unfold", where, "takes images (N, C, H, W) or (C, H, W), not {}", describe(tensor));
  PatchGrid g = grid_of("unfold", {tensor.size(-2), tensor.size(-1)}, kernel, options, where);
  OpScope caller(where, "unfold");
  if (tensor.rank() == 4) return run_unfold(tensor, g, where);
  return squeeze(run_unfold(unsqueeze(tensor, 0), g, where), 0);
}

Tensor fold(const Arg& x, RowsAndColumns size, RowsAndColumns kernel, UnfoldOptions options) {
  const Tensor& tensor = tensor_of("fold", x);
  Location where = x.location();
  check_floating("fold", tensor, where);
  if (tensor.rank() != 2 && tensor.rank() != 3)
    fail<ShapeError>("fold", where, "takes patches (N, C kh kw, L) or (C kh kw, L), not {}", describe(tensor));
  PatchGrid g = grid_of("fold", size, kernel, options, where);
  std::int64_t patch = product("fold", where, {kernel.rows, kernel.columns});
  std::int64_t patches = product("fold", where, {g.rows, g.columns});
  if (tensor.size(-2) % patch != 0)
    fail<ShapeError>("fold", where, "{} has no whole number of channels for patches of {} elements", describe(tensor),
                     patch);
  if (tensor.size(-1) != patches)
    fail<ShapeError>("fold", where, "an image of {} x {} has {} patches, not the last size of {}", size.rows,
                     size.columns, patches, describe(tensor));
  OpScope caller(where, "fold");
  if (tensor.rank() == 3) return run_fold(tensor, g, where);
  return squeeze(run_fold(unsqueeze(tensor, 0), g, where), 0);
}

OpList detail::unfold_ops() {
  static constexpr const OpInfo* ops[] = {&unfold_op, &fold_op};
  return ops;
}

}  // namespace reel
