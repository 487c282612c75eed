#pragma once

#include <cstddef>
#include <memory>

#include <reel/dtype.h>
#include <reel/location.h>

namespace reel {

namespace detail {
class Casts;
}

/// The scope that `autocast` opens. Lives on the stack only; scopes may end in any order.
class [[nodiscard]] AutocastScope : detail::Immovable {
 public:
  /// Opens the scope: see `autocast`. Throws: DTypeError unless bf16, f16 or f32.
  AutocastScope(DType dtype, Location where);
  /// Closes the scope.
  ~AutocastScope();
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

 private:
  std::unique_ptr<detail::Casts> casts_;
};

/// `auto scope = autocast(bf16);`: while the scope lives, ops of this thread run in the precision that suits each.
///
/// - Products, convolutions, attention: operands of f32, bf16 and f16 are cast to `dtype`, and results are of `dtype`.
/// - Losses, softmax, normalisation, sums and means, norms, variances, cumulative sums and products, the exponential
///   and logarithmic functions, pow, reciprocals and tangents: bf16 and f16 are cast to f32, and results are f32.
/// - Recurrent nets: gates, state and results are f32. The products of cells, and of layers with projections or layer
///   norms, are computed in `dtype`, those of other layers over whole sequences in f32.
/// - All others: the dtypes of their operands decide, as without autocast.
///
/// f64 stays as it is, as does what is multiplied by it. Parameters stay in f32, and so do their gradients; the cast of
/// a parameter is made once and kept until the parameter changes or the scope ends. A backward pass takes each op's
/// dtypes from its forward, inside the scope or outside:
///
///     Tape tape;
///     Tensor loss;
///     {
///       auto scope = autocast(bf16);
///       loss = cross_entropy(model(x), y);
///     }
///     tape.backward(loss);
///
/// f16 has a small range: optim::LossScaler keeps gradients within it. Scopes nest, and `autocast(f32)` switches an
/// outer one off.
/// Throws: DTypeError unless bf16, f16 or f32.
/// Source: PyTorch's autocast, whose lists of ops for CUDA these are, but for recurrent ones.
inline AutocastScope autocast(DType dtype = DType::bf16, Location where = Location::here()) {
  return AutocastScope(dtype, where);
}

}  // namespace reel
