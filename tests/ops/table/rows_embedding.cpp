#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

// Rows of a table at indices of a shape.
struct Listed {
  Shape table, shape;
  Index indices;
};

void add_embedding(std::vector<Row>& rows, const Listed& c) {
  auto taken = [c](const Arrays& x) {
    Shape result = c.shape;
    result.push_back(c.table[1]);
    return make(result, [&](const Index& i) {
      auto row = static_cast<std::int64_t>(at(x[1], Index(i.begin(), i.end() - 1)));
      return at(x[0], {row < 0 ? row + c.table[0] : row, i.back()});
    });
  };
  rows.push_back({.name = fmt::format("embedding {} {}", to_string(c.table), to_string(c.shape)),
                  .run = [](auto x) { return embedding(x[0], x[1]); },
                  .inputs = {{c.table}, {c.shape, Fill::indices, c.indices}},
                  .reference = taken,
                  .ulps = 0,
                  .dtypes = all_dtypes});
}

// Bags of rows of a table: a list of indices and where each bag starts, or rows of indices.
struct Bags {
  Shape table;
  Index indices, offsets;
  Shape shape;  // of the indices; rank 2 where there are no offsets
  BagMode mode = BagMode::sum;
  bool weighted = false;
};

Array bagged(const Bags& b, const Arrays& x) {
  std::int64_t width = b.table[1], rows = b.table[0];
  bool listed = b.shape.rank() == 1;
  std::int64_t count = listed ? std::ssize(x[2].values) : b.shape[0];
  Array y{{count, width}, {}};
  auto start = [&](std::int64_t bag) {
    if (!listed) return bag * b.shape[1];
    return bag == count ? b.shape[0] : static_cast<std::int64_t>(x[2].values[static_cast<std::size_t>(bag)]);
  };
  for (std::int64_t bag = 0; bag < count; ++bag)
    for (std::int64_t d = 0; d < width; ++d) {
      double sum = 0, size = 0, most = -INFINITY;
      for (std::int64_t j = start(bag); j < start(bag + 1); ++j) {
        auto place = static_cast<std::size_t>(j);
        auto row = static_cast<std::int64_t>(x[1].values[place]);
        double value = at(x[0], {row < 0 ? row + rows : row, d});
        if (b.weighted) value *= x.back().values[place];
        sum += value;
        size += std::abs(value);
        most = std::max(most, value);
      }
      std::int64_t members = start(bag + 1) - start(bag);
      auto divisor = static_cast<double>(b.mode == BagMode::mean ? std::max<std::int64_t>(1, members) : 1);
      y.values.push_back(b.mode != BagMode::max ? sum / divisor : members == 0 ? 0 : most);
      y.scales.push_back(b.mode == BagMode::max ? 0 : size / divisor);
    }
  return y;
}

void add_bags(std::vector<Row>& rows, const Bags& b) {
  bool listed = b.shape.rank() == 1;
  std::vector<Input> inputs{{b.table}, {b.shape, Fill::indices, b.indices}};
  if (listed) inputs.push_back({{std::ssize(b.offsets)}, Fill::indices, b.offsets});
  if (b.weighted) inputs.push_back({b.shape});
  rows.push_back({.name = fmt::format("embedding_bag{} {} of {}{}", to_string(b.table), to_string(b.shape),
                                      static_cast<int>(b.mode), b.weighted ? ", weighted" : ""),
                  .run =
                      [=](auto x) {
                        EmbeddingBagOptions options{.mode = b.mode};
                        if (listed) options.offsets = needed(x[2]);
                        if (b.weighted) options.per_sample_weights = needed(x[listed ? 3 : 2]);
                        return embedding_bag(x[0], x[1], options);
                      },
                  .inputs = inputs,
                  .reference = [=](const Arrays& x) { return bagged(b, x); },
                  // One rounding a row, and one for its weight.
                  .ulps = b.mode == BagMode::max ? 0 : 1 + static_cast<double>(b.indices.size()),
                  .attributes = {{"mode", {static_cast<double>(b.mode)}}, {"weighted", {double(b.weighted)}}}});
}

void add_rows(std::vector<Row>& rows) {
  add_embedding(rows, {{5, 3}, {3}, {0, 4, -1}});
  add_embedding(rows, {{5, 3}, {2, 2}, {1, 1, 1, 0}});
  add_embedding(rows, {{5, 3}, {}, {2}});
  add_embedding(rows, {{5, 3}, {1, 3, 1}, {4, 3, -5}});
  for (BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max}) {
    add_bags(rows, {{4, 3}, {1, 0, 1, 3, -1, 2}, {0, 2, 2, 5}, {6}, mode});
    add_bags(rows, {{4, 3}, {1, 0, 2, 3, -1, 2}, {}, {2, 3}, mode});
    add_bags(rows, {{3, 2}, {}, {}, {2, 0}, mode});
    add_bags(rows, {{0, 2}, {}, {0, 0}, {0}, mode});
    add_bags(rows, {{3, 0}, {1, 2}, {}, {1, 2}, mode});
  }
  add_bags(rows, {{4, 3}, {1, 0, 1, 3, -1, 2}, {0, 2, 2, 5}, {6}, BagMode::sum, true});
  add_bags(rows, {{4, 3}, {1, 0, 1, 3, -1, 2}, {}, {2, 3}, BagMode::sum, true});
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  auto drawn = [&](const Shape& shape, std::int64_t size) {
    Index indices;
    for (std::int64_t i = shape.numel(); i > 0; --i) indices.push_back(random_size(random, 0, size - 1));
    return indices;
  };
  for (int repeat = 0; repeat < 3; ++repeat) {
    Shape table = random_shape(random, 2, 20), shape = random_shape(random, 1, 40);
    add_embedding(rows, {table, shape, drawn(shape, table[0])});
  }
  for (BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max})
    for (bool weighted : {false, true}) {
      Shape shape = random_shape(random, 2, 12);
      Shape table = random_shape(random, 2);
      add_bags(rows, {table, drawn(shape, table[0]), {}, shape, mode, weighted && mode == BagMode::sum});
    }
}

}  // namespace

const RowFamily embedding_rows{add_rows, add_random_rows};

}  // namespace reel_test
