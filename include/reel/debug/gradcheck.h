#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <reel/tensor.h>

namespace reel::debug {

/// A function whose gradient is to be checked.
using Differentiable = std::function<Tensor(std::span<const Tensor>)>;

struct GradcheckOptions {
  /// Half the distance between the two points of a central difference, relative to max(1, |x|).
  double step = 1e-5;
  double absolute_tolerance = 1e-6;
  double relative_tolerance = 1e-5;
};

/// What a check found. Converts to true if all elements agree.
struct GradcheckReport {
  bool agrees = true;
  /// One sentence; where elements disagree it names the worst: which input, which element, which of the output's, what
  /// the tape says and what the difference says.
  std::string text;
  explicit operator bool() const { return agrees; }
};

/// Compares the gradients that a tape gives with central differences, at f64 inputs: every element of the Jacobian,
/// |tape − difference| ≤ absolute + relative · |difference|.
/// Throws: DTypeError unless all inputs are f64 and the result is.
GradcheckReport gradcheck(const Differentiable& f, std::span<const Tensor> inputs, GradcheckOptions options = {},
                          Location where = Location::here());

/// The same for the gradient of the gradient: checks (inputs, seed) ↦ gradients of Σ f(inputs) · seed.
/// Throws: as gradcheck; TapeError while a tape is open.
GradcheckReport gradgradcheck(const Differentiable& f, std::span<const Tensor> inputs, GradcheckOptions options = {},
                              Location where = Location::here());

inline GradcheckReport gradcheck(const Differentiable& f, std::initializer_list<Tensor> inputs,
                                 GradcheckOptions options = {}, Location where = Location::here()) {
  return gradcheck(f, std::span(inputs.begin(), inputs.size()), options, where);
}
inline GradcheckReport gradgradcheck(const Differentiable& f, std::initializer_list<Tensor> inputs,
                                     GradcheckOptions options = {}, Location where = Location::here()) {
  return gradgradcheck(f, std::span(inputs.begin(), inputs.size()), options, where);
}

}  // namespace reel::debug
