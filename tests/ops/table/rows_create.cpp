#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/philox.h"
#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

// Ops without operands get a one-element operand that determines the dtype.
using Make = std::function<Tensor(const Tensor& like)>;

Row& add_made(std::vector<Row>& rows, const std::string& name, Make make_like, const Array& expected,
              const std::vector<DType>& dtypes = all_dtypes) {
  rows.push_back({.name = name,
                  .run = [=](auto x) { return make_like(x[0]); },
                  .inputs = {{{1}}},
                  .reference = [=](const Arrays&) { return expected; },
                  .dtypes = dtypes,
                  .differentiable = false});
  return rows.back();
}

Array constant(const Shape& shape, double value) {
  return make(shape, [=](const Index&) { return value; });
}

void add_constants(std::vector<Row>& rows, const Shape& shape) {
  std::string name = to_string(shape);
  Attributes sizes{{"shape", {shape.begin(), shape.end()}}};
  add_made(
      rows, "zeros" + name, [=](auto x) { return zeros(shape, {.dtype = x.dtype()}); }, constant(shape, 0))
      .attributes = sizes;
  add_made(
      rows, "ones" + name, [=](auto x) { return ones(shape, {.dtype = x.dtype()}); }, constant(shape, 1))
      .attributes = sizes;
  add_made(
      rows, "full" + name, [=](auto x) { return full(shape, 3, {.dtype = x.dtype()}); }, constant(shape, 3),
      all_numbers)
      .attributes = sizes;
  auto add_like = [&](const std::string& op, UnaryOp run, double value, const std::vector<DType>& dtypes) {
    rows.push_back({.name = op + name,
                    .run = [=](auto x) { return run(x[0]); },
                    .inputs = {{shape}},
                    .reference = [=](const Arrays& x) { return constant(x[0].shape, value); },
                    .dtypes = dtypes,
                    .differentiable = false});
  };
  add_like("zeros_like", zeros_like, 0, all_dtypes);
  add_like("ones_like", ones_like, 1, all_dtypes);
  add_like(
      "full_like", [](const Arg& x) { return full_like(x, -3); }, -3, all_numbers);
}

void add_arange(std::vector<Row>& rows, double start, double stop, double step) {
  std::vector<double> values;
  for (double i = 0; i < std::ceil((stop - start) / step); ++i) values.push_back(start + i * step);
  bool whole = start == std::floor(start) && stop == std::floor(stop) && step == std::floor(step);
  auto run = [=](const Tensor& like) {
    RangeOptions options{.dtype = like.dtype()};
    if (!whole) return arange(start, stop, step, options);
    auto integer = [](double x) { return static_cast<std::int64_t>(x); };
    return arange(integer(start), integer(stop), integer(step), options);
  };
  auto count = static_cast<std::int64_t>(values.size());
  // Half a unit of the larger end for the product, and for the sum.
  std::vector<double> scales(values.size(), std::max({std::abs(start), std::abs(stop), 1e-300}));
  Row& row = add_made(rows, "arange from " + std::to_string(start) + " to " + std::to_string(stop), run,
                      {{count}, values, scales}, whole ? all_numbers : floating_dtypes);
  row.ulps = whole ? 0.5 : 1;
  row.attributes = {{"numbers", {start, stop, step}}};
}

void add_linspace(std::vector<Row>& rows, double start, double stop, std::int64_t count) {
  Array expected{
      {count},
      {},
      std::vector<double>(static_cast<std::size_t>(count), std::max({std::abs(start), std::abs(stop), 1e-300}))};
  for (std::int64_t i = 0; i < count; ++i) {
    long double t = count == 1 ? 0 : static_cast<long double>(i) / static_cast<long double>(count - 1);
    expected.values.push_back(static_cast<double>((1 - t) * start + t * stop));
  }
  Row& row = add_made(
      rows, "linspace from " + std::to_string(start) + " to " + std::to_string(stop) + " of " + std::to_string(count),
      [=](auto x) { return linspace(start, stop, count, {.dtype = x.dtype()}); }, expected, floating_dtypes);
  // In units of the larger end: at most half of one for both quotients and one for their difference, half for the product
  // and for the sum, half for the reference.
  row.ulps = 2.5;
  row.attributes = {{"numbers", {start, stop, static_cast<double>(count)}}};
}

void add_diagonals(std::vector<Row>& rows, std::int64_t height, std::int64_t columns, std::int64_t diagonal) {
  std::int64_t width = columns < 0 ? height : columns;
  std::string name = to_string(Shape{height, columns}) + " at " + std::to_string(diagonal);
  Attributes attributes{{"sizes", {static_cast<double>(height), static_cast<double>(width)}},
                        {"diagonal", {static_cast<double>(diagonal)}}};
  auto options = [=](const Tensor& x) {
    return DiagonalOptions{.columns = columns, .diagonal = diagonal, .dtype = x.dtype()};
  };
  add_made(
      rows, "eye" + name, [=](auto x) { return eye(height, options(x)); },
      make({height, width}, [=](const Index& i) { return i[1] - i[0] == diagonal; }))
      .attributes = attributes;
  add_made(
      rows, "tri" + name, [=](auto x) { return tri(height, options(x)); },
      make({height, width}, [=](const Index& i) { return i[1] - i[0] <= diagonal; }))
      .attributes = attributes;
}

void add_one_hot(std::vector<Row>& rows, const Shape& shape, const std::vector<std::int64_t>& indices,
                 std::int64_t classes) {
  Shape result = shape;
  result.push_back(classes);
  rows.push_back({.name = "one_hot" + to_string(shape),
                  .run = [=](auto x) { return one_hot(x[0], classes, x[1].dtype()); },
                  .inputs = {{shape, Fill::any, indices}, {{1}}},
                  .reference =
                      [=](const Arrays& x) {
                        return make(result, [&](Index i) {
                          auto place = static_cast<double>(i.back());
                          i.pop_back();
                          return at(x[0], i) == place;
                        });
                      },
                  .dtypes = all_dtypes,
                  .differentiable = false,
                  .attributes = {{"classes", {static_cast<double>(classes)}}}});
}

using detail::PhiloxWords;

constexpr std::uint64_t seed = 77;

// Element i of the first call of a generator with that seed.
Array drawn(const Shape& shape, const std::function<double(PhiloxWords)>& f) {
  Array array{shape, {}};
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(shape.numel()); ++i)
    array.values.push_back(f(detail::philox(seed, 0, i)));
  return array;
}

double uniform(PhiloxWords w, DType dtype) {
  switch (dtype) {
    case DType::f64: return detail::unit_double(w.word[0], w.word[1]);
    case DType::f16: return static_cast<double>(w.word[0] >> 21) * 0x1p-11;
    case DType::bf16: return static_cast<double>(w.word[0] >> 24) * 0x1p-8;
    default: return static_cast<double>(w.word[0] >> 8) * 0x1p-24;
  }
}

double normal(PhiloxWords w, DType dtype) {
  bool wide = dtype == DType::f64;
  double u = wide ? detail::unit_double(w.word[0], w.word[1]) : static_cast<double>(w.word[0] >> 8) * 0x1p-24;
  double v = wide ? detail::unit_double(w.word[2], w.word[3]) : static_cast<double>(w.word[1] >> 8) * 0x1p-24;
  return std::sqrt(-2 * std::log(1 - u)) * std::cos(6.283185307179586 * v);
}

double gumbel_of(PhiloxWords w, DType dtype) {
  std::uint64_t bits = static_cast<std::uint64_t>(w.word[0]) << 32 | w.word[1];
  double u = dtype == DType::f64 ? (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52
                                 : (static_cast<double>(w.word[0]) + 0.5) * 0x1p-32;
  return -std::log(-std::log(u));
}

void add_floating_draws(std::vector<Row>& rows, const Shape& shape) {
  for (DType dtype : floating_dtypes) {
    auto add = [&](const std::string& op, auto run, double (*formula)(PhiloxWords, DType)) {
      Row& row = add_made(rows, op + to_string(shape) + name_of(dtype),
                          [=](const Tensor& x) {
                            Generator generator(seed);
                            return run(RandomOptions{.dtype = x.dtype(), .generator = &generator});
                          },
                          drawn(shape, [=](PhiloxWords w) { return formula(w, dtype); }), {dtype});
      row.op = op;
      // The formula in f64; the last of its roundings may fall the other way. Normal numbers of f32 and f64 are computed
      // in their own type: half the error of a logarithm (1/2), a root (1/2), 2π and the product by it (1), a sine's
      // series (1) and a product (1/2). In f64 the reference rounds 2πa, by up to 2⁻⁵¹, of which a cosine of 1/8 shows 32
      // units.
      bool is_wide = dtype == DType::f32 || dtype == DType::f64;
      row.ulps = op.starts_with("rand_") || op == "rand" ? 0 : dtype == DType::f64 ? 1 : 0.51;
      // Four units of the inner logarithm, of which a result of 1/16 shows 64.
      if (op == "gumbel" && dtype == DType::f64) row.ulps = 64;
      if (op.starts_with("randn") && is_wide) row.ulps = dtype == DType::f64 ? 32 : 3.5;
    };
    auto like = [=](const RandomOptions& options) { return zeros(shape, {.dtype = options.dtype}); };
    add(
        "rand", [=](const RandomOptions& o) { return rand(shape, o); }, uniform);
    add(
        "randn", [=](const RandomOptions& o) { return randn(shape, o); }, normal);
    add(
        "gumbel", [=](const RandomOptions& o) { return gumbel(shape, o); }, gumbel_of);
    add(
        "rand_like", [=](const RandomOptions& o) { return rand_like(like(o), {.generator = o.generator}); }, uniform);
    add(
        "randn_like", [=](const RandomOptions& o) { return randn_like(like(o), {.generator = o.generator}); }, normal);
  }
}

// Some checks run in f64 alone.
DType integer_dtype(const Tensor& like) { return is_floating(like.dtype()) ? i64 : like.dtype(); }

void add_integer_draws(std::vector<Row>& rows, const Shape& shape) {
  for (double p : {0.0, 0.3, 1.0})
    add_made(
        rows, "bernoulli of " + std::to_string(p) + to_string(shape),
        [=](const Tensor& like) {
          Generator generator(seed);
          return bernoulli(p, shape, {.dtype = like.dtype(), .generator = &generator});
        },
        drawn(shape, [=](PhiloxWords w) { return w.word[0] < std::ceil(p * 0x1p32); }));
  rows.push_back({.name = "bernoulli of a probability each" + to_string(shape),
                  .run =
                      [](auto x) {
                        Generator generator(seed);
                        return bernoulli(x[0] * 0.25 + 0.5, {.generator = &generator});
                      },
                  .inputs = {{shape}},
                  .reference =
                      [](const Arrays& x) {
                        // The halves and f32 hold the probability that is rounded.
                        Array y = x[0];
                        for (std::size_t i = 0; i < y.values.size(); ++i) {
                          double p = y.values[i] * 0.25 + 0.5;
                          y.values[i] = detail::philox(seed, 0, i).word[0] < std::ceil(p * 0x1p32);
                        }
                        return y;
                      },
                  .dtypes = {f64},
                  .differentiable = false});
  for (std::int64_t low : {0, -5, 100}) {
    constexpr std::int64_t count = 10;
    add_made(
        rows, "randint from " + std::to_string(low) + to_string(shape),
        [=](const Tensor& like) {
          Generator generator(seed);
          return randint(low, low + count, shape, {.dtype = integer_dtype(like), .generator = &generator});
        },
        drawn(shape, [=](PhiloxWords w) { return static_cast<double>(low + (std::int64_t{w.word[0]} * count >> 32)); }),
        low < 0 ? std::vector<DType>{i32, i64, i8, i16} : std::vector<DType>{i32, i64, u8, i8, i16});
  }
}

void add_permutations(std::vector<Row>& rows, std::int64_t count) {
  auto key = [](double i) {
    PhiloxWords w = detail::philox(seed, 0, static_cast<std::uint64_t>(i));
    return static_cast<std::uint64_t>(w.word[0]) << 32 | w.word[1];
  };
  Array expected{{count}, std::vector<double>(static_cast<std::size_t>(count))};
  std::iota(expected.values.begin(), expected.values.end(), 0);
  std::sort(expected.values.begin(), expected.values.end(), [&](double a, double b) { return key(a) < key(b); });
  add_made(
      rows, "randperm of " + std::to_string(count),
      [=](const Tensor& like) {
        Generator generator(seed);
        return randperm(count, {.dtype = integer_dtype(like), .generator = &generator});
      },
      expected, count <= 128 ? std::vector<DType>{i64, i32, u8, i8, i16} : std::vector<DType>{i64, i32, u8, i16});
}

void add_rows(std::vector<Row>& rows) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{2, 35}, Shape{3, 1, 2}}) {
    add_constants(rows, shape);
    add_floating_draws(rows, shape);
    add_integer_draws(rows, shape);
  }
  add_arange(rows, 0, 5, 1);
  add_arange(rows, 0, 0, 1);
  add_arange(rows, 7, -7, -3);
  add_arange(rows, -2, 7, 3);
  add_arange(rows, 5, 2, 1);
  add_arange(rows, 0, 120, 1);
  add_arange(rows, 0.5, 2.25, 0.25);
  add_arange(rows, 1, 0, -0.125);
  add_arange(rows, 0, 1, 0.1);
  for (std::int64_t count : {0, 1, 2, 3, 7, 100}) {
    add_linspace(rows, -1, 2.5, count);
    add_linspace(rows, 3, -0.1, count);
  }
  add_linspace(rows, 0.1, 0.1, 5);
  add_diagonals(rows, 3, -1, 0);
  add_diagonals(rows, 3, 5, 2);
  add_diagonals(rows, 5, 3, -2);
  add_diagonals(rows, 2, 2, 7);
  add_diagonals(rows, 2, 2, -7);
  add_diagonals(rows, 0, 3, 0);
  add_diagonals(rows, 3, 0, 0);
  add_diagonals(rows, 40, 33, 1);
  add_one_hot(rows, {}, {2}, 3);
  add_one_hot(rows, {4}, {0, 3, 3, 1}, 4);
  add_one_hot(rows, {2, 3}, {0, 0, 36, 5, 1, 2}, 37);
  for (std::int64_t count : {0, 1, 2, 50, 200}) add_permutations(rows, count);
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int trial = 0; trial < 3; ++trial) {
    add_constants(rows, random_shape(random, trial + 1));
    auto number = [&] { return std::uniform_real_distribution(-5.0, 5.0)(random); };
    add_arange(rows, static_cast<double>(random_size(random, -20, 20)),
               static_cast<double>(random_size(random, 21, 90)), static_cast<double>(random_size(random, 1, 9)));
    add_arange(rows, number(), 5 + std::abs(number()), 0.01 + std::abs(number()));
    add_linspace(rows, number(), number(), random_size(random, 2, 90));
    add_diagonals(rows, random_size(random), random_size(random), random_size(random, -9, 9));
    std::vector<std::int64_t> indices(20);
    for (std::int64_t& index : indices) index = random_size(random, 0, 6);
    add_one_hot(rows, {4, 5}, indices, 7);
  }
}

}  // namespace

const RowFamily create_rows{add_rows, add_random_rows};

}  // namespace reel_test
