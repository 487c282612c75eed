#pragma once

#include <reel/reel.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>
#include <vector>

namespace reel_test {

/// A tensor whose axes are permuted, cut, stepped through, reversed and repeated.
class RandomView {
 public:
  explicit RandomView(std::mt19937& random) : random_(random) {}

  /// Draws a view of normal numbers with a deviation of 3, to which `change` is applied.
  template <class Change>
  reel::Tensor operator()(reel::DType dtype, Change change) {
    static constexpr std::int64_t sizes[] = {1, 1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 40, 64, 130, 300, 1500};
    int rank = below(4) + 1;
    reel::Shape dims, order;
    std::vector<int> steps;
    for (std::int64_t all = 1; dims.rank() < rank;) {
      std::int64_t size = sizes[below(std::size(sizes))];
      if (all * size > 30000) continue;
      all *= size;
      steps.push_back(below(3) == 0 ? below(4) + 2 : 1);
      dims.push_back(size * steps.back() + below(2));
      order.push_back(order.rank());
    }
    std::shuffle(order.begin(), order.end(), random_);
    reel::Tensor x = change(reel::randn(dims) * 3.0);
    x = dtype == reel::boolean ? x > 3.0 : reel::to(x, dtype);
    for (int axis = 0; axis < rank; ++axis) {
      x = slice(x, axis, dims[axis] % steps[axis], dims[axis], steps[axis]);
      if (below(6) == 0) x = slice(x, axis, -1, -x.size(axis) - 1, -1);
      if (below(8) == 0 && x.size(axis) > 1) {
        reel::Shape repeated = x.shape();
        x = expand(slice(x, axis, 0, 1), repeated);
      }
    }
    return permute(x, order);
  }
  reel::Tensor operator()(reel::DType dtype) {
    return (*this)(dtype, [](const reel::Tensor& x) { return x; });
  }
  reel::Shape some_axes(const reel::Tensor& x) {
    reel::Shape axes;
    for (int axis = 0; axis < x.rank(); ++axis)
      if (below(2) == 0) axes.push_back(axis);
    if (axes.rank() == 0) axes.push_back(below(x.rank()));
    return axes;
  }
  int below(std::size_t n) { return static_cast<int>(random_() % n); }

 private:
  std::mt19937& random_;
};

}  // namespace reel_test
