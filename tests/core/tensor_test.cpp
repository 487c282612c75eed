#include <reel/reel.h>

#include <cmath>
#include <limits>

#include "catch.h"
#include "core/storage.h"

using namespace reel;
using namespace reel_test;

TEST_CASE("tensors are made from values, by rows, and filled") {
  Tensor v = tensor({1.f, 2.f, 3.f});
  CHECK(v.shape() == Shape{3});
  CHECK(v.dtype() == f32);
  Tensor m = tensor({{1, 2, 3}, {4, 5, 6}});
  CHECK(m.shape() == Shape{2, 3});
  CHECK(m.dtype() == i32);
  CHECK(m.to_vector<int>() == std::vector<int>{1, 2, 3, 4, 5, 6});
  CHECK(tensor(std::vector<double>{1, 2, 3, 4}, {2, 2}).strides() == Shape{2, 1});
  CHECK(tensor({true, false}).dtype() == boolean);
  CHECK(ones({2}, {.dtype = i64}).to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 1});
  CHECK(arange(3).to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1, 2});
  CHECK(arange(2, {.dtype = f32}).to_vector<float>() == std::vector<float>{0, 1});
  CHECK(zeros_like(m).dtype() == i32);
  CHECK(ones_like(transpose(m)).shape() == Shape{3, 2});
  CHECK(zeros({}).rank() == 0);
  CHECK(zeros({0, 3}).numel() == 0);
}

TEST_CASE("full puts a number into every dtype as a conversion would") {
  struct Row {
    DType dtype;
    double number, expected;
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Row rows[] = {
      {f32, 2.5, 2.5}, {f64, 0.1, 0.1},         {bf16, 2.5, 2.5}, {f16, 1e6, infinity},   {i32, 2.9, 2},
      {i32, -2.9, -2}, {i32, 1e20, 2147483647}, {i64, NAN, 0},    {i64, -1e300, -0x1p63}, {u8, 255.5, 255},
      {u8, -3, 0},     {boolean, 0.5, 1},       {boolean, 0, 0}};
  for (const Row& row : rows) {
    CAPTURE(name_of(row.dtype), row.number);
    CHECK(full({1}, row.number, {.dtype = row.dtype}).item() == row.expected);
    CHECK(to(full({1}, row.number, {.dtype = f64}), row.dtype).item() == row.expected);
  }
  CHECK(full({}, (std::int64_t{1} << 62) + 1, {.dtype = i64}).item<std::int64_t>() == (std::int64_t{1} << 62) + 1);
  CHECK(full({}, true).item() == 1);
}

TEST_CASE("values that do not fill the shape are refused") {
  CHECK_THAT(error_of<ShapeError>([] {
               tensor(std::vector<float>{1, 2, 3}, {2, 2});
             }),
             contains("tensor: 3 values do not fill the shape (2, 2); at "));
  CHECK_THROWS_AS(tensor({{1, 2}, {3}}), ShapeError);
  CHECK_THAT(error_of<ShapeError>([] { zeros({2, -1}); }), contains("zeros: the shape (2, -1) has a negative size"));
  CHECK_THAT(error_of<ShapeError>([] { ones({-1}); }), contains("ones: "));
  CHECK_THAT(error_of<ShapeError>([] { full({-1}, 1); }), contains("full: "));
  CHECK_THAT(error_of<ShapeError>([] { arange(-1); }), contains("arange: "));
  CHECK_THAT(error_of<ShapeError>([] { rand({-1}); }), contains("rand: "));
  CHECK_THAT(error_of<ShapeError>([] { zeros({1 << 30, 1 << 30, 1 << 30}); }), contains("is larger than any memory"));
}

TEST_CASE("an undefined tensor can be tested, copied and moved, and its accessors throw") {
  Tensor nothing, copied = nothing;
  CHECK_FALSE(nothing.defined());
  CHECK_FALSE(copied.defined());
  CHECK_THROWS_AS(nothing.shape(), Error);
  CHECK_THROWS_AS(nothing.dtype(), Error);
  CHECK_THROWS_AS(nothing.item(), Error);
  CHECK_THROWS_AS(nothing.grad(), Error);
  CHECK_THROWS_AS(nothing.write<float>(), Error);
  CHECK(nothing.is(copied));
}

TEST_CASE("copies of a handle are the same tensor, and assignment releases the old one") {
  Tensor a = zeros({2}), b = a;
  CHECK(a.is(b));
  Tensor c = std::move(a);
  CHECK_FALSE(a.defined());
  CHECK(c.is(b));
  Tensor& itself = c;
  c = itself;
  CHECK(c.is(b));
  c = std::move(itself);
  CHECK(c.is(b));
  c = zeros({3});
  CHECK(b.shape() == Shape{2});
}

TEST_CASE("item converts the only element") {
  CHECK(tensor({2.75}).item<int>() == 2);
  CHECK(tensor({7}).item<float>() == 7.f);
  CHECK(tensor({true}).item<int>() == 1);
  CHECK(full({1, 1}, 3, {.dtype = bf16}).item() == 3);
  CHECK(tensor({0.5}).item<bool>());
  CHECK(select(arange(5), 0, -1).item<std::int64_t>() == 4);
  CHECK_THAT(error_of<ShapeError>([] { zeros({2}).item(); }),
             contains("item: needs exactly one element, not (2,) f32"));
  CHECK_THROWS_AS(zeros({0}).item(), ShapeError);
}

TEST_CASE("item cuts numbers to the range of an integer, as to does") {
  CHECK(tensor({1e30}).item<int>() == std::numeric_limits<int>::max());
  CHECK(tensor({-1e30f}).item<std::int64_t>() == std::numeric_limits<std::int64_t>::min());
  CHECK(tensor({std::nan("")}).item<int>() == 0);
  CHECK(tensor({-1.0}).item<unsigned char>() == 0);
}

TEST_CASE("elements are read and written only as what they are") {
  Tensor x = tensor({1.f, 2.f});
  CHECK(x.data<float>()[1] == 2);
  CHECK_THAT(error_of<DTypeError>([&] { x.data<double>(); }),
             contains("data: elements of (2,) f32 cannot be read as f64"));
  CHECK_THROWS_AS(x.to_vector<int>(), DTypeError);
  CHECK_THAT(error_of<DTypeError>([&] { x.write<int>(); }),
             contains("write: elements of (2,) f32 cannot be written as i32"));
  Tensor transposed = transpose(zeros({2, 3}));
  CHECK_THAT(error_of<ShapeError>([&] { transposed.write<float>(); }),
             contains("write: (3, 2) f32 has gaps or another order"));
}

TEST_CASE("to_vector reads any layout in row-major order") {
  Tensor x = reshape(arange(6), {2, 3});
  CHECK(transpose(x).to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 3, 1, 4, 2, 5});
  CHECK(slice(x, 1, 2, -4, -1).to_vector<std::int64_t>() == std::vector<std::int64_t>{2, 1, 0, 5, 4, 3});
  CHECK(expand(arange(2), {2, 2}).to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1, 0, 1});
}

TEST_CASE("sizes and axes count from both ends") {
  Tensor x = zeros({2, 3, 4});
  CHECK(x.size(0) == 2);
  CHECK(x.size(-1) == 4);
  CHECK_THAT(error_of<ShapeError>([&] { x.size(3); }), contains("size: axis 3 does not exist in (2, 3, 4) f32"));
}

TEST_CASE("views share elements, and a write through one is seen by the other") {
  Tensor x = zeros({2, 3});
  Tensor transposed = transpose(x), row = select(x, 0, 1);
  row.write<float>()[2] = 5;
  CHECK(x.to_vector<float>()[5] == 5);
  CHECK(transposed.to_vector<float>()[5] == 5);
  CHECK_FALSE(transposed.is_contiguous());
  CHECK(row.is_contiguous());
  CHECK(copy(x).data<float>() != x.data<float>());
}

TEST_CASE("a write counts up the storage's version and records its line") {
  Tensor x = zeros({2}), part = slice(x, 0, 1);
  const detail::Storage& storage = *x.body().storage;
  std::uint32_t before = storage.version.load();
  x.write<float>()[0] = 1;
  std::uint32_t after = storage.version.load();
  CHECK(after > before);
  CHECK(storage.last_overwrite().line == __LINE__ - 3);
  part.write<float>();
  CHECK(storage.version.load() > after);
  after = storage.version.load();
  static_cast<void>(x.data<float>());
  CHECK(storage.version.load() == after);
  CHECK(storage.writers.load() == 0);
}

TEST_CASE("a writer is a range that keeps its tensor alive") {
  Writer<float> writer = zeros({3}).write<float>();
  CHECK(writer.size() == 3);
  float next = 0;
  for (float& element : writer) element = next++;
  CHECK(writer[2] == 2);
  CHECK(writer.end() - writer.begin() == 3);
}

TEST_CASE("gradients that do not fit are refused") {
  Tensor w = zeros({2}).requires_grad();
  CHECK_FALSE(w.grad().defined());
  w.set_grad(ones({2}));
  CHECK(w.grad().to_vector<float>() == std::vector<float>{1, 1});
  CHECK_THROWS_AS(w.set_grad(ones({3})), ShapeError);
  CHECK_THROWS_AS(w.set_grad(ones({2}, {.dtype = f64})), DTypeError);
  w.set_grad({});
  CHECK_FALSE(w.grad().defined());
  CHECK_THROWS_AS(zeros({2}).set_grad(ones({2})), TapeError);
  CHECK_THROWS_AS(arange(2).requires_grad(), DTypeError);
}

TEST_CASE("an operand has the accessors of its tensor, and a number those of a tensor without axes") {
  Tensor x = ones({2, 3}, {.dtype = f64});
  Arg operand(x);
  CHECK(operand.defined());
  CHECK(operand.shape() == Shape{2, 3});
  CHECK(operand.dtype() == f64);
  CHECK(operand.device() == x.device());
  CHECK(operand.rank() == 2);
  CHECK(operand.numel() == 6);
  CHECK(operand.size(-1) == 3);
  CHECK(Arg(sum(x)).item() == 6);
  Arg number(2.5), integer(3), flag(true);
  CHECK(number.defined());
  CHECK(number.shape() == Shape{});
  CHECK(number.rank() == 0);
  CHECK(number.numel() == 1);
  CHECK(number.dtype() == f32);
  CHECK(integer.dtype() == i64);
  CHECK(flag.dtype() == boolean);
  CHECK(number.item() == 2.5);
  CHECK(integer.item<std::int64_t>() == 3);
  CHECK_FALSE(Arg(Tensor()).defined());
  CHECK_THAT(reel_test::error_of<ShapeError>([&] { number.size(0); }),
             reel_test::contains("size: axis 0 does not exist in the number 2.5, which has no axes; at ") &&
                 reel_test::contains("tensor_test.cpp:"));
  CHECK_THAT(reel_test::error_of<ShapeError>([&] { operand.size(2); }), reel_test::contains("axis 2 does not exist"));
}
