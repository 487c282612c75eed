#pragma once

#include <vector>

#include "checks.h"

namespace reel_test {

struct Net {
  reel::Tensor W = (draw({5, 6}) * 0.5).requires_grad(), b = draw({6}).requires_grad(),
               V = (draw({6, 1}) * 0.5).requires_grad();

  std::vector<reel::Tensor> parameters() const { return {W, b, V}; }
  reel::Tensor hidden(const reel::Tensor& x) const { return tanh(addmm(b, x, W)); }
  reel::Tensor operator()(const reel::Tensor& x) const { return matmul(hidden(x), V); }
};

inline std::vector<reel::Tensor> rows(std::size_t count) {
  std::vector<reel::Tensor> made(count);
  for (reel::Tensor& one : made) one = draw({1, 5});
  return made;
}

// The gradients of the sum of squares of the results, and the results.
inline std::vector<reel::Tensor> gradients_and(reel::Tape& tape, const std::vector<reel::Tensor>& made,
                                               const std::vector<reel::Tensor>& sources) {
  reel::Tensor all = concat(made, 0);
  std::vector<reel::Tensor> results = tape.gradient(sum(square(all)), sources);
  results.push_back(all);
  return results;
}

/// Checks that the values of `f` for the examples, and their gradients, are those of examples one after the other.
template <class Examples, class F>
void check_gradients(const Net& net, const Examples& examples, F f) {
  check_as_immediate([&](const reel::BatchOptions& options) {
    reel::Tape tape;
    std::vector<reel::Tensor> made = batch_map(examples, f, options);
    return gradients_and(tape, made, net.parameters());
  });
}

}  // namespace reel_test
