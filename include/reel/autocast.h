#pragma once

#include <cstddef>
#include <memory>

#include <reel/dtype.h>
#include <reel/location.h>

namespace reel {

namespace detail {
class Casts;
}

/// What `autocast` returns. Lives on the stack only; scopes may end in any order.
class [[nodiscard]] AutocastScope {
 public:
  AutocastScope(DType dtype, Location where);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

 private:
  std::unique_ptr<detail::Casts> casts_;
};

/// `auto scope = autocast(bf16);`: while the scope lives, ops of this thread run in the precision that suits each.
///
/// - Products, convolutions, attention: operands of f32, bf16 and f16 are cast to `dtype`, and so is what they give.
/// - Losses, softmax, normalisation, sums and means, norms, variances, running sums and products, exp and its like, log
///   and its like, pow, reciprocals and tangents: halves are cast to f32, and so is what they give.
/// - Recurrent nets: gates, state and what they give are in f32. The products of cells, and of layers with projections
///   or layer norms, are as above, those of other layers over whole sequences in f32.
/// - All others: what they do anyway with the dtypes that they meet.
///
/// f64 stays as it is, as does what is multiplied by it. Parameters stay in f32, and so do their gradients; the cast of a
/// parameter is made once and kept until the parameter changes or the scope ends. A backward takes each op's dtypes from
/// its forward, wherever it runs:
///
///     Tape tape;
///     Tensor loss;
///     {
///       auto scope = autocast(bf16);
///       loss = cross_entropy(model(x), y);
///     }
///     tape.backward(loss);
///
/// f16 has a small range: optim::LossScaler keeps gradients within it. Scopes nest, and `autocast(f32)` switches an outer
/// one off. Throws: DTypeError unless bf16, f16 or f32.
/// Source: PyTorch's autocast, whose lists of ops for CUDA these are, but for recurrent ones.
inline AutocastScope autocast(DType dtype = DType::bf16, Location where = Location::here()) {
  return AutocastScope(dtype, where);
}

}  // namespace reel
