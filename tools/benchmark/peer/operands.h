#pragma once

#include <ATen/ATen.h>

#include <c10/core/InferenceMode.h>
#include <reel/reel.h>

namespace reel_bench {

/// A case's operand, with equal values in both libraries.
struct Pair {
  reel::Tensor ours;
  at::Tensor theirs;
};

Pair both(reel::Tensor ours);
/// Uniform on [low, high).
Pair numbers(const reel::Shape& shape, double low = 0.1, double high = 0.9);
/// Integers (i64) in [0, below).
Pair indices(std::int64_t count, std::int64_t below);

/// Enables libtorch's recording during its lifetime, like an open tape of reel. Operands that libtorch saves must
/// be made under one, too.
struct TorchRecords {
  c10::InferenceMode off{false};
};

}  // namespace reel_bench
