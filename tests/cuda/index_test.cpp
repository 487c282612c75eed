#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "catch.h"
#include "cuda/gpu.h"

// Lists of indices too long for the op table: they are sorted, and sums of many terms are formed in
// several levels.

namespace reel_test {

using namespace reel;

namespace {

using Numbers = std::vector<double>;
using Indices = std::vector<std::int64_t>;

// The distribution of a list's indices: uniform; one index nearly always; each index once.
enum class Kind : std::uint8_t { even, one_often, all_once };
constexpr Kind kinds[] = {Kind::even, Kind::one_often, Kind::all_once};

Indices drawn(Kind kind, std::int64_t count, std::int64_t size) {
  std::mt19937_64 random(7);
  Indices indices;
  for (std::int64_t i = 0; i < count; ++i) {
    auto any = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(size));
    indices.push_back(kind == Kind::one_often && i % 9 != 4 ? size / 2 : any);
  }
  if (kind == Kind::all_once) {
    for (std::int64_t i = 0; i < count; ++i) indices[static_cast<std::size_t>(i)] = i % size;
    std::shuffle(indices.begin(), indices.end(), random);
  }
  for (std::size_t i = 0; i < indices.size(); i += 3) indices[i] -= size;
  return indices;
}

// Small integers, whose sums are exact in any order.
Numbers integers(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Numbers numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(random() % 5) - 2);
  return numbers;
}

Tensor on_device(const Numbers& numbers, const Shape& shape, DType dtype = f64) {
  return to(to(reshape(tensor(numbers), shape), dtype), gpu);
}
Tensor on_device(const Indices& indices, const Shape& shape) { return to(reshape(tensor(indices), shape), gpu); }

Numbers numbers_of(const Tensor& x) { return to(to(x, cpu), f64).to_vector<double>(); }

std::int64_t place(std::int64_t index, std::int64_t size) { return index < 0 ? index + size : index; }

// x (size, width) with rows added, or put, at indices.
Numbers with_rows(Numbers x, const Indices& indices, const Numbers& rows, std::int64_t size, std::int64_t width,
                  bool adds) {
  for (std::size_t j = 0; j < indices.size(); ++j)
    for (std::int64_t k = 0; k < width; ++k) {
      double& to = x[static_cast<std::size_t>(place(indices[j], size) * width + k)];
      double from = rows[j * static_cast<std::size_t>(width) + static_cast<std::size_t>(k)];
      to = adds ? to + from : from;
    }
  return x;
}

}  // namespace

TEST_CASE("rows are added and put at long lists of indices on a device") {
  if (lacks_device()) return;
  for (Kind kind : kinds)
    for (auto [count, size, width] : {std::tuple<std::int64_t, std::int64_t, std::int64_t>{300, 7, 1},
                                      {3000, 40, 3},
                                      {5000, 5000, 1},
                                      {1000, 1, 4},
                                      {700, 2000, 8},
                                      {9000, 60, 33},
                                      {3000, 1, 40},
                                      {20000, 3, 1}}) {
      CAPTURE(static_cast<int>(kind), count, size, width);
      Indices indices = drawn(kind, count, size);
      Numbers x = integers(size * width, 1), rows = integers(count * width, 2);
      Tensor at = on_device(indices, {count});
      for (DType dtype : {f32, f64, i32}) {
        Tensor to = on_device(x, {size, width}, dtype), from = on_device(rows, {count, width}, dtype);
        CHECK(numbers_of(index_add(to, 0, at, from)) == with_rows(x, indices, rows, size, width, true));
        CHECK(numbers_of(index_put(to, {at}, from)) == with_rows(x, indices, rows, size, width, false));
        Tensor transposed = transpose(to), columns = transpose(from);
        CHECK(numbers_of(transpose(index_add(transposed, 1, at, columns))) ==
              with_rows(x, indices, rows, size, width, true));
      }
      Numbers taken;
      for (std::int64_t index : indices)
        for (std::int64_t k = 0; k < width; ++k)
          taken.push_back(x[static_cast<std::size_t>(place(index, size) * width + k)]);
      CHECK(numbers_of(take(on_device(x, {size, width}, f32), at, 0)) == taken);
    }
}

TEST_CASE("elements are added and put at long lists of indices of their own on a device") {
  if (lacks_device()) return;
  constexpr std::int64_t count = 300, size = 11, columns = 5;
  for (Kind kind : kinds) {
    CAPTURE(static_cast<int>(kind));
    Indices indices;
    for (std::int64_t column = 0; column < columns; ++column) {
      Indices own = drawn(kind, count, size);
      std::rotate(own.begin(), own.begin() + column, own.end());
      indices.insert(indices.end(), own.begin(), own.end());
    }
    Numbers x = integers(size * columns, 1), given = integers(count * columns, 2), added = x, put = x;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      auto at = static_cast<std::size_t>(static_cast<std::int64_t>(i) / count * size + place(indices[i], size));
      added[at] += given[i];
      put[at] = given[i];
    }
    Tensor to = on_device(x, {columns, size}), at = on_device(indices, {columns, count}),
           from = on_device(given, {columns, count});
    CHECK(numbers_of(scatter_add(to, 1, at, from)) == added);
    CHECK(numbers_of(scatter(to, 1, at, from)) == put);
    CHECK(numbers_of(transpose(scatter_add(transpose(to), 0, transpose(at), transpose(from)))) == added);
  }
}

TEST_CASE("long sums of halves at indices are rounded once on a device, and those of bools are or") {
  if (lacks_device()) return;
  constexpr std::int64_t count = 2000, size = 3;
  Indices indices = drawn(Kind::one_often, count, size);
  Tensor at = on_device(indices, {count});
  Numbers x(size, 1.0), rows(count, 0.125);
  Numbers expected = with_rows(x, indices, rows, size, 1, true);
  for (double& number : expected) number = static_cast<double>(static_cast<float>(Float16(static_cast<float>(number))));
  CHECK(numbers_of(index_add(on_device(x, {size}, f16), 0, at, on_device(rows, {count}, f16))) == expected);
  CHECK(numbers_of(index_add(on_device({0, 0, 0}, {size}, boolean), 0, at, on_device(rows, {count}, boolean))) ==
        Numbers{1, 1, 1});
}

TEST_CASE("sums at indices on a device are the same bits each time") {
  if (lacks_device()) return;
  constexpr std::int64_t count = 4000, size = 5;
  Indices indices = drawn(Kind::even, count, size);
  Numbers rows;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(std::sin(static_cast<double>(i)));
  Tensor at = on_device(indices, {count}), from = on_device(rows, {count}, f32),
         to = on_device(Numbers(size), {size}, f32);
  CHECK(numbers_of(index_add(to, 0, at, from)) == numbers_of(index_add(to, 0, at, from)));
}

TEST_CASE("gradients of tables by rows are those of the CPU on a device") {
  if (lacks_device()) return;
  constexpr std::int64_t count = 900, size = 60, width = 4;
  for (Kind kind : kinds) {
    CAPTURE(static_cast<int>(kind));
    Indices indices = drawn(kind, count, size);
    Numbers x = integers(size * width, 1), rows = integers(count * width, 2);
    Tensor table = on_device(x, {size, width}, f32).requires_grad(), at = on_device(indices, {count});
    {
      Tape tape;
      Tensor y = embedding(table, at, {.row_gradient = true});
      tape.backward(sum(y * on_device(rows, {count, width}, f32)));
    }
    RowGradient gradient = table.row_grad();
    std::map<std::int64_t, Numbers> sums;
    for (std::size_t j = 0; j < indices.size(); ++j) {
      Numbers& sum = sums[place(indices[j], size)];
      sum.resize(width);
      for (std::size_t k = 0; k < width; ++k) sum[k] += rows[j * width + k];
    }
    Numbers expected_rows, expected;
    for (const auto& [row, sum] : sums) {
      expected_rows.push_back(static_cast<double>(row));
      expected.insert(expected.end(), sum.begin(), sum.end());
    }
    CHECK(numbers_of(gradient.rows) == expected_rows);
    CHECK(numbers_of(gradient.values) == expected);
  }
}

TEST_CASE("indices out of range are reported in the name of the op, when a device is next waited for") {
  if (lacks_device()) return;
  Tensor x = on_device(Numbers{1, 2, 3, 4, 5, 6}, {3, 2});
  auto reported = [&](const std::function<Tensor()>& run) -> std::string {
    try {
      static_cast<void>(numbers_of(run()));
    } catch (const IndexError& error) {
      return error.what();
    }
    return "nothing";
  };
  Tensor bad = on_device(Indices{0, 3}, {2}), rows = on_device(Numbers{1, 2, 3, 4}, {2, 2});
  auto says = [](const char* op) { return contains(std::string(op) + ": index 3 is out of range"); };
  CHECK_THAT(reported([&] { return take(x, bad, 0); }), says("take"));
  CHECK_THAT(reported([&] { return index_select(x, 0, bad); }), says("index_select"));
  CHECK_THAT(reported([&] { return embedding(x, bad); }), says("embedding"));
  CHECK_THAT(reported([&] { return index_add(x, 0, bad, rows); }), says("index_add"));
  CHECK_THAT(reported([&] { return index_put(x, {bad}, rows); }), says("index_put"));
  CHECK_THAT(reported([&] { return segment_sum(rows, bad, 3); }), says("segment_sum"));
  Tensor index = on_device(Indices{0, 3, 1, 1}, {2, 2});
  CHECK_THAT(reported([&] { return gather(x, 0, index); }), says("gather"));
  CHECK_THAT(reported([&] { return scatter(x, 0, index, rows); }), says("scatter"));
  CHECK_THAT(reported([&] { return scatter_add(x, 0, index, rows); }), says("scatter_add"));
  CHECK_THAT(reported([&] { return embedding_bag(x, index); }), says("embedding_bag"));
  CHECK(numbers_of(x) == Numbers{1, 2, 3, 4, 5, 6});
}

TEST_CASE("sparse matrices multiply on a device as plain loops say") {
  if (lacks_device()) return;
  constexpr std::int64_t rows = 70, columns = 90;
  std::mt19937_64 random(3);
  Numbers a(rows * columns);
  for (std::size_t i = 0; i < a.size(); ++i)
    if (random() % 4 == 0 || i / columns == 11 || i % columns == 17) a[i] = static_cast<double>(random() % 5) - 2;
  CSRMatrix matrix = csr_from_dense(on_device(a, {rows, columns}));
  for (std::int64_t width : {1, 2, 7, 40})
    for (bool transposed : {false, true}) {
      CAPTURE(width, transposed);
      std::int64_t inner = transposed ? rows : columns, outer = transposed ? columns : rows;
      Numbers x = integers(inner * width, 5), expected(static_cast<std::size_t>(outer * width));
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j)
          for (std::int64_t k = 0; k < width; ++k)
            expected[static_cast<std::size_t>((transposed ? j : i) * width + k)] +=
                a[static_cast<std::size_t>(i * columns + j)] *
                x[static_cast<std::size_t>((transposed ? i : j) * width + k)];
      CHECK(numbers_of(matmul(matrix, on_device(x, {inner, width}), {.transposed = transposed})) == expected);
    }
  CHECK(numbers_of(to_dense(matrix)) == a);
}

TEST_CASE("what is wrong with a sparse pattern is found on a device") {
  if (lacks_device()) return;
  auto says = [](const Indices& offsets, const Indices& columns, const std::string& what) {
    Numbers values(columns.size());
    auto rows = static_cast<std::int64_t>(offsets.size()) - 1, entries = static_cast<std::int64_t>(columns.size());
    CHECK_THROWS_WITH(csr_matrix(on_device(offsets, {rows + 1}), on_device(columns, {entries}),
                                 on_device(values, {entries}), {rows, 4}),
                      contains(what));
  };
  says({1, 2}, {0, 1}, "the first row offset is 1, not 0");
  says({0, 2, 1, 2}, {0, 1}, "row offsets fall from 2 to 1 at row 1");
  says({0, 1, 3}, {0, 1}, "the last row offset is 3, but there are 2 entries");
  says({0, 0, 2}, {0, 4}, "column 4 in row 1 is out of range for (2, 4)");
  says({0, 2, 3}, {0, 1, -1}, "column -1 in row 1 is out of range for (2, 4)");
  says({0, 1, 1, 3}, {3, 2, 2}, "the columns of row 2 do not rise: 2 comes after 2");
}

TEST_CASE(
    "the largest number of a window and its place are the CPU's on a device, also where numbers are NaN or equal") {
  if (lacks_device()) return;
  Numbers numbers = integers(2 * 3 * 9 * 10, 4);
  for (std::size_t i = 0; i < numbers.size(); i += 7) numbers[i] = NAN;
  for (Layout layout : {Layout::nchw, Layout::nhwc}) {
    Tensor x = to(reshape(tensor(numbers), {2, 3, 9, 10}), f32);
    if (layout == Layout::nhwc) x = copy(permute(x, {0, 2, 3, 1}));
    MaxPoolOptions options{.stride = 2, .padding = 1, .layout = layout};
    auto [values, indices] = max_pool2d_with_indices(x, 3, options);
    auto [values_there, indices_there] = max_pool2d_with_indices(to(x, gpu), 3, options);
    CHECK(numbers_of(indices_there) == numbers_of(indices));
    CHECK(to_string(to(values_there, cpu)) == to_string(values));
  }
}

}  // namespace reel_test
