#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include <reel/batching.h>

#include "../core/op.h"

namespace reel::detail {

/// Why a call ran alone.
enum class Alone : std::uint8_t { op, large, scope, waited, cheaper };

/// Measures the time since it was made.
class Stopwatch {
 public:
  /// `runs`: false if the time is not needed.
  explicit Stopwatch(bool runs = true) {
    if (runs) start_ = std::chrono::steady_clock::now();
  }
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_;
};

/// Counts calls by op and line.
class ReportBuilder {
 public:
  /// `around`: of the batch_map in one of whose examples this one runs; its calls are counted there, too. Null: none.
  ReportBuilder(BatchReport& report, ReportBuilder* around) : report_(report), around_(around) {}
  void count_alone(const Call& call, Location where, Alone why);
  /// Counts one of the calls of a group. `group`: a number that no other group has.
  void count_grouped(const Call& call, Location where, std::uint64_t group);
  /// Adds the time that a call has taken.
  void count_time(const Call& call, Location where, double seconds);

 private:
  std::size_t line(const Call& call, Location where);

  BatchReport& report_;
  ReportBuilder* around_;
  std::map<std::tuple<const OpInfo*, const char*, int>, std::size_t> index_;
  std::vector<std::uint64_t> last_groups_;  // of each line
};

}  // namespace reel::detail
