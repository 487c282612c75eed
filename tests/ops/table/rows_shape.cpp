#include <algorithm>
#include <limits>
#include <utility>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       most = std::numeric_limits<std::int64_t>::max();

Array with_shape(Array x, const Shape& shape) {
  x.shape = shape;
  return x;
}

// The elements of x at given positions along an axis.
Array taken(const Array& x, int axis, const std::vector<std::int64_t>& places) {
  Shape shape = x.shape;
  shape[axis] = static_cast<std::int64_t>(places.size());
  return make(shape, [&](Index i) {
    auto& place = i[static_cast<std::size_t>(axis)];
    place = places[static_cast<std::size_t>(place)];
    return at(x, i);
  });
}

Array dropped_axis(Array x, int axis) {
  Shape shape;
  for (int i = 0; i < x.shape.rank(); ++i)
    if (i != axis) shape.push_back(x.shape[i]);
  return with_shape(std::move(x), shape);
}

Attributes::Numbers numbers(const Shape& shape) { return {shape.begin(), shape.end()}; }

void add_row(std::vector<Row>& rows, const std::string& name, const std::vector<Shape>& shapes, Function run,
             std::function<Array(const Arrays&)> reference, const Attributes& attributes = {}) {
  Row row{.name = name,
          .run = std::move(run),
          .inputs = {},
          .reference = std::move(reference),
          .ulps = 0,
          .dtypes = all_dtypes,
          .attributes = attributes};
  for (const Shape& shape : shapes) row.inputs.push_back({shape});
  rows.push_back(row);
}

void add_reshape(std::vector<Row>& rows, const Shape& from, const Shape& asked, const Shape& to) {
  std::string name = to_string(from) + to_string(asked);
  add_row(
      rows, "reshape" + name, {from}, [=](auto x) { return reshape(x[0], asked); },
      [=](const Arrays& x) { return with_shape(x[0], to); }, {{"shape", numbers(asked)}});
  // Other layouts than the row-major one would need a copy.
  add_row(
      rows, "view" + name, {from}, [=](auto x) { return view(contiguous(x[0]), asked); },
      [=](const Arrays& x) { return with_shape(x[0], to); }, {{"shape", numbers(asked)}});
}

void add_flatten(std::vector<Row>& rows, const Shape& from, int first, int last, const Shape& to) {
  add_row(
      rows, "flatten" + to_string(from) + " from " + std::to_string(first) + " to " + std::to_string(last), {from},
      [=](auto x) { return flatten(x[0], first, last); }, [=](const Arrays& x) { return with_shape(x[0], to); },
      {{"axes", {static_cast<double>(first), static_cast<double>(last)}}});
}

void add_unit_axes(std::vector<Row>& rows, const Shape& without, const Shape& axes, const Shape& with) {
  Attributes attributes{{"axes", numbers(axes)}};
  std::string name = to_string(axes);
  add_row(
      rows, "unsqueeze" + to_string(without) + name, {without}, [=](auto x) { return unsqueeze(x[0], axes); },
      [=](const Arrays& x) { return with_shape(x[0], with); }, attributes);
  add_row(
      rows, "squeeze" + to_string(with) + name, {with}, [=](auto x) { return squeeze(x[0], axes); },
      [=](const Arrays& x) { return with_shape(x[0], without); }, attributes);
}

void add_reshapes(std::vector<Row>& rows) {
  struct Case {
    Shape from, asked, to;
  };
  const Case cases[] = {{{2, 3, 4}, {6, 4}, {6, 4}}, {{2, 3, 4}, {-1}, {24}}, {{2, 3, 4}, {4, -1, 2}, {4, 3, 2}},
                        {{}, {1, 1}, {1, 1}},        {{1}, {}, {}},           {{0, 3}, {-1, 5}, {0, 5}},
                        {{0}, {2, 0, 7}, {2, 0, 7}}, {{5}, {5}, {5}}};
  for (const Case& c : cases) add_reshape(rows, c.from, c.asked, c.to);
  add_flatten(rows, {}, 0, -1, {1});
  add_flatten(rows, {3}, 0, -1, {3});
  add_flatten(rows, {2, 3, 4}, 0, -1, {24});
  add_flatten(rows, {2, 3, 4}, 1, 2, {2, 12});
  add_flatten(rows, {2, 3, 4}, -3, 1, {6, 4});
  add_flatten(rows, {2, 3, 4}, 1, 1, {2, 3, 4});
  add_flatten(rows, {2, 0, 4}, 1, -1, {2, 0});
  add_unit_axes(rows, {}, {}, {});
  add_unit_axes(rows, {}, {0, -1}, {1, 1});
  add_unit_axes(rows, {2, 3}, {1, -1}, {2, 1, 3, 1});
  add_unit_axes(rows, {0, 3}, {2, 0}, {1, 0, 1, 3});
  add_unit_axes(rows, {2, 3, 4, 5}, {7, 5, 3, 1}, {2, 1, 3, 1, 4, 1, 5, 1});
  add_row(
      rows, "squeeze of all axes", {{1, 2, 1, 3, 1}}, [](auto x) { return squeeze(x[0]); },
      [](const Arrays& x) {
        return with_shape(x[0], {2, 3});
      });
  add_row(
      rows, "reshape of a transposed matrix", {{3, 4}},
      [](auto x) {
        return reshape(transpose(x[0]), {2, 6});
      },
      [](const Arrays& x) {
        return with_shape(make({4, 3}, [&](const Index& i) { return at(x[0], {i[1], i[0]}); }), {2, 6});
      });
}

void add_permute(std::vector<Row>& rows, const Shape& from, const Shape& axes) {
  Shape source = axes, result = axes;
  for (int i = 0; i < axes.rank(); ++i) {
    if (source[i] < 0) source[i] += axes.rank();
    result[i] = from[static_cast<int>(source[i])];
  }
  add_row(
      rows, "permute" + to_string(from) + to_string(axes), {from}, [=](auto x) { return permute(x[0], axes); },
      [=](const Arrays& x) {
        return make(result, [&](const Index& i) {
          Index place(i.size());
          for (int k = 0; k < axes.rank(); ++k)
            place[static_cast<std::size_t>(source[k])] = i[static_cast<std::size_t>(k)];
          return at(x[0], place);
        });
      },
      {{"axes", numbers(axes)}});
}

void add_transpose(std::vector<Row>& rows, const Shape& from, int first, int second) {
  int rank = from.rank(), a = first < 0 ? first + rank : first, b = second < 0 ? second + rank : second;
  Shape result = from;
  std::swap(result[a], result[b]);
  auto swapped = [=](Index i) {
    std::swap(i[static_cast<std::size_t>(a)], i[static_cast<std::size_t>(b)]);
    return i;
  };
  Attributes attributes{{"axes", {static_cast<double>(first), static_cast<double>(second)}}};
  std::string name = to_string(from) + " of " + std::to_string(first) + " and " + std::to_string(second);
  auto reference = [=](const Arrays& x) { return make(result, [&](const Index& i) { return at(x[0], swapped(i)); }); };
  add_row(
      rows, "transpose" + name, {from}, [=](auto x) { return transpose(x[0], first, second); }, reference, attributes);
  // The copy has a kernel of its own where the innermost axes disagree.
  add_row(
      rows, "transpose" + name + ", copied", {from}, [=](auto x) { return copy(transpose(x[0], first, second)); },
      reference, attributes);
}

void add_permutations(std::vector<Row>& rows) {
  for (const Shape& axes : {Shape{0, 1, 2}, Shape{2, 0, 1}, Shape{1, 2, 0}, Shape{0, 2, 1}, Shape{-1, -2, -3}})
    add_permute(rows, {2, 3, 4}, axes);
  add_permute(rows, {2, 1, 2, 1, 2, 1, 2, 1}, {7, 0, 6, 1, 5, 2, 4, 3});
  add_transpose(rows, {2, 3, 4}, -2, -1);
  add_transpose(rows, {2, 3, 4}, 0, -1);
  add_transpose(rows, {3, 4}, 0, 0);
  add_transpose(rows, {0, 4}, 0, 1);
  add_transpose(rows, {17, 35}, 0, 1);
  add_transpose(rows, {2, 70, 33}, 1, 2);
  add_transpose(rows, {19, 3, 20}, 0, 2);
  add_row(
      rows, "permute()", {{}}, [](auto x) { return permute(x[0], {}); }, [](const Arrays& x) { return x[0]; });
}

void add_expand(std::vector<Row>& rows, const Shape& from, const Shape& asked, const Shape& to) {
  add_row(
      rows, "expand" + to_string(from) + to_string(asked), {from}, [=](auto x) { return expand(x[0], asked); },
      [=](const Arrays& x) { return make(to, [&](const Index& i) { return at(x[0], i); }); },
      {{"shape", numbers(asked)}});
}

void add_expansions(std::vector<Row>& rows) {
  struct Case {
    Shape from, asked, to;
  };
  const Case cases[] = {{{3}, {2, 3}, {2, 3}},     {{3, 1}, {3, 4}, {3, 4}}, {{}, {2, 2}, {2, 2}}, {{1}, {0}, {0}},
                        {{2, 1}, {-1, 3}, {2, 3}}, {{0, 1}, {0, 3}, {0, 3}}, {{2}, {2}, {2}}};
  for (const Case& c : cases) add_expand(rows, c.from, c.asked, c.to);
}

void add_slice(std::vector<Row>& rows, const Shape& shape, int axis, std::int64_t start, std::int64_t stop,
               std::int64_t step, const std::vector<std::int64_t>& places, const std::string& python) {
  add_row(
      rows, "slice " + python + " along " + std::to_string(axis), {shape},
      [=](auto x) { return slice(x[0], axis, start, stop, step); },
      [=](const Arrays& x) { return taken(x[0], axis, places); },
      {{"axis", {static_cast<double>(axis)}},
       {"range", {static_cast<double>(start), static_cast<double>(stop), static_cast<double>(step)}}});
}

void add_select(std::vector<Row>& rows, const Shape& shape, int axis, std::int64_t index) {
  int place = axis < 0 ? axis + shape.rank() : axis;
  add_row(
      rows, "select " + std::to_string(index) + " along " + std::to_string(axis), {shape},
      [=](auto x) { return select(x[0], axis, index); },
      [=](const Arrays& x) {
        return dropped_axis(taken(x[0], place, {index < 0 ? index + x[0].shape[place] : index}), place);
      },
      {{"axis", {static_cast<double>(axis)}}, {"index", {static_cast<double>(index)}}});
}

void add_slices(std::vector<Row>& rows) {
  struct Case {
    std::string python;
    std::int64_t start, stop, step;
    std::vector<std::int64_t> places;  // of 7
  };
  const Case cases[] = {
      {"[2:5]", 2, 5, 1, {2, 3, 4}},
      {"[2:]", 2, most, 1, {2, 3, 4, 5, 6}},
      {"[-3:-1]", -3, -1, 1, {4, 5}},
      {"[::2]", 0, most, 2, {0, 2, 4, 6}},
      {"[1:6:3]", 1, 6, 3, {1, 4}},
      {"[5:2]", 5, 2, 1, {}},
      {"[-100:100]", -100, 100, 1, {0, 1, 2, 3, 4, 5, 6}},
      {"[::-1]", most, least, -1, {6, 5, 4, 3, 2, 1, 0}},
      {"[::-1] with a stop left out", -1, most, -1, {6, 5, 4, 3, 2, 1, 0}},
      {"[5:0:-2]", 5, 0, -2, {5, 3, 1}},
      {"[5:-100:-2]", 5, -100, -2, {5, 3, 1}},
      {"[-100::-1]", -100, least, -1, {}},
      {"[2:5:-1]", 2, 5, -1, {}},
      {"[3::100]", 3, most, most, {3}},
      {"[3::-100]", 3, least, least, {3}},
      {"[7:]", 7, most, 1, {}},
  };
  for (const Case& c : cases)
    for (int axis : {0, 1}) {
      Shape shape = axis == 0 ? Shape{7, 2} : Shape{2, 7};
      add_slice(rows, shape, axis, c.start, c.stop, c.step, c.places, c.python);
    }
  add_row(
      rows, "slice of nothing", {{0}}, [](auto x) { return slice(x[0], 0, 0, most, -1); },
      [](const Arrays& x) { return x[0]; });
  for (std::int64_t index : {0, 2, -1, -3})
    for (int axis : {0, 1, -1}) add_select(rows, {3, 3}, axis, index);
}

// All parts that are not empty, concatenated in reverse, so that no part keeps its position.
Tensor reversed(std::vector<Tensor> parts, int axis) {
  std::reverse(parts.begin(), parts.end());
  return concat(parts, axis);
}

void add_parts(std::vector<Row>& rows, const std::string& op, const Shape& shape,
               const std::vector<std::int64_t>& sizes, int axis,
               const std::function<std::vector<Tensor>(const Tensor&)>& run, const Attributes& attributes) {
  std::vector<std::int64_t> places;
  std::int64_t end = shape[axis];
  for (std::size_t i = sizes.size(); i-- > 0; end -= sizes[i])
    for (std::int64_t place = end - sizes[i]; place < end; ++place) places.push_back(place);
  add_row(
      rows, op + to_string(shape) + " along " + std::to_string(axis) + " into " + std::to_string(sizes.size()), {shape},
      [=](auto x) { return reversed(run(x[0]), axis); }, [=](const Arrays& x) { return taken(x[0], axis, places); },
      attributes);
}

void add_split(std::vector<Row>& rows, const Shape& shape, std::vector<std::int64_t> sizes, int axis) {
  Attributes attributes{{"sizes", {sizes.begin(), sizes.end()}}, {"axis", {static_cast<double>(axis)}}};
  add_parts(
      rows, "split", shape, sizes, axis, [=](auto x) { return split(x, sizes, axis); }, attributes);
}

void add_chunk(std::vector<Row>& rows, const Shape& shape, std::int64_t count, int axis,
               const std::vector<std::int64_t>& sizes) {
  Attributes attributes{{"count", {static_cast<double>(count)}}, {"axis", {static_cast<double>(axis)}}};
  add_parts(
      rows, "chunk", shape, sizes, axis,
      [=](auto x) {
        std::vector<Tensor> parts = chunk(x, count, axis);
        // The number of chunks is checked, too.
        return parts.size() == sizes.size() ? parts : std::vector<Tensor>{};
      },
      attributes);
}

void add_splits(std::vector<Row>& rows) {
  add_split(rows, {5, 2}, {2, 2, 1}, 0);
  add_split(rows, {2, 12}, {1, 2, 0, 1, 1, 1, 1, 1, 1, 3}, 1);
  add_chunk(rows, {5, 2}, 1, 0, {5});
  add_chunk(rows, {5, 2}, 3, 0, {2, 2, 1});
  add_chunk(rows, {2, 6}, 4, 1, {2, 2, 2});
  add_chunk(rows, {2, 3}, 5, 1, {1, 1, 1});
  add_chunk(rows, {0, 2}, 3, 0, {0, 0, 0});
  for (std::size_t part : {0u, 1u, 2u}) {
    const std::vector<std::int64_t> places[] = {{0, 1}, {2, 3}, {4}};
    add_row(
        rows, "split by 2, part " + std::to_string(part), {{5, 2}}, [=](auto x) { return split(x[0], 2).at(part); },
        [p = places[part]](const Arrays& x) { return taken(x[0], 0, p); });
    const std::vector<std::int64_t> ragged[] = {{0}, {}, {1, 2, 3}};
    add_row(
        rows, "split into 1 + 0 + 3, part " + std::to_string(part), {{2, 4}},
        [=](auto x) {
          return split(x[0], std::vector<std::int64_t>{1, 0, 3}, -1).at(part);
        },
        [p = ragged[part]](const Arrays& x) { return taken(x[0], 1, p); });
  }
  add_row(
      rows, "split, its parts put together again", {{5, 2}},
      [](auto x) {
        std::vector<Tensor> parts = split(x[0], 2);
        return concat({parts.at(2), parts.at(0), parts.at(1)});
      },
      [](const Arrays& x) {
        return taken(x[0], 0, {4, 0, 1, 2, 3});
      });
}

Array joined(const Arrays& x, int axis) {
  Shape shape = x[0].shape;
  shape[axis] = 0;
  for (const Array& part : x) shape[axis] += part.shape[axis];
  return make(shape, [&](Index i) {
    std::int64_t& place = i[static_cast<std::size_t>(axis)];
    std::size_t part = 0;
    for (; place >= x[part].shape[axis]; ++part) place -= x[part].shape[axis];
    // No part is broadcast here.
    return at(x[part], i);
  });
}

void add_concat(std::vector<Row>& rows, const std::vector<Shape>& shapes, int axis) {
  add_row(
      rows, "concat of " + std::to_string(shapes.size()) + " from " + to_string(shapes[0]), shapes,
      [=](auto x) { return concat(x, axis); },
      [=](const Arrays& x) { return joined(x, axis < 0 ? axis + x[0].shape.rank() : axis); },
      {{"axis", {static_cast<double>(axis)}}});
}

void add_stack(std::vector<Row>& rows, const std::vector<Shape>& shapes, int axis) {
  add_row(
      rows, "stack of " + to_string(shapes[0]) + " along " + std::to_string(axis), shapes,
      [=](auto x) { return stack(x, axis); },
      [=](const Arrays& x) {
        int place = axis < 0 ? axis + x[0].shape.rank() + 1 : axis;
        Shape shape;
        for (int i = 0; i <= x[0].shape.rank(); ++i)
          shape.push_back(i == place ? static_cast<std::int64_t>(x.size()) : x[0].shape[i < place ? i : i - 1]);
        return make(shape, [&](Index i) {
          auto which = static_cast<std::size_t>(i[static_cast<std::size_t>(place)]);
          i.erase(i.begin() + place);
          return at(x[which], i);
        });
      },
      {{"axis", {static_cast<double>(axis)}}});
}

void add_joins(std::vector<Row>& rows) {
  struct Case {
    std::vector<Shape> shapes;
    int axis;
  };
  const Case concats[] = {{{{2, 3}}, 0},          {{{2, 3}, {4, 3}}, 0},       {{{2, 3}, {2, 2}, {2, 2}}, 1},
                          {{{0, 3}, {2, 3}}, -2}, {{{2, 2, 3}, {2, 4, 3}}, 1}, {{{0}, {0}}, 0}};
  for (const Case& c : concats) add_concat(rows, c.shapes, c.axis);
  add_row(
      rows, "concat of ten", std::vector<Shape>(10, Shape{2}), [](auto x) { return concat(x); },
      [](const Arrays& x) { return joined(x, 0); });
  const Case stacks[] = {
      {{{2, 3}, {2, 3}}, 0}, {{{2, 3}, {2, 3}}, 1}, {{{2, 3}, {2, 3}}, -1}, {{{}, {}, {}}, 0}, {{{0, 2}, {0, 2}}, 1}};
  for (const Case& c : stacks) add_stack(rows, c.shapes, c.axis);
}

void add_rows(std::vector<Row>& rows) {
  add_reshapes(rows);
  add_permutations(rows);
  add_expansions(rows);
  add_slices(rows);
  add_splits(rows);
  add_joins(rows);
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int trial = 0; trial < 3; ++trial) {
    Shape x = random_shape(random, 3, 20);
    add_reshape(rows, x, {x[2], -1}, {x[2], x[0] * x[1]});
    add_flatten(rows, x, trial - 2, -1,
                trial == 0   ? Shape{x[0], x[1] * x[2]}
                : trial == 1 ? x
                             : Shape{x[0] * x[1] * x[2]});
    add_unit_axes(rows, x, {trial, trial + 2}, unsqueeze(zeros(x), {trial, trial + 2}).shape());
    add_permute(rows, x, {trial, (trial + 1) % 3, (trial + 2) % 3 - 3});
    add_transpose(rows, x, trial, -1);
    add_transpose(rows, random_shape(random, 2, 90), 0, 1);
    Shape wide{random_size(random), x[0], x[1], x[2]};
    add_expand(rows, x, wide, wide);
    int axis = trial;
    std::int64_t start = random_size(random, 0, x[axis] - 1), step = random_size(random, 1, 3);
    std::vector<std::int64_t> places;
    for (std::int64_t i = start; i < x[axis]; i += step) places.push_back(i);
    add_slice(rows, x, axis, start, x[axis], step, places, "at random");
    add_select(rows, x, axis, start);
    add_split(rows, x, {start, x[axis] - start}, axis);
    std::vector<std::int64_t> sizes;
    std::int64_t size = (x[axis] + 2) / 3;
    for (std::int64_t left = x[axis]; left > 0; left -= size) sizes.push_back(std::min(left, size));
    add_chunk(rows, x, 3, axis, sizes);
    Shape other = x;
    other[axis] = random_size(random);
    add_concat(rows, {x, other, x}, axis);
    add_stack(rows, {x, x}, axis);
    add_row(
        rows, "contiguous", {x}, [](auto t) { return contiguous(t[0]); }, [](const Arrays& t) { return t[0]; });
  }
}

}  // namespace

const RowFamily shape_rows{add_rows, add_random_rows};

}  // namespace reel_test
