#pragma once

#include <reel/debug/gradcheck.h>
#include <reel/nn/module.h>
#include <reel/ops.h>

#include <string>
#include <vector>

#include "catch.h"

// Random inputs and checks for tests of modules, in f64.

namespace reel_test {

inline reel::Tensor draw(const reel::Shape& shape) { return reel::randn(shape, {.dtype = reel::f64}); }

inline reel::LSTMState draw_state(std::int64_t batch, std::int64_t size) {
  return {draw({batch, size}), draw({batch, size})};
}

inline void check_close(const reel::Tensor& a, const reel::Tensor& b, double tolerance = 1e-12) {
  REQUIRE(a.shape() == b.shape());
  if (a.numel() > 0) CHECK(max(abs(a - b)).item() <= tolerance);
}

inline std::vector<std::string> names_of(const std::vector<reel::NamedTensor>& tensors) {
  std::vector<std::string> names;
  for (const reel::NamedTensor& named : tensors) names.push_back(named.name);
  return names;
}
inline std::vector<std::string> names_of(const reel::nn::Module& module) { return names_of(module.named_parameters()); }

/// Checks gradients of first and second order against differences.
template <class F>
void check_gradients(F f, const std::vector<reel::Tensor>& inputs) {
  auto report = reel::debug::gradcheck(f, inputs);
  INFO(report.text);
  CHECK(report);
  auto second = reel::debug::gradgradcheck(f, inputs);
  INFO(second.text);
  CHECK(second);
}

/// The state of a node of a tree, from the arguments i, o, u and those of the forget gates.
inline reel::LSTMState node_by_hand(const reel::Tensor& i, const reel::Tensor& o, const reel::Tensor& u,
                                    const std::vector<reel::Tensor>& f, const std::vector<reel::LSTMState>& children) {
  reel::Tensor c = sigmoid(i) * tanh(u);
  for (std::size_t k = 0; k < f.size(); ++k) c = c + sigmoid(f[k]) * children[k].c;
  return {sigmoid(o) * tanh(c), c};
}

}  // namespace reel_test
