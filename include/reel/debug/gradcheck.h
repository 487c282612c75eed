#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <reel/tensor.h>

namespace reel::nn {
class Module;
}  // namespace reel::nn

namespace reel::debug {

/// A function whose gradient is to be checked.
using Differentiable = std::function<Tensor(std::span<const Tensor>)>;

/// Options of `gradcheck` and `gradgradcheck`.
struct GradcheckOptions {
  /// Half the distance between the two points of a central difference, relative to max(1, |x|). Default 10⁻⁵.
  double step = 1e-5;
  /// The largest absolute deviation from the difference. Default 10⁻⁶.
  double absolute_tolerance = 1e-6;
  /// The largest deviation relative to the difference, which is added to the absolute one. Default 10⁻⁵.
  double relative_tolerance = 1e-5;
};

/// The result of a check. Converts to true if all elements agree.
struct GradcheckReport {
  bool agrees = true;  ///< true if all elements agree
  /// One sentence; where elements disagree it names the worst: the input and its element, the element of the output,
  /// the derivative of the tape and the difference.
  std::string text;
  /// True if all elements agree.
  explicit operator bool() const { return agrees; }
};

/// Compares the gradients of a tape with central differences, at f64 inputs: every element of the Jacobian, |tape −
/// difference| ≤ absolute + relative · |difference|.
/// Throws: DTypeError unless all inputs and the result are f64.
GradcheckReport gradcheck(const Differentiable& f, std::span<const Tensor> inputs, GradcheckOptions options = {},
                          Location where = Location::here());

/// Compares the second-order gradients of a tape with central differences, at f64 inputs: checks the gradient of
/// (inputs, seed) ↦ gradients of Σ f(inputs) · seed, |tape − difference| ≤ absolute + relative · |difference|.
/// Throws: DTypeError unless all inputs and the result are f64; TapeError while a tape is open.
GradcheckReport gradgradcheck(const Differentiable& f, std::span<const Tensor> inputs, GradcheckOptions options = {},
                              Location where = Location::here());

/// Compares the gradients of a tape with central differences, at f64 inputs: every element of the Jacobian, |tape −
/// difference| ≤ absolute + relative · |difference|.
/// Throws: DTypeError unless all inputs and the result are f64.
inline GradcheckReport gradcheck(const Differentiable& f, std::initializer_list<Tensor> inputs,
                                 GradcheckOptions options = {}, Location where = Location::here()) {
  return gradcheck(f, std::span(inputs.begin(), inputs.size()), options, where);
}
/// Compares the second-order gradients of a tape with central differences, at f64 inputs: checks the gradient of
/// (inputs, seed) ↦ gradients of Σ f(inputs) · seed, |tape − difference| ≤ absolute + relative · |difference|.
/// Throws: DTypeError unless all inputs and the result are f64; TapeError while a tape is open.
inline GradcheckReport gradgradcheck(const Differentiable& f, std::initializer_list<Tensor> inputs,
                                     GradcheckOptions options = {}, Location where = Location::here()) {
  return gradgradcheck(f, std::span(inputs.begin(), inputs.size()), options, where);
}

/// Compares the gradients by a model's parameters, those that are not frozen, with central differences, at f64: every
/// element of the Jacobian, |tape − difference| ≤ absolute + relative · |difference|. `loss` computes with the model a
/// tensor of any shape, always the same one: without dropout, and with the same examples.
///
///     model.to(f64);
///     model.eval();
///     CHECK(debug::gradcheck(model, [&] { return mse_loss(model(x), y); }));
///
/// Throws: Error for a model without parameters to train; DTypeError unless they and the result are f64.
GradcheckReport gradcheck(const nn::Module& model, const std::function<Tensor()>& loss, GradcheckOptions options = {},
                          Location where = Location::here());
/// Compares the second-order gradients by a model's parameters, those that are not frozen, with central differences, at
/// f64; see gradcheck.
/// Throws: Error for a model without parameters to train; DTypeError unless they and the result are f64; TapeError while
/// a tape is open.
GradcheckReport gradgradcheck(const nn::Module& model, const std::function<Tensor()>& loss,
                              GradcheckOptions options = {}, Location where = Location::here());

}  // namespace reel::debug
