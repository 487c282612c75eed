#pragma once

#include <cstdint>

namespace reel {

/// A stream of random numbers: Philox 4×32-10 under a key. Each random call takes one call number; element i of its
/// result uses the counter (call, i), whatever the layout or the thread count.
/// Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
class Generator {
 public:
  explicit Generator(std::uint64_t seed = 0) : seed_(seed) {}
  std::uint64_t seed() const { return seed_; }
  /// The number the next random call takes.
  std::uint64_t calls() const { return calls_; }
  /// Continues from a known point of the stream.
  void set_calls(std::uint64_t calls) { calls_ = calls; }
  std::uint64_t next_call() { return calls_++; }

 private:
  std::uint64_t seed_;
  std::uint64_t calls_ = 0;
};

/// This thread's generator, which every random op uses unless it is given another. It starts with seed 0 on the first
/// thread, and with a seed of its own on each further one.
Generator& default_generator();

/// Restarts this thread's generator.
void manual_seed(std::uint64_t seed);

}  // namespace reel
