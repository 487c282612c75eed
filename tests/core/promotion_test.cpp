#include <reel/reel.h>

#include <limits>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

Tensor of(DType dtype, const Shape& shape = {2}) { return ones(shape, {.dtype = dtype}); }

}  // namespace

TEST_CASE("a plain number takes the dtype of the tensor it meets unless it is of a higher kind") {
  for (DType dtype : {f32, f64, bf16, f16}) {
    CAPTURE(name_of(dtype));
    Tensor x = of(dtype);
    for (const Tensor& y : {x + 1, x * 2.5, 2u - x, x / 3, pow(x, 2), x + true}) CHECK(y.dtype() == dtype);
  }
  for (DType dtype : {i32, i64, u8, i8, i16}) {
    CAPTURE(name_of(dtype));
    Tensor x = of(dtype);
    for (const Tensor& y : {x + 1, 3l * x, x + true, pow(x, 2), x - 1u}) CHECK(y.dtype() == dtype);
    for (const Tensor& y : {x + 1.5, 2.f * x, x / 2, pow(x, 0.5)}) CHECK(y.dtype() == f32);
  }
  Tensor flags = of(boolean);
  CHECK((flags + true).dtype() == boolean);
  CHECK((flags + 1).dtype() == i64);
  CHECK((flags * 2.5).dtype() == f32);
  CHECK((flags / flags).dtype() == f32);
}

TEST_CASE("a tensor of rank 0 is as weak as a number of its kind among tensors of higher rank") {
  CHECK((of(f32) + of(f64, {})).dtype() == f32);
  CHECK((of(f16) * of(f32, {})).dtype() == f16);
  CHECK((of(i32) + of(i64, {})).dtype() == i32);
  CHECK((of(i32) + of(f16, {})).dtype() == f16);
  CHECK((of(u8, {}) + of(boolean)).dtype() == u8);
  CHECK((of(f64, {}) + of(f32, {})).dtype() == f64);
}

TEST_CASE("operands of different dtypes meet before the op") {
  CHECK((of(f32) + of(f64)).dtype() == f64);
  CHECK((of(bf16) + of(f16)).dtype() == f32);
  CHECK((of(i64) * of(f16)).dtype() == f16);
  CHECK(matmul(of(f32, {2, 2}), of(f64, {2, 2})).dtype() == f64);
  CHECK(where(of(boolean), of(i32), of(f32)).dtype() == f32);
  CHECK(concat({of(i32), of(bf16)}).dtype() == bf16);
  CHECK((of(i32) == of(f32)).dtype() == boolean);
}

TEST_CASE("functions give floating results for integers where integers make no sense") {
  for (DType dtype : {i32, i64, u8, i8, i16, boolean}) {
    CAPTURE(name_of(dtype));
    for (const Tensor& y : {exp(of(dtype)), log(of(dtype)), sqrt(of(dtype)), tanh(of(dtype)), sigmoid(of(dtype))})
      CHECK(y.dtype() == f32);
    CHECK(sum(of(dtype)).dtype() == i64);
    CHECK(max(of(dtype)).dtype() == dtype);
  }
  for (DType dtype : {i32, i64, u8, i8, i16}) {
    for (const Tensor& y : {square(of(dtype)), -of(dtype), relu(of(dtype))}) CHECK(y.dtype() == dtype);
    CHECK((of(dtype) / of(dtype)).dtype() == f32);
  }
}

TEST_CASE("bools are refused where they are no numbers") {
  Tensor flags = of(boolean);
  CHECK_THAT(error_of<DTypeError>([&] { flags - flags; }), contains("sub: bools cannot be operands"));
  CHECK_THAT(error_of<DTypeError>([&] { pow(flags, flags); }), contains("pow: bools cannot be operands"));
  CHECK_THAT(error_of<DTypeError>([&] { -flags; }), contains("neg: takes numbers, not (2,) bool"));
  CHECK_THROWS_AS(relu(flags), DTypeError);
  CHECK_THROWS_AS(square(flags), DTypeError);
}

TEST_CASE("a number that the tensor's dtype cannot hold is refused") {
  CHECK_THAT(error_of<DTypeError>([] { of(u8) + 256; }), contains("add: the number 256 does not fit u8"));
  CHECK_THAT(error_of<DTypeError>([] { full({1}, 300, {.dtype = u8}); }),
             contains("full: the number 300 does not fit u8"));
  CHECK((ones({}, {.dtype = i64}) + std::numeric_limits<std::uint64_t>::max()).dtype() == f32);
  CHECK_THAT(error_of<DTypeError>([] { of(i8) + 128; }), contains("add: the number 128 does not fit i8"));
  CHECK_THAT(error_of<DTypeError>([] { of(i16) * -32769; }), contains("mul: the number -32769 does not fit i16"));
  CHECK_THROWS_AS(of(u8) - -1, DTypeError);
  CHECK_THROWS_AS(of(i32) * (std::int64_t{1} << 31), DTypeError);
  CHECK((of(i64) + (std::int64_t{1} << 40)).to_vector<std::int64_t>()[0] == (std::int64_t{1} << 40) + 1);
  CHECK((of(i32) * -2147483648l).to_vector<int>()[0] == std::numeric_limits<int>::min());
}
