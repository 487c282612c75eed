#include <reel/testing.h>

#include <limits>
#include <sstream>
#include <string>

#include <reel/reel.h>

#include "catch.h"

using namespace reel;
using namespace reel_test;
using testing::all_close;
using testing::Closeness;
using testing::CloseOptions;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();

Tensor of(std::vector<double> values, DType dtype = f64) { return to(tensor(values), dtype); }

}  // namespace

TEST_CASE("tensors are close where the elements differ by no more than is allowed") {
  struct Row {
    Tensor found, expected;
    CloseOptions options;
    bool close;
  };
  const std::vector<Row> rows = {
      {of({1, 2}), of({1, 2}), {}, true},
      {of({1, 2}), of({1, 2 + 3e-7}), {}, true},  // 1e-7 + 2 × 1e-7
      {of({1, 2}), of({1, 2 + 4e-7}), {}, false},
      {of({1, 2}, f32), of({1, 2 + 1.2e-5}, f32), {}, true},
      {of({1, 2}, f32), of({1, 2 + 1.4e-5}, f32), {}, false},
      {of({1}, f16), of({1 + 0x1p-10}, f16), {}, true},
      {of({1}, f16), of({1 + 0x1p-9}, f16), {}, false},
      {of({1}, bf16), of({1 + 0x1p-7}, bf16), {}, true},
      {of({1}, bf16), of({1 + 0x1p-5}, bf16), {}, false},
      {of({1}), of({1.5}), {.absolute = 0.5}, true},
      {of({1}), of({1.5}), {.relative = 0, .absolute = 0.4}, false},
      {of({10}), of({11}), {.relative = 0.1, .absolute = 0}, true},
      {of({infinity, -infinity}), of({infinity, -infinity}), {}, true},
      {of({infinity}), of({-infinity}), {.absolute = infinity}, false},
      {of({infinity}), of({1}), {.relative = infinity}, false},
      {of({not_a_number}), of({not_a_number}), {}, false},
      {of({not_a_number}), of({not_a_number}), {.equal_nan = true}, true},
      {of({not_a_number}), of({0}), {.equal_nan = true}, false},
      {zeros({0, 3}), zeros({0, 3}), {}, true},
      {zeros({2}), zeros({1}), {}, false},
      {zeros({2, 1}), zeros({1, 2}), {}, false},
      {zeros({2}), zeros({2}, {.dtype = f64}), {}, false},
      {zeros({2}), zeros({2}, {.dtype = f64}), {.check_dtype = false}, true},
      {tensor(std::vector<std::int64_t>{(std::int64_t{1} << 53) + 1}),
       tensor(std::vector<std::int64_t>{std::int64_t{1} << 53}),
       {},
       false},
      {tensor(std::vector<std::int64_t>{5}), tensor(std::vector<std::int64_t>{6}), {.absolute = 1}, true},
      {tensor({true, false}), tensor({true, true}), {}, false},
      {transpose(reshape(of({1, 2, 3, 4}), {2, 2}), 0, 1), reshape(of({1, 3, 2, 4}), {2, 2}), {}, true},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO("row " << i);
    CHECK(static_cast<bool>(all_close(rows[i].found, rows[i].expected, rows[i].options)) == rows[i].close);
  }
}

TEST_CASE("a difference is told with the worst element, and small tensors whole") {
  Closeness far = all_close(reshape(of({1, 2, 3, 4, 5, 6}), {2, 3}), reshape(of({1, 2, 3.5, 4, 9, 6}), {2, 3}));
  CHECK_THAT(far.difference(), contains("2 of 6 elements differ; the worst at [1, 1]: found 5, expected 9, 4 apart, "
                                        "where 1e-07 + 1e-07 × |expected| is allowed"));
  CHECK_THAT(far.difference(), contains("found:\n[[1. 2. 3.]\n [4. 5. 6.]]\nexpected:\n[["));
  Closeness large = all_close(zeros({100}), ones({100}));
  CHECK_THAT(large.difference(), contains("100 of 100 elements differ; the worst at [0]"));
  CHECK(large.difference().find("found:") == std::string::npos);
  CHECK(all_close(zeros({2}), zeros({3}, {.dtype = f64})).difference() ==
        "found (2,) f32 on cpu, expected (3,) f64 on cpu");
  CHECK_THAT(all_close(of({1, not_a_number}), of({2, 2})).difference(),
             contains("the worst at [1]: found nan, expected 2"));
  CHECK_THAT(all_close(ones({}), zeros({})).difference(), contains("1 of 1 elements differ; the worst at []"));
  std::ostringstream printed;
  printed << far << all_close(ones({1}), ones({1}));
  CHECK(printed.str() == far.difference() + "close");
  CHECK(Catch::Detail::stringify(far).find("2 of 6 elements differ") != std::string::npos);
}

TEST_CASE("tensors are compared without a trace on a tape, wherever they are") {
  Tape tape;
  Tensor x = ones({2}).requires_grad();
  CHECK(all_close(x * 2.0f, full({2}, 2)));
  CHECK(tape.size() == 1);
}

TEST_CASE("undefined tensors and negative tolerances are refused") {
  CHECK_THAT(error_of<Error>([] { all_close(Tensor(), ones({1})); }),
             contains("testing::all_close: the found tensor is undefined; at "));
  CHECK_THAT(error_of<Error>([] { all_close(ones({1}), Tensor()); }), contains("the expected tensor is undefined"));
  CHECK_THAT(error_of<Error>([] { all_close(ones({1}), ones({1}), {.relative = -1}); }),
             contains(".relative is -1 and .absolute 1e-05; both must be at least 0"));
}

TEST_CASE("the example of all_close passes") {
  auto model = [](const Tensor& x) { return x * 2.0f; };
  Tensor x = ones({2}), expected = full({2}, 2);
#include "examples/testing_1.h"
}
