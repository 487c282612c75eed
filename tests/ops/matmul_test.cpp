#include <cmath>

#include "ops/table.h"

#include "catch.h"
#include "ops/bad_input.h"

// What the table of ops cannot say of products.

namespace reel_test {

using namespace reel;

TEST_CASE("addmm leaves out what beta = 0 takes away") {
  Tensor c = full({2, 2}, NAN), a = ones({2, 3}), b = ones({3, 2});
  CHECK(addmm(c, a, b, {.beta = 0, .alpha = 2}).to_vector<float>() == std::vector<float>(4, 6));
  CHECK(std::isnan(addmm(c, a, b).to_vector<float>()[0]));
  Tape tape;
  tape.watch(c);
  tape.watch(a);
  Tensor y = addmm(c, a, b, {.beta = 0});
  auto gradients = tape.gradient(sum(y), {c, a}, {.unconnected = Unconnected::zeros});
  CHECK(gradients[0].to_vector<float>() == std::vector<float>(4, 0));
}

TEST_CASE("products meet in a common dtype") {
  auto of = [](DType dtype, const Shape& shape) { return ones(shape, {.dtype = dtype}); };
  CHECK(bmm(of(i32, {1, 2, 2}), of(f32, {1, 2, 2})).dtype() == f32);
  CHECK(addmm(of(f64, {2}), of(f32, {1, 2}), of(f32, {2, 2})).dtype() == f64);
  CHECK(addmm(of(u8, {2}), of(u8, {1, 2}), of(u8, {2, 2}), {.beta = 200, .alpha = 30}).to_vector<std::uint8_t>() ==
        std::vector<std::uint8_t>(2, 260 % 256));
  CHECK(addmm(of(boolean, {2}), of(boolean, {1, 2}), of(boolean, {2, 2})).dtype() == boolean);
  CHECK(outer(of(bf16, {2}), of(f16, {2})).dtype() == f32);
  CHECK(outer(of(i64, {}), of(i32, {2})).dtype() == i64);
  CHECK(dot(of(i32, {2}), of(boolean, {2})).item<std::int32_t>() == 2);
}

TEST_CASE("bad input to products is one sentence") {
  Tensor m = ones({2, 3}), n = ones({3, 2}), batch = ones({2, 2, 3}), other = ones({3, 3, 2}), v = ones({3}), u;
  Tensor whole = ones({2, 2}, {.dtype = i32}), flags = ones({2, 2}, {.dtype = boolean}),
         bytes = ones({2, 2}, {.dtype = u8});
  all_fail<ShapeError>({
      Bad("bmm: takes tensors of rank 3, not a (2, 3), b (3, 2)", [&] { bmm(m, n); }),
      Bad("bmm: takes tensors of rank 3, not a (2, 2, 3), b (3, 2)", [&] { bmm(batch, n); }),
      Bad("bmm: batch sizes differ: a (2, 2, 3), b (3, 3, 2)", [&] { bmm(batch, other); }),
      Bad("bmm: inner sizes differ: a (2, 2, 3), b (2, 2, 3)", [&] { bmm(batch, batch); }),
      Bad("addmm: a and b must be matrices: a (3,), b (3, 2)", [&] { addmm(m, v, n); }),
      Bad("addmm: a and b must be matrices: a (2, 3), b (3,)", [&] { addmm(m, m, v); }),
      Bad("addmm: inner sizes differ: a (2, 3), b (2, 3)", [&] { addmm(m, m, m); }),
      Bad("addmm: c (2, 3) does not broadcast to (2, 2)", [&] { addmm(m, m, n); }),
      Bad("addmm: c (1, 2, 2) does not broadcast to (2, 2)",
          [&] {
            addmm(ones({1, 2, 2}), m, n);
          }),
      Bad("dot: takes two vectors of one size, not a (3,), b (2,)", [&] { dot(v, ones({2})); }),
      Bad("dot: takes two vectors of one size, not a (3,), b (2, 3)", [&] { dot(v, m); }),
      Bad("dot: takes two vectors of one size, not a (), b (3,)", [&] { dot(ones({}), v); }),
  });
  all_fail<DTypeError>({
      Bad("addmm: 0.5 is no whole number, which i32 operands need",
          [&] { addmm(whole, whole, whole, {.alpha = 0.5}); }),
      Bad("addmm: nan is no whole number", [&] { addmm(whole, whole, whole, {.beta = NAN}); }),
      Bad("addmm: 1e+300 is no whole number", [&] { addmm(whole, whole, whole, {.beta = 1e300}); }),
      Bad("addmm: the number -1 does not fit u8", [&] { addmm(bytes, bytes, bytes, {.beta = -1}); }),
      Bad("addmm: bools are not multiplied by 2", [&] { addmm(flags, flags, flags, {.beta = 2}); }),
      Bad("bmm: takes a tensor here, not the number 2", [&] { bmm(2, batch); }),
      Bad("addmm: takes a tensor here, not the number 1", [&] { addmm(1, m, n); }),
      Bad("outer: takes a tensor here, not the number 2", [&] { outer(v, 2); }),
      Bad("dot: takes a tensor here, not the number 2", [&] { dot(v, 2); }),
  });
  all_fail<Error>({
      Bad("bmm: an operand is an undefined tensor", [&] { bmm(batch, u); }),
      Bad("addmm: an operand is an undefined tensor", [&] { addmm(u, m, n); }),
      Bad("addmm: an operand is an undefined tensor", [&] { addmm(m, u, n); }),
      Bad("outer: an operand is an undefined tensor", [&] { outer(u, v); }),
      Bad("dot: an operand is an undefined tensor", [&] { dot(v, u); }),
  });
}

}  // namespace reel_test
