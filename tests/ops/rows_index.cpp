#include <cmath>

#include "core/philox.h"
#include "ops/table.h"

namespace reel_test {

using namespace reel;

namespace {

const std::vector<DType> adding_dtypes{f32, f64, bf16, f16, i32, i64};

// What index i of a row of `index` asks for, along an axis of some size.
std::int64_t place_of(const Array& index, const Index& i, std::int64_t size) {
  auto place = static_cast<std::int64_t>(at(index, i));
  return place < 0 ? place + size : place;
}

void add_gathers(std::vector<Row>& rows) {
  struct Case {
    Shape x;
    int axis;
    Shape index;
    std::vector<std::int64_t> indices;
  };
  const Case cases[] = {
      {{4}, 0, {3}, {2, 2, -1}},
      {{3, 4}, 1, {3, 2}, {0, 3, -4, 1, 1, 1}},
      {{3, 4}, 0, {2, 4}, {0, 1, 2, 0, -1, -1, -1, 0}},
      {{3, 4}, -2, {5, 2}, {0, 1, 2, 0, 1, 1, 1, 0, 2, 2}},
      {{2, 3, 2}, 1, {2, 1, 2}, {0, 2, 1, -3}},
  };
  for (const Case& c : cases) {
    int axis = c.axis < 0 ? c.axis + c.x.rank() : c.axis;
    auto along = static_cast<std::size_t>(axis);
    rows.push_back({.name = "gather" + to_string(c.x) + to_string(c.index),
                    .run = [c](auto x) { return gather(x[0], c.axis, x[1]); },
                    .inputs = {{c.x}, {c.index, Fill::any, c.indices}},
                    .reference =
                        [=](const Arrays& x) {
                          return make(c.index, [&](Index i) {
                            i[along] = place_of(x[1], i, c.x[axis]);
                            return at(x[0], i);
                          });
                        },
                    .ulps = 0,
                    .dtypes = all_dtypes});
    rows.push_back({.name = "scatter_add" + to_string(c.x) + to_string(c.index),
                    .run = [c](auto x) { return scatter_add(x[0], c.axis, x[1], x[2]); },
                    .inputs = {{c.x}, {c.index, Fill::any, c.indices}, {c.index}},
                    .reference =
                        [=](const Arrays& x) {
                          Array y = make(c.x, [&](const Index& i) {
                            double sum = at(x[0], i);
                            for_each_index(c.index, [&](Index from) {
                              double update = at(x[2], from);
                              from[along] = place_of(x[1], from, c.x[axis]);
                              if (from == i) sum += update;
                            });
                            return sum;
                          });
                          // At most 8 numbers below 2 meet in one place.
                          y.scales.assign(y.values.size(), 16);
                          return y;
                        },
                    .ulps = 4,
                    .dtypes = adding_dtypes});
  }
}

void add_embeddings(std::vector<Row>& rows) {
  struct Case {
    Shape indices;
    std::vector<std::int64_t> values;
  };
  const Case cases[] = {{{3}, {0, 4, -1}}, {{2, 2}, {1, 1, 1, 0}}, {{}, {2}}, {{1, 3, 1}, {4, 3, -5}}};
  for (const Case& c : cases)
    rows.push_back({.name = "embedding" + to_string(c.indices),
                    .run = [](auto x) { return embedding(x[0], x[1]); },
                    .inputs = {{{5, 3}}, {c.indices, Fill::any, c.values}},
                    .reference =
                        [=](const Arrays& x) {
                          Shape shape = c.indices;
                          shape.push_back(3);
                          return make(shape, [&](Index i) {
                            std::int64_t column = i.back();
                            i.pop_back();
                            return at(x[0], {place_of(x[1], i, 5), column});
                          });
                        },
                    .ulps = 0,
                    .dtypes = all_dtypes});
}

void add_losses(std::vector<Row>& rows) {
  struct Case {
    Shape logits, targets;
    std::vector<std::int64_t> values;
  };
  const Case cases[] = {
      {{4}, {}, {2}}, {{3, 4}, {3}, {0, -100, 3}}, {{2, 3, 2}, {2, 2}, {0, 1, 2, -100}}, {{2, 37}, {2}, {36, 7}}};
  for (const Case& c : cases)
    for (LossReduction reduction : {LossReduction::none, LossReduction::sum, LossReduction::mean}) {
      auto losses = [c](const Arrays& x) {
        int axis = c.logits.rank() == 1 ? 0 : 1;
        return make(c.targets, [&](Index i) {
          auto target = static_cast<std::int64_t>(at(x[1], i));
          if (target == -100) return 0.0;
          i.insert(i.begin() + axis, target);
          double sum = 0;
          for (std::int64_t k = 0; k < c.logits[axis]; ++k) {
            Index other = i;
            other[static_cast<std::size_t>(axis)] = k;
            sum += std::exp(at(x[0], other) - at(x[0], i));
          }
          return std::log(sum);
        });
      };
      auto reduced = [=](const Arrays& x) {
        Array y = losses(x);
        // As log_softmax's, for each example.
        double counted = 0, sum = 0;
        for (double target : x[1].values) counted += target != -100;
        for (double loss : y.values) sum += loss;
        if (reduction != LossReduction::none) y = {{}, {reduction == LossReduction::sum ? sum : sum / counted}};
        y.scales.assign(y.values.size(), reduction == LossReduction::sum ? 4 * counted : 4);
        return y;
      };
      rows.push_back({.name = "cross_entropy" + to_string(c.logits) + " " + std::to_string(static_cast<int>(reduction)),
                      .run = [=](auto x) { return cross_entropy(x[0], x[1], {.reduction = reduction}); },
                      .inputs = {{c.logits}, {c.targets, Fill::any, c.values}},
                      .reference = reduced,
                      .ulps = 4 + static_cast<double>(c.logits.numel()) / 2,
                      .half_roundings = reduction == LossReduction::none ? 1 : 2,
                      .reorders = true});
    }
}

void add_dropouts(std::vector<Row>& rows) {
  for (double probability : {0.0, 0.5, 1.0})
    for (const Shape& shape : {Shape{}, Shape{2, 9}, Shape{0}})
      rows.push_back({.name = "dropout of " + std::to_string(probability) + to_string(shape),
                      .run =
                          [=](auto x) {
                            Generator generator(77);
                            return dropout(x[0], {.probability = probability, .generator = &generator});
                          },
                      .inputs = {{shape}},
                      .reference =
                          [=](const Arrays& x) {
                            Array y = x[0];
                            for (std::size_t i = 0; i < y.values.size(); ++i) {
                              bool kept = detail::philox(77, 0, i).word[0] >= probability * 0x1p32;
                              y.values[i] = kept ? y.values[i] / (1 - probability) : 0;
                            }
                            return y;
                          }});
}

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

void add_index_rows(std::vector<Row>& rows) {
  add_gathers(rows);
  add_embeddings(rows);
  add_losses(rows);
  add_dropouts(rows);
  add_conversions(rows);
}

void add_random_index_rows(std::vector<Row>&, Random&) {}

}  // namespace reel_test
