#include <reel/reel.h>

#include <algorithm>
#include <iostream>
#include <set>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "catch.h"
#include "misuse.h"

using namespace reel;
using namespace reel_test;

namespace {

std::string location(int line) { return std::string("misuse_test.cpp:") + std::to_string(line); }

// True if `new Tape` compiles.
template <class T>
concept HeapAllocatable = requires { new T(); };

}  // namespace

TEST_CASE("a tape cannot be copied, moved or put on the heap") {
  STATIC_REQUIRE_FALSE(std::is_copy_constructible_v<Tape>);
  STATIC_REQUIRE_FALSE(std::is_move_constructible_v<Tape>);
  STATIC_REQUIRE_FALSE(HeapAllocatable<Tape>);
}

TEST_CASE("overwriting a saved value names the op's line and the overwrite's line") {
  Tensor w = ones({3}).requires_grad();
  Tape tape;
  int op_line = __LINE__ + 1;
  Tensor y = w * w;
  int write_line = __LINE__ + 1;
  w.write<float>()[0] = 5;
  std::string text = error_of<TapeError>([&] { tape.backward(sum(y)); });
  CHECK_THAT(text, contains("mul: its gradient needs input"));
  CHECK_THAT(text, contains("overwritten at"));
  CHECK_THAT(text, contains(location(op_line)));
  CHECK_THAT(text, contains(location(write_line)));
}

TEST_CASE("overwriting a value that no gradient needs is allowed") {
  Tensor w = ones({3}).requires_grad();
  Tape tape;
  Tensor y = w + 1.0;
  w.write<float>()[0] = 5;
  tape.backward(sum(y));
  CHECK(w.grad().to_vector<float>() == std::vector<float>{1, 1, 1});
}

TEST_CASE("writing into a tensor that an open tape computed is refused") {
  Tensor w = ones({3}).requires_grad();
  Tape tape;
  Tensor y = w * 2.0;
  CHECK_THAT(error_of<TapeError>([&] { y.write<float>(); }), contains("is tracked by an open tape"));
  stop_gradient(y).write<float>()[0] = 1;
}

TEST_CASE("a guard that is alive, or ends, between an op and its gradient counts as an overwrite") {
  Tensor x = tensor({3.f});
  Tape tape({.persistent = true});
  {
    Writer<float> writer = x.write<float>();
    tape.watch(x);
    Tensor y = x * x;
    writer[0] = 10;
    CHECK_THAT(error_of<TapeError>([&] { tape.gradient(y, x); }), contains("is still alive"));
  }
  Tensor z = stop_gradient(x);
  tape.watch(z);
  Tensor y;
  {
    Writer<float> writer = tensor({1.f}).write<float>();
    y = z * z;
  }
  CHECK(tape.gradient(y, z).item() == 20);
}

TEST_CASE("a tracked tensor that was overwritten through another handle cannot be used") {
  Tensor x = tensor({3.f}), base = tensor({3.f, 4.f});
  Tensor part = slice(base, 0, 0, 1), w = ones({2}).requires_grad();
  Tape tape;
  tape.watch(x);
  tape.watch(part);
  Tensor y = x * 2, row = slice(w, 0, 0, 1);
  stop_gradient(y).write<float>()[0] = 100;
  CHECK_THAT(error_of<TapeError>([&] { y* y; }), contains("was overwritten at"));
  base.write<float>()[0] = 7;
  CHECK_THAT(error_of<TapeError>([&] { part* x; }), contains("was overwritten at"));
  w.write<float>()[0] = 7;
  CHECK_THAT(error_of<TapeError>([&] { row* x; }), contains("was overwritten at"));
  // Training overwrites the parameter itself.
  CHECK(sum(w * 1).item() == 8);
}

TEST_CASE("a watched tensor is called made, not computed, and may become a parameter") {
  Tensor x = ones({2});
  Tape tape;
  tape.watch(x);
  CHECK_THAT(error_of<TapeError>([&] { x.write<float>(); }), contains("(2,) f32, made at"));
  x.requires_grad();
  x.requires_grad(false);
  x.requires_grad();
  tape.backward(sum(x * 2));
  CHECK(sum(x.grad()).item() == 4);
}

TEST_CASE("backward that would reach no parameter says so and keeps the tape") {
  Tensor x = full({}, 3.0);
  Tape tape;
  tape.watch(x);
  Tensor y = x * x;
  CHECK_THAT(error_of<TapeError>([&] { tape.backward(y); }), contains("does not depend on any parameter"));
  CHECK(tape.gradient(y, x).item() == 6);
}

TEST_CASE("an error found before the backward pass leaves the tape usable") {
  Tensor x = full({}, 3.0), other = ones({});
  Tape tape;
  tape.watch(x);
  tape.watch(other);
  Tensor y = x * x, unrelated = other * 1;
  CHECK_THROWS_AS(tape.gradient(y, other), TapeError);
  CHECK(tape.gradient(y, x).item() == 6);
}

TEST_CASE("watching a dead tensor does not make it a silent constant later") {
  Tensor x = full({}, 3.0).requires_grad(), h;
  {
    Tape tape;
    h = x * 2;
  }
  {
    Tape tape;
    tape.watch(h);
    CHECK(tape.gradient(h * h, h).item() == 12);
  }
  Tape tape;
  CHECK_THAT(error_of<TapeError>([&] { h* x; }), contains("has finished"));
}

TEST_CASE("using a tensor of a finished tape names the line that made it and says what to do") {
  Tensor w = ones({}).requires_grad(), h;
  int line = 0;
  {
    Tape tape;
    line = __LINE__ + 1;
    h = w * 2.0;
  }
  Tensor plain = h * 3.0;  // nothing records: a plain value
  CHECK(plain.item() == 6);
  Tape tape;
  std::string text = error_of<TapeError>([&] { h* w; });
  CHECK_THAT(text, contains("belongs to a tape that has finished"));
  CHECK_THAT(text, contains("use stop_gradient"));
  CHECK_THAT(text, contains(location(line)));
  Tensor carried = stop_gradient(h) * w;
  tape.backward(carried);
  CHECK(w.grad().item() == 2);
}

TEST_CASE("a tensor of a finished tape may be watched anew") {
  Tensor w = ones({}).requires_grad(), h;
  {
    Tape tape;
    h = w * 2.0;
  }
  Tape tape;
  tape.watch(h);
  CHECK(tape.gradient(h * h, h).item() == 4);
}

TEST_CASE("a watched tensor is a plain value again when its tape has finished") {
  Tensor x = ones({}), w = ones({}).requires_grad();
  Tape tape;
  tape.watch(x);
  CHECK(tape.gradient(x * w, x).item() == 1);
  Tensor y = x * w;
  CHECK_THROWS_AS(tape.gradient(y, x), TapeError);
  tape.backward(y);
  CHECK(w.grad().item() == 1);
}

TEST_CASE("a tape inside NoRecord inside a tape is refused, and fine without the outer tape") {
  {
    NoRecord pause;
    Tensor x = ones({});
    Tape tape;
    tape.watch(x);
    CHECK(tape.gradient(x * 2.0, x).item() == 2);
  }
  CHECK_FALSE(is_recording());
  Tape outer;
  NoRecord pause;
  CHECK_THAT(error_of<TapeError>([] { Tape inner; }), contains("cannot open inside NoRecord"));
  CHECK_FALSE(is_recording());
}

namespace {

const char* kind_of(const Error& error) {
  if (dynamic_cast<const TapeError*>(&error)) return "TapeError";
  if (dynamic_cast<const AnomalyError*>(&error)) return "AnomalyError";
  if (dynamic_cast<const ShapeError*>(&error)) return "ShapeError";
  if (dynamic_cast<const DTypeError*>(&error)) return "DTypeError";
  return "Error";
}

// "TapeError: sentence", without a trailing location in one of these files.
std::string told(const Misuse& row) {
  if (!row.act) return row.expected;
  try {
    row.act();
  } catch (const Error& error) {
    std::string text = std::string(kind_of(error)) + ": " + error.what();
    for (std::string folder = "tests/tape/"; text.find(folder) != std::string::npos;)
      text.erase(text.find(folder), folder.size());
    return text;
  }
  return "nothing is thrown";
}

// Returns true if the text matches the pattern, in which `…` matches anything.
bool matches(std::string_view text, std::string_view pattern) {
  constexpr std::string_view anything = "…";
  std::size_t open = pattern.find(anything);
  if (open == std::string_view::npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, open))) return false;
  std::string_view rest = pattern.substr(open + anything.size());
  for (std::size_t from = open; from <= text.size(); ++from)
    if (matches(text.substr(from), rest)) return true;
  return false;
}

// Wraps text into indented lines of 110 columns.
std::string wrapped_line(std::string_view text, std::string_view indent) {
  constexpr std::size_t columns = 110;
  std::string lines;
  std::size_t column = columns;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    auto width = static_cast<std::size_t>(
        std::ranges::count_if(word, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
    bool begins = column + 1 + width > columns;
    if (begins && !lines.empty()) lines += '\n';
    lines += begins ? indent : " ";
    lines += word;
    column = (begins ? indent.size() : column + 1) + width;
  }
  return lines;
}

std::string wrapped(std::string_view text, std::string_view indent) {
  std::string lines;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!lines.empty()) lines += '\n';
    lines += wrapped_line(line, indent);
  }
  return lines;
}

}  // namespace

// `tools/test misuse` prints what this prints.
TEST_CASE("every misuse has its own sentence, which names the line and says what to do") {
  std::set<std::string> sentences;
  int number = 0;
  for (const MisuseGroup& group : {tensor_misuse(), gradient_misuse(), derivative_misuse(), overwrite_misuse(),
                                   custom_misuse(), hook_misuse(), anomaly_misuse(), thread_misuse()}) {
    std::cout << group.title << "\n\n";
    for (const Misuse& row : group.rows) {
      std::string text = told(row);
      INFO(row.code << "\n" << text << "\n" << row.expected);
      CHECK(matches(text, row.expected + std::string(row.act ? "; at misuse_…" : "")));
      CHECK(sentences.insert(row.expected).second);
      std::cout << fmt::format("{:2}  {}\n{}\n\n", ++number, row.code, wrapped(text, "    "));
    }
  }
  std::cout.flush();
}
