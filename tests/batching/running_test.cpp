#include <reel/batching.h>
#include <reel/reel.h>

#include <algorithm>
#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "checks.h"

// Threads, batches within batches, depth, memory, options and the report.

using namespace reel;
using namespace reel_test;

namespace {

Tensor row(int i) { return full({1, 4}, 0.1 * i - 0.3, {.dtype = f64}); }

Tensor chain(Tensor x, const Tensor& w, int length) {
  for (int i = 0; i < length; ++i) x = tanh(matmul(x, w));
  return x;
}

// Recursion whose every level has work on its stack.
Tensor deep(const Tensor& x, const Tensor& w, int depth) {
  if (depth == 0) return x;
  return tanh(deep(x + 0.001, w, depth - 1) * w);
}

const BatchedLine* find(const BatchReport& report, const std::string& op, int line) {
  for (const BatchedLine& one : report.lines)
    if (one.op == op && one.where.line == line) return &one;
  return nullptr;
}

}  // namespace

TEST_CASE("threads each have a batch_map of their own, on shared parameters") {
  manual_seed(1);
  Tensor w = draw({4, 4}).requires_grad();
  constexpr int threads = 4;
  auto gradient = [&](int thread, const BatchOptions& options) {
    Tape tape;
    std::vector<Tensor> made = batch_map(
        numbers(20 + thread),
        [&](int i) {
          Tensor x = chain(row(i + thread), w, 2 + i % 5);
          return sum(x).item() > 0 ? sin(x) : matmul(x, w);
        },
        options);
    Tensor all = concat(made, 0);
    Tensor g = tape.gradient(sum(square(all)), w);
    return std::vector<std::vector<double>>{all.to_vector<double>(), g.to_vector<double>()};
  };
  std::vector<std::vector<std::vector<double>>> found(threads);
  {
    std::vector<std::jthread> workers;
    for (int thread = 0; thread < threads; ++thread)
      workers.emplace_back([&, thread] {
        for (int repetition = 0; repetition < 5; ++repetition)
          found[static_cast<std::size_t>(thread)] = gradient(thread, {.in_flight = 8});
      });
  }
  for (int thread = 0; thread < threads; ++thread) {
    auto expected = gradient(thread, {.immediate = true});
    for (std::size_t k = 0; k < 2; ++k)
      check_close({tensor(found[static_cast<std::size_t>(thread)][k])}, {tensor(expected[k])});
  }
}

TEST_CASE("a batch_map within another has the values and gradients of plain loops") {
  manual_seed(2);
  Tensor w = draw({4, 4}).requires_grad(), v = draw({4, 4}).requires_grad();
  check_as_immediate([&](const BatchOptions& options) {
    Tape tape;
    std::vector<Tensor> made = batch_map(
        numbers(5),
        [&](int i) {
          std::vector<Tensor> words = batch_map(
              numbers(2 * i), [&](int k) { return chain(row(k), w, 1 + k % 3); }, options);
          words.push_back(row(i));
          Tensor all = concat(words, 0);
          return sum(chain(all, v, 2), {0});
        },
        options);
    Tensor all = stack(made);
    std::vector<Tensor> results = tape.gradient(sum(square(all)), {w, v});
    results.push_back(all);
    return results;
  });
}

TEST_CASE("inner batches keep the number of functions under way small, and are right") {
  manual_seed(4);
  Tensor w = draw({4, 4}).requires_grad();
  int alive = 0, most = 0;
  check_as_immediate([&](const BatchOptions& options) {
    BatchOptions inner = options;
    inner.report = nullptr;
    Tape tape;
    std::vector<Tensor> made = batch_map(
        numbers(40),
        [&](int i) {
          std::vector<Tensor> words = batch_map(
              numbers(40),
              [&](int k) {
                Counted counted(alive);
                most = std::max(most, alive);
                Tensor made = chain(row(i + k), w, 1 + k % 3);
                made.data<double>();  // waits
                return made;
              },
              inner);
          return sum(concat(words, 0));
        },
        options);
    return std::vector<Tensor>{tape.gradient(sum(stack(made)), w)};
  });
  CHECK(alive == 0);
  CHECK(most > 40);
  // At most 256 of the 1600 tasks run at a time, and one of each example that finds 256 under way.
  CHECK(most < 300);
}

TEST_CASE("examples of several inner batches are joined with each other") {
  manual_seed(3);
  Tensor w = draw({4, 4});
  BatchReport report;
  int line = 0;
  batch_map(numbers(3),
            [&](int i) {
              return batch_map(numbers(2), [&](int k) {
                Tensor x = row(i + k);
                line = __LINE__ + 1;
                return matmul(x, w);
              });
            },
            {.report = &report});
  const BatchedLine* found = find(report, "matmul", line);
  REQUIRE(found);
  CHECK(found->calls == 6);
  CHECK(found->groups == 1);
  CHECK(found->grouped == 6);
}

TEST_CASE("an inner batch within an inner tape is right") {
  manual_seed(4);
  Tensor w = draw({4, 4}).requires_grad();
  check_as_immediate([&](const BatchOptions& options) {
    return batch_map(
        numbers(4),
        [&](int i) {
          Tensor x = chain(row(i), w, 1);
          Tape inner;
          std::vector<Tensor> made = batch_map(
              numbers(3), [&](int k) { return chain(row(k), w, 1 + i); }, options);
          return inner.gradient(sum(square(stack(made))), w) + sum(x);
        },
        options);
  });
}

TEST_CASE("an exception within an inner batch unwinds both batches, unless the outer example handles it") {
  manual_seed(5);
  Tensor w = draw({4, 4}).requires_grad();
  for (bool immediate : {true, false})
    for (bool handled : {true, false}) {
      CAPTURE(immediate, handled);
      int alive = 0;
      auto run = [&] {
        return batch_map(numbers(5),
                         [&](int i) {
                           Counted outer(alive);
                           try {
                             std::vector<Tensor> made = batch_map(numbers(4),
                                                                  [&](int k) {
                                                                    Counted counted(alive);
                                                                    Tensor x = chain(row(k), w, 1 + k + i);
                                                                    if (i == 2 && k == 1)
                                                                      throw std::runtime_error("of 2, 1");
                                                                    return chain(x, w, 2);
                                                                  },
                                                                  {.immediate = immediate});
                             return concat(made, 0);
                           } catch (const std::runtime_error& error) {
                             CHECK(error.what() == std::string("of 2, 1"));
                             if (!handled) throw;
                             return chain(row(9), w, 3);
                           }
                         },
                         {.immediate = immediate});
      };
      if (!handled) {
        CHECK(error_of<std::runtime_error>(run) == "of 2, 1");
        CHECK(alive == 0);
        continue;
      }
      std::vector<Tensor> made = run(), expected;
      CHECK(alive == 0);
      for (int i = 0; i < 5; ++i) {
        std::vector<Tensor> inner;
        for (int k = 0; k < 4; ++k) inner.push_back(chain(row(k), w, 3 + k + i));
        expected.push_back(i == 2 ? chain(row(9), w, 3) : concat(inner, 0));
      }
      check_close(made, expected);
    }
}

TEST_CASE("an error within an inner batch names the examples of both batches") {
  Tensor w = draw({4, 4});
  for (bool immediate : {true, false}) {
    CAPTURE(immediate);
    std::string text = error_of<ShapeError>([&] {
      batch_map(numbers(5),
                [&](int i) {
                  return batch_map(numbers(4),
                                   [&](int k) {
                                     return matmul(row(k), i == 3 && k == 2 ? draw({3, 3}) : w);
                                   },
                                   {.immediate = immediate});
                },
                {.immediate = immediate});
    });
    CHECK_THAT(text, contains("in example 2 of the batch_map"));
    CHECK_THAT(text, contains("in example 3 of the batch_map"));
  }
}

TEST_CASE("an example's recursion may be as deep as its stack, and is told where it is deeper") {
  manual_seed(6);
  Tensor w = draw({4});
  auto run = [&](int depth, std::size_t stack_bytes) {
    return batch_map(numbers(3), [&](int i) { return deep(row(i), w, depth); }, {.stack_bytes = stack_bytes});
  };
  auto expected = [&](int depth) {
    std::vector<Tensor> made;
    for (int i = 0; i < 3; ++i) {
      Tensor x = row(i);
      for (int level = 0; level < depth; ++level) x = x + 0.001;
      for (int level = 0; level < depth; ++level) x = tanh(x * w);
      made.push_back(x);
    }
    return made;
  };
  check_close(run(100, 1 << 20), expected(100));
  std::string text = error_of<Error>([&] { run(10'000, 128 << 10); });
  CHECK_THAT(text, contains("the example's recursion fills its stack of 128 KB; give batch_map a larger stack_bytes"));
  CHECK_THAT(text, contains("in example "));
  CHECK_THAT(text, contains("running_test.cpp"));
  check_close(run(10'000, std::size_t{256} << 20), expected(10'000));
  check_close(run(100, 1 << 20), expected(100));
}

TEST_CASE("deep recursion is recorded, and its gradient is that of a loop") {
  manual_seed(7);
  Tensor w = (draw({4}) * 0.1 + 1).requires_grad();
  Tape tape;
  std::vector<Tensor> made =
      batch_map(numbers(2), [&](int i) { return deep(row(i), w, 2000); }, {.stack_bytes = std::size_t{64} << 20});
  Tensor found = tape.gradient(sum(stack(made)), w);
  Tape again;
  Tensor total = zeros({}, {.dtype = f64});
  for (int i = 0; i < 2; ++i) {
    Tensor x = row(i) + 2.0;
    for (int level = 0; level < 2000; ++level) x = tanh(x * w);
    total = total + sum(x);
  }
  check_close({found}, {again.gradient(total, w)}, 1e-9);
}

TEST_CASE("the report counts the calls of each line, in groups and alone, with the reason") {
  manual_seed(8);
  Tensor w = draw({4, 4}).requires_grad(), wide = randn({200, 200}), long_row = draw({1, 10'000});
  BatchReport report;
  int joined = 0, different = 0, large = 0, large_result = 0, large_operand = 0, large_weight = 0, scope = 0, by_op = 0;
  Tape tape;
  batch_map(numbers(6),
            [&](int i) {
              Tensor x = row(i);
              joined = __LINE__ + 1;
              Tensor y = matmul(x, w);
              different = __LINE__ + 1;
              Tensor z = i < 4 ? sin(y) : sin(zeros({3, 1 + i}));
              large = __LINE__ + 1;
              Tensor big = exp(wide);
              large_result = __LINE__ + 1;
              Tensor outer = reshape(x, {4, 1}) * long_row;
              large_operand = __LINE__ + 1;
              Tensor total = sum(wide);
              large_weight = __LINE__ + 1;
              Tensor product = matmul(slice(wide, 0, i, i + 1), wide);
              by_op = __LINE__ + 1;
              Tensor copied = copy(x);
              {
                Tape inner;
                scope = __LINE__ + 1;
                Tensor s = cos(y);
              }
              return z;
            },
            {.report = &report});
  std::int64_t calls = 0;
  for (const BatchedLine& one : report.lines) {
    CAPTURE(one.op, one.where.line);
    CHECK(one.calls == one.grouped + one.alone_by_op + one.alone_large + one.alone_scope + one.alone_waited);
    CHECK(one.grouped >= 2 * one.groups);
    CHECK(one.seconds > 0);
    calls += one.calls;
  }
  CHECK(calls >= 30);
  const BatchedLine* line = find(report, "matmul", joined);
  REQUIRE(line);
  CHECK(line->calls == 6);
  CHECK(line->groups == 1);
  CHECK(line->grouped == 6);
  CHECK(std::string_view(line->where.file).ends_with("running_test.cpp"));
  line = find(report, "sin", different);
  REQUIRE(line);
  CHECK(line->calls == 6);
  CHECK(line->groups == 1);
  CHECK(line->grouped == 4);
  CHECK(line->alone_waited == 2);
  line = find(report, "exp", large);
  REQUIRE(line);
  CHECK(line->calls == 6);
  CHECK(line->alone_large == 6);
  line = find(report, "mul", large_result);
  REQUIRE(line);
  CHECK(line->calls == 6);
  CHECK(line->alone_large == 6);
  line = find(report, "sum", large_operand);
  REQUIRE(line);
  CHECK(line->alone_large == 6);
  // All examples share it.
  line = find(report, "matmul", large_weight);
  REQUIRE(line);
  CHECK(line->grouped == 6);
  line = find(report, "cos", scope);
  REQUIRE(line);
  CHECK(line->alone_scope == 6);
  line = find(report, "copy", by_op);
  REQUIRE(line);
  CHECK(line->alone_by_op == 6);

  std::string text = report.to_string();
  CHECK(static_cast<std::size_t>(std::ranges::count(text, '\n')) == report.lines.size() + 1);
  CHECK_THAT(text, contains("in group"));
  std::string row_of_matmul;
  for (auto part : text | std::views::split('\n')) {
    std::string one(part.begin(), part.end());
    if (one.find(line_of(__FILE__, joined)) != std::string::npos) row_of_matmul = one;
  }
  CHECK_THAT(row_of_matmul, contains("matmul"));
  CHECK_THAT(row_of_matmul, contains("6.0"));
  CHECK_THAT(text, contains("6 large"));
  CHECK_THAT(text, contains("6 in an inner scope"));
  CHECK_THAT(text, contains("6 not joined"));
  CHECK_THAT(text, contains("2 without an equal one"));
}

TEST_CASE("a group of calls that examples wait for is at most as large as the number of examples in flight") {
  Tensor w = draw({4, 4});
  BatchReport report;
  int line = 0;
  batch_map(numbers(12),
            [&](int i) {
              Tensor x = row(i);
              line = __LINE__ + 1;
              Tensor y = matmul(x, w);
              return sum(y).item();
            },
            {.in_flight = 4, .report = &report});
  const BatchedLine* found = find(report, "matmul", line);
  REQUIRE(found);
  CHECK(found->calls == 12);
  CHECK(found->groups >= 3);
}

TEST_CASE("options that are out of range are refused, before an example runs") {
  int calls = 0;
  auto text = [&](const BatchOptions& options) {
    return error_of<Error>([&] {
      batch_map(
          numbers(3),
          [&](int i) {
            ++calls;
            return i;
          },
          options);
    });
  };
  CHECK_THAT(text({.in_flight = 0}), contains("in_flight is 0"));
  CHECK_THAT(text({.in_flight = -4}), contains("in_flight is -4"));
  CHECK_THAT(text({.stack_bytes = 1000}), contains("stack_bytes is 1000"));
  CHECK_THAT(text({.stack_bytes = (64 << 10) + 1}), contains("stack_bytes is 65537"));
  CHECK_THAT(text({.stack_bytes = std::size_t{1} << 40}), contains("stack_bytes is"));
  CHECK_THAT(text({.in_flight = 0}), contains("running_test.cpp"));
  CHECK(calls == 0);
  CHECK(text({.stack_bytes = 64 << 10}).empty());
}

TEST_CASE("many examples need no more memory the second time, nor more than those in flight") {
  manual_seed(9);
  Tensor w = draw({4, 4}), x = draw({1, 4});
  int alive = 0, most = 0;
  auto run = [&](int count) {
    double total = 0;
    batch_map(std::views::iota(0, count),
              [&](int i) {
                Counted counted(alive);
                most = std::max(most, alive);
                total += sum(tanh(matmul(x * (1.0 + i % 7), w))).item();
              },
              {.in_flight = 64});
    return total;
  };
  double expected = 0;
  for (int i = 0; i < 7; ++i) {
    int count = 20'000 / 7 + (i < 20'000 % 7);
    expected += sum(tanh(matmul(x * (1.0 + i), w))).item() * count;
  }
  double first = run(20'000);
  CHECK(std::abs(first - expected) < 1e-6);
  CHECK(most == 64);
  MemoryStatistics before = memory_statistics();
  CHECK(std::abs(run(20'000) - expected) < 1e-6);
  MemoryStatistics after = memory_statistics();
  CHECK(after.live_tensors == before.live_tensors);
  CHECK(after.live_storages == before.live_storages);
  CHECK(after.live_bytes == before.live_bytes);
  CHECK(after.peak_bytes == before.peak_bytes);
  // A hundred times fewer examples take about as much at a time.
  CHECK(before.peak_bytes < std::size_t{64} << 20);
}

TEST_CASE("recorded batches leave nothing behind when their tape ends") {
  manual_seed(10);
  Tensor w = draw({4, 4}).requires_grad();
  auto step = [&] {
    Tape tape;
    std::vector<Tensor> made = batch_map(numbers(50), [&](int i) { return chain(row(i), w, 1 + i % 4); });
    tape.backward(sum(concat(made, 0)));
    return tape.capacity();
  };
  step();
  step();  // the first step with a gradient to add to
  std::size_t capacity = step();
  MemoryStatistics before = memory_statistics();
  for (int i = 0; i < 20; ++i) CHECK(step() <= capacity);
  MemoryStatistics after = memory_statistics();
  CHECK(after.live_tensors == before.live_tensors);
  CHECK(after.live_bytes == before.live_bytes);
  CHECK(after.peak_bytes == before.peak_bytes);
}

TEST_CASE("each batch_map counts its own calls, also one of one example, immediate, or within another") {
  manual_seed(9);
  Tensor w = draw({4, 4});
  auto calls_of = [](const BatchReport& report, const char* op) {
    BatchedLine all;
    for (const BatchedLine& one : report.lines)
      if (one.op == op) {
        CHECK(one.calls == one.grouped + one.alone_by_op + one.alone_large + one.alone_scope + one.alone_waited);
        all.calls += one.calls;
        all.grouped += one.grouped;
        all.groups += one.groups;
      }
    return all;
  };
  for (int count : {1, 5})
    for (bool immediate : {false, true}) {
      CAPTURE(count, immediate);
      BatchReport report;
      batch_map(numbers(count), [&](int i) { return sin(matmul(row(i), w)); },
                {.immediate = immediate, .report = &report});
      CHECK(calls_of(report, "matmul").calls == count);
      CHECK(calls_of(report, "sin").grouped == (immediate || count == 1 ? 0 : count));
    }
  for (bool outer_immediate : {false, true})
    for (bool inner_immediate : {false, true}) {
      CAPTURE(outer_immediate, inner_immediate);
      BatchReport outer;
      std::vector<BatchReport> inner(3);
      batch_map(numbers(3),
                [&](int i) {
                  Tensor x = cos(row(i));
                  batch_map(numbers(i + 1), [&](int k) { return sin(x * double(k)); },
                            {.immediate = inner_immediate, .report = &inner[static_cast<std::size_t>(i)]});
                  return cos(x);
                },
                {.immediate = outer_immediate, .report = &outer});
      CHECK(calls_of(outer, "cos").calls == 6);
      CHECK(calls_of(outer, "sin").calls == 6);
      for (int i = 0; i < 3; ++i) {
        CHECK(calls_of(inner[static_cast<std::size_t>(i)], "cos").calls == 0);
        CHECK(calls_of(inner[static_cast<std::size_t>(i)], "sin").calls == i + 1);
      }
      if (!outer_immediate && !inner_immediate) CHECK(calls_of(outer, "sin").groups < 6);
      if (!outer_immediate && !inner_immediate) CHECK(calls_of(inner[2], "sin").grouped == 3);
    }
}
