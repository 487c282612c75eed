#include <reel/reel.h>

#include "catch.h"

using namespace reel;
using reel_test::error_of;

namespace {

// The whole text of the error: the sentence, and the line of this call.
template <class E = ShapeError, class F>
void fails_with(const std::string& sentence, F f, Location where = Location::here()) {
  CHECK(error_of<E>(f) == sentence + "; at " + to_string(where));
}

Tensor helper_with_scope(const Tensor& a, const Tensor& b, Location where = Location::here()) {
  CallerScope caller(where);
  return square(a) + b;
}

Tensor outer_helper(const Tensor& a, const Tensor& b, Location where = Location::here()) {
  CallerScope caller(where);
  return helper_with_scope(a, b);
}

}  // namespace

TEST_CASE("a location prints as file:line, without leading ../") {
  CHECK(to_string(Location{"../../lib/a.cpp", 12}) == "lib/a.cpp:12");
  CHECK(to_string(Location{"/home/a.cpp", 1}) == "/home/a.cpp:1");
  CHECK(to_string(Location{"a/../b.cpp", 1}) == "a/../b.cpp:1");
  CHECK(to_string(Location{}) == "unknown place");
  CHECK(Location::here().line == __LINE__);
  CHECK(to_string(Location::here()).ends_with("tests/core/error_test.cpp:" + std::to_string(__LINE__)));
}

TEST_CASE("an error carries its sentence and its place") {
  Error error("it broke", {"a.cpp", 3});
  CHECK(std::string(error.what()) == "it broke; at a.cpp:3");
  CHECK(error.where() == Location{"a.cpp", 3});
  CHECK(std::string(Error("it broke", {}).what()) == "it broke");
}

TEST_CASE("errors name op, shapes and the caller's line") {
  Tensor a = zeros({2, 3}), b = zeros({4, 5}), v = zeros({4});
  Tensor indices = tensor({0, 9}), undefined;
  fails_with("matmul: inner sizes differ: a (2, 3), b (4, 5)", [&] { matmul(a, b); });
  fails_with("matmul: inner sizes differ: a (2, 3), b (4,)", [&] { matmul(a, v); });
  fails_with("add: shapes do not broadcast: a (2, 3), b (4,)", [&] { a + v; });
  fails_with("less: shapes do not broadcast: a (4, 5), b (2, 3)", [&] { static_cast<void>(b < a); });
  fails_with("sum: axis 2 does not exist in (2, 3) f32; it must lie in [-2, 2)", [&] { sum(a, {2}); });
  fails_with("mean: axis 5 does not exist in (2, 3) f32; it must lie in [-2, 2)", [&] { mean(a, {5}); });
  std::string undefined_text = "mul: an operand is an undefined tensor: it was never given a value";
  fails_with<Error>(undefined_text, [&] { a* undefined; });
  fails_with<Error>(undefined_text, [&] { undefined * 2.0; });
  fails_with<Error>(undefined_text, [&] { 2.0 * undefined; });
  std::string range_text = "embedding: index 9 is out of range for axis 0 of (2, 3) f32";
  fails_with<IndexError>(range_text, [&] { embedding(a, indices); });
}

TEST_CASE("errors inside composed functions name the line of the outermost call") {
  Tensor logits = zeros({2, 3}), a = zeros({2}), b = zeros({3}), ints = tensor({1, 2});
  std::string mean_text = "mean: takes a floating tensor, not (2,) i32; convert it with to(x, f32)";
  fails_with<DTypeError>(mean_text, [&] { mean(ints); });
  std::string target_text = "cross_entropy: target 7 is not a class of the logits (2, 3) f32";
  fails_with<IndexError>(target_text, [&] { cross_entropy(logits, tensor({1, 7})); });
  std::string shape_text = "cross_entropy: logits (2, 3) want targets (2,), not (1,)";
  fails_with(shape_text, [&] { cross_entropy(logits, tensor({1})); });
  fails_with("add: shapes do not broadcast: a (2,), b (3,)", [&] { helper_with_scope(a, b); });
  fails_with("add: shapes do not broadcast: a (2,), b (3,)", [&] { outer_helper(a, b); });
}

TEST_CASE("a caller scope ends with its block, and an exception ends it too") {
  Tensor a = zeros({2}), b = zeros({3});
  {
    CallerScope outer(Location{"outer.cpp", 1});
    CallerScope inner(Location{"inner.cpp", 2});
    CHECK(error_of<ShapeError>([&] { a + b; }).ends_with("; at outer.cpp:1"));
  }
  fails_with("add: shapes do not broadcast: a (2,), b (3,)", [&] { a + b; });
  CHECK_THROWS(outer_helper(a, b));
  fails_with("add: shapes do not broadcast: a (2,), b (3,)", [&] { a + b; });
}

TEST_CASE("tensors know the line that made them") {
  Tensor x = zeros({2});
  CHECK(x.made_at() == Location::here(x.made_at().file, __LINE__ - 1));
  Tensor y = x * 2.0 + 1;
  CHECK(y.made_at().line == __LINE__ - 1);
  Tensor z = mean(x);
  CHECK(z.made_at().line == __LINE__ - 1);
  Tensor loss = cross_entropy(zeros({2, 3}), tensor({0, 1}));
  CHECK(loss.made_at().line == __LINE__ - 1);
  Tensor u = outer_helper(x, x);
  CHECK(u.made_at().line == __LINE__ - 1);
}

TEST_CASE("a device without a backend is refused with the line of the call") {
  Device gpu{Device::Type::cuda, 0};
  CHECK(to_string(gpu) == "cuda:0");
  std::string text = error_of<DeviceError>([&] { zeros({2}, {.device = gpu}); });
  CHECK_THAT(text, reel_test::contains("cuda:0"));
  CHECK(text.ends_with("error_test.cpp:" + std::to_string(__LINE__ - 2)));
}
