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

// x(…) at one index of the result: the index in x.
struct Part {
  std::string name;
  Shape x;
  Function run;
  Shape y;
  std::function<Index(const Index&)> place;
};

void add_parts(std::vector<Row>& rows) {
  static constexpr auto all = std::nullopt;
  const Part parts[] = {
      {"row",
       {3, 4},
       [](auto x) { return x[0](1); },
       {4},
       [](Index i) -> Index {
         return {1, i[0]};
       }},
      {"element",
       {3, 4},
       [](auto x) { return x[0](-1, 2u); },
       {},
       [](Index) -> Index {
         return {2, 2};
       }},
      {"column",
       {3, 4},
       [](auto x) { return x[0](ellipsis, -2); },
       {3},
       [](Index i) -> Index {
         return {i[0], 2};
       }},
      {"all of a number", {}, [](auto x) { return x[0](ellipsis); }, {}, [](Index) -> Index { return {}; }},
      {"new axes",
       {3},
       [](auto x) { return x[0](newaxis, ellipsis, newaxis); },
       {1, 3, 1},
       [](Index i) -> Index { return {i[1]}; }},
      {"everything",
       {3, 5, 2, 4},
       [](auto x) { return x[0](2, slice(1, -1), newaxis, ellipsis, slice(all, all, -3)); },
       {3, 1, 2, 2},
       [](Index i) -> Index {
         return {2, 1 + i[0], i[2], 3 - 3 * i[3]};
       }},
      {"steps",
       {9, 7},
       [](auto x) { return x[0](slice(1, 8, 3), slice(all, 1, -2)); },
       {3, 3},
       [](Index i) -> Index {
         return {1 + 3 * i[0], 6 - 2 * i[1]};
       }},
      {"cut ends", {3, 2}, [](auto x) { return x[0](slice(-9, 9)); }, {3, 2}, [](Index i) { return i; }},
      {"nothing", {3, 2}, [](auto x) { return x[0](slice(2, 1), 1); }, {0}, [](Index i) { return i; }},
      {"part of nothing", {2, 0}, [](auto x) { return x[0](1, slice(1)); }, {0}, [](Index i) { return i; }},
      {"eight axes",
       {2, 1, 2, 1, 2, 1, 2, 2},
       [](auto x) { return x[0](1, 0, slice(), 0, newaxis, 1, 0, newaxis, slice(1), 0); },
       {2, 1, 1, 1},
       [](Index i) -> Index { return {1, 0, i[0], 0, 1, 0, 1, 0}; }},
      {"larger than a block",
       {3, 70, 3},
       [](auto x) { return x[0](slice(), slice(3, -3), 1); },
       {3, 64},
       [](Index i) -> Index {
         return {i[0], 3 + i[1], 1};
       }},
  };
  for (const Part& part : parts)
    rows.push_back(
        {.name = "index " + part.name,
         .run = part.run,
         .inputs = {{part.x}},
         .reference =
             [part](const Arrays& x) { return make(part.y, [&](const Index& i) { return at(x[0], part.place(i)); }); },
         .ulps = 0,
         .dtypes = all_dtypes});
}

}  // namespace

void add_index_rows(std::vector<Row>& rows) {
  add_parts(rows);
  add_gathers(rows);
  add_embeddings(rows);
}

void add_random_index_rows(std::vector<Row>&, Random&) {}

}  // namespace reel_test
