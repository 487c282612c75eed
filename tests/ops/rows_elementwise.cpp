#include <algorithm>
#include <cmath>

#include "ops/table.h"

namespace reel_test {

using namespace reel;

namespace {

// Scalars, vectors that fill no register, several, and more than the block in which halves are widened; matrices; nothing.
const Shape shapes[] = {{}, {1}, {5}, {37}, {600}, {3, 4}, {2, 3, 2}, {0, 3}};
// Pairs that broadcast, both ways and by number.
const Shape pairs[][2] = {{{}, {}},          {{4}, {}},      {{}, {2, 3}},     {{37}, {37}},        {{3, 4}, {4}},
                          {{3, 1}, {1, 4}},  {{2, 3}, {1}},  {{0, 3}, {1, 3}}, {{2, 1, 3}, {4, 1}}, {{2, 40}, {2, 1}},
                          {{2, 1}, {2, 40}}, {{300}, {300}}, {{2, 300}, {1}}};

struct Unary {
  std::string name;
  UnaryOp op;
  double (*formula)(double);
  Fill fill;
  double ulps;
  std::vector<DType> dtypes;
};

struct Binary {
  std::string name;
  BinaryOp op;
  double (*formula)(double, double);
  Fill left, right;
  double ulps;
  std::vector<DType> dtypes;
  bool differentiable = true;
};

void add_unary(std::vector<Row>& rows, const Unary& unary, const Shape& shape) {
  rows.push_back(
      {.name = unary.name + to_string(shape),
       .run = [op = unary.op](auto x) { return op(x[0]); },
       .inputs = {{shape, unary.fill}},
       .reference = [f = unary.formula](
                        const Arrays& x) { return make(x[0].shape, [&](const Index& i) { return f(at(x[0], i)); }); },
       .ulps = unary.ulps,
       .dtypes = unary.dtypes});
}

void add_binary(std::vector<Row>& rows, const Binary& binary, const Shape& left, const Shape& right) {
  rows.push_back({.name = binary.name + to_string(left) + to_string(right),
                  .run = [op = binary.op](auto x) { return op(x[0], x[1]); },
                  .inputs = {{left, binary.left}, {right, binary.right}},
                  .reference =
                      [f = binary.formula](const Arrays& x) {
                        return make(broadcast_all(x), [&](const Index& i) { return f(at(x[0], i), at(x[1], i)); });
                      },
                  .ulps = binary.ulps,
                  .dtypes = binary.dtypes,
                  .differentiable = binary.differentiable});
}

void add_comparison(std::vector<Row>& rows, const std::string& name, BinaryOp op, double (*f)(double, double)) {
  // Numbers that are often equal.
  rows.push_back({.name = name + " of equal numbers",
                  .run = [op](auto x) { return op(x[0], x[0] * 1); },
                  .inputs = {{{9}}},
                  .reference =
                      [f](const Arrays& x) {
                        return make(x[0].shape, [&](const Index& i) { return f(at(x[0], i), at(x[0], i)); });
                      },
                  .ulps = 0,
                  .dtypes = all_numbers,
                  .differentiable = false});
}

void add_where(std::vector<Row>& rows) {
  const Shape triples[][3] = {
      {{}, {}, {}}, {{5}, {5}, {5}}, {{3, 1}, {4}, {}}, {{4}, {2, 1, 1}, {3, 1}}, {{0}, {}, {1}}};
  for (const auto& [condition, a, b] : triples)
    rows.push_back({.name = "where" + to_string(condition) + to_string(a) + to_string(b),
                    .run = [](auto x) { return where(x[0], x[1], x[2]); },
                    .inputs = {{condition, Fill::flags}, {a}, {b}},
                    .reference =
                        [](const Arrays& x) {
                          return make(broadcast_all(x),
                                      [&](const Index& i) { return at(x[0], i) != 0 ? at(x[1], i) : at(x[2], i); });
                        },
                    .ulps = 0,
                    .dtypes = all_dtypes});
}

void add_scalars(std::vector<Row>& rows) {
  struct Scalar {
    std::string op, name;
    Tensor (*run)(const Tensor& x);
    double (*formula)(double);
  };
  const Scalar scalars[] = {
      {"add", "x + 2", [](const Tensor& x) { return x + 2; }, [](double x) { return x + 2; }},
      {"sub", "0.5 - x", [](const Tensor& x) { return 0.5 - x; }, [](double x) { return 0.5 - x; }},
      {"mul", "x * 0.25f", [](const Tensor& x) { return x * 0.25f; }, [](double x) { return x * 0.25; }},
      {"div", "2 / x", [](const Tensor& x) { return 2 / x; }, [](double x) { return 2 / x; }},
      {"pow", "pow(x, 3)", [](const Tensor& x) { return pow(x, 3); }, [](double x) { return x * x * x; }},
      {"where", "where(x > 1, x, 0)", [](const Tensor& x) { return where(x > 1, x, 0); },
       [](double x) { return x > 1 ? x : 0; }},
  };
  for (const Scalar& scalar : scalars)
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{2, 3}})
      rows.push_back({.name = scalar.name + to_string(shape),
                      .run = [run = scalar.run](auto x) { return run(x[0]); },
                      .inputs = {{shape, Fill::positive}},
                      .reference =
                          [f = scalar.formula](const Arrays& x) {
                            return make(x[0].shape, [&](const Index& i) { return f(at(x[0], i)); });
                          },
                      // x³ itself is rounded twice in f64.
                      .ulps = 1.5,
                      .op = scalar.op});
}

// Bounds: what IEEE 754 rounds correctly is off by half a unit. Highway states 1 unit for exp and 4 for log
// and tanh. sigmoid adds to exp's error one half each for the sum and the quotient, 2 in all. powf is off
// by less than 1.
const Unary unaries[] = {
    {"neg", neg, [](double x) { return -x; }, Fill::any, 0, all_numbers},
    {"exp", exp, [](double x) { return std::exp(x); }, Fill::any, 1.5, all_numbers},
    {"log", log, [](double x) { return std::log(x); }, Fill::positive, 4, all_numbers},
    {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, Fill::positive, 0.5, all_numbers},
    {"square", square, [](double x) { return x * x; }, Fill::any, 0.5, all_numbers},
    {"tanh", tanh, [](double x) { return std::tanh(x); }, Fill::any, 4, all_numbers},
    {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, Fill::any, 3, all_numbers},
    {"relu", relu, [](double x) { return std::max(x, 0.0); }, Fill::nonzero, 0, all_numbers},
    {"copy", copy, [](double x) { return x; }, Fill::any, 0, all_dtypes},
    {"contiguous", contiguous, [](double x) { return x; }, Fill::any, 0, all_dtypes},
};

const Binary binaries[] = {
    {"add", add, [](double a, double b) { return a + b; }, Fill::any, Fill::any, 0.5, all_numbers},
    {"sub", sub, [](double a, double b) { return a - b; }, Fill::any, Fill::any, 0.5, all_numbers},
    {"mul", mul, [](double a, double b) { return a * b; }, Fill::any, Fill::any, 0.5, all_numbers},
    {"div", div, [](double a, double b) { return a / b; }, Fill::any, Fill::nonzero, 0.5, all_numbers},
    {"pow", pow, [](double a, double b) { return std::pow(a, b); }, Fill::positive, Fill::positive, 1, all_numbers},
    {"pow of negative powers", pow, [](double a, double b) { return std::pow(a, b); }, Fill::positive, Fill::any, 1,
     floating_dtypes},
    {"equal", equal, [](double a, double b) -> double { return a == b; }, Fill::any, Fill::any, 0, all_dtypes, false},
    {"not_equal", not_equal, [](double a, double b) -> double { return a != b; }, Fill::any, Fill::any, 0, all_dtypes,
     false},
    {"less", less, [](double a, double b) -> double { return a < b; }, Fill::any, Fill::any, 0, all_dtypes, false},
    {"less_equal", less_equal, [](double a, double b) -> double { return a <= b; }, Fill::any, Fill::any, 0, all_dtypes,
     false},
    {"greater", greater, [](double a, double b) -> double { return a > b; }, Fill::any, Fill::any, 0, all_dtypes,
     false},
    {"greater_equal", greater_equal, [](double a, double b) -> double { return a >= b; }, Fill::any, Fill::any, 0,
     all_dtypes, false},
};

void add_conversions(std::vector<Row>& rows) {
  for (DType dtype : {f64, f32, bf16, f16})
    rows.push_back({.name = std::string("to ") + name_of(dtype),
                    .run = [dtype](auto x) { return to(x[0], dtype); },
                    .inputs = {{{3, 5}}},
                    .reference = [](const Arrays& x) { return x[0]; },
                    .dtypes = all_dtypes,
                    .differentiable = dtype == f64});
}

}  // namespace

void add_elementwise_rows(std::vector<Row>& rows) {
  for (const Unary& unary : unaries)
    for (const Shape& shape : shapes) add_unary(rows, unary, shape);
  for (const Binary& binary : binaries) {
    for (const auto& [left, right] : pairs) add_binary(rows, binary, left, right);
    if (!binary.differentiable) add_comparison(rows, binary.name, binary.op, binary.formula);
  }
  add_where(rows);
  add_scalars(rows);
  add_conversions(rows);
}

void add_random_elementwise_rows(std::vector<Row>& rows, Random& random) {
  for (const Unary& unary : unaries)
    for (int rank : {1, 2, 3}) add_unary(rows, unary, random_shape(random, rank));
  for (const Binary& binary : binaries)
    for (int rank : {1, 2, 3}) {
      Shape left = random_shape(random, rank), right = left;
      if (rank == 3) left[1] = right[2] = 1;
      add_binary(rows, binary, left, right);
    }
}

}  // namespace reel_test
