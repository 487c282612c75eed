#pragma once

#include <functional>
#include <string>
#include <vector>

namespace reel_bench {

/// One operation that both libraries have. Its inputs are made in advance, so that only the op is timed.
struct PeerCase {
  std::string group, name;
  /// The quantity that bounds the time: bytes read and written at least, or multiplications and additions.
  double work;
  const char* unit;  ///< "GB/s" or "GFLOP/s"
  std::function<void()> ours, theirs;
};

/// Makes a case just before it runs, so that only one case's inputs are in memory.
struct PeerEntry {
  std::string group, name;
  std::function<PeerCase()> make;
};

/// Elementwise, reductions, indexing, copies, sorting, products.
std::vector<PeerEntry> op_cases();
/// The layers of networks, forward and backward.
std::vector<PeerEntry> net_cases();
/// Steps of optimisers.
std::vector<PeerEntry> optim_cases();

// The layers by family.
std::vector<PeerEntry> activation_cases();
std::vector<PeerEntry> normalise_cases();
std::vector<PeerEntry> convolve_cases();
std::vector<PeerEntry> recurrent_cases();
std::vector<PeerEntry> attend_cases();
std::vector<PeerEntry> sparse_cases();

/// Prints the cost of products with 500 different row counts relative to products with two.
void ragged_products();
/// Prints the cost of an LSTM over sequences of 200 different lengths relative to equal lengths with as many steps in all.
void ragged_lstm();

}  // namespace reel_bench
