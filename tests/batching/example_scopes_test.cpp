#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "batching/checks.h"
#include "core/device/device_module.h"
#include "debug/temporary_file.h"

// Scopes that examples open: each holds for its own example, however the examples take turns.

namespace reel_test {

using namespace reel;

namespace {

const std::vector<BatchOptions>& modes() {
  static const std::vector<BatchOptions> all{{.immediate = true}, {.in_flight = 1}, {.in_flight = 3}, {}};
  return all;
}

Tensor chain(Tensor x, int length) {
  for (int i = 0; i < length; ++i) x = tanh(x);
  return x;
}

// The scopes that a random program may open, one at a time.
struct Opened {
  explicit Opened(std::uint64_t kind, std::vector<int>& counts) {
    std::size_t own = counts.size();
    switch (kind % 7) {
      case 0: {
        counts.push_back(0);
        listen.emplace([&counts, own](const debug::OpEvent& event) { counts[own] += std::string(event.op) == "tanh"; });
        return;
      }
      case 1: {
        counts.push_back(0);
        placement.emplace([&counts, own](const std::string& line) { counts[own] += line.find("tanh") != line.npos; });
        return;
      }
      case 2: {
        counts.push_back(0);
        sync.emplace([&counts, own](const std::string&) { ++counts[own]; });
        return;
      }
      case 3: paused.emplace(); return;
      case 4: cast.emplace(bf16, Location::here()); return;
      case 5: cast.emplace(f32, Location::here()); return;
      default: anomaly.emplace(debug::AnomalyOptions{.infinities = false}); return;
    }
  }
  std::optional<debug::Listen> listen;
  std::optional<debug::PlacementScope> placement;
  std::optional<debug::SyncScope> sync;
  std::optional<debug::AnomalyScope> anomaly;
  std::optional<NoRecord> paused;
  std::optional<AutocastScope> cast;
};

// Opens and closes scopes in any order between ops; returns what it sees of them, and what they have counted.
class ScopedProgram {
 public:
  ScopedProgram(std::uint64_t seed, const Tensor& W, const BatchOptions& options, int depth)
      : random_(seed), W_(W), options_(options), depth_(depth) {}

  std::vector<int> run(int steps) {
    for (int i = 0; i < steps; ++i) step(random_());
    while (!open_.empty()) open_.pop_back();
    seen_.insert(seen_.end(), counts_.begin(), counts_.end());
    return seen_;
  }

 private:
  void step(std::uint64_t choice) {
    switch (choice % 10) {
      case 0:
      case 1:
      case 2: open_.push_back(std::make_unique<Opened>(choice >> 8, counts_)); return;
      case 3:
      case 4:
        if (!open_.empty()) open_.erase(open_.begin() + static_cast<std::ptrdiff_t>((choice >> 8) % open_.size()));
        return;
      case 5: return inner(choice);
      case 6: detail::notify_wait(cpu, "a test"); return;
      default: {
        x_ = tanh(x_ * 2);
        Tensor product = matmul(reshape(x_, {1, 3}), W_);
        seen_.push_back(product.dtype() == bf16 ? 16 : 32);
        seen_.push_back(is_recording());
        return;
      }
    }
  }
  // Scopes of the example are around what it starts, and those of what it starts are not around the example.
  void inner(std::uint64_t choice) {
    if (depth_ == 2) return;
    auto run = [&](int i) { return ScopedProgram(choice + i, W_, options_, depth_ + 1).run(8); };
    std::vector<std::vector<int>> made;
    if (choice >> 8 & 1)
      made = batch_map(numbers(2), run, options_);
    else
      for (auto [first, second] = both([&] { return run(0); }, [&] { return run(1); });
           std::vector<int> * one : {&first, &second})
        made.push_back(*one);
    for (const std::vector<int>& one : made) seen_.insert(seen_.end(), one.begin(), one.end());
  }

  std::mt19937_64 random_;
  const Tensor& W_;
  const BatchOptions& options_;
  int depth_;
  Tensor x_ = full({3}, 0.5);
  std::vector<int> seen_, counts_;
  std::vector<std::unique_ptr<Opened>> open_;
};

}  // namespace

TEST_CASE("scopes that examples open and close at random hold in each as where it runs alone") {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    Tensor W = full({3, 3}, 0.3).requires_grad();
    int events = 0;
    auto run = [&](const BatchOptions& options) {
      Tape tape;
      debug::Listen around([&](const debug::OpEvent& event) { events += std::string(event.op) == "tanh"; });
      return batch_map(
          numbers(5), [&](int i) { return ScopedProgram(seed * 100 + i, W, options, 0).run(20); }, options);
    };
    std::vector<std::vector<int>> expected = run({.immediate = true});
    int expected_events = std::exchange(events, 0);
    for (std::int64_t in_flight : {2, 64}) {
      CAPTURE(in_flight);
      CHECK(run({.in_flight = in_flight}) == expected);
      CHECK(std::exchange(events, 0) == expected_events);
    }
  }
}

TEST_CASE("the options of one example's anomaly detection do not hold for another") {
  for (const BatchOptions& options : modes()) {
    CAPTURE(options.in_flight, options.immediate);
    // Only example 0 forbids infinities.
    auto run = [&](int infinite) {
      return batch_map(
          numbers(4),
          [&](int i) {
            auto scope = debug::detect_anomaly({.infinities = i == 0});
            return sum(log(square(full({2}, i == infinite ? 0.0 : 1.0))));
          },
          options);
    };
    CHECK(run(2)[2].item() == -std::numeric_limits<double>::infinity());
    std::string text = error_of<AnomalyError>([&] { run(0); });
    CHECK_THAT(text, contains("log: gave 2 Inf"));
    CHECK_THAT(text, contains("in example 0 of the batch_map"));
  }
}

TEST_CASE("an anomaly of an example ends the others while their own detection is open") {
  for (const BatchOptions& options : modes()) {
    CAPTURE(options.in_flight, options.immediate);
    std::string text = error_of<AnomalyError>([&] {
      batch_map(
          numbers(6),
          [&](int i) {
            auto scope = debug::detect_anomaly();
            Tensor x = chain(full({2}, 0.5), i % 3);
            return chain(sum(log(square(x * (i == 2 ? 0.0 : 1.0)))), 2);
          },
          options);
    });
    CHECK_THAT(text, contains("in example 2 of the batch_map"));
    // Nothing is left open.
    CHECK(std::isinf(log(zeros({1})).item()));
  }
}

TEST_CASE("a profile of an example counts its own calls") {
  for (const BatchOptions& options : modes()) {
    CAPTURE(options.in_flight, options.immediate);
    std::vector<std::int64_t> calls = batch_map(
        numbers(5),
        [&](int i) {
          debug::Profile profile;
          Tensor x = chain(full({2}, 0.5), 3 + i);
          both([&] { return chain(x, 2); }, [&] { return chain(x * 2, 2); });
          profile.stop();
          chain(x, 4);
          std::int64_t found = 0;
          for (const debug::ProfileRow& row : profile.rows(debug::ProfileBy::op))
            if (row.name == "tanh") found = row.calls;
          return found;
        },
        options);
    CHECK(calls == std::vector<std::int64_t>{7, 8, 9, 10, 11});
  }
}

TEST_CASE("a profile around a batch measures its groups below other listeners, and what runs alone") {
  auto calls_of = [](const debug::Profile& profile, const char* op) {
    for (const debug::ProfileRow& row : profile.rows(debug::ProfileBy::op))
      if (row.name == op) return row.calls;
    return std::int64_t{0};
  };
  debug::Profile outer;
  debug::Profile profile;
  auto anomaly = debug::detect_anomaly();
  batch_map(numbers(8), [](int) {
    auto own = debug::detect_anomaly();
    return tanh(copy(tanh(ones({1, 4}))));
  });
  for (const debug::Profile* one : {&outer, &profile}) {
    CHECK(calls_of(*one, "tanh") == 2);
    CHECK(calls_of(*one, "copy") == 8);
    CHECK(calls_of(*one, "batch") >= 1);
  }
}

TEST_CASE("a recording of an example has its own ops") {
  for (const BatchOptions& options : modes()) {
    CAPTURE(options.in_flight, options.immediate);
    std::deque<TemporaryFile> files;
    for (int i = 0; i < 3; ++i) files.emplace_back(".reel");
    batch_map(
        numbers(3),
        [&](int i) {
          auto note = debug::note("example", i);
          debug::Recording recording(files[static_cast<std::size_t>(i)].path());
          return chain(full({2}, 0.5), 2 + i);
        },
        options);
    for (int i = 0; i < 3; ++i) {
      debug::RecordedRun run = debug::RecordedRun::read(files[static_cast<std::size_t>(i)].path());
      int found = 0;
      for (const debug::RecordedOp& op : run.ops()) {
        found += op.op == "tanh";
        CHECK(op.notes == "example = " + std::to_string(i));
      }
      CHECK(found == 2 + i);
    }
  }
}

TEST_CASE("what an example leaves open ends with it") {
  for (std::int64_t in_flight : {1, 2, 64}) {
    std::deque<NoRecord> paused;
    std::deque<std::optional<debug::Listen>> listeners(6);
    int events = 0;
    Tensor W = ones({2}).requires_grad();
    Tape tape;
    std::vector<Tensor> made =
        batch_map(numbers(6),
                  [&](int i) {
                    Tensor y = tanh(W * double(i + 1));
                    if (i % 2 == 0) paused.emplace_back();
                    if (i % 2 == 1)
                      listeners[static_cast<std::size_t>(i)].emplace([&](const debug::OpEvent&) { ++events; });
                    return tanh(y);
                  },
                  {.in_flight = in_flight});
    CHECK(events == 3);
    CHECK(is_recording());
    // In the even ones nothing was recorded any more.
    CHECK_THROWS_AS(tape.gradient(sum(made[2]), W), TapeError);
    std::vector<Tensor> odd{made[1], made[3], made[5]};
    CHECK(tape.gradient(sum(stack(odd)), W).defined());
    CHECK(events == 3);
  }
}

TEST_CASE("a scope around a batch that an example ends has ended for all") {
  Tensor W = ones({2}).requires_grad();
  for (bool with_both : {false, true}) {
    Tape tape;
    std::optional<NoRecord> paused(std::in_place);
    int events = 0;
    auto listen = std::make_unique<debug::Listen>(
        [&](const debug::OpEvent& event) { events += std::string(event.op) == "tanh"; });
    auto f = [&](int i) {
      Tensor y = tanh(W);
      if (i == 1) paused.reset(), listen.reset();
      y = W * 2;
      CHECK(is_recording());
      return y;
    };
    if (with_both)
      batch_map(numbers(2), [&](int k) { both([&] { return f(2 * k); }, [&] { return f(2 * k + 1); }); });
    else
      batch_map(numbers(4), f);
    // Only scopes that had called tanh before have events.
    CHECK(events == (with_both ? 1 : 2));
    CHECK(is_recording());
    CHECK(tape.gradient(sum(W * 3), W).defined());
  }
}

TEST_CASE("notes of an example end in any order and are its own") {
  std::vector<std::string> texts = batch_map(numbers(4), [](int i) {
    std::optional<debug::Note> first, second;
    first.emplace("first", debug::Note::Value(std::int64_t{i}));
    Tensor x = tanh(full({2}, 0.5));
    second.emplace("second", debug::Note::Value(std::int64_t{10 * i}));
    first.reset();
    x = tanh(x);
    return error_of<ShapeError>([&] { matmul(x, ones({3})); });
  });
  for (int i = 0; i < 4; ++i) {
    CHECK_THAT(texts[static_cast<std::size_t>(i)], contains("second = " + std::to_string(10 * i)));
    CHECK_THAT(texts[static_cast<std::size_t>(i)], !contains("first"));
  }
}

}  // namespace reel_test
