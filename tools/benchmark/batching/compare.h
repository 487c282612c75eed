#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "../models/examples.h"
#include "../peer/timing.h"

namespace reel_bench {

/// One of the programs that a comparison runs alternately.
struct Program {
  std::string name;
  Work run;
  double operations;   ///< in one run, of the comparison's unit
  bool result = true;  ///< whether its first result must be that of the comparison's others
};

/// The quantity whose ratio compares two programs.
enum class RatioKind : std::uint8_t {
  speed,  ///< its operations per second over the other's; the goal is the least
  time,   ///< its time over the other's; the goal is the most
  added,  ///< the nanoseconds by which an operation takes longer; the goal is the most
};
struct Ratio {
  std::size_t program, other;
  std::string of;  ///< what the other one is called here
  RatioKind kind = RatioKind::speed;
  double goal = 0;  ///< 0: none
};

/// Programs of equal results, timed alternately.
struct Comparison {
  std::string name, unit;  ///< unit: of what is counted
  std::vector<Program> programs;
  std::vector<Ratio> ratios;
  std::vector<std::string> notes;
};

/// The goals missed, and results that are not what they should be.
struct Outcome {
  int missed = 0, wrong = 0;
};

/// Times a comparison's programs with each number of threads and prints their medians and ratios.
void compare(const Comparison& comparison, const std::vector<int>& thread_counts, Outcome& outcome);

/// Compares the Tree-LSTM's losses of two epochs with the published ones and prints them.
void check_tree_losses(Outcome& outcome);
/// The Tree-LSTM beside programs batched by hand.
std::vector<Comparison> tree_comparisons();
/// Control flow by values just computed, and DyNet's other workloads.
std::vector<Comparison> branch_comparisons();
std::vector<Comparison> grouped_comparisons();
/// Programs that gain nothing from groups.
std::vector<Comparison> ungrouped_comparisons();

/// Prints the time of nets of several widths and numbers of examples over that of the plain loop.
void compare_sizes(Outcome& outcome);

/// Another library's training of the Tree-LSTM by level.
struct PeerTrees {
  std::string name;
  /// One pass over the trees in minibatches; the sum of the losses.
  std::function<double(const std::vector<Tree>& trees, int minibatch)> epoch;
};
/// A new one; none if the program compares reel with itself only. Each program defines it.
std::optional<PeerTrees> peer_trees();

}  // namespace reel_bench
