#include <algorithm>
#include <cmath>
#include <map>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

// The position along an axis that element i of `index` selects.
std::int64_t place_of(const Array& index, const Index& i, std::int64_t size) {
  auto place = static_cast<std::int64_t>(at(index, i));
  return place < 0 ? place + size : place;
}

std::size_t along(int axis, const Shape& x) { return static_cast<std::size_t>(axis < 0 ? axis + x.rank() : axis); }

Input indices_of(const Shape& shape, const std::vector<std::int64_t>& indices) {
  return {shape, Fill::indices, indices};
}

std::vector<std::int64_t> drawn_indices(Random& random, const Shape& shape, std::int64_t size) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = shape.numel(); i > 0; --i) indices.push_back(random_size(random, 0, size - 1));
  return indices;
}

std::string names(std::initializer_list<Shape> shapes, int axis) {
  std::string text;
  for (const Shape& shape : shapes) text.append(" ").append(to_string(shape));
  return text.append(" axis ").append(std::to_string(axis));
}

// An axis of x and an index of x's rank.
struct Picked {
  Shape x;
  int axis;
  Shape index;
  std::vector<std::int64_t> indices;

  Attributes attributes() const { return {{"axis", {static_cast<double>(axis)}}}; }
  // The index in x of what stands at index i of `index`.
  Index place(const Array& at_index, Index i) const {
    std::size_t k = along(axis, x);
    i[k] = place_of(at_index, i, x[static_cast<int>(k)]);
    return i;
  }
};

Row gather_row(const Picked& c) {
  return {
      .name = "gather" + names({c.x, c.index}, c.axis),
      .run = [c](auto x) { return gather(x[0], c.axis, x[1]); },
      .inputs = {{c.x}, indices_of(c.index, c.indices)},
      .reference =
          [c](const Arrays& x) { return make(c.index, [&](const Index& i) { return at(x[0], c.place(x[1], i)); }); },
      .ulps = 0,
      .dtypes = all_dtypes,
      .attributes = c.attributes()};
}

Row scatter_row(const Picked& c) {
  return {.name = "scatter" + names({c.x, c.index}, c.axis),
          .run = [c](auto x) { return scatter(x[0], c.axis, x[1], x[2]); },
          .inputs = {{c.x}, indices_of(c.index, c.indices), {c.index}},
          .reference =
              [c](const Arrays& x) {
                std::map<Index, double> put;
                for_each_index(c.index, [&](const Index& i) { put[c.place(x[1], i)] = at(x[2], i); });
                return make(c.x, [&](const Index& i) { return put.contains(i) ? put[i] : at(x[0], i); });
              },
          .ulps = 0,
          .dtypes = all_dtypes,
          .attributes = c.attributes()};
}

// x with numbers added at positions: `numbers` of them, each below 2.
Array with_added(const Array& x, const std::vector<std::pair<Index, double>>& numbers) {
  std::map<Index, double> sums, sizes;
  for (const auto& [place, number] : numbers) {
    sums[place] += number;
    sizes[place] += std::abs(number);
  }
  Array y = make(x.shape, [&](const Index& i) { return at(x, i) + sums[i]; });
  for_each_index(x.shape, [&](const Index& i) { y.scales.push_back(std::abs(at(x, i)) + sizes[i]); });
  return y;
}

// Sums of up to 60 numbers one after the other, each sum rounded to half a unit of what was added up so far.
constexpr double ulps_of_sums = 30;

Row scatter_add_row(const Picked& c) {
  return {.name = "scatter_add" + names({c.x, c.index}, c.axis),
          .run = [c](auto x) { return scatter_add(x[0], c.axis, x[1], x[2]); },
          .inputs = {{c.x}, indices_of(c.index, c.indices), {c.index}},
          .reference =
              [c](const Arrays& x) {
                std::vector<std::pair<Index, double>> added;
                for_each_index(c.index, [&](const Index& i) { added.emplace_back(c.place(x[1], i), at(x[2], i)); });
                return with_added(x[0], added);
              },
          .ulps = ulps_of_sums,
          .dtypes = all_numbers,
          .attributes = c.attributes()};
}

void add_gathers(std::vector<Row>& rows) {
  const Picked cases[] = {
      {{4}, 0, {3}, {2, 2, -1}},
      {{3, 4}, 1, {3, 2}, {0, 3, -4, 1, 1, 1}},
      {{3, 4}, 0, {2, 4}, {0, 1, 2, 0, -1, -1, -1, 0}},
      {{3, 4}, -2, {5, 2}, {0, 1, 2, 0, 1, 1, 1, 0, 2, 2}},
      {{2, 3, 2}, 1, {2, 1, 2}, {0, 2, 1, -3}},
      {{1, 2, 1}, 1, {1, 3, 1}, {1, 0, 1}},
      {{3, 4}, 1, {2, 3}, {0, 3, 1, 2, 2, -1}},
  };
  for (const Picked& c : cases) {
    rows.push_back(gather_row(c));
    rows.push_back(scatter_row(c));
    rows.push_back(scatter_add_row(c));
  }
  // Whole rows, with an index that repeats along them.
  Shape x{5, 3, 4}, index{7, 3, 4};
  std::vector<std::int64_t> places{4, 0, -1, 2, 2, 0, 1};
  auto repeated = [index](const Tensor& list) { return expand(reshape(list, {7, 1, 1}), index); };
  auto place = [](const Array& list, Index i) {
    i[0] = place_of(list, {i[0]}, 5);
    return i;
  };
  rows.push_back(
      {.name = "gather whole rows",
       .run = [=](auto in) { return gather(in[0], 0, repeated(in[1])); },
       .inputs = {{x}, indices_of({7}, places)},
       .reference =
           [=](const Arrays& in) { return make(index, [&](const Index& i) { return at(in[0], place(in[1], i)); }); },
       .ulps = 0,
       .dtypes = all_dtypes});
  rows.push_back({.name = "scatter whole rows",
                  .run = [=](auto in) { return scatter(in[0], 0, repeated(in[1]), in[2]); },
                  .inputs = {{x}, indices_of({7}, places), {index}},
                  .reference =
                      [=](const Arrays& in) {
                        std::map<Index, double> put;
                        for_each_index(index, [&](const Index& i) { put[place(in[1], i)] = at(in[2], i); });
                        return make(x, [&](const Index& i) { return put.contains(i) ? put[i] : at(in[0], i); });
                      },
                  .ulps = 0,
                  .dtypes = all_dtypes});
  rows.push_back({.name = "scatter_add whole rows",
                  .run = [=](auto in) { return scatter_add(in[0], 0, repeated(in[1]), in[2]); },
                  .inputs = {{x}, indices_of({7}, places), {index}},
                  .reference =
                      [=](const Arrays& in) {
                        std::vector<std::pair<Index, double>> added;
                        for_each_index(index,
                                       [&](const Index& i) { added.emplace_back(place(in[1], i), at(in[2], i)); });
                        return with_added(in[0], added);
                      },
                  .ulps = ulps_of_sums,
                  .dtypes = all_numbers});
}

// An axis of x and a list of indices in its place.
struct Listed {
  Shape x;
  int axis;
  Shape list;
  std::vector<std::int64_t> indices;

  Attributes attributes() const { return {{"axis", {static_cast<double>(axis)}}}; }
  Shape result() const {
    int place = static_cast<int>(along(axis, x));
    Shape shape;
    for (int i = 0; i < place; ++i) shape.push_back(x[i]);
    for (std::int64_t size : list) shape.push_back(size);
    for (int i = place + 1; i < x.rank(); ++i) shape.push_back(x[i]);
    return shape;
  }
  // The index in x of what stands at index i of the result.
  Index place(const Array& at_list, const Index& i) const {
    auto front = i.begin() + static_cast<std::ptrdiff_t>(along(axis, x)), back = front + list.rank();
    Index from(i.begin(), front);
    from.push_back(place_of(at_list, Index(front, back), x[static_cast<int>(along(axis, x))]));
    from.insert(from.end(), back, i.end());
    return from;
  }
  Array taken(const Arrays& x_and_list) const {
    return make(result(), [&](const Index& i) { return at(x_and_list[0], place(x_and_list[1], i)); });
  }
  Array added(const Array& to, const Array& at_list, const Array& source) const {
    std::vector<std::pair<Index, double>> numbers;
    for_each_index(result(), [&](const Index& i) { numbers.emplace_back(place(at_list, i), at(source, i)); });
    return with_added(to, numbers);
  }
};

Row taking_row(const std::string& op, const Listed& c, Function run) {
  return {.name = op + names({c.x, c.list}, c.axis),
          .run = std::move(run),
          .inputs = {{c.x}, indices_of(c.list, c.indices)},
          .reference = [c](const Arrays& x) { return c.taken(x); },
          .ulps = 0,
          .dtypes = all_dtypes,
          .attributes = c.attributes()};
}

Row take_row(const Listed& c) {
  return taking_row("take", c, [c](auto x) { return take(x[0], x[1], c.axis); });
}

Row flat_take_row(const Shape& x, const Shape& list, const std::vector<std::int64_t>& indices) {
  Listed flat{{x.numel()}, 0, list, indices};
  return {.name = "take" + names({x, list}, 0) + " of all",
          .run = [](auto in) { return take(in[0], in[1]); },
          .inputs = {{x}, indices_of(list, indices)},
          .reference =
              [flat](const Arrays& in) {
                return flat.taken({{flat.x, in[0].values}, in[1]});
              },
          .ulps = 0,
          .dtypes = all_dtypes};
}

Row index_select_row(const Listed& c) {
  return taking_row("index_select", c, [c](auto x) { return index_select(x[0], c.axis, x[1]); });
}

Row index_add_row(const Listed& c) {
  return {.name = "index_add" + names({c.x, c.list}, c.axis),
          .run = [c](auto x) { return index_add(x[0], c.axis, x[1], x[2]); },
          .inputs = {{c.x}, indices_of(c.list, c.indices), {c.result()}},
          .reference = [c](const Arrays& x) { return c.added(x[0], x[1], x[2]); },
          .ulps = ulps_of_sums,
          .dtypes = all_numbers,
          .attributes = c.attributes()};
}

Row segment_sum_row(const Listed& c) {
  return {
      .name = "segment_sum" + names({c.x, c.list}, 0),
      .run = [c](auto x) { return segment_sum(x[0], x[1], c.x[0]); },
      .inputs = {{c.result()}, indices_of(c.list, c.indices)},
      .reference = [c](const Arrays& x) { return c.added(make(c.x, [](const Index&) { return 0.0; }), x[1], x[0]); },
      .ulps = ulps_of_sums,
      .dtypes = all_numbers,
      .attributes = {{"segments", {static_cast<double>(c.x[0])}}}};
}

void add_takes(std::vector<Row>& rows) {
  const Listed lists[] = {
      {{5}, 0, {3}, {4, 0, -1}},    {{4, 3}, 0, {6}, {1, 1, 3, -4, 2, 1}},
      {{2, 3, 4}, 1, {2}, {-1, 0}}, {{2, 3, 4}, -1, {5}, {3, 3, 0, -2, 1}},
      {{1, 2, 1, 3}, 1, {1}, {1}},  {{600, 2}, 0, {3}, {599, 0, 599}},
  };
  for (const Listed& c : lists) {
    rows.push_back(take_row(c));
    rows.push_back(index_select_row(c));
    rows.push_back(index_add_row(c));
    if (c.axis == 0) rows.push_back(segment_sum_row(c));
  }
  rows.push_back(segment_sum_row({{3, 2}, 0, {0}, {}}));
  rows.push_back(take_row({{4, 3}, 0, {}, {2}}));
  rows.push_back(take_row({{4, 3}, 1, {2, 2}, {2, 0, -1, 1}}));
  rows.push_back(take_row({{2, 3, 2}, 1, {1, 3, 1}, {2, 2, -3}}));
  rows.push_back(flat_take_row({2, 3}, {2, 2}, {5, 0, -1, -6}));
  rows.push_back(flat_take_row({}, {3}, {0, -1, 0}));
  rows.push_back(flat_take_row({2, 1, 2}, {}, {1}));
  // More indices than are looked up at once, and enough rows for several threads.
  Random random(11);
  Listed many{{1000, 24}, 0, {3000}, drawn_indices(random, {3000}, 1000)};
  rows.push_back(take_row(many));
  rows.push_back(index_add_row(many));
  rows.back().ulps = 1500;  // all 3000 may meet in one place
}

// One tensor of indices per leading axis of x.
struct Put {
  Shape x;
  std::vector<Input> indices;
  Shape values;
  bool accumulate;
};

// The index in x of each index of the broadcast values.
std::vector<std::pair<Index, double>> placed(const Put& c, const Arrays& x) {
  Arrays lists(x.begin() + 1, x.begin() + 1 + static_cast<std::ptrdiff_t>(c.indices.size()));
  Shape list = broadcast_all(lists), whole = list;
  for (int axis = static_cast<int>(lists.size()); axis < c.x.rank(); ++axis) whole.push_back(c.x[axis]);
  std::vector<std::pair<Index, double>> found;
  for_each_index(whole, [&](const Index& i) {
    auto front = i.begin() + list.rank();
    Index place;
    for (std::size_t k = 0; k < lists.size(); ++k) {
      // Shorter lists are aligned at the right.
      Index in_list(front - lists[k].shape.rank(), front);
      place.push_back(place_of(lists[k], in_list, c.x[static_cast<int>(k)]));
    }
    place.insert(place.end(), front, i.end());
    found.emplace_back(place, at(x.back(), i));
  });
  return found;
}

Row index_put_row(const Put& c) {
  std::vector<Input> inputs{{c.x}};
  inputs.insert(inputs.end(), c.indices.begin(), c.indices.end());
  inputs.push_back({c.values});
  std::string name = "index_put" + names({c.x, c.indices[0].shape, c.values}, 0);
  if (c.accumulate) name += " accumulate";
  return {
      .name = name + (c.accumulate ? " accumulate" : ""),
      .run =
          [c](auto x) { return index_put(x[0], x.subspan(1, x.size() - 2), x.back(), {.accumulate = c.accumulate}); },
      .inputs = inputs,
      .reference =
          [c](const Arrays& x) {
            std::vector<std::pair<Index, double>> numbers = placed(c, x);
            if (c.accumulate) return with_added(x[0], numbers);
            std::map<Index, double> put;
            for (const auto& [place, number] : numbers) put[place] = number;
            return make(c.x, [&](const Index& i) { return put.contains(i) ? put[i] : at(x[0], i); });
          },
      .ulps = c.accumulate ? ulps_of_sums : 0,
      .dtypes = c.accumulate ? all_numbers : all_dtypes,
      .attributes = {{"accumulate", {c.accumulate ? 1.0 : 0.0}}}};
}

void add_puts(std::vector<Row>& rows) {
  for (bool accumulate : {false, true}) {
    const Put cases[] = {
        {{4}, {indices_of({3}, {1, -1, 1})}, {3}, accumulate},
        {{4, 3}, {indices_of({3}, {2, 0, 2})}, {3, 3}, accumulate},
        {{4, 3}, {indices_of({2}, {3, -3})}, {}, accumulate},
        {{4, 3}, {indices_of({3}, {2, 0, 2}), indices_of({3}, {1, -1, 1})}, {3}, accumulate},
        {{3, 3, 2}, {indices_of({2, 1}, {0, 2}), indices_of({2}, {-1, -1})}, {2, 1, 2}, accumulate},
        {{2, 2, 2}, {indices_of({}, {1}), indices_of({2}, {0, 1}), indices_of({1}, {1})}, {1}, accumulate},
    };
    for (const Put& c : cases) rows.push_back(index_put_row(c));
  }
}

Row masked_fill_row(const Shape& x, const Shape& mask) {
  return {.name = "masked_fill" + names({x, mask}, 0),
          .run = [](auto in) { return masked_fill(in[0], in[1], in[2]); },
          .inputs = {{x}, {mask, Fill::flags}, {{}}},
          .reference =
              [=](const Arrays& in) {
                return make(x, [&](const Index& i) { return at(in[1], i) != 0 ? in[2].values[0] : at(in[0], i); });
              },
          .ulps = 0,
          .dtypes = all_dtypes};
}

Row masked_select_row(const Shape& x, const Shape& mask) {
  return {.name = "masked_select" + names({x, mask}, 0),
          .run = [](auto in) { return masked_select(in[0], in[1]); },
          .inputs = {{x}, {mask, Fill::flags}},
          .reference =
              [=](const Arrays& in) {
                Array y;
                for_each_index(broadcast_all(in), [&](const Index& i) {
                  if (at(in[1], i) != 0) y.values.push_back(at(in[0], i));
                });
                y.shape.push_back(static_cast<std::int64_t>(y.values.size()));
                return y;
              },
          .ulps = 0,
          .dtypes = all_dtypes};
}

Row nonzero_row(const Shape& x) {
  return {.name = "nonzero " + to_string(x),
          .run = [](auto in) { return nonzero(in[0]); },
          .inputs = {{x}},
          .reference =
              [=](const Arrays& in) {
                Array y;
                std::int64_t count = 0;
                for_each_index(x, [&](const Index& i) {
                  if (at(in[0], i) == 0) return;
                  y.values.insert(y.values.end(), i.begin(), i.end());
                  ++count;
                });
                y.shape = {count, x.rank()};
                return y;
              },
          .ulps = 0,
          .dtypes = {i32, f32, f64, bf16, f16, i64, u8, boolean, i8, i16},
          .differentiable = false};
}

void add_masks(std::vector<Row>& rows) {
  for (const auto& [x, mask] : std::initializer_list<std::pair<Shape, Shape>>{{{}, {}},
                                                                              {{5}, {}},
                                                                              {{3, 4}, {3, 4}},
                                                                              {{3, 4}, {4}},
                                                                              {{2, 3, 2}, {3, 1}},
                                                                              {{0, 2}, {2}},
                                                                              {{1}, {1}},
                                                                              {{70}, {70}}}) {
    rows.push_back(masked_fill_row(x, mask));
    rows.push_back(masked_select_row(x, mask));
  }
  rows.push_back(masked_select_row({4}, {3, 1}));
  for (const Shape& x : {Shape{}, Shape{1}, Shape{9}, Shape{3, 4}, Shape{2, 0}, Shape{2, 3, 1, 4}, Shape{70, 2}})
    rows.push_back(nonzero_row(x));
}

// x(…) at one index of the result: the index in x.
struct Part {
  std::string name;
  Shape x;
  Function run;
  Shape y;
  std::function<Index(const Index&)> place;
};

Row part_row(const Part& part) {
  return {.name = "index " + part.name,
          .run = part.run,
          .inputs = {{part.x}},
          .reference =
              [part](const Arrays& x) { return make(part.y, [&](const Index& i) { return at(x[0], part.place(i)); }); },
          .ulps = 0,
          .dtypes = all_dtypes};
}

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
  for (const Part& part : parts) rows.push_back(part_row(part));
}

void add_rows(std::vector<Row>& rows) {
  add_parts(rows);
  add_gathers(rows);
  add_takes(rows);
  add_puts(rows);
  add_masks(rows);
}

namespace {

Picked drawn_picked(Random& random) {
  Picked c{random_shape(random, static_cast<int>(random_size(random, 1, 3)), 20), 0, {}, {}};
  c.axis = static_cast<int>(random_size(random, 0, c.x.rank() - 1));
  for (int i = 0; i < c.x.rank(); ++i) c.index.push_back(random_size(random, 1, i == c.axis ? 20 : c.x[i]));
  c.indices = drawn_indices(random, c.index, c.x[c.axis]);
  return c;
}

Listed drawn_listed(Random& random, int rank) {
  Listed c{random_shape(random, rank, 20),
           static_cast<int>(random_size(random, 0, rank - 1)),
           random_shape(random, 1, 40),
           {}};
  c.indices = drawn_indices(random, c.list, c.x[c.axis]);
  return c;
}

Row drawn_part_row(Random& random) {
  Shape x = random_shape(random, 3, 12);
  std::int64_t first = random_size(random, -x[0], x[0] - 1), start = random_size(random, 0, x[1] - 1),
               step = random_size(random, 1, 3);
  Row row = part_row({"of " + to_string(x),
                      x,
                      [=](auto in) { return in[0](first, slice(start, std::nullopt, step), newaxis, ellipsis); },
                      {(x[1] - start - 1) / step + 1, 1, x[2]},
                      [=](Index i) -> Index {
                        return {first < 0 ? first + x[0] : first, start + step * i[0], i[2]};
                      }});
  row.attributes = {{"first", {static_cast<double>(first)}},
                    {"start", {static_cast<double>(start)}},
                    {"step", {static_cast<double>(step)}}};
  return row;
}

// libtorch does not specify which of several values for one position is written.
void spread_out(Picked& c) {
  c.index[c.axis] = std::min(c.index[c.axis], c.x[c.axis]);
  c.indices.clear();
  for_each_index(c.index, [&](const Index& i) { c.indices.push_back(i[along(c.axis, c.x)]); });
}

}  // namespace

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int repeat = 0; repeat < 3; ++repeat) {
    rows.push_back(drawn_part_row(random));
    Picked picked = drawn_picked(random);
    rows.push_back(gather_row(picked));
    rows.push_back(scatter_add_row(picked));
    spread_out(picked);
    rows.push_back(scatter_row(picked));

    Listed listed = drawn_listed(random, static_cast<int>(random_size(random, 1, 3)));
    rows.push_back(take_row(listed));
    rows.push_back(index_select_row(listed));
    rows.push_back(index_add_row(listed));
    listed.axis = 0;
    listed.indices = drawn_indices(random, listed.list, listed.x[0]);
    rows.push_back(segment_sum_row(listed));

    Shape x = random_shape(random, 3, 12);
    ++x[0];
    Shape list = random_shape(random, 1, 30);
    Input first = indices_of(list, drawn_indices(random, list, x[0])),
          second = indices_of(list, drawn_indices(random, list, x[1]));
    rows.push_back(index_put_row({x, {first, second}, {list[0], x[2]}, true}));
    rows.push_back(index_put_row({x, {indices_of({2}, {0, x[0] - 1})}, {2, 1, x[2]}, false}));
    Shape mask{x[1], repeat == 0 ? 1 : x[2]};
    rows.push_back(masked_fill_row(x, mask));
    rows.push_back(masked_select_row(x, mask));
    rows.push_back(nonzero_row(x));
  }
}

}  // namespace

const RowFamily index_rows{add_rows, add_random_rows};

}  // namespace reel_test
