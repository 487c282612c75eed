#include <algorithm>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

using InPlace = Tensor (*)(const Destination& x, const Arg& y);

struct Binary {
  std::string name;
  InPlace run;
  double (*formula)(double, double);
  Fill right;
  std::vector<DType> dtypes;
};

const std::vector<Binary>& binaries() {
  static const std::vector<Binary> all{
      {"add_", add_, [](double a, double b) { return a + b; }, Fill::any, all_numbers},
      {"sub_", sub_, [](double a, double b) { return a - b; }, Fill::any, all_numbers},
      {"mul_", mul_, [](double a, double b) { return a * b; }, Fill::any, all_numbers},
      {"div_", div_, [](double a, double b) { return a / b; }, Fill::nonzero, floating_dtypes},
      {"copy_", copy_, [](double, double b) { return b; }, Fill::any, all_dtypes},
  };
  return all;
}

void add_binary(std::vector<Row>& rows, const Binary& binary, const Shape& x, const Shape& y) {
  rows.push_back({.name = binary.name + to_string(x) + to_string(y),
                  .run =
                      [run = binary.run](auto inputs) {
                        Tensor written = copy(inputs[0]);
                        run(written, inputs[1]);
                        return written;
                      },
                  .inputs = {{x}, {y, binary.right}},
                  .reference =
                      [f = binary.formula](const Arrays& inputs) {
                        return make(inputs[0].shape,
                                    [&](const Index& i) { return f(at(inputs[0], i), at(inputs[1], i)); });
                      },
                  .dtypes = binary.dtypes});
}

// The sum of the input and of its transpose, in place, through strides that are not row-major.
void add_transposed(std::vector<Row>& rows, const Binary& binary) {
  rows.push_back(
      {.name = binary.name + " with its own transpose",
       .run =
           [run = binary.run](auto inputs) {
             Tensor written = transpose(copy(inputs[0]), 0, 1);
             run(written, transpose(written, 0, 1));
             return written;
           },
       .inputs = {{{5, 5}, binary.right}},
       .reference =
           [f = binary.formula](const Arrays& inputs) {
             return make({5, 5}, [&](const Index& i) { return f(at(inputs[0], {i[1], i[0]}), at(inputs[0], i)); });
           },
       .dtypes = binary.dtypes});
}

void add_fills(std::vector<Row>& rows, const Shape& shape) {
  rows.push_back(
      {.name = "fill_" + to_string(shape),
       .run = [](auto x) { return fill_(copy(x[0]), x[1]); },
       .inputs = {{shape}, {{}}},
       .reference = [](const Arrays& x) { return make(x[0].shape, [&](const Index&) { return x[1].values[0]; }); },
       .ulps = 0,
       .dtypes = all_dtypes});
  rows.push_back({.name = "zero_" + to_string(shape),
                  .run =
                      [](auto x) {
                        Tensor written = x[0] * 1;
                        zero_(written);
                        return written + x[0];
                      },
                  .inputs = {{shape}},
                  .reference = [](const Arrays& x) { return x[0]; },
                  .ulps = 0,
                  .dtypes = all_numbers});
  rows.push_back({.name = "clamp_" + to_string(shape),
                  .run = [](auto x) { return clamp_(copy(x[0]), x[1] - 1, x[1] + 1); },
                  // Multiples of 0.05 from -2 on, and 1 away from a number below them all.
                  .inputs = {{shape, Fill::spread}, {{}, Fill::positive}},
                  .reference =
                      [](const Arrays& x) {
                        double middle = x[1].values[0];
                        return make(x[0].shape,
                                    [&](const Index& i) { return std::clamp(at(x[0], i), middle - 1, middle + 1); });
                      },
                  // The bounds are rounded themselves.
                  .ulps = 2,
                  .dtypes = {f32, f64}});
  rows.push_back({.name = "masked_fill_" + to_string(shape),
                  .run = [](auto x) { return masked_fill_(copy(x[0]), x[1], x[2]); },
                  .inputs = {{shape}, {shape, Fill::flags}, {{}}},
                  .reference =
                      [](const Arrays& x) {
                        return make(x[0].shape,
                                    [&](const Index& i) { return at(x[1], i) != 0 ? x[2].values[0] : at(x[0], i); });
                      },
                  .ulps = 0,
                  .dtypes = all_dtypes});
}

void add_index_put(std::vector<Row>& rows, std::int64_t count, std::int64_t width, std::vector<std::int64_t> indices) {
  auto taken = static_cast<std::int64_t>(indices.size());
  rows.push_back({.name = "index_put_ of " + std::to_string(taken) + " rows of " + std::to_string(width),
                  .run = [](auto x) { return index_put_(copy(x[0]), {x[1]}, x[2]); },
                  .inputs = {{{count, width}}, {{taken}, Fill::any, indices}, {{taken, width}}},
                  .reference =
                      [](const Arrays& x) {
                        Array y = x[0];
                        std::int64_t width = y.shape[1];
                        for (std::size_t j = 0; j < x[1].values.size(); ++j)
                          for (std::int64_t k = 0; k < width; ++k)
                            y.values[static_cast<std::size_t>(static_cast<std::int64_t>(x[1].values[j]) * width + k)] =
                                x[2].values[j * static_cast<std::size_t>(width) + static_cast<std::size_t>(k)];
                        return y;
                      },
                  .ulps = 0,
                  .dtypes = all_dtypes});
}

void add_assignments(std::vector<Row>& rows) {
  rows.push_back({.name = "index, assigned: a row",
                  .run =
                      [](auto x) {
                        Tensor written = copy(x[0]);
                        written(1) = x[1];
                        return written;
                      },
                  .inputs = {{{3, 4}}, {{4}}},
                  .reference =
                      [](const Arrays& x) {
                        return make({3, 4}, [&](const Index& i) { return i[0] == 1 ? at(x[1], {i[1]}) : at(x[0], i); });
                      },
                  .ulps = 0,
                  .dtypes = all_dtypes,
                  .op = "index"});
  rows.push_back({.name = "index, assigned: a broadcast block, twice",
                  .run =
                      [](auto x) {
                        Tensor written = copy(x[0]);
                        written(slice(1), newaxis, slice(std::nullopt, std::nullopt, -2)) = x[1];
                        written(ellipsis, 1) = written(ellipsis, 2);
                        return written;
                      },
                  .inputs = {{{4, 5}}, {{3, 1, 1}}},
                  .reference =
                      [](const Arrays& x) {
                        return make({4, 5}, [&](const Index& i) {
                          std::int64_t column = i[1] == 1 ? 2 : i[1];
                          return i[0] >= 1 && column % 2 == 0 ? x[1].values[static_cast<std::size_t>(i[0] - 1)]
                                                              : at(x[0], {i[0], column});
                        });
                      },
                  .ulps = 0,
                  .dtypes = all_dtypes,
                  .op = "index"});
  rows.push_back({.name = "add_ to a part",
                  .run =
                      [](auto x) {
                        Tensor written = copy(x[0]);
                        written(ellipsis, slice(0, 2)) += x[1];
                        return written;
                      },
                  .inputs = {{{2, 3}}, {{2, 1}}},
                  .reference =
                      [](const Arrays& x) {
                        return make({2, 3}, [&](const Index& i) {
                          return at(x[0], i) + (i[1] < 2 ? x[1].values[static_cast<std::size_t>(i[0])] : 0);
                        });
                      },
                  .dtypes = all_numbers});
}

void add_rows(std::vector<Row>& rows) {
  const Shape pairs[][2] = {{{}, {}},         {{1}, {}},        {{5}, {1}},          {{37}, {37}},  {{3, 4}, {4}},
                            {{3, 4}, {3, 1}}, {{0, 3}, {1, 3}}, {{2, 4, 3}, {4, 1}}, {{300}, {300}}};
  for (const Binary& binary : binaries()) {
    for (const auto& [x, y] : pairs) add_binary(rows, binary, x, y);
    add_transposed(rows, binary);
  }
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{3, 4}, Shape{0, 2}, Shape{40}}) add_fills(rows, shape);
  add_index_put(rows, 4, 3, {2, 0});
  add_index_put(rows, 5, 1, {4, 1, 4});
  add_assignments(rows);
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const Binary& binary : binaries()) {
      Shape x = random_shape(random, 2);
      add_binary(rows, binary, x, repeat == 1 ? Shape{x[1]} : repeat == 2 ? Shape{x[0], 1} : x);
    }
    add_fills(rows, random_shape(random, 2, 6));
    std::int64_t count = random_size(random, 2);
    add_index_put(rows, count, random_size(random), {count - 1, 0});
  }
}

}  // namespace

const RowFamily in_place_rows{add_rows, add_random_rows};

}  // namespace reel_test
