#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include <reel/reel.h>

// Gradients of a fused op, to be compared with those of plain ops.

namespace reel_test {

using Run = std::function<reel::Tensor(const std::vector<reel::Tensor>&)>;

inline std::vector<reel::Tensor> first_order(const Run& f, const std::vector<reel::Tensor>& x) {
  reel::Tape tape;
  for (const reel::Tensor& one : x) tape.watch(one);
  reel::Tensor y = f(x);
  reel::Tensor weights = reel::reshape(reel::arange(y.numel(), {.dtype = reel::f64}), y.shape()) * 0.25 - 1;
  return tape.gradient(reel::sum(y * weights), x);
}

struct Orders {
  std::vector<reel::Tensor> fused, first, second;
};

inline Orders orders(const Run& f, const std::vector<reel::Tensor>& x) {
  Orders found;
  found.fused = first_order(f, x);
  reel::Tape tape;
  for (const reel::Tensor& one : x) tape.watch(one);
  found.first = first_order(f, x);
  reel::Tensor total = reel::zeros({}, {.dtype = reel::f64});
  for (const reel::Tensor& gradient : found.first) total = total + reel::sum(reel::square(gradient));
  found.second = tape.gradient(total, x);
  return found;
}

inline double apart(const std::vector<reel::Tensor>& a, const std::vector<reel::Tensor>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    double largest = reel::max(reel::abs(b[i])).item();
    worst = std::max(worst, reel::max(reel::abs(a[i] - b[i])).item() / std::max(1.0, largest));
  }
  return worst;
}

}  // namespace reel_test
