#pragma once

#include <cstdint>

namespace reel {

/// A stream of random numbers: Philox 4×32-10 under a key. Each random call takes one call number; element i of its
/// result uses the counter (call, i), whatever the layout or the thread count.
/// Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
class Generator {
 public:
  /// A stream with the given seed, at its beginning.
  explicit Generator(std::uint64_t seed = 0) : seed_(seed) {}
  /// The seed.
  std::uint64_t seed() const { return seed_; }
  /// The number that the next random call takes.
  std::uint64_t calls() const { return calls_; }
  /// Continues the stream from a known call number.
  void set_calls(std::uint64_t calls) { calls_ = calls; }
  /// Takes a call number: returns it, and counts on.
  std::uint64_t next_call() { return calls_++; }

 private:
  std::uint64_t seed_;
  std::uint64_t calls_ = 0;
};

/// This thread's generator, which every random op uses unless it is given another. It starts with seed 0 on the first
/// thread, and with a different seed on each further one.
Generator& default_generator();

/// Restarts this thread's generator with the given seed.
void manual_seed(std::uint64_t seed);

}  // namespace reel
