#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include <reel/batching.h>

#include "../core/op.h"

namespace reel::detail {

/// Why a call ran alone.
enum class Alone : std::uint8_t { op, large, scope, waited };

/// Counts calls by op and line.
class ReportBuilder {
 public:
  explicit ReportBuilder(BatchReport& report) : report_(report) {}
  void count_alone(const Call& call, Location where, Alone why);
  void count_group(const Call& call, Location where, std::size_t size);

 private:
  BatchedLine& line(const Call& call, Location where);

  BatchReport& report_;
  std::map<std::tuple<const OpInfo*, const char*, int>, std::size_t> index_;
};

}  // namespace reel::detail
