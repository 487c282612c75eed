#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>

#include <reel/dist/group.h>
#include <reel/ops.h>

namespace reel_test {

/// The seed of random inputs, equal on all ranks: REEL_SEED of the environment, or 1. Rank 0 prints it.
inline std::uint64_t printed_seed() {
  const char* given = std::getenv("REEL_SEED");
  std::uint64_t seed = given ? std::strtoull(given, nullptr, 10) : 1;
  if (reel::dist::Group().rank() == 0) std::cout << "seed " << seed << std::endl;
  return seed;
}

/// True if every element has the value.
inline bool all_equal(const reel::Tensor& x, double value) {
  for (double element : reel::to(x, reel::f64).to_vector<double>())
    if (element != value) return false;
  return true;
}

}  // namespace reel_test
