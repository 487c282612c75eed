#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "catch.h"
#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

// The conversion of a number between dtypes by the contract: floating to integer truncates towards zero and clamps to
// the range, integers wrap around, bool is true for all but 0.
double converted(double x, DType from, DType dtype) {
  auto wrapped = [&](double range) { return x - range * std::floor(x / range); };
  auto wrapped_signed = [&](double range) { return wrapped(range) - (wrapped(range) >= range / 2 ? range : 0); };
  auto cut = [&](double low, double high) { return std::isnan(x) ? 0 : std::min(std::max(std::trunc(x), low), high); };
  switch (dtype) {
    case DType::boolean: return x != 0;
    case DType::f32: return static_cast<double>(static_cast<float>(x));
    case DType::f64: return x;
    case DType::i64: return is_floating(from) ? cut(-0x1p63, 0x1p63) : x;
    case DType::i32: return is_floating(from) ? cut(-0x1p31, 0x1p31 - 1) : wrapped_signed(0x1p32);
    case DType::i16: return is_floating(from) ? cut(-32768, 32767) : wrapped_signed(65536);
    case DType::i8: return is_floating(from) ? cut(-128, 127) : wrapped_signed(256);
    case DType::u8: return is_floating(from) ? cut(0, 255) : wrapped(256);
    case DType::f16: return std::abs(x) > 65504 ? std::copysign(HUGE_VAL, x) : x;
    default: return x;  // the halves hold all the numbers below that come from other dtypes
  }
}

}  // namespace

TEST_CASE("numbers of more bits than f32 has are rounded to halves once, in every layout") {
  constexpr std::uint64_t seed = 51;
  CAPTURE(seed);
  manual_seed(seed);
  for (DType half : {bf16, f16})
    for (DType from : {f64, i64, i32})
      for (std::int64_t count : {1, 15, 256, 1000})
        for (int kind = 0; kind < 4; ++kind) {
          CAPTURE(name_of(half), name_of(from), count, kind);
          // Numbers beside halfway points between halves, of all sizes, of few bits, and what is no ordinary number.
          Tensor base = to(to(randn({count}, {.dtype = f64}) * (is_floating(from) ? 1.0 : 1e5), half), f64);
          Tensor x = base * (1 + (kind == 0 ? 0x1p-8 : 0x1p-11)) + (rand({count}, {.dtype = f64}) - 0.5) * 1e-13;
          if (kind == 1) x = randn({count}, {.dtype = f64}) * exp(randn({count}, {.dtype = f64}) * 40);
          if (kind == 2 && from == i64) x = floor(rand({count}, {.dtype = f64}) * 0x1p10) * 0x1p53 + 0x1p44;
          if (kind == 3 && from == f64) x = where(rand({count}) < 0.5, std::nan(""), x * HUGE_VAL);
          Tensor given = to(x, from), twice = to(stack({x, x}, 1), from);
          if (kind == 2 && from == i64) given += 1, twice += 1;
          Tensor found = to(given, half);
          // Strided elements are converted one by one.
          CHECK(array_of(found).values.size() == static_cast<std::size_t>(count));
          CHECK(allclose(found, to(select(twice, 1, 1), half), {.relative = 0, .absolute = 0, .equal_nan = true}));
        }
}

TEST_CASE("every dtype converts to every other") {
  const std::vector<double> floats{0,    1,   -1,  2.5,      -2.5,      100,    255,     256,
                                   -128, 0.5, NAN, HUGE_VAL, -HUGE_VAL, 0x1p31, -0x1p31, -0x1p40};
  const std::vector<double> integers{0, 1, -1, 127, 128, 255, 256, -256, 1024};
  for (DType from : all_dtypes)
    for (DType dtype : all_dtypes)
      for (bool strided : {false, true}) {
        // More than vectors have, and not a multiple.
        Tensor x = to(repeat(tensor(is_floating(from) ? floats : integers), 5, 0), from);
        if (strided) x = slice(x, 0, -1, std::numeric_limits<std::int64_t>::min(), -2);
        std::vector<double> before = array_of(x).values, after = array_of(to(x, dtype)).values;
        for (std::size_t i = 0; i < before.size(); ++i) {
          CAPTURE(name_of(from), name_of(dtype), before[i], after[i]);
          double expected = converted(before[i], from, dtype);
          CHECK((after[i] == expected || (std::isnan(after[i]) && std::isnan(expected))));
        }
      }
}

TEST_CASE("a conversion's gradient has the source's dtype") {
  for (DType from : floating_dtypes)
    for (DType dtype : floating_dtypes) {
      CAPTURE(name_of(from), name_of(dtype));
      Tensor x = ones({3}, {.dtype = from});
      Tape tape;
      tape.watch(x);
      Tensor gradient = tape.gradient(sum(to(x, dtype) * 3), x);
      CHECK(gradient.dtype() == from);
      CHECK(array_of(gradient).values == std::vector<double>{3, 3, 3});
    }
}

TEST_CASE("mixed operands give each its gradient in its own dtype") {
  Tensor a = ones({2, 2}, {.dtype = bf16}), b = full({2, 2}, 2, {.dtype = f32}), c = full({}, 3, {.dtype = f64});
  Tape tape;
  for (const Tensor& x : {a, b, c}) tape.watch(x);
  auto [da, db, dc] = tape.gradient(sum(matmul(a, b) * c), a, b, c);
  CHECK(da.dtype() == bf16);
  CHECK(db.dtype() == f32);
  CHECK(dc.dtype() == f64);
  CHECK(array_of(da).values == std::vector<double>(4, 12));
  CHECK(array_of(db).values == std::vector<double>(4, 6));
  CHECK(dc.item() == 16);
}

TEST_CASE("bool arithmetic is or and and") {
  Tensor x = tensor({true, true, false, false}), y = tensor({true, false, true, false});
  CHECK(array_of(x + y).values == std::vector<double>{1, 1, 1, 0});
  CHECK(array_of(x * y).values == std::vector<double>{1, 0, 0, 0});
  CHECK(max(x).item<bool>());
  CHECK(sum(x).item<int>() == 2);
  CHECK(array_of(matmul(reshape(x, {2, 2}), reshape(y, {2, 2}))).values == std::vector<double>{1, 0, 0, 0});
}

TEST_CASE("halves round once after products and sums in f32") {
  for (DType dtype : {bf16, f16}) {
    // Each product is a whole number; their sum needs more digits than a half has on the way, but not at the
    // end.
    Tensor a = full({1, 100}, 11, {.dtype = dtype}), b = full({100, 1}, 11, {.dtype = dtype});
    CHECK(matmul(a, b).item() == to(tensor({12100.0}), dtype).item());
  }
}

TEST_CASE("recurrent cells of halves compute in f32 and answer in halves") {
  manual_seed(31);
  auto in = [](std::initializer_list<std::int64_t> shape) { return randn(Shape(shape)); };
  struct Case {
    const char* name;
    Function f;
    std::vector<Tensor> inputs;
  };
  auto state_of = [](LSTMState state) { return concat({state.h, state.c}, 1); };
  const Case cases[] = {
      {"lstm_cell(x, state, weights)",
       [=](auto x) {
         return state_of(lstm_cell(x[0], {x[1], x[2]}, {x[3], x[4], x[5]}));
       },
       {in({2, 3}), in({2, 4}), in({2, 4}), in({3, 16}), in({4, 16}), in({16})}},
      {"lstm_cell(p, q, c)",
       [=](auto x) { return state_of(lstm_cell(x[0], x[1], x[2])); },
       {in({2, 16}), in({2, 16}), in({2, 4})}},
      {"lstm_cell(p, state, W_h)",
       [=](auto x) {
         return state_of(lstm_cell(x[0], LSTMState{x[1], x[2]}, x[3]));
       },
       {in({2, 16}), in({2, 4}), in({2, 4}), in({4, 16})}},
      {"tree_lstm_cell(a, c)",
       [=](auto x) { return state_of(tree_lstm_cell(x[0], {x[1]})); },
       {in({2, 16}), in({2, 4})}},
      {"tree_lstm_cell(p, children, W_h)",
       [=](auto x) {
         return state_of(tree_lstm_cell(x[0], {LSTMState{x[1], x[2]}}, x[3]));
       },
       {in({2, 16}), in({2, 4}), in({2, 4}), in({4, 16})}},
      {"gru_cell",
       [](auto x) {
         return gru_cell(x[0], x[1], {x[2], x[3], x[4]});
       },
       {in({2, 3}), in({2, 4}), in({3, 12}), in({4, 12}), in({16})}},
      {"rnn_cell",
       [](auto x) {
         return rnn_cell(x[0], x[1], {x[2], x[3], x[4]});
       },
       {in({2, 3}), in({2, 4}), in({3, 4}), in({4, 4}), in({4})}},
  };
  for (const Case& one : cases)
    for (DType dtype : {f16, bf16}) {
      CAPTURE(one.name, name_of(dtype));
      std::vector<Tensor> halves, wide;
      for (const Tensor& input : one.inputs) {
        halves.push_back(to(input, dtype));
        wide.push_back(to(halves.back(), f32));
      }
      Tensor found = one.f(halves);
      CHECK(found.dtype() == dtype);
      CHECK(max(abs(to(found, f32) - one.f(wide))).item() < (dtype == f16 ? 1e-2 : 6e-2));
    }
}

}  // namespace reel_test
