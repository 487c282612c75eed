#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <reel/debug/recorded_run.h>

namespace reel::debug {

/// Options of `diff`.
struct DiffOptions {
  /// The largest difference of two numbers that are treated as equal, for kept values, minimum, maximum, mean and norm, in
  /// addition to `relative`. Default 0, and then fingerprints are compared.
  double tolerance = 0;
  /// The largest difference of two numbers that are treated as equal, as a fraction of the larger magnitude. Default 0, and
  /// then fingerprints are compared.
  double relative = 0;
  /// Whether lines may differ, for runs before and after a change of the program. Default false.
  bool ignore_lines = false;
  /// The largest number of differences that are kept. Default 10.
  std::size_t most = 10;
};

/// Two ops, one of each run, that differ.
struct OpDifference {
  /// How two ops differ.
  enum class Kind : std::uint8_t {
    values,  ///< an output has other values
    op,      ///< the runs execute different ops from here on: another name, line, module, or other shapes
    end,     ///< one run ends here
  };
  Kind kind = Kind::values;  ///< how they differ
  std::uint64_t a = 0;       ///< the id of the op in the first run; 0: the run has ended
  std::uint64_t b = 0;       ///< the id of the op in the second run; 0: the run has ended
  std::uint32_t output = 0;  ///< for values, the index of the first output that differs
  std::string description;   ///< the op of the first run, and what differs
};

/// The differences between two runs.
struct RunDifference {
  std::vector<OpDifference> first;  ///< the first differences, in the order of execution; empty if there is none
  std::uint64_t differing = 0;      ///< the number of ops whose values differ
  std::uint64_t compared = 0;       ///< the number of ops that both runs have

  /// True if the runs do not differ.
  bool equal() const { return first.empty(); }
};

/// Compares two recorded runs op by op, in the order of execution, from the first op that both have. The first
/// difference is the op from which they diverge: its inputs are equal, unless it is a source, such as other data or
/// other weights. Ops that differ in more than their values end the comparison. With a tolerance, numbers are compared
/// instead of fingerprints: values where both runs kept them, else statistics. For runs on different devices, forward ops,
/// parameters and complete gradients are compared, with a tolerance. Throws: Error for a negative tolerance.
RunDifference diff(const RecordedRun& a, const RecordedRun& b, const DiffOptions& options = {},
                   Location where = Location::here());

/// The differences as text, one paragraph for each, or a sentence that there is none.
std::string to_string(const RunDifference& difference);

}  // namespace reel::debug
