#include <limits>
#include <numeric>

#include "ops/table.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       most = std::numeric_limits<std::int64_t>::max();

Array with_shape(Array x, const Shape& shape) {
  x.shape = shape;
  return x;
}

// The elements of x at certain places along an axis.
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

void add_row(std::vector<Row>& rows, const std::string& name, const std::vector<Shape>& shapes, Function run,
             std::function<Array(const Arrays&)> reference) {
  Row row{.name = name,
          .run = std::move(run),
          .inputs = {},
          .reference = std::move(reference),
          .ulps = 0,
          .dtypes = all_dtypes};
  for (const Shape& shape : shapes) row.inputs.push_back({shape});
  rows.push_back(row);
}

void add_reshapes(std::vector<Row>& rows) {
  struct Case {
    Shape from, asked, to;
  };
  const Case cases[] = {{{2, 3, 4}, {6, 4}, {6, 4}}, {{2, 3, 4}, {-1}, {24}}, {{2, 3, 4}, {4, -1, 2}, {4, 3, 2}},
                        {{}, {1, 1}, {1, 1}},        {{1}, {}, {}},           {{0, 3}, {-1, 5}, {0, 5}},
                        {{0}, {2, 0, 7}, {2, 0, 7}}, {{5}, {5}, {5}}};
  for (const Case& c : cases)
    add_row(
        rows, "reshape" + to_string(c.from) + to_string(c.asked), {c.from},
        [c](auto x) { return reshape(x[0], c.asked); }, [c](const Arrays& x) { return with_shape(x[0], c.to); });
  add_row(
      rows, "reshape of a transposed matrix", {{3, 4}},
      [](auto x) {
        return reshape(transpose(x[0]), {2, 6});
      },
      [](const Arrays& x) {
        return with_shape(make({4, 3}, [&](const Index& i) { return at(x[0], {i[1], i[0]}); }), {2, 6});
      });
  add_row(
      rows, "unsqueeze", {{2, 3}}, [](auto x) { return unsqueeze(unsqueeze(x[0], 1), -1); },
      [](const Arrays& x) {
        return with_shape(x[0], {2, 1, 3, 1});
      });
  add_row(
      rows, "squeeze", {{2, 1, 3, 1}}, [](auto x) { return squeeze(squeeze(x[0], 1), -1); },
      [](const Arrays& x) {
        return with_shape(x[0], {2, 3});
      });
}

void add_permutations(std::vector<Row>& rows) {
  for (const Shape& axes : {Shape{0, 1, 2}, Shape{2, 0, 1}, Shape{1, 2, 0}, Shape{0, 2, 1}, Shape{-1, -2, -3}})
    add_row(
        rows, "permute" + to_string(axes), {{2, 3, 4}}, [axes](auto x) { return permute(x[0], axes); },
        [axes](const Arrays& x) {
          Shape from = axes, shape = axes;
          for (int i = 0; i < 3; ++i) {
            if (from[i] < 0) from[i] += 3;
            shape[i] = x[0].shape[static_cast<int>(from[i])];
          }
          return make(shape, [&](const Index& i) {
            Index source(3);
            for (int k = 0; k < 3; ++k) source[static_cast<std::size_t>(from[k])] = i[static_cast<std::size_t>(k)];
            return at(x[0], source);
          });
        });
  add_row(
      rows, "permute()", {{}}, [](auto x) { return permute(x[0], {}); }, [](const Arrays& x) { return x[0]; });
  add_row(
      rows, "transpose", {{2, 3, 4}}, [](auto x) { return transpose(x[0]); },
      [](const Arrays& x) {
        return make({2, 4, 3}, [&](const Index& i) { return at(x[0], {i[0], i[2], i[1]}); });
      });
  add_row(
      rows, "transpose of the first and last axis", {{2, 3, 4}}, [](auto x) { return transpose(x[0], 0, -1); },
      [](const Arrays& x) {
        return make({4, 3, 2}, [&](const Index& i) { return at(x[0], {i[2], i[1], i[0]}); });
      });
}

void add_expansions(std::vector<Row>& rows) {
  struct Case {
    Shape from, asked, to;
  };
  const Case cases[] = {{{3}, {2, 3}, {2, 3}},     {{3, 1}, {3, 4}, {3, 4}}, {{}, {2, 2}, {2, 2}}, {{1}, {0}, {0}},
                        {{2, 1}, {-1, 3}, {2, 3}}, {{0, 1}, {0, 3}, {0, 3}}, {{2}, {2}, {2}}};
  for (const Case& c : cases)
    add_row(
        rows, "expand" + to_string(c.from) + to_string(c.asked), {c.from},
        [c](auto x) { return expand(x[0], c.asked); },
        [c](const Arrays& x) { return make(c.to, [&](const Index& i) { return at(x[0], i); }); });
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
      add_row(
          rows, "slice " + c.python + " along " + std::to_string(axis), {shape},
          [=](auto x) { return slice(x[0], axis, c.start, c.stop, c.step); },
          [=](const Arrays& x) { return taken(x[0], axis, c.places); });
    }
  add_row(
      rows, "slice of nothing", {{0}}, [](auto x) { return slice(x[0], 0, 0, most, -1); },
      [](const Arrays& x) { return x[0]; });
  for (std::int64_t index : {0, 2, -1, -3})
    for (int axis : {0, 1, -1}) {
      int place = axis < 0 ? 1 : axis;
      add_row(
          rows, "select " + std::to_string(index) + " along " + std::to_string(axis), {{3, 3}},
          [=](auto x) { return select(x[0], axis, index); },
          [=](const Arrays& x) { return dropped_axis(taken(x[0], place, {index < 0 ? index + 3 : index}), place); });
    }
}

void add_splits(std::vector<Row>& rows) {
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

void add_joins(std::vector<Row>& rows) {
  struct Case {
    std::vector<Shape> shapes;
    int axis;
  };
  const Case concats[] = {{{{2, 3}}, 0},          {{{2, 3}, {4, 3}}, 0},       {{{2, 3}, {2, 2}, {2, 2}}, 1},
                          {{{0, 3}, {2, 3}}, -2}, {{{2, 2, 3}, {2, 4, 3}}, 1}, {{{0}, {0}}, 0}};
  for (const Case& c : concats)
    add_row(
        rows, "concat of " + std::to_string(c.shapes.size()) + " from " + to_string(c.shapes[0]), c.shapes,
        [c](auto x) { return concat(x, c.axis); },
        [c](const Arrays& x) { return joined(x, c.axis < 0 ? c.axis + 2 : c.axis); });
  add_row(
      rows, "concat of ten", std::vector<Shape>(10, Shape{2}), [](auto x) { return concat(x); },
      [](const Arrays& x) { return joined(x, 0); });
  const Case stacks[] = {
      {{{2, 3}, {2, 3}}, 0}, {{{2, 3}, {2, 3}}, 1}, {{{2, 3}, {2, 3}}, -1}, {{{}, {}, {}}, 0}, {{{0, 2}, {0, 2}}, 1}};
  for (const Case& c : stacks)
    add_row(
        rows, "stack of " + to_string(c.shapes[0]) + " along " + std::to_string(c.axis), c.shapes,
        [c](auto x) { return stack(x, c.axis); },
        [c](const Arrays& x) {
          int axis = c.axis < 0 ? c.axis + x[0].shape.rank() + 1 : c.axis;
          Shape shape;
          for (int i = 0; i <= x[0].shape.rank(); ++i)
            shape.push_back(i == axis ? static_cast<std::int64_t>(x.size()) : x[0].shape[i < axis ? i : i - 1]);
          return make(shape, [&](Index i) {
            auto which = static_cast<std::size_t>(i[static_cast<std::size_t>(axis)]);
            i.erase(i.begin() + axis);
            return at(x[which], i);
          });
        });
}

}  // namespace

void add_shape_rows(std::vector<Row>& rows) {
  add_reshapes(rows);
  add_permutations(rows);
  add_expansions(rows);
  add_slices(rows);
  add_splits(rows);
  add_joins(rows);
}

void add_random_shape_rows(std::vector<Row>&, Random&) {}

}  // namespace reel_test
