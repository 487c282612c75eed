#include <algorithm>
#include <limits>

#include "ops/table/table.h"

// Rows of the ops that rearrange the elements of one tensor.

namespace reel_test {

using namespace reel;

namespace {

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       most = std::numeric_limits<std::int64_t>::max();

Attributes::Numbers numbers(const Shape& shape) { return {shape.begin(), shape.end()}; }

std::int64_t modulo(std::int64_t i, std::int64_t size) { return ((i % size) + size) % size; }

std::size_t place_of(std::int64_t axis, const Array& x) {
  return static_cast<std::size_t>(modulo(axis, x.shape.rank()));
}

// An element of y comes from the place of x that `source` makes of its own; from nowhere, and is `outside`, if that
// returns false.
using Source = std::function<bool(Index& i, const Array& x)>;

Array rearranged(const Array& x, const Shape& shape, const Source& source, double outside = 0) {
  return make(shape, [&](Index i) { return source(i, x) ? at(x, i) : outside; });
}

void add_row(std::vector<Row>& rows, const std::string& name, const Shape& from, Function run, const Shape& to,
             const Source& source, const Attributes& attributes, double outside = 0) {
  rows.push_back({.name = name,
                  .run = std::move(run),
                  .inputs = {{from}},
                  .reference = [=](const Arrays& x) { return rearranged(x[0], to, source, outside); },
                  .ulps = 0,
                  .dtypes = all_dtypes,
                  .attributes = attributes});
}

void add_flip(std::vector<Row>& rows, const Shape& shape, const Shape& axes) {
  add_row(
      rows, "flip" + to_string(shape) + " along " + to_string(axes), shape, [=](auto x) { return flip(x[0], axes); },
      shape,
      [=](Index& i, const Array& x) {
        for (std::int64_t axis : axes) {
          std::size_t place = place_of(axis, x);
          i[place] = x.shape[static_cast<int>(place)] - 1 - i[place];
        }
        return true;
      },
      {{"axes", numbers(axes)}});
}

void add_roll(std::vector<Row>& rows, const Shape& shape, const Shape& shifts, const Shape& axes) {
  add_row(
      rows, "roll" + to_string(shape) + " by " + to_string(shifts) + " along " + to_string(axes), shape,
      [=](auto x) { return roll(x[0], shifts, axes); }, shape,
      [=](Index& i, const Array& x) {
        for (int k = 0; k < axes.rank(); ++k) {
          std::size_t place = place_of(axes[k], x);
          std::int64_t size = x.shape[static_cast<int>(place)];
          i[place] = modulo(i[place] - modulo(shifts[k], size), size);
        }
        return true;
      },
      {{"shifts", numbers(shifts)}, {"axes", numbers(axes)}});
}

void add_tile(std::vector<Row>& rows, const Shape& shape, const Shape& repetitions) {
  int rank = std::max(shape.rank(), repetitions.rank());
  Shape result;
  for (int i = rank; i > 0; --i)
    result.push_back((i <= shape.rank() ? shape[-i] : 1) * (i <= repetitions.rank() ? repetitions[-i] : 1));
  add_row(
      rows, "tile" + to_string(shape) + " by " + to_string(repetitions), shape,
      [=](auto x) { return tile(x[0], repetitions); }, result,
      [=](Index& i, const Array& x) {
        i.erase(i.begin(), i.begin() + (rank - x.shape.rank()));
        for (int k = 0; k < x.shape.rank(); ++k) i[static_cast<std::size_t>(k)] %= x.shape[k];
        return true;
      },
      {{"repetitions", numbers(repetitions)}});
}

void add_repeat(std::vector<Row>& rows, const Shape& shape, const std::vector<std::int64_t>& counts, int axis) {
  std::vector<std::int64_t> places;
  int own = static_cast<int>(modulo(axis, shape.rank()));
  for (std::int64_t i = 0; i < shape[own]; ++i)
    places.insert(places.end(), static_cast<std::size_t>(counts[counts.size() == 1 ? 0 : static_cast<std::size_t>(i)]),
                  i);
  Shape result = shape;
  result[own] = static_cast<std::int64_t>(places.size());
  add_row(
      rows, "repeat" + to_string(shape) + " along " + std::to_string(axis) + " from " + std::to_string(counts[0]),
      shape, [=](auto x) { return counts.size() == 1 ? repeat(x[0], counts[0], axis) : repeat(x[0], counts, axis); },
      result,
      [=](Index& i, const Array&) {
        std::int64_t& place = i[static_cast<std::size_t>(own)];
        place = places[static_cast<std::size_t>(place)];
        return true;
      },
      {{"counts", {counts.begin(), counts.end()}}, {"axis", {static_cast<double>(axis)}}});
}

void add_triangles(std::vector<Row>& rows, const Shape& shape, std::int64_t diagonal) {
  std::string name = to_string(shape) + " at " + std::to_string(diagonal);
  Attributes attributes{{"diagonal", {static_cast<double>(diagonal)}}};
  auto away = [](const Index& i) { return i.back() - i[i.size() - 2]; };
  add_row(
      rows, "tril" + name, shape, [=](auto x) { return tril(x[0], diagonal); }, shape,
      [=](const Index& i, const Array&) { return away(i) <= diagonal; }, attributes);
  add_row(
      rows, "triu" + name, shape, [=](auto x) { return triu(x[0], diagonal); }, shape,
      [=](const Index& i, const Array&) { return away(i) >= diagonal; }, attributes);
}

void add_diag(std::vector<Row>& rows, const Shape& shape, std::int64_t diagonal) {
  std::int64_t down = diagonal < 0 ? -diagonal : 0, right = diagonal > 0 ? diagonal : 0;
  Shape result;
  if (shape.rank() == 1)
    result = {shape[0] + down + right, shape[0] + down + right};
  else
    result = {std::max<std::int64_t>(0, std::min(shape[0] - down, shape[1] - right))};
  add_row(
      rows, "diag" + to_string(shape) + " at " + std::to_string(diagonal), shape,
      [=](auto x) { return diag(x[0], diagonal); }, result,
      [=](Index& i, const Array&) {
        if (shape.rank() == 2) {
          i = {i[0] + down, i[0] + right};
          return true;
        }
        bool on = i[1] - i[0] == diagonal;
        i = {i[0] - down};
        return on;
      },
      {{"diagonal", {static_cast<double>(diagonal)}}});
}

void add_pad(std::vector<Row>& rows, const Shape& shape, const std::vector<PadWidth>& widths, PadMode mode,
             double value = 0) {
  const char* const names[] = {"constant", "reflect", "edge", "circular"};
  Attributes::Numbers flat;
  Shape result = shape;
  auto width_of = [=](int axis) { return widths[widths.size() == 1 ? 0 : static_cast<std::size_t>(axis)]; };
  for (int axis = 0; axis < shape.rank(); ++axis) {
    result[axis] += width_of(axis).before + width_of(axis).after;
    flat.push_back(static_cast<double>(width_of(axis).before));
    flat.push_back(static_cast<double>(width_of(axis).after));
  }
  add_row(
      rows, std::string("pad with ") + names[static_cast<int>(mode)] + to_string(shape) + to_string(result), shape,
      [=](auto x) { return pad(x[0], widths, {.mode = mode, .value = value}); }, result,
      [=](Index& i, const Array& x) {
        bool inside = true;
        for (int axis = 0; axis < x.shape.rank(); ++axis) {
          std::int64_t& place = i[static_cast<std::size_t>(axis)];
          std::int64_t size = x.shape[axis];
          place -= width_of(axis).before;
          inside &= place >= 0 && place < size;
          if (mode == PadMode::reflect && size > 1) {
            place = modulo(place, 2 * (size - 1));
            place = std::min(place, 2 * (size - 1) - place);
          }
          if (mode == PadMode::circular && size > 0) place = modulo(place, size);
          place = std::clamp<std::int64_t>(place, 0, std::max<std::int64_t>(size - 1, 0));
        }
        return inside || mode != PadMode::constant;
      },
      {{"mode", {static_cast<double>(mode)}}, {"widths", flat}, {"value", {value}}}, value);
}

void add_rows(std::vector<Row>& rows) {
  add_flip(rows, {}, {});
  add_flip(rows, {5}, {0});
  add_flip(rows, {0, 2}, {0});
  add_flip(rows, {2, 3, 35}, {-1});
  add_flip(rows, {2, 3, 4}, {0, -1});
  add_flip(rows, {2, 3, 4}, {1, 0, 2});
  add_row(
      rows, "flip of all axes", {2, 3}, [](auto x) { return flip(x[0]); }, {2, 3},
      [](Index& i, const Array&) {
        i = {1 - i[0], 2 - i[1]};
        return true;
      },
      {});
  add_roll(rows, {}, {}, {});
  add_roll(rows, {0}, {3}, {0});
  for (std::int64_t shift : {std::int64_t{0}, std::int64_t{1}, std::int64_t{-2}, std::int64_t{12}, most, least})
    add_roll(rows, {5, 3}, {shift}, {0});
  add_roll(rows, {2, 3, 4}, {1, -1}, {0, -1});
  add_roll(rows, {2, 4}, {1, 2}, {1, 1});
  for (const Shape& repetitions : {Shape{}, Shape{1}, Shape{3}, Shape{0}, Shape{2, 1}, Shape{2, 2, 3}}) {
    add_tile(rows, {}, repetitions);
    add_tile(rows, {1}, repetitions);
    add_tile(rows, {2, 3}, repetitions);
    add_tile(rows, {0, 2}, repetitions);
  }
  add_tile(rows, {1, 2, 1, 1, 1, 1, 1, 2}, {2, 1, 1, 2, 1, 1, 1, 2});
  for (std::int64_t count : {0, 1, 3}) {
    add_repeat(rows, {1}, {count}, 0);
    add_repeat(rows, {2, 3}, {count}, 0);
    add_repeat(rows, {2, 3}, {count}, -1);
    add_repeat(rows, {2, 0, 3}, {count}, 1);
  }
  add_repeat(rows, {2, 3}, {2, 3}, 0);
  add_repeat(rows, {2, 3}, {2, 0, 1}, 1);
  add_repeat(rows, {2, 3, 2}, {0, 0, 0}, -2);
  for (std::int64_t diagonal : {std::int64_t{0}, std::int64_t{1}, std::int64_t{-2}, std::int64_t{40}, most, least}) {
    add_triangles(rows, {3, 4}, diagonal);
    add_triangles(rows, {2, 0, 3}, diagonal);
    add_triangles(rows, {2, 3, 2}, diagonal);
  }
  add_triangles(rows, {1, 1}, 0);
  for (std::int64_t diagonal : {0, 1, -2, 5}) {
    add_diag(rows, {0}, diagonal);
    add_diag(rows, {3}, diagonal);
    add_diag(rows, {3, 4}, diagonal);
    add_diag(rows, {4, 2}, diagonal);
    add_diag(rows, {0, 2}, diagonal);
  }
  for (PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::edge, PadMode::circular}) {
    add_pad(rows, {}, {}, mode, 3);
    add_pad(rows, {}, {{1, 2}}, mode, 3);
    add_pad(rows, {4}, {{0, 0}}, mode, 3);
    add_pad(rows, {4}, {{2, 3}}, mode, 1);
    add_pad(rows, {1}, {{2, 1}}, mode, 1);
    add_pad(rows, {2, 3}, {{1, 0}, {0, 2}}, mode);
    add_pad(rows, {2, 3}, {{1, 1}}, mode, 1);
    add_pad(rows, {3}, {{7, 12}}, mode, 1);
    add_pad(rows, {2, 2}, {{5, 4}, {0, 3}}, mode, 1);
  }
  add_pad(rows, {0, 2}, {{2, 1}, {1, 0}}, PadMode::constant, 1);
  add_pad(rows, {0, 2}, {{0, 0}, {1, 0}}, PadMode::edge);
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int trial = 0; trial < 3; ++trial) {
    Shape shape = random_shape(random, 3, 12), matrix = random_shape(random, 2);
    std::int64_t offset = random_size(random, -9, 9);
    add_flip(rows, shape, trial == 0 ? Shape{1} : Shape{0, -1});
    add_roll(rows, shape, {offset, -2 * offset}, {trial, trial - 2});
    add_tile(rows, shape, {random_size(random, 1, 3), random_size(random, 1, 3), random_size(random, 1, 3), 2});
    add_repeat(rows, shape, {random_size(random, 1, 4)}, trial);
    std::vector<std::int64_t> counts;
    for (std::int64_t i = 0; i < matrix[trial % 2]; ++i) counts.push_back(random_size(random, 0, 3));
    add_repeat(rows, matrix, counts, trial % 2);
    add_triangles(rows, shape, offset);
    add_triangles(rows, matrix, offset);
    // Beyond the matrix libtorch 1.13 fails.
    add_diag(rows, matrix, random_size(random, 1 - matrix[0], matrix[1] - 1));
    add_diag(rows, {matrix[0]}, offset);
    Shape wide{random_size(random, 1, 4), random_size(random, 1, 4), random_size(random, 6, 20),
               random_size(random, 6, 20)};
    std::vector<PadWidth> inner{{0, 0},
                                {0, 0},
                                {random_size(random, 0, 5), random_size(random, 0, 5)},
                                {random_size(random, 0, 5), random_size(random, 0, 5)}};
    add_pad(rows, matrix, {{random_size(random, 0, 9), 3}, {1, random_size(random, 0, 9)}}, PadMode::constant, 1.5);
    add_pad(rows, wide, inner, PadMode::reflect);
    add_pad(rows, wide, inner, PadMode::edge);
    add_pad(rows, wide, inner, PadMode::circular);
  }
}

}  // namespace

const RowFamily arrange_rows{add_rows, add_random_rows};

}  // namespace reel_test
