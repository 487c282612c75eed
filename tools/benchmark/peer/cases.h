#pragma once

#include <functional>
#include <string>
#include <vector>

namespace reel_bench {

/// One thing that both libraries do. Inputs are made when the case is, so that only the op is timed.
struct PeerCase {
  std::string group, name;
  /// Bytes read and written at least, or multiplications and additions: what bounds the time.
  double work;
  const char* unit;  ///< "GB/s" or "GFLOP/s"
  std::function<void()> ours, theirs;
};

/// Makes a case when it is its turn, so that only one case's inputs are in memory.
struct PeerEntry {
  std::string group, name;
  std::function<PeerCase()> make;
};

/// Elementwise, reductions, indexing, copies, sorting, products.
std::vector<PeerEntry> op_cases();
/// Those of a network's layers, forward and backward.
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

/// Prints what products of 500 different row counts cost beside products of one.
void ragged_products();
/// Prints what an LSTM over sequences of 200 different lengths costs beside one over as many steps of equal ones.
void ragged_lstm();

}  // namespace reel_bench
