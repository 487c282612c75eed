#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

enum class Mask : std::uint8_t { none, flags, numbers };

struct Heads {
  Shape queries, keys, values;
  Mask mask = Mask::none;
  Shape mask_shape = {};
  bool causal = false;
  double scale = 0;  // 0: the default
};

// The element of x that is in row `row` of the matrix at `head`, in broadcast leading axes.
double element(const Array& x, Index head, std::int64_t row, std::int64_t column) {
  head.push_back(row);
  head.push_back(column);
  // Missing leading axes are left out, axes of size 1 repeat.
  return at(x, head);
}

double added(const Heads& h, const Arrays& x, const Index& head, std::int64_t i, std::int64_t j) {
  if (h.causal && j > i) return -INFINITY;
  if (h.mask == Mask::none) return 0;
  Index place = head;
  place.push_back(i);
  place.push_back(j);
  double value = at(x[3], place);
  return h.mask == Mask::numbers ? value : value != 0 ? 0 : -INFINITY;
}

Array attended(const Heads& h, const Arrays& x) {
  auto matrix_size = [](const Shape& shape, int from_end) { return shape[shape.rank() - from_end]; };
  std::int64_t keys = matrix_size(h.keys, 2), depth = matrix_size(h.queries, 1);
  double scale = h.scale != 0 ? h.scale : 1 / std::sqrt(static_cast<double>(depth));
  Arrays leading;
  for (const Shape& shape : {h.queries, h.keys, h.values}) {
    Shape own;
    for (int i = 0; i + 2 < shape.rank(); ++i) own.push_back(shape[i]);
    leading.push_back({own, {}});
  }
  Shape result = broadcast_all(leading);
  result.push_back(matrix_size(h.queries, 2));
  result.push_back(matrix_size(h.values, 1));
  Array y{result, {}};
  for_each_index(result, [&](const Index& index) {
    Index head(index.begin(), index.end() - 2);
    std::int64_t i = index[index.size() - 2];
    std::vector<double> scores;
    for (std::int64_t j = 0; j < keys; ++j) {
      double product = 0;
      for (std::int64_t e = 0; e < depth; ++e) product += element(x[0], head, i, e) * element(x[1], head, j, e);
      scores.push_back(product * scale + added(h, x, head, i, j));
    }
    double most = scores.empty() ? 0 : *std::max_element(scores.begin(), scores.end()), sum = 0, total = 0, size = 0;
    for (std::int64_t j = 0; j < keys && most > -INFINITY; ++j) {
      double weight = std::exp(scores[static_cast<std::size_t>(j)] - most),
             value = element(x[2], head, j, index.back());
      sum += weight;
      total += weight * value;
      size += weight * std::abs(value);
    }
    y.values.push_back(sum == 0 ? 0 : total / sum);
    y.scales.push_back(sum == 0 ? 1 : 1 + size / sum);
  });
  return y;
}

// One of three keys or so does not take part.
std::vector<Input> inputs_of(const Heads& h) {
  std::vector<Input> inputs{{h.queries}, {h.keys}, {h.values}};
  if (h.mask != Mask::none) inputs.push_back({h.mask_shape, h.mask == Mask::flags ? Fill::flags : Fill::any});
  return inputs;
}

void add_attention(std::vector<Row>& rows, const Heads& h) {
  auto depth = static_cast<double>(h.queries[h.queries.rank() - 1]), keys = static_cast<double>(h.keys.numel());
  rows.push_back({.name = fmt::format("scaled_dot_product_attention{}{}{} mask {}{}{}", to_string(h.queries),
                                      to_string(h.keys), to_string(h.values), static_cast<int>(h.mask),
                                      to_string(h.mask_shape), h.causal ? ", causal" : ""),
                  .run =
                      [=](auto x) {
                        AttentionOptions options{.causal = h.causal};
                        if (h.mask != Mask::none) options.mask = needed(x[3]);
                        if (h.scale != 0) options.scale = h.scale;
                        return scaled_dot_product_attention(x[0], x[1], x[2], options);
                      },
                  .inputs = inputs_of(h),
                  .reference = [=](const Arrays& x) { return attended(h, x); },
                  // Scores are sums of `depth` products of at most 4, scaled; their errors multiply the weights. Then a
                  // sum over the keys, twice.
                  .ulps = 8 + 4 * depth + keys,
                  .reorders = true,
                  .attributes = {{"causal", {double(h.causal)}}, {"scale", {h.scale}}}});
}

void add_rows(std::vector<Row>& rows) {
  add_attention(rows, {{3, 2}, {4, 2}, {4, 3}});
  add_attention(rows, {{2, 3, 2}, {2, 4, 2}, {2, 4, 3}});
  add_attention(rows, {{2, 2, 3, 2}, {2, 2, 3, 2}, {2, 2, 3, 2}, Mask::none, {}, true});
  add_attention(rows, {{2, 1, 3, 2}, {1, 2, 4, 2}, {4, 1}, Mask::none, {}, false, 0.75});
  for (Mask mask : {Mask::flags, Mask::numbers})
    for (bool causal : {false, true}) {
      add_attention(rows, {{3, 2}, {4, 2}, {4, 2}, mask, {3, 4}, causal});
      add_attention(rows, {{2, 3, 2}, {2, 4, 2}, {2, 4, 1}, mask, {4}, causal});
      add_attention(rows, {{2, 3, 2}, {2, 4, 2}, {2, 4, 1}, mask, {2, 1, 4}, causal});
      add_attention(rows, {{2, 2, 3, 1}, {2, 1, 2, 1}, {2, 2, 2, 1}, mask, {2, 1, 3, 2}, causal});
    }
  // More queries than keys, and fewer, causal.
  for (std::int64_t queries : {2, 6}) add_attention(rows, {{queries, 2}, {4, 2}, {4, 2}, Mask::none, {}, true});
  // Empty axes of each kind.
  add_attention(rows, {{0, 2}, {3, 2}, {3, 2}});
  add_attention(rows, {{3, 2}, {0, 2}, {0, 2}});
  add_attention(rows, {{3, 0}, {2, 0}, {2, 2}, Mask::none, {}, false, 1});
  add_attention(rows, {{3, 2}, {2, 2}, {2, 0}});
  add_attention(rows, {{0, 3, 2}, {0, 3, 2}, {0, 3, 2}, Mask::none, {}, true});
  add_attention(rows, {{1, 1}, {1, 1}, {1, 1}});
  // Few queries or few keys of many elements are multiplied without being packed.
  for (std::int64_t queries : {1, 4, 5})
    for (std::int64_t keys : {1, 4, 5}) add_attention(rows, {{2, queries, 33}, {2, keys, 33}, {2, keys, 40}});
  // Beyond a block of queries and of keys.
  for (bool causal : {false, true}) {
    add_attention(rows, {{1, 300, 3}, {1, 700, 3}, {1, 700, 2}, Mask::none, {}, causal});
    add_attention(rows, {{2, 70, 9}, {2, 90, 9}, {2, 90, 5}, Mask::numbers, {70, 90}, causal});
  }
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (Mask mask : {Mask::none, Mask::numbers})
    for (bool causal : {false, true}) {
      std::int64_t heads = random_size(random, 1, 4), queries = random_size(random), keys = random_size(random);
      std::int64_t depth = random_size(random), width = random_size(random);
      add_attention(rows, {{heads, queries, depth},
                           {heads, keys, depth},
                           {heads, keys, width},
                           mask,
                           mask == Mask::none ? Shape{} : Shape{queries, keys},
                           causal,
                           causal ? 0 : 0.25});
    }
}

}  // namespace

const RowFamily attention_rows{add_rows, add_random_rows};

}  // namespace reel_test
