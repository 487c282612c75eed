#include <reel/reel.h>

#include <cmath>
#include <limits>

#include "ops/bad_input.h"
#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

const Tensor undefined, m = zeros({2, 3}), v = zeros({3}), whole = arange(6), flags = tensor({1, 0, 1}) > 0;

template <class T>
std::vector<T> values(const Tensor& x) {
  return contiguous(x).to_vector<T>();
}

}  // namespace

TEST_CASE("in-place results are rounded to x's dtype, whatever the operand's") {
  Tensor x = tensor({1.f, 2.f}), wide = tensor({0x1p-30, 1e-3});
  CHECK(values<float>(add_(x, wide)) == std::vector<float>{1, static_cast<float>(2 + 1e-3)});
  CHECK(values<float>(mul_(x, tensor({2, 3}))) == std::vector<float>{2, static_cast<float>(2 + 1e-3) * 3});
  Tensor half = to(tensor({1.f, 256.f}), bf16);
  CHECK(values<float>(to(add_(half, tensor({1.f, 1.f})), f32)) == std::vector<float>{2, 256});
  Tensor bytes = to(tensor({250, 3}), u8);
  CHECK(values<unsigned char>(add_(bytes, tensor({10, 10}))) == std::vector<unsigned char>{4, 13});
  CHECK(values<unsigned char>(sub_(bytes, 5)) == std::vector<unsigned char>{255, 8});
  Tensor integers = tensor({std::numeric_limits<int>::max(), -7});
  CHECK(values<int>(add_(integers, 1)) == std::vector<int>{std::numeric_limits<int>::min(), -6});
  CHECK(values<int>(copy_(integers, tensor({1.75, -2.5}))) == std::vector<int>{1, -2});
  CHECK(values<int>(fill_(integers, 3.9)) == std::vector<int>{3, 3});
  CHECK(values<bool>(add_(copy(flags), tensor({0, 1, 0}) > 0)) == std::vector<bool>{true, true, true});
  CHECK(values<bool>(mul_(copy(flags), tensor({0, 1, 1}) > 0)) == std::vector<bool>{false, false, true});
  CHECK(values<bool>(fill_(copy(flags), 2)) == std::vector<bool>{true, true, true});
}

TEST_CASE("in-place functions write through views of any layout, and nowhere else") {
  Tensor base = arange(24, {.dtype = f64});
  Tensor x = transpose(slice(reshape(base, {4, 6}), 1, 4, 0, -2), 0, 1);  // columns 4 and 2, transposed
  for (auto write : {+[](const Tensor& to) { add_(to, 100); }, +[](const Tensor& to) { copy_(to, to + 100); },
                     +[](const Tensor& to) { masked_fill_(to, to > 5, 7); }, +[](const Tensor& to) { zero_(to); },
                     +[](const Tensor& to) { clamp_(to, 10, 15.0); }, +[](const Tensor& to) { fill_(to, 1); },
                     +[](const Tensor& to) { index_put_(to, {tensor({1})}, -1.0); }}) {
    Tensor whole = copy(base), part = transpose(slice(reshape(whole, {4, 6}), 1, 4, 0, -2), 0, 1), alone = copy(x);
    REQUIRE(same_bits(part, alone));
    Shape strides = part.strides();
    write(part);
    write(alone);
    CHECK(same_bits(part, alone));
    CHECK(part.strides() == strides);
    Tensor back = slice(reshape(whole, {4, 6}), 1, 4, 0, -2);
    copy_(back, transpose(x, 0, 1));
    CHECK(same_bits(whole, base));
  }
}

TEST_CASE("an operand that overlaps x counts with its values before") {
  auto line = [] { return arange(5, {.dtype = f64}); };
  using Doubles = std::vector<double>;
  Tensor x = line();
  copy_(slice(x, 0, 1, 5), slice(x, 0, 0, 4));
  CHECK(values<double>(x) == Doubles{0, 0, 1, 2, 3});
  x = line();
  copy_(slice(x, 0, 0, 4), slice(x, 0, 1, 5));
  CHECK(values<double>(x) == Doubles{1, 2, 3, 4, 4});
  x = line();
  add_(slice(x, 0, 1, 5), slice(x, 0, 0, 4));
  CHECK(values<double>(x) == Doubles{0, 1, 3, 5, 7});
  x = line();
  mul_(x, slice(x, 0, 2, 3));
  CHECK(values<double>(x) == Doubles{0, 2, 4, 6, 8});
  x = line();
  x(slice()) = x(slice(std::nullopt, std::nullopt, -1));
  CHECK(values<double>(x) == Doubles{4, 3, 2, 1, 0});
  CHECK(values<double>(add_(x, x)) == Doubles{8, 6, 4, 2, 0});
  CHECK(values<double>(copy_(x, x)) == Doubles{8, 6, 4, 2, 0});
  fill_(x, x(1));
  CHECK(values<double>(x) == Doubles{6, 6, 6, 6, 6});
  Tensor square = reshape(arange(4), {2, 2});
  CHECK(values<std::int64_t>(add_(square, transpose(square, 0, 1))) == std::vector<std::int64_t>{0, 3, 3, 6});
}

TEST_CASE("bounds that share elements with x have their gradients") {
  Tensor w = tensor({1.0, 2.0, 3.0}).requires_grad();
  Tape tape;
  Tensor x = w * 2.0;
  clamp_(x, x(1), x(2));
  CHECK(tape.gradient(sum(x), w).to_vector<double>() == std::vector<double>{0, 4, 2});
}

TEST_CASE("special values pass through in-place functions") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  Tensor x = tensor({nan, inf, -inf, -0.f, 1e-42f});
  std::vector<float> clamped = values<float>(clamp_(copy(x), -1, 1));
  CHECK(std::isnan(clamped[0]));
  CHECK(std::vector<float>(clamped.begin() + 1, clamped.end()) == std::vector<float>{1, -1, 0, 1e-42f});
  CHECK(std::signbit(clamped[3]));
  CHECK(values<float>(clamp_(tensor({-3.f, 4.f}), 0)) == std::vector<float>{0, 4});
  CHECK(values<float>(div_(tensor({1.f, -1.f}), zeros({2}))) == std::vector<float>{inf, -inf});
  CHECK(values<float>(add_(copy(x), 1))[4] == 1);
  CHECK(values<float>(mul_(copy(x), 1))[4] == 1e-42f);
  CHECK(values<float>(zero_(copy(x))) == std::vector<float>(5, 0));
  CHECK_FALSE(std::signbit(values<float>(zero_(copy(x)))[3]));
  Tensor nothing = zeros({0, 3});
  add_(nothing, v);
  zero_(nothing(slice(), 1));
  CHECK(masked_fill_(nothing, nothing > 0, 1).is(nothing));
}

TEST_CASE("operators in place are the functions") {
  Tensor x = tensor({1.f, 2.f}), alias = x;
  x += 1;
  x *= x;
  x -= tensor({1.f, 1.f});
  x /= 2;
  CHECK(values<float>(alias) == std::vector<float>{1.5, 4});
  x(0) += x(1);
  auto part = x(slice(1));
  part *= 2;
  CHECK(values<float>(alias) == std::vector<float>{5.5, 8});
}

TEST_CASE("bad operands of in-place functions are named") {
  Tensor rows = expand(v, {2, 3}), x = copy(v), integers = arange(3);
  all_fail<ShapeError>({
      Bad("add_: y (2, 3) does not broadcast to x (3,)", [&] { add_(x, m); }),
      Bad("sub_: y (4,) does not broadcast to x (3,)", [&] { sub_(x, zeros({4})); }),
      Bad("mul_: y (1, 3) does not broadcast to x (3,)",
          [&] {
            mul_(x, zeros({1, 3}));
          }),
      Bad("div_: y (3,) does not broadcast to x (1,)", [&] { div_(zeros({1}), v); }),
      Bad("copy_: y (2, 3) does not broadcast to x (3,)", [&] { copy_(x, m); }),
      Bad("index_assign_: y (3,) does not broadcast to x ()", [&] { x(0) = v; }),
      Bad("clamp_: y (2, 3) does not broadcast to x (3,)", [&] { clamp_(x, m); }),
      Bad("fill_: the value (3,) f32 is not a single number; write the tensor with copy_", [&] { fill_(x, v); }),
      Bad("masked_fill_: the mask (2, 1) does not broadcast to x (3,)",
          [&] {
            masked_fill_(x, zeros({2, 1}) > 0, 1);
          }),
      Bad("index_put_: the values (2,) do not broadcast to (1,)", [&] { index_put_(x, {tensor({0})}, zeros({2})); }),
      Bad("add_: x (2, 3) f32 repeats elements (strides (0, 1))", [&] { add_(rows, v); }),
      Bad("zero_: x (2, 3) f32 repeats elements", [&] { zero_(rows); }),
      Bad("copy_: x (2, 3) f32 repeats elements", [&] { copy_(rows, m); }),
      Bad("index_assign_: x (2, 3) f32 repeats elements", [&] { rows(0) = 1; }),
      Bad("fill_: x (2, 3) f32 repeats elements", [&] { fill_(rows(0), 1); }),
  });
  all_fail<DTypeError>({
      Bad("add_: x (3,) i64 cannot hold the results, which are f32; convert it first with to(x, f32)",
          [&] { add_(integers, 1.5); }),
      Bad("sub_: x (3,) i64 cannot hold the results, which are f32", [&] { sub_(integers, v); }),
      Bad("mul_: x (3,) bool cannot hold the results, which are i64", [&] { mul_(flags, 2); }),
      Bad("div_: x (3,) i64 cannot hold the results, which are f32", [&] { div_(integers, 2); }),
      Bad("clamp_: x (3,) i64 cannot hold the results, which are f32", [&] { clamp_(integers, 0.5); }),
      Bad("sub_: bools cannot be operands", [&] { sub_(flags, flags); }),
      Bad("add_: the number 300 does not fit u8", [&] { add_(to(integers, u8), 300); }),
      Bad("fill_: the number -1 does not fit u8", [&] { fill_(to(integers, u8), -1); }),
      Bad("copy_: the number 3000000000 does not fit i32", [&] { copy_(to(integers, i32), 3000000000); }),
      Bad("masked_fill", [&] { masked_fill_(x, integers, 1); }),
      Bad("masked_fill", [&] { masked_fill_(integers, flags, 1.5); }),
      Bad("index_put", [&] { index_put_(x, {v}, 1); }),
  });
  all_fail<IndexError>({Bad("index_put_: index 3 is out of range", [&] { index_put_(x, {tensor({0, 3})}, 1.0); })});
  all_fail<Error>({
      Bad("add_: an operand is an undefined tensor", [&] { add_(undefined, v); }),
      Bad("add_: an operand is an undefined tensor", [&] { add_(x, undefined); }),
      Bad("copy_: an operand is an undefined tensor", [&] { copy_(x, undefined); }),
      Bad("zero_: an operand is an undefined tensor", [&] { zero_(undefined); }),
      Bad("fill_: an operand is an undefined tensor", [&] { fill_(x, undefined); }),
      Bad("clamp_: an operand is an undefined tensor", [&] { clamp_(x, 0, undefined); }),
      Bad("masked_fill_: an operand is an undefined tensor", [&] { masked_fill_(x, undefined, 1); }),
      Bad("index_put_: an operand is an undefined tensor", [&] { index_put_(x, {tensor({0})}, undefined); }),
      Bad("index_put_: an operand is an undefined tensor", [&] { index_put_(x, {undefined}, 1); }),
      Bad("index_assign_: an operand is an undefined tensor", [&] { x(0) = undefined; }),
      Bad("add_: an operand is an undefined tensor",
          [&] {
            Tensor nothing;
            nothing += 1;
          }),
  });
  CHECK(values<float>(x) == std::vector<float>(3, 0));
  CHECK(values<std::int64_t>(integers) == std::vector<std::int64_t>{0, 1, 2});
}

}  // namespace reel_test
