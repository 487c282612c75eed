#pragma once

#include <algorithm>
#include <vector>

#include <reel/reel.h>

#include "catch.h"
#include "ops/table/table.h"

// Gradients of a fused op, to be compared with those of plain ops.

namespace reel_test {

inline std::vector<reel::Tensor> first_order(const Function& f, const std::vector<reel::Tensor>& x) {
  reel::Tape tape;
  for (const reel::Tensor& one : x) tape.watch(one);
  reel::Tensor y = f(x), weights = reshape(cos(reel::arange(y.numel(), {.dtype = y.dtype()}) * 1.3), y.shape());
  return tape.gradient(sum(y * weights), x, {.unconnected = reel::Unconnected::zeros});
}

/// Gradients that nothing records, those that an outer tape records, and those of the sum of their squares.
struct Orders {
  std::vector<reel::Tensor> fused, first, second;
};

inline Orders orders(const Function& f, const std::vector<reel::Tensor>& x) {
  Orders found;
  found.fused = first_order(f, x);
  reel::Tape tape;
  for (const reel::Tensor& one : x) tape.watch(one);
  found.first = first_order(f, x);
  reel::Tensor total = 0 * sum(x[0]);  // depends on x even if a gradient does not
  for (const reel::Tensor& gradient : found.first) total = total + sum(square(gradient));
  found.second = tape.gradient(total, x, {.unconnected = reel::Unconnected::zeros});
  return found;
}

inline double apart(const std::vector<reel::Tensor>& a, const std::vector<reel::Tensor>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].shape() == b[i].shape());
    if (a[i].numel() == 0) continue;
    double distance = max(abs(a[i] - b[i])).item() / std::max(1.0, max(abs(b[i])).item());
    if (!(distance <= worst)) worst = distance;
  }
  return worst;
}

struct Bounds {
  double value = 1e-13, first = 1e-12, second = 1e-10;  // some dozens of roundings each
};

/// Checks that a fused function has the values and the gradients of a plain one, to first and second order.
inline void check_orders(const Function& fused, const Function& plain, const std::vector<reel::Tensor>& x,
                         Bounds bounds = {}) {
  CHECK(apart({fused(x)}, {plain(x)}) < bounds.value);
  Orders found = orders(fused, x), expected = orders(plain, x);
  CHECK(apart(found.fused, expected.fused) < bounds.first);
  CHECK(apart(found.first, expected.first) < bounds.first);
  CHECK(apart(found.second, expected.second) < bounds.second);
}

}  // namespace reel_test
