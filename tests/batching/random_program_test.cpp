#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <reel/threads.h>

#include "batching/random_program.h"
#include "failing_allocator.h"

// Random programs with branches that read what they have just computed: batched as one after the other.
// REEL_RANDOM_PROGRAMS=n runs n programs in place of 1,000; REEL_RANDOM_SEED=s begins with the s-th;
// REEL_RANDOM_FEATURES=f chooses other features, as bits.

namespace reel_test {

using namespace reel;

namespace {

constexpr unsigned all_features = 2 * allocations - 1;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* given = std::getenv(variable);
  return given ? std::strtoull(given, nullptr, 10) : otherwise;
}

std::uint64_t first_program() { return number_from("REEL_RANDOM_SEED", 1); }
std::uint64_t program_count() { return number_from("REEL_RANDOM_PROGRAMS", 1000); }
unsigned features() { return static_cast<unsigned>(number_from("REEL_RANDOM_FEATURES", all_features)); }

void check_alike(const Outcome& found, const Outcome& expected) {
  CHECK(found.texts == expected.texts);
  if (found.texts == expected.texts) check_close(found.tensors, expected.tensors, 1e-9);
}

struct InvariantBatches : detail::Immovable {
  explicit InvariantBatches(bool wanted) { set_batch_invariant(wanted); }
  ~InvariantBatches() { set_batch_invariant(false); }
};

bool same_bits(const Tensor& a, const Tensor& b) {
  std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  return a.shape() == b.shape() && std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
}

// The error that a run in a new thread, one of whose allocations fails, throws: empty, or its name.
std::string thrown_without_memory(const Program& program, const Parameters& parameters, long allocation, Fault fault) {
  std::string thrown;
  std::thread([&] {
    fail_allocation(allocation, fault);
    try {
      Outcome outcome = outcome_of(program, parameters, {});
      if (outcome.tensors.empty()) thrown = outcome.texts[0];
    } catch (const std::bad_alloc&) {
      thrown = "std::bad_alloc";
    }
    stop_failing();
  }).join();
  return thrown;
}

}  // namespace

TEST_CASE("random programs with branches by value give in a batch what they give alone, with gradients") {
  std::uint64_t exact = 0;
  for (std::uint64_t seed = first_program(); seed < first_program() + program_count(); ++seed) {
    Program program(seed, features());
    CAPTURE(seed, program.features);
    Parameters parameters;
    auto in_flight = static_cast<std::int64_t>(1 + seed % 7);
    // The tapes of a verification begin new periods, so that a late watch names the use after the last of them.
    bool verified = seed % 32 == 0 && !program.has(late_watch);
    // Gradients are sums over examples, which are rounded otherwise; some programs compute with them.
    bool differentiates = program.has(scopes) || program.has(outer_tape) || program.has(hooks);
    // A tensor that is watched before a checkpoint runs again is in other groups then.
    bool regroups = program.around == Around::checkpoint && program.has(late_watch);
    InvariantBatches invariant(!differentiates || regroups);
    // All calls are joined that can be; chains that begin with a product; none.
    constexpr double factors[] = {0, 1e-4, 1};
    GroupCost cost(factors[seed / 7 % 3]);
    Outcome expected = outcome_of(program, parameters, {.immediate = true});
    Outcome found = outcome_of(program, parameters, {.in_flight = in_flight, .verify = verified});
    check_alike(found, expected);
    if (differentiates || !expected.values.defined() || !found.values.defined()) continue;
    CHECK(same_bits(found.values, expected.values));
    ++exact;
  }
  CHECK((exact * 20 > program_count() || program_count() < 100));
}

TEST_CASE("an exception at any step of a random program ends all examples and leaves no tensor behind") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    // Within NoRecord a step that opens a tape would throw in the first example.
    Program program(seed, features() & ~around);
    Parameters parameters;
    program.stopped = program.inputs.size() / 2;
    program.stopping = Stopping::exception;
    for (program.stops_at = 0;; ++program.stops_at) {
      CAPTURE(seed, program.features, program.stops_at);
      for (const Tensor& parameter : parameters.all()) parameter.set_grad({});
      std::int64_t before = memory_statistics().live_tensors;
      std::vector<std::string> texts = outcome_of(program, parameters, {}).texts;
      for (const Tensor& parameter : parameters.all()) parameter.set_grad({});
      CHECK(memory_statistics().live_tensors == before);
      if (texts.size() != 1 || texts[0] != "stopped") break;
    }
    CHECK(program.stops_at > 0);
  }
}

TEST_CASE("a random program without memory for an allocation throws a MemoryError, and its next run is right") {
  if (!(features() & allocations)) return;
  int failures = 0;
  for (std::uint64_t seed = first_program(); seed < first_program() + program_count() / 20; ++seed) {
    // An example would go on after a MemoryError that it takes for one of its own, and debug's scopes throw std::bad_alloc.
    Program program(seed, features() & ~(exceptions | listeners | around));
    CAPTURE(seed, program.features);
    Parameters parameters;
    GroupCost cost(seed % 3 == 0 ? 1e-4 : 0);
    Outcome expected = outcome_of(program, parameters, {.immediate = true});
    auto allocation = static_cast<long>(seed * 7919 % 300);
    std::string thrown =
        thrown_without_memory(program, parameters, allocation, seed % 2 ? Fault::once : Fault::from_then_on);
    CAPTURE(allocation, thrown);
    bool for_memory = thrown.find(": there is no memory") != std::string::npos;
    CHECK((for_memory || thrown.empty() || thrown == expected.texts[0]));
    failures += for_memory;
    check_alike(outcome_of(program, parameters, {}), expected);
  }
  CHECK(failures > 0);
}

}  // namespace reel_test
