#include <algorithm>
#include <string>
#include <vector>

#include <reel/batching.h>
#include <reel/reel.h>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

std::string mismatch() {
  return error_of<ShapeError>([] { static_cast<void>(matmul(ones({2, 3}), ones({2, 3}))); });
}

}  // namespace

TEST_CASE("errors of ops say the active notes, the outermost first") {
  CHECK(mismatch().find("; with ") == std::string::npos);
  auto epoch = debug::note("epoch", 2);
  {
    auto rate = debug::note("rate", 0.25);
    auto phase = debug::note("phase", std::string("dev"));
    CHECK_THAT(mismatch(), contains("; with epoch = 2, rate = 0.25, phase = dev; at "));
  }
  CHECK_THAT(mismatch(), contains("; with epoch = 2; at "));
}

TEST_CASE("a note names the lines of files from which an example or a batch was read") {
  data::Source first("tweets.tsv", 45), second("tweets.tsv", 9);
  {
    auto note = debug::note("example", first);
    CHECK_THAT(mismatch(), contains("; with example = tweets.tsv:45; at "));
  }
  auto note = debug::note("examples", std::vector{first, second});
  CHECK_THAT(mismatch(), contains("; with examples = tweets.tsv:45, tweets.tsv:9; at "));
}

TEST_CASE("anomalies say the active notes") {
  auto scope = debug::detect_anomaly();
  auto note = debug::note("t", 31);
  CHECK_THAT(error_of<AnomalyError>([] { static_cast<void>(log(tensor({-1.0f}))); }), contains("; with t = 31; at "));
}

TEST_CASE("an example of batch_map has the notes around it and its own") {
  auto epoch = debug::note("epoch", 1);
  std::vector<std::string> errors(3);
  std::vector<int> examples{0, 1, 2};
  batch_map(examples, [&](int i) {
    auto note = debug::note("example", i);
    Tensor x = exp(ones({2, 3}));  // suspends, so that the notes of examples interleave
    errors[static_cast<std::size_t>(i)] = error_of<ShapeError>([&] { static_cast<void>(matmul(x, x)); });
    return x;
  });
  for (std::size_t i = 0; i < errors.size(); ++i)
    CHECK_THAT(errors[i], contains("; with epoch = 1, example = " + std::to_string(i) + "; at "));
}

TEST_CASE("print shows name, line, statistics and elements, and returns the tensor") {
  std::vector<std::string> lines;
  auto keep = [&](const std::string& line) { lines.push_back(line); };
  Tensor x = tensor({1.0f, -2.0f, 3.0f});
  auto note = debug::note("t", 4);
  Tensor y = debug::print(x, "h", {.sink = keep});
  int line = __LINE__ - 1;
  CHECK(y.is(x));
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], contains("h with t = 4; at tests/debug/notes_test.cpp:" + std::to_string(line) +
                                ": (3,) f32, min -2, max 3"));
  CHECK_THAT(lines[0], contains(to_string(x)));
  static_cast<void>(debug::print(x, "h", {.summarize = 2, .sink = keep}));
  CHECK_THAT(lines[1], contains("and 1 more"));
  CHECK(lines[1].find("3.") == std::string::npos);
  static_cast<void>(debug::print(x, "h", {.summarize = 0, .sink = keep}));
  CHECK(lines[2].find('\n') == std::string::npos);
  static_cast<void>(debug::print(x, "h", {.summarize = 3, .sink = keep}));
  CHECK_THAT(lines[3], contains(to_string(x)));
}

TEST_CASE("print with .first_n prints for the first calls from a line only") {
  int printed = 0;
  for (int i = 0; i < 5; ++i)
    static_cast<void>(debug::print(ones({1}), "x", {.first_n = 2, .sink = [&](const std::string&) { ++printed; }}));
  CHECK(printed == 2);
}

TEST_CASE("print shows values within NoRecord, and those of each example of batch_map with its notes") {
  std::vector<std::string> lines;
  debug::PrintOptions keep{.sink = [&](const std::string& line) { lines.push_back(line); }};
  {
    Tape tape;
    NoRecord pause;
    CHECK(debug::print(tensor({3.0f}), "x", keep).item() == 3);
    CHECK(tape.size() == 0);
  }
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], contains("x; at tests/debug/notes_test.cpp:") && contains("[3.]"));
  lines.clear();
  std::vector<int> examples{0, 1, 2};
  std::vector<Tensor> results = batch_map(examples, [&](int i) {
    auto note = debug::note("example", i);
    return debug::print(exp(full({1}, static_cast<double>(i))), "y", keep) * 2.0f;
  });
  REQUIRE(lines.size() == 3);
  for (int i = 0; i < 3; ++i) {
    Tensor y = exp(full({1}, static_cast<double>(i)));
    std::string mark = "y with example = " + std::to_string(i) + "; at ";
    auto line = std::find_if(lines.begin(), lines.end(), [&](const std::string& one) { return one.starts_with(mark); });
    REQUIRE(line != lines.end());
    CHECK(line->ends_with(to_string(y)));
    CHECK(results[static_cast<std::size_t>(i)].item() == 2 * y.item());
  }
}

TEST_CASE("a gradient flows through print") {
  Tensor w = tensor({2.0f}).requires_grad();
  Tape tape;
  tape.backward(sum(square(debug::print(w, "w", {.sink = [](const std::string&) {}}))));
  CHECK(w.grad().item() == 4);
}

TEST_CASE("check passes where the condition is true, and otherwise says where it is not and what the tensors hold") {
  Tensor h = tensor({{0.5f, -0.5f}, {0.25f, -3.0f}});
  debug::check(h > -4, h);
  debug::check(true);
  int line = __LINE__ + 1;
  std::string text = error_of<CheckError>([&] { debug::check(h > -1, h); });
  CHECK_THAT(text,
             contains("debug::check: the condition is false for 1 of the 4 elements of (2, 2), the first at [1, 1]; "
                      "at tests/debug/notes_test.cpp:" +
                      std::to_string(line)));
  CHECK_THAT(text, contains("tensor 0, made at tests/debug/notes_test.cpp:"));
  CHECK_THAT(text, contains("at [1, 1]: "));
  CHECK_THAT(error_of<CheckError>([] { debug::check(false); }), contains("debug::check: the condition is false; at "));
  CHECK_THAT(error_of<Error>([] { debug::check(Tensor{}); }), contains("debug::check: an operand is an undefined"));
}

TEST_CASE("name returns its tensor, and refuses an undefined one") {
  Tensor x = ones({2});
  CHECK(debug::name(x, "x").is(x));
  CHECK_THAT(error_of<Error>([] { static_cast<void>(debug::name(Tensor{}, "x")); }), contains("debug::name"));
}
