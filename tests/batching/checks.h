#pragma once

#include <reel/batching.h>
#include <reel/reel.h>

#include <functional>
#include <string>
#include <vector>

#include "catch.h"

namespace reel_test {

/// Random numbers of f64, whose rounding is far below that of mistakes.
inline reel::Tensor draw(const reel::Shape& shape) { return reel::randn(shape, {.dtype = reel::f64}); }

/// Counts the objects that are alive on the stacks of examples.
struct Counted {
  int& alive;
  explicit Counted(int& count) : alive(count) { ++alive; }
  ~Counted() { --alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
};

/// Sets the cost of groups while it lives.
struct GroupCost {
  double before = reel::group_cost();
  explicit GroupCost(double factor) { reel::set_group_cost(factor); }
  ~GroupCost() { reel::set_group_cost(before); }
  GroupCost(const GroupCost&) = delete;
  GroupCost& operator=(const GroupCost&) = delete;
};

/// 0, 1, … count − 1.
inline std::vector<int> numbers(int count) {
  std::vector<int> made;
  for (int i = 0; i < count; ++i) made.push_back(i);
  return made;
}

/// Checks that tensors are equal up to rounding: |found − expected| ≤ bound (1 + |expected|).
inline void check_close(const std::vector<reel::Tensor>& found, const std::vector<reel::Tensor>& expected,
                        double bound = 1e-12) {
  REQUIRE(found.size() == expected.size());
  reel::NoRecord paused;
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    REQUIRE(found[i].defined() == expected[i].defined());
    if (!found[i].defined()) continue;
    REQUIRE(found[i].shape() == expected[i].shape());
    REQUIRE(found[i].dtype() == expected[i].dtype());
    if (found[i].numel() == 0) continue;
    reel::Tensor a = reel::to(found[i], reel::f64), b = reel::to(expected[i], reel::f64);
    CHECK(reel::max(reel::abs(a - b) / (1 + reel::abs(b))).item() <= bound);
  }
}

/// Runs `f`, which calls batch_map with the given options, for several numbers of examples in flight, and checks that
/// its results are those of examples one after the other. At least one op must have run for several examples.
inline void check_as_immediate(const std::function<std::vector<reel::Tensor>(const reel::BatchOptions&)>& f,
                               double bound = 1e-12) {
  reel::manual_seed(11);
  std::vector<reel::Tensor> expected = f({.immediate = true});
  for (std::int64_t in_flight : {1, 3, 256}) {
    CAPTURE(in_flight);
    reel::BatchReport report;
    reel::manual_seed(11);
    std::vector<reel::Tensor> found = f({.in_flight = in_flight, .report = &report});
    check_close(found, expected, bound);
    std::int64_t groups = 0;
    for (const reel::BatchedLine& line : report.lines) groups += line.groups;
    CHECK((groups > 0 || in_flight == 1));
  }
}

/// A line of a file as errors show it.
inline std::string line_of(const char* file, int line) { return reel::to_string(reel::Location{file, line}); }

}  // namespace reel_test
