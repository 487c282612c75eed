#pragma once

#include <array>

#include <reel/reel.h>

/// h(t) = a ⊙ h(t − 1) + x(t) by a kernel, or h(t) = a ⊙ h(t + 1) + x(t) if `reversed`; x: (T, N), a: (N), h: (T, N), f32 or
/// f64 on one GPU.
reel::Tensor decayed_sum_on_gpu(const reel::Tensor& x, const reel::Tensor& a, bool reversed);

/// The op of the kernel, with its gradient; on the CPU it is written with ops.
///
///     Tensor h = apply(DecayedSum(), x, a);
struct DecayedSum {
  static constexpr const char* name = "decayed_sum";
  bool reversed = false;
  struct Saved {
    reel::Tensor a, h;
  };

  reel::Tensor forward_cuda(Saved& saved, const reel::Tensor& x, const reel::Tensor& a) const {
    saved = {a, decayed_sum_on_gpu(x, a, reversed)};
    return saved.h;
  }
  reel::Tensor forward(Saved& saved, const reel::Tensor& x, const reel::Tensor& a) const {
    std::int64_t steps = x.size(0);
    std::vector<reel::Tensor> rows(static_cast<std::size_t>(steps));
    reel::Tensor h = zeros_like(a);
    for (std::int64_t i = 0; i < steps; ++i) {
      std::int64_t t = reversed ? steps - 1 - i : i;
      h = rows[static_cast<std::size_t>(t)] = a * h + x(t);
    }
    saved = {a, stack(rows)};
    return saved.h;
  }
  // The gradient g(t) of x(t) obeys g(t) = a ⊙ g(t + 1) + dh(t): the same kernel from the other end. So it has a gradient,
  // too.
  std::array<reel::Tensor, 2> gradient(const Saved& saved, const reel::Tensor& dh) const {
    using namespace reel;
    Tensor g = apply(DecayedSum{!reversed}, dh, saved.a), none = zeros_like(slice(saved.h, 0, 0, 1));
    Tensor before = reversed ? concat({slice(saved.h, 0, 1), none}) : concat({none, slice(saved.h, 0, 0, -1)});
    return {g, sum(g * before, 0)};
  }
};
