#include <reel/batching.h>
#include <reel/reel.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.h"
#include "checks.h"

// Exceptions of examples.

using namespace reel;
using namespace reel_test;

namespace {

const std::vector<BatchOptions>& modes() {
  static const std::vector<BatchOptions> all{{.immediate = true}, {.in_flight = 1}, {.in_flight = 3}, {}};
  return all;
}

Tensor chain(Tensor x, const Tensor& w, int length) {
  for (int i = 0; i < length; ++i) x = tanh(matmul(x, w));
  return x;
}

// Checks that `f`, called with each kind of options, throws exactly one kind of error, with one text.
template <class E, class F>
void check_error(F f, int line, const std::vector<std::string>& parts) {
  std::string expected;
  for (const BatchOptions& options : modes()) {
    CAPTURE(options.in_flight, options.immediate, line);
    try {
      f(options);
      FAIL("nothing was thrown");
    } catch (const E& error) {
      std::string text = error.what();
      for (const std::string& part : parts) CHECK_THAT(text, contains(part));
      CHECK(error.where().line == line);
      CHECK_THAT(text, contains(line_of(__FILE__, line)));
      if (expected.empty()) expected = text;
      CHECK(text == expected);
    }
  }
}

}  // namespace

TEST_CASE("an error of one example keeps its type and line, and names the example") {
  manual_seed(1);
  Tensor w = draw({4, 4}), table = draw({10, 4}), odd = draw({3, 4});
  int line = 0, batch_line = 0;
  auto run = [&](const BatchOptions& options, auto fails) {
    batch_line = __LINE__ + 1;
    return batch_map(
        numbers(6),
        [&](int i) {
          Tensor x = chain(full({1, 4}, 0.1 * i, {.dtype = f64}), w, 2 + i % 2);
          if (i == 3) fails(x);
          return chain(x, w, 2);
        },
        options);
  };
  line = __LINE__ + 1;
  auto shape = [&](const Tensor& x) { matmul(x, odd); };
  check_error<ShapeError>([&](const BatchOptions& options) { run(options, shape); }, line,
                          {"matmul: inner sizes differ: a (1, 4), b (3, 4)", "in example 3 of the batch_map"});
  line = __LINE__ + 1;
  auto index = [&](const Tensor&) { embedding(table, tensor({std::int64_t{11}})); };
  check_error<IndexError>([&](const BatchOptions& options) { run(options, index); }, line,
                          {"embedding: ", "11", "in example 3 of the batch_map at " + line_of(__FILE__, batch_line)});
  line = __LINE__ + 1;
  auto dtype = [&](const Tensor& x) { embedding(w, x); };
  check_error<DTypeError>([&](const BatchOptions& options) { run(options, dtype); }, line, {"in example 3 of the"});
  line = __LINE__ + 1;
  auto other = [&](const Tensor&) { sin(Tensor{}); };
  check_error<Error>([&](const BatchOptions& options) { run(options, other); }, line, {"in example 3 of the"});
}

TEST_CASE("an error for memory names the example and the line") {
  int line = 0, batch_line = 0;
  auto run = [&](const BatchOptions& options) {
    batch_line = __LINE__ + 1;
    batch_map(
        numbers(6),
        [&](int i) {
          Tensor x = sin(full({1, 4}, 0.1 * i));
          line = __LINE__ + 1;
          return i == 3 ? ones({std::int64_t{1} << 43}) : x;
        },
        options);
  };
  CHECK_THROWS_AS(run({}), MemoryError);
  check_error<MemoryError>(
      run, line, {"there is no memory for the ", "in example 3 of the batch_map at " + line_of(__FILE__, batch_line)});
}

TEST_CASE("an anomaly names the example and keeps its description") {
  int line = 0;
  auto run = [&](const BatchOptions& options) {
    auto scope = debug::detect_anomaly();
    batch_map(numbers(6),
              [&](int i) {
                Tensor x = full({1, 4}, i == 3 ? -1.0 : 1.0 + i);
                line = __LINE__ + 1;
                return log(x);
              },
              {.in_flight = options.in_flight, .immediate = options.immediate});
  };
  try {
    run({});
    FAIL("nothing was thrown");
  } catch (const AnomalyError& error) {
    CHECK(error.anomaly().op == "log");
    CHECK_THAT(std::string(error.what()), contains(" of the batch_map at "));
    CHECK_THAT(std::string(error.what()), contains("\n  input 0, made at "));
  }
  check_error<AnomalyError>(run, line, {"log: gave ", "in example 3 of the batch_map at "});
}

TEST_CASE("an error that only the kernel notices is that of the example at fault, with its own shapes") {
  manual_seed(2);
  Tensor w = draw({4, 4}).requires_grad(), table = draw({10, 4}).requires_grad();
  int line = 0;
  auto classify = [&](const BatchOptions& options) {
    Tape tape;
    return batch_map(
        numbers(5),
        [&](int i) {
          Tensor logits = matmul(full({1, 4}, 0.1 * i, {.dtype = f64}), w);
          line = __LINE__ + 1;
          return cross_entropy(logits, tensor({std::int64_t{i == 2 ? 7 : i % 4}}));
        },
        options);
  };
  CHECK_THROWS_AS(classify({.immediate = true}), IndexError);
  check_error<IndexError>(classify, line, {"target 7", "(1, 4) f64", "in example 2 of"});
  auto look_up = [&](const BatchOptions& options) {
    Tape tape;
    return batch_map(
        numbers(5),
        [&](int i) {
          line = __LINE__ + 1;
          return tanh(embedding(table, tensor({std::int64_t{i}, std::int64_t{i == 4 ? 12 : 1}})));
        },
        options);
  };
  CHECK_THROWS_AS(look_up({.immediate = true}), IndexError);
  check_error<IndexError>(look_up, line, {"12", "in example 4 of"});
}

TEST_CASE("an example may handle an error of a kernel, and the others of its group are right") {
  manual_seed(3);
  Tensor table = draw({10, 4}).requires_grad(), w = draw({4, 4}).requires_grad();
  auto run = [&](const BatchOptions& options) {
    Tape tape;
    std::vector<Tensor> made = batch_map(
        numbers(7),
        [&](int i) {
          Tensor row;
          try {
            row = embedding(table, tensor({std::int64_t{i % 3 == 1 ? 100 + i : i}}));
          } catch (const IndexError& error) {
            CHECK_THAT(std::string(error.what()), contains(std::to_string(100 + i)));
            row = embedding(table, tensor({std::int64_t{9}})) * 2;
          }
          return matmul(row, w);
        },
        options);
    std::vector<Tensor> results = tape.gradient(sum(square(stack(made))), {table, w});
    results.insert(results.end(), made.begin(), made.end());
    return results;
  };
  reel_test::check_as_immediate(run);
}

TEST_CASE("exceptions of other types pass unchanged") {
  struct Own : std::runtime_error {
    int payload;
    explicit Own(int number) : std::runtime_error("own"), payload(number) {}
  };
  struct OwnError : ShapeError {
    explicit OwnError(Location where) : ShapeError("mine", where) {}
  };
  Tensor w = draw({4, 4});
  for (const BatchOptions& options : modes()) {
    CAPTURE(options.in_flight, options.immediate);
    auto run = [&](auto fails) {
      batch_map(
          numbers(5),
          [&](int i) {
            Tensor x = chain(full({1, 4}, 0.1 * i, {.dtype = f64}), w, 3);
            if (i == 1) fails();
            return chain(x, w, 3);
          },
          options);
    };
    try {
      run([] { throw Own(42); });
      FAIL();
    } catch (const std::exception& error) {
      CHECK(dynamic_cast<const Own&>(error).payload == 42);
      CHECK(std::string(error.what()) == "own");
    }
    CHECK_THROWS_AS(run([] { throw 5; }), int);
    try {
      run([] { throw OwnError(Location::here()); });
      FAIL();
    } catch (const Error& error) {
      CHECK(dynamic_cast<const OwnError*>(&error) != nullptr);
    }
  }
}

TEST_CASE("an exception unwinds the other examples, leaves no tensors, and the thread and its tape go on") {
  manual_seed(4);
  Tensor w = draw({4, 4}).requires_grad();
  for (const BatchOptions& options : modes()) {
    CAPTURE(options.in_flight, options.immediate);
    int alive = 0, started = 0, ended = 0;
    Tape tape;
    auto run = [&](int at_fault) {
      return batch_map(
          numbers(20),
          [&](int i) {
            Counted counted(alive);
            ++started;
            std::vector<Tensor> kept;
            Tensor x = full({1, 4}, 0.1 * i, {.dtype = f64});
            for (int step = 0; step < 3 + i % 4; ++step) {
              Counted inner(alive);
              x = tanh(matmul(x, w));
              kept.push_back(x);
              if (i == at_fault && step == 2) throw std::runtime_error("fault");
            }
            ++ended;
            return x;
          },
          options);
    };
    run(-1);
    std::int64_t tensors_before = 0;
    {
      NoRecord paused;
      tensors_before = memory_statistics().live_tensors;
      CHECK_THROWS_AS(run(6), std::runtime_error);
      CHECK(memory_statistics().live_tensors == tensors_before);
    }
    CHECK_THROWS_AS(run(6), std::runtime_error);
    CHECK(alive == 0);
    CHECK(std::uncaught_exceptions() == 0);
    CHECK(std::current_exception() == nullptr);
    std::vector<Tensor> made = run(-1);
    CHECK(alive == 0);
    Tensor found = tape.gradient(sum(stack(made)), w);
    Tape again;
    std::vector<Tensor> expected;
    for (int i = 0; i < 20; ++i) expected.push_back(chain(full({1, 4}, 0.1 * i, {.dtype = f64}), w, 3 + i % 4));
    check_close(made, expected);
    check_close({found}, {again.gradient(sum(stack(expected)), w)});
  }
}

TEST_CASE("no example is started after one has failed") {
  Tensor w = draw({4, 4});
  int started = 0;
  CHECK_THROWS_AS(batch_map(numbers(100),
                            [&](int i) {
                              ++started;
                              Tensor x = chain(full({1, 4}, 0.1, {.dtype = f64}), w, 1);
                              if (i == 2) throw i;
                              return chain(x, w, 10);
                            },
                            {.in_flight = 5}),
                  int);
  CHECK(started <= 7);
}

TEST_CASE("each example handles its own exception, though others throw while it computes in its handler") {
  manual_seed(5);
  Tensor w = draw({4, 4}).requires_grad();
  struct Own {
    int index;
  };
  for (const BatchOptions& options : modes()) {
    CAPTURE(options.in_flight, options.immediate);
    int right = 0;
    std::vector<Tensor> made = batch_map(
        numbers(9),
        [&](int i) {
          Tensor x = full({1, 4}, 0.1 * i, {.dtype = f64});
          try {
            try {
              x = chain(x, w, 1 + i % 3);
              throw Own{i};
            } catch (const Own& own) {
              CHECK(std::uncaught_exceptions() == 0);
              x = chain(x, w, 1 + i % 2);
              try {
                x = chain(x, w, 1);
                throw std::runtime_error(std::to_string(i));
              } catch (const std::runtime_error& inner) {
                x = chain(x, w, 1);
                CHECK(inner.what() == std::to_string(i));
              }
              x = chain(x, w, 1);
              CHECK(own.index == i);
              throw;
            }
          } catch (const Own& own) {
            x = chain(x, w, 1);
            right += own.index == i;
          }
          CHECK(std::current_exception() == nullptr);
          return chain(x, w, 1);
        },
        options);
    CHECK(right == 9);
    std::vector<Tensor> expected;
    for (int i = 0; i < 9; ++i)
      expected.push_back(chain(full({1, 4}, 0.1 * i, {.dtype = f64}), w, 6 + i % 3 + i % 2 + 1));
    check_close(made, expected);
  }
}

TEST_CASE("an op in a destructor runs while its example is unwound, and only that example unwinds") {
  manual_seed(6);
  Tensor w = draw({4, 4});
  struct AtEnd {
    const Tensor &x, &w;
    Tensor& result;
    int& uncaught;
    ~AtEnd() {
      result = matmul(x, w);
      uncaught = std::uncaught_exceptions();
    }
  };
  std::vector<Tensor> results(8);
  std::vector<int> uncaught(8, -1);
  batch_map(numbers(8), [&](int i) {
    Tensor x = full({1, 4}, 0.1 * i, {.dtype = f64});
    auto at = static_cast<std::size_t>(i);
    try {
      AtEnd end{x, w, results[at], uncaught[at]};
      x = chain(x, w, 1);
      if (i % 2 == 0) throw i;
    } catch (int thrown) {
      CHECK(thrown == i);
    }
    CHECK(std::uncaught_exceptions() == 0);
  });
  for (int i = 0; i < 8; ++i) {
    auto at = static_cast<std::size_t>(i);
    CHECK(uncaught[at] == (i % 2 == 0 ? 1 : 0));
    check_close({results[at]}, {matmul(chain(full({1, 4}, 0.1 * i, {.dtype = f64}), w, 1), w)});
  }
}

TEST_CASE("an example that catches everything cannot hide the error of another one") {
  manual_seed(7);
  Tensor w = draw({4, 4});
  int alive = 0, swallowed = 0;
  std::string text = error_of<std::runtime_error>([&] {
    batch_map(numbers(6), [&](int i) {
      Counted counted(alive);
      Tensor x = full({1, 4}, 0.1 * i, {.dtype = f64});
      if (i == 0) {
        sum(chain(x, w, 2)).item();
        throw std::runtime_error("the fault of 0");
      }
      for (int attempt = 0; attempt < 3; ++attempt) try {
          sum(chain(x, w, 20)).item();
          break;
        } catch (...) {
          ++swallowed;
        }
      return x;
    });
  });
  CHECK(text == "the fault of 0");
  CHECK(swallowed == 15);
  CHECK(alive == 0);
}

TEST_CASE("of several examples that fail, the first by index is named, whichever throws first") {
  manual_seed(9);
  Tensor w = draw({4, 4});
  for (const BatchOptions& options : modes()) {
    CAPTURE(options.in_flight, options.immediate);
    std::vector<int> lengths{9, 7, 8, 1, 6, 5}, ended(lengths.size());
    auto run = [&](auto fails) {
      return error_of<std::runtime_error>([&] {
        batch_map(
            numbers(6),
            [&](int i) {
              chain(full({1, 4}, 0.1 * i, {.dtype = f64}), w, lengths[static_cast<std::size_t>(i)]);
              if (fails(i)) throw std::runtime_error("example " + std::to_string(i));
              ++ended[static_cast<std::size_t>(i)];
              return i;
            },
            options);
      });
    };
    CHECK(run([](int i) { return i >= 2; }) == "example 2");
    CHECK(ended == std::vector<int>{1, 1, 0, 0, 0, 0});
    CHECK(run([](int i) { return i == 1 || i == 3; }) == "example 1");
    CHECK(run([](int i) { return i == 3; }) == "example 3");
    CHECK(ended == std::vector<int>{3, 2, 1, 0, 0, 0});
  }
}

TEST_CASE("what a later example throws while it is ended does not replace the error of another") {
  Tensor w = draw({4, 4});
  std::string text = error_of<std::runtime_error>([&] {
    batch_map(numbers(3), [&](int i) {
      Tensor x = full({1, 4}, 0.1 * i, {.dtype = f64});
      // An inner batch fails in its last example, and its first one turns what ends it into an error.
      batch_map(numbers(2), [&](int k) {
        try {
          chain(x, w, k == 1 ? 1 : 9);
        } catch (...) {
          throw std::runtime_error("ended");
        }
        if (i == 0) throw std::runtime_error("the fault of 0");
      });
      chain(x, w, 30);
    });
  });
  CHECK(text == "the fault of 0");
}

TEST_CASE("of several examples that fail, one error is thrown, and all end") {
  manual_seed(8);
  Tensor w = draw({4, 4});
  for (const BatchOptions& options : modes()) {
    int alive = 0;
    try {
      batch_map(
          numbers(10),
          [&](int i) {
            Counted counted(alive);
            chain(full({1, 4}, 0.1, {.dtype = f64}), w, 3);
            if (i % 3 == 1) throw i;
            return i;
          },
          options);
      FAIL();
    } catch (int thrown) {
      CHECK(thrown % 3 == 1);
    }
    CHECK(alive == 0);
  }
}
