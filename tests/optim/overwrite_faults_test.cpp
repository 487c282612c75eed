#include <reel/reel.h>

#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "catch.h"
#include "failing_allocator.h"

// Allocations that fail while tracked values are overwritten: gradients must correspond to the values afterwards.

using namespace reel;
using namespace reel_test;

namespace {

struct Overwrite {
  const char* name;
  void (*run)(Tensor& x, const Tensor& y);
};

const Tensor& mask() {
  static const Tensor values = tensor({true, false, true});
  return values;
}
const Tensor& rows() {
  static const Tensor values = tensor(std::vector<std::int64_t>{1});
  return values;
}

constexpr Overwrite overwrites[] = {
    {"add_", [](Tensor& x, const Tensor& y) { x += y; }},
    {"mul_ of itself", [](Tensor& x, const Tensor&) { x *= x; }},
    {"div_ by a row", [](Tensor& x, const Tensor& y) { x /= y(0); }},
    {"copy_", [](Tensor& x, const Tensor& y) { copy_(x, y); }},
    {"copy_ of a row", [](Tensor& x, const Tensor& y) { copy_(x, y(1)); }},
    {"fill_", [](Tensor& x, const Tensor& y) { fill_(x, y(0, 0)); }},
    {"zero_", [](Tensor& x, const Tensor&) { zero_(x); }},
    {"clamp_", [](Tensor& x, const Tensor& y) { clamp_(x, -0.5, y); }},
    {"masked_fill_", [](Tensor& x, const Tensor& y) { masked_fill_(x, mask(), y(0, 0)); }},
    {"index_put_", [](Tensor& x, const Tensor& y) { index_put_(x, {{rows()}}, y(0)); }},
    {"a row's copy_", [](Tensor& x, const Tensor& y) { x(0) = y(1); }},
    {"a row's mul_", [](Tensor& x, const Tensor& y) { x(1) *= y(0); }},
    {"a number's add_", [](Tensor& x, const Tensor& y) { x(1, 2) += y(0, 0); }},
};

using Numbers = std::vector<float>;

Numbers numbers_of(const Tensor& x) { return x.to_vector<float>(); }

Tensor matrix() { return reshape(arange(6.0), {2, 3}); }

// x after an overwrite, and the gradients of Σ x² w by the two tensors from which x is computed.
struct Outcome {
  Numbers values;
  std::vector<Numbers> gradients;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome_of(Tape& tape, const Tensor& x, const std::vector<Tensor>& sources) {
  Outcome outcome{numbers_of(x), {}};
  Tensor weights = matrix() + 1;
  // A tensor overwritten by constants is not tracked any more.
  Tensor target = sum(square(x) * weights) + sum(sources[0] * 0);
  for (const Tensor& gradient : tape.gradient(target, sources, {.unconnected = Unconnected::zeros}))
    outcome.gradients.push_back(numbers_of(gradient));
  return outcome;
}

// The target and the value of an overwrite, on a tape that has recorded `before` ops.
struct Recorded {
  explicit Recorded(int ops = 0) {
    tape.watch(a);
    tape.watch(b);
    x = a * 0.5;
    y = b * 2;
    for (int i = 0; i < ops; ++i) static_cast<void>(a * b);
  }
  Outcome outcome() { return outcome_of(tape, x, {a, b}); }

  Tensor a = matrix() - 2, b = matrix() * 0.25 + 1, x, y;
  Tape tape;
};

// The number of ops that a tape records before it allocates more memory.
int ops_before_growth() {
  Recorded recorded;
  std::size_t first = recorded.tape.capacity();
  for (int ops = 0;; ++ops) {
    static_cast<void>(recorded.a * recorded.b);
    if (recorded.tape.capacity() > 2 * first) return ops;
  }
}

// The outcome when the allocation `index` fails. `failed`: true if it was reached.
std::string fault_of(const Overwrite& overwrite, int ops, long index, Fault kind, const Outcome& before,
                     const Outcome& after, bool& failed) {
  Recorded recorded(ops);
  fail_allocation(index, kind);
  bool threw = false;
  std::string fault;
  try {
    overwrite.run(recorded.x, recorded.y);
  } catch (const MemoryError&) {
    threw = true;
  } catch (const std::exception& error) {
    Uncounted own;
    fault = fmt::format("{} instead of a MemoryError", error.what());
  }
  stop_failing();
  failed = has_failed();
  if (!fault.empty()) return fault;
  try {
    Outcome outcome = recorded.outcome();
    if (outcome == after || (threw && outcome == before)) return {};
    return fmt::format("{}, and the gradients are not those of the values",
                       outcome.values == before.values ? "x is as it was" : "x is overwritten");
  } catch (const TapeError&) {
    return threw ? "" : "it ran, but cannot be differentiated";
  }
}

}  // namespace

TEST_CASE("an overwrite that gets no memory leaves values with the gradients of what they are") {
  std::thread([] {
    release_memory_cache();
    set_memory_cache_limit(0);
    mask(), rows();
    int full = ops_before_growth();
    long reached = 0;
    for (const Overwrite& overwrite : overwrites) {
      Outcome ends[2];
      for (bool overwritten : {false, true}) {
        Recorded recorded;
        if (overwritten) overwrite.run(recorded.x, recorded.y);
        ends[overwritten] = recorded.outcome();
      }
      for (int ops : {0, full - 2, full - 1, full})
        for (Fault kind : {Fault::once, Fault::from_then_on}) {
          bool failed = true;
          for (long index = 0; failed; ++index) {
            release_memory_cache();  // the tape's own
            std::string fault = fault_of(overwrite, ops, index, kind, ends[0], ends[1], failed);
            reached += failed;
            if (fault.empty()) continue;
            UNSCOPED_INFO(fmt::format("{} after {} ops, allocation {}: {}", overwrite.name, ops, index, fault));
            CHECK(fault == "");
          }
        }
    }
    CHECK(reached > 0);
  }).join();
}
