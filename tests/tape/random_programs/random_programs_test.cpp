#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <unordered_set>

#include <reel/reel.h>

#include "catch.h"
#include "comparison.h"
#include "generator.h"
#include "interpreter.h"
#include "shrinker.h"

// Random programs of views, in-place functions, nested tapes, checkpoints, hooks, custom gradients and mistakes, against
// an interpreter that shares no code with the library. REEL_RANDOM_PROGRAMS=n runs n programs in place of 10,000, and
// says how many there were; REEL_RANDOM_PROGRAM=seed runs one, and prints it.

namespace {

using namespace reel_test::programs;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Describes a failure, with the smallest program in which it occurs.
std::string report(const Program& program, std::uint64_t seed, const std::string& difference_found) {
  Program smallest = shrunk(program, [&](const Program& candidate) { return !difference(candidate, seed).empty(); });
  return "REEL_RANDOM_PROGRAM=" + std::to_string(seed) + "\n" + to_string(smallest) + difference(smallest, seed) +
         "\n(before it was shrunk: " + difference_found + ")";
}

}  // namespace

TEST_CASE("random programs do what an independent interpreter of memory, tapes and derivatives says") {
  // Each program looks at all live tensors, which takes as long as there is memory kept from other tests.
  reel::release_memory_cache();
  std::uint64_t only = number_from("REEL_RANDOM_PROGRAM", 0);
  std::uint64_t first = only ? only : 1, count = only ? 1 : number_from("REEL_RANDOM_PROGRAMS", 10'000);
  int failures = 0;
  std::uint64_t done = 0;
  std::unordered_set<std::size_t> different;
  for (std::uint64_t seed = first; seed < first + count && failures < 3; ++seed) {
    Program program = random_program(seed);
    ++done;
    different.insert(std::hash<std::string>()(to_string(program)));
    if (only) std::cout << to_string(program);
    std::string found = difference(program, seed);
    if (found.empty()) continue;
    ++failures;
    FAIL_CHECK(report(program, seed, found));
  }
  if (std::getenv("REEL_RANDOM_PROGRAMS"))
    std::cout << done << " random programs ran, " << different.size() << " of them different; " << failures
              << " failed\n";
  CHECK(failures == 0);
}

TEST_CASE("random programs contain every instruction, and come to every outcome") {
  std::map<Op, int> done;
  std::map<Outcome, int> outcomes;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Interpreter model(seed);
    for (const Instruction& instruction : random_program(seed)) {
      Outcome outcome = model.run(instruction);
      ++outcomes[outcome];
      done[instruction.op] += outcome == Outcome::done;
    }
  }
  for (int op = 0; op <= static_cast<int>(Op::hook_op); ++op) {
    CAPTURE(op);
    CHECK(done[static_cast<Op>(op)] >= 5);
  }
  for (Outcome outcome : {Outcome::tape_error, Outcome::shape_error, Outcome::user_error, Outcome::may_tape_error})
    CHECK(outcomes[outcome] > 0);
}
