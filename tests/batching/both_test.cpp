#include <reel/batching.h>
#include <reel/reel.h>

#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "catch.h"
#include "checks.h"

// Siblings that run at the same time.

using namespace reel;
using namespace reel_test;

namespace {

struct Failed {
  int side;
};

std::vector<Tensor> rows(std::size_t count) {
  std::vector<Tensor> made(count);
  for (Tensor& one : made) one = draw({1, 4});
  return made;
}

Tensor chain(Tensor x, const Tensor& w, int length) {
  for (int i = 0; i < length; ++i) x = tanh(matmul(x, w));
  return x;
}

}  // namespace

TEST_CASE("siblings of unequal depth, nested in each other, have the values and gradients of one after the other") {
  manual_seed(1);
  Tensor w = draw({4, 4}).requires_grad(), v = draw({4, 4}).requires_grad();
  std::vector<Tensor> inputs = rows(5);
  check_as_immediate([&](const BatchOptions& options) {
    Tape tape;
    int index = 0;
    std::vector<Tensor> made = batch_map(
        inputs,
        [&](const Tensor& x) {
          int own = index++;
          auto [left, right] = both(
              [&] { return chain(x, w, 1 + own); },
              [&] {
                auto [a, b] = both([&] { return chain(x, v, 6 - own); },
                                   [&] { return both([&] { return x; }, [&] { return chain(sin(x), w, 2); }).second; });
                return a - 2 * b;
              });
          return left + 3 * right;
        },
        options);
    Tensor all = stack(made);
    std::vector<Tensor> results = tape.gradient(sum(square(all)), {w, v});
    results.push_back(all);
    return results;
  });
}

TEST_CASE("siblings of one example are joined with each other") {
  manual_seed(2);
  // Examples of different widths have nothing in common.
  std::vector<Tensor> inputs{draw({1, 3}), draw({1, 4})};
  BatchReport report;
  int line = 0;
  batch_map(inputs,
            [&](const Tensor& x) {
              auto [a, b] = both([&] { return 2 * x; }, [&] { return 2 * x; });
              line = __LINE__ + 1;
              auto twice = [&](const Tensor& y) { return tanh(y); };
              auto [c, d] = both([&] { return twice(a); }, [&] { return twice(b); });
              check_close({c, d}, {tanh(2 * x), tanh(2 * x)});
              return c + d;
            },
            {.report = &report});
  int found = 0;
  for (const BatchedLine& one : report.lines)
    if (one.op == "tanh" && one.where.line == line) {
      ++found;
      CHECK(one.calls == 4);
      CHECK(one.groups == 2);
      CHECK(one.grouped == 4);
    }
  CHECK(found == 1);
}

TEST_CASE("results of siblings have their own types, and references are copied") {
  auto pair = both([] { return 1; }, [] { return std::string("two"); });
  static_assert(std::is_same_v<decltype(pair), std::pair<int, std::string>>);
  CHECK(pair.first == 1);
  CHECK(pair.second == "two");
}

TEST_CASE("outside of batch_map siblings run one after the other, and the first exception ends both") {
  std::vector<int> order;
  both([&] { return order.emplace_back(1); }, [&] { return order.emplace_back(2); });
  CHECK(order == std::vector<int>{1, 2});
  bool second_ran = false;
  CHECK_THROWS_AS(both([&]() -> int { throw Failed{1}; },
                       [&] {
                         second_ran = true;
                         return 0;
                       }),
                  Failed);
  CHECK_FALSE(second_ran);
  CHECK_THROWS_AS(both([&] { return 0; }, [&]() -> int { throw Failed{2}; }), Failed);
  // The thread draws on from its own stream.
  manual_seed(3);
  Tensor first = randn({3});
  CHECK_THROWS_AS(both([&] { return 0; }, [&]() -> int { throw Failed{2}; }), Failed);
  Tensor second = randn({3});
  CHECK(first.to_vector<float>() != second.to_vector<float>());
}

TEST_CASE("an exception of the first, the second or both siblings unwinds both, and reaches the example") {
  manual_seed(4);
  Tensor w = draw({4, 4}).requires_grad();
  std::vector<Tensor> inputs = rows(4);
  for (bool first_fails : {false, true})
    for (bool second_fails : {false, true})
      for (int first_length : {0, 1, 5})
        for (int second_length : {0, 1, 5})
          for (bool immediate : {true, false}) {
            CAPTURE(first_fails, second_fails, first_length, second_length, immediate);
            int alive = 0, caught = 0;
            auto side = [&](const Tensor& x, int number, int length, bool fails) {
              Counted counted(alive);
              Tensor y = chain(x, w, length);
              if (fails) throw Failed{number};
              return chain(y, w, 3);
            };
            Tape tape;
            std::vector<Tensor> made = batch_map(inputs,
                                                 [&](const Tensor& x) {
                                                   Tensor fallback = x * 0.5;
                                                   try {
                                                     auto [a, b] =
                                                         both([&] { return side(x, 1, first_length, first_fails); },
                                                              [&] { return side(x, 2, second_length, second_fails); });
                                                     return a + b;
                                                   } catch (const Failed& failed) {
                                                     CHECK(failed.side == (first_fails ? 1 : 2));
                                                     ++caught;
                                                     return matmul(fallback, w);
                                                   }
                                                 },
                                                 {.immediate = immediate});
            bool fails = first_fails || second_fails;
            CHECK(alive == 0);
            CHECK(caught == (fails ? 4 : 0));
            std::vector<Tensor> expected;
            for (const Tensor& x : inputs)
              expected.push_back(fails ? matmul(x * 0.5, w)
                                       : chain(x, w, first_length + 3) + chain(x, w, second_length + 3));
            check_close(made, expected);
            check_close({tape.gradient(sum(stack(made)), w)}, [&] {
              Tape again;
              std::vector<Tensor> total;
              for (const Tensor& x : inputs)
                total.push_back(fails ? matmul(x * 0.5, w)
                                      : chain(x, w, first_length + 3) + chain(x, w, second_length + 3));
              return std::vector<Tensor>{again.gradient(sum(stack(total)), w)};
            }());
          }
}

TEST_CASE("an exception that the example of siblings does not catch ends all examples") {
  manual_seed(5);
  Tensor w = draw({4, 4});
  std::vector<Tensor> inputs = rows(6);
  for (int side : {1, 2}) {
    CAPTURE(side);
    int alive = 0, index = 0;
    std::string text = error_of<ShapeError>([&] {
      batch_map(inputs, [&](const Tensor& x) {
        Counted outer(alive);
        int own = index++;
        auto run = [&](int number) {
          Counted counted(alive);
          Tensor y = chain(x, w, own + 1);
          if (own == 2 && number == side) return matmul(y, draw({3, 3}));
          return chain(y, w, 4);
        };
        return both([&] { return run(1); }, [&] { return run(2); }).first;
      });
    });
    CHECK_THAT(text, reel_test::contains("in example 2 of the batch_map"));
    CHECK(alive == 0);
  }
}

TEST_CASE("siblings within a batch_map within another are right") {
  manual_seed(6);
  Tensor w = draw({4, 4}).requires_grad();
  std::vector<std::vector<Tensor>> inputs{rows(3), rows(1), rows(4)};
  check_as_immediate([&](const BatchOptions& options) {
    Tape tape;
    std::vector<Tensor> made = batch_map(
        inputs,
        [&](const std::vector<Tensor>& inner) {
          std::vector<Tensor> each = batch_map(
              inner,
              [&](const Tensor& x) {
                auto [a, b] = both([&] { return chain(x, w, 2); }, [&] { return chain(x, w, 4); });
                return a * b;
              },
              options);
          return sum(concat(each, 0), {0});
        },
        options);
    Tensor all = stack(made);
    std::vector<Tensor> results = tape.gradient(sum(square(all)), std::vector<Tensor>{w});
    results.push_back(all);
    return results;
  });
}

TEST_CASE("siblings may return nothing, references, or parts of tensors, and so may examples") {
  Tensor x = draw({3}), kept = x;
  auto function_of = [&] {
    int ran = 0;
    static_assert(std::is_void_v<decltype(both([] {}, [] {}))>);
    both([&] { ran += tanh(x).numel(); }, [&] { ran += tanh(x).numel(); });
    auto [nothing, number] = both([&] { ++ran; }, [] { return 4; });
    static_assert(std::is_same_v<decltype(nothing), std::monostate>);
    auto [reference, part] = both([&]() -> const Tensor& { return kept; }, [&] { return x(1); });
    static_assert(std::is_same_v<decltype(reference), Tensor> && std::is_same_v<decltype(part), Tensor>);
    CHECK(ran == 7);
    CHECK(number == 4);
    CHECK(reference.is(kept));
    check_close({part}, {x(1)});
  };
  function_of();
  std::vector<int> three(3);
  batch_map(three, [&](int) { function_of(); });
  std::vector<Tensor> references = batch_map(three, [&](int) -> const Tensor& { return kept; });
  std::vector<Tensor> parts = batch_map(three, [&](int i) { return x(i); });
  CHECK(references[2].is(kept));
  check_close({parts[0]}, {x(0)});
}
