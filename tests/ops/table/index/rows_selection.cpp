#include <algorithm>
#include <cmath>
#include <map>

#include "ops/table/table.h"

// Rows of x(…) with masks and tensors of indices, and of the ops that write at indices along an axis.

namespace reel_test {

using namespace reel;

namespace {

std::int64_t place_of(const Array& index, const Index& i, std::int64_t size) {
  auto place = static_cast<std::int64_t>(at(index, i));
  return place < 0 ? place + size : place;
}

Input indices_of(const Shape& shape, const std::vector<std::int64_t>& indices) {
  return {shape, Fill::indices, indices};
}

Input mask_of(const Shape& shape) { return {shape, Fill::flags}; }

// Reads or writes x(…): the index in x of each element of the result, in row-major order, from the other inputs.
struct Selected {
  std::string name;
  Shape x;
  std::vector<Input> indices;
  std::function<Tensor(const Tensor& x, std::span<const Tensor> indices)> read;
  std::function<void(Tensor& x, std::span<const Tensor> indices, const Tensor& y)> write;
  std::function<Shape(const Arrays& indices)> shape;
  std::function<Index(const Arrays& indices, const Index& i)> place;

  std::vector<Input> inputs(const Shape* y) const {
    std::vector<Input> all{{x}};
    if (y) all.push_back({*y});
    all.insert(all.end(), indices.begin(), indices.end());
    return all;
  }
};

Row read_row(const Selected& c) {
  return {.name = "index " + c.name,
          .run = [c](auto x) { return c.read(x[0], x.subspan(1)); },
          .inputs = c.inputs(nullptr),
          .reference =
              [c](const Arrays& x) {
                Arrays indices(x.begin() + 1, x.end());
                return make(c.shape(indices), [&](const Index& i) { return at(x[0], c.place(indices, i)); });
              },
          .ulps = 0,
          .dtypes = all_dtypes};
}

// y broadcasts to what is selected.
Row write_row(const Selected& c, const Shape& y) {
  return {.name = "index_put by " + c.name + " = " + to_string(y),
          .run =
              [c](auto x) {
                Tensor written = copy(x[0]);
                c.write(written, x.subspan(2), x[1]);
                return written;
              },
          .inputs = c.inputs(&y),
          .reference =
              [c](const Arrays& x) {
                Arrays indices(x.begin() + 2, x.end());
                std::map<Index, double> put;
                for_each_index(c.shape(indices), [&](const Index& i) { put[c.place(indices, i)] = at(x[1], i); });
                return make(c.x, [&](const Index& i) { return put.contains(i) ? put[i] : at(x[0], i); });
              },
          .ulps = 0,
          .dtypes = all_dtypes};
}

// The positions of a mask that are true.
std::vector<Index> chosen(const Array& mask) {
  std::vector<Index> places;
  for_each_index(mask.shape, [&](const Index& i) {
    if (at(mask, i) != 0) places.push_back(i);
  });
  return places;
}

std::int64_t count_of(const Array& mask) { return static_cast<std::int64_t>(chosen(mask).size()); }

std::vector<Selected> selections() {
  using Tensors = std::span<const Tensor>;
  auto same = [](const Shape& shape) { return [shape](const Arrays&) { return shape; }; };
  return {
      {"rows",
       {5, 3},
       {indices_of({2, 2}, {4, -5, 0, 1})},
       [](auto& x, Tensors i) -> Tensor { return x(i[0]); },
       [](Tensor& x, Tensors i, auto& y) { x(i[0]) = y; },
       same({2, 2, 3}),
       [](const Arrays& k, const Index& i) {
         return Index{place_of(k[0], {i[0], i[1]}, 5), i[2]};
       }},
      {"elements of two axes",
       {4, 3},
       {indices_of({3, 1}, {0, -1, 1}), indices_of({2}, {2, 0})},
       [](auto& x, Tensors i) -> Tensor { return x(i[0], i[1]); },
       [](Tensor& x, Tensors i, auto& y) { x(i[0], i[1]) = y; },
       same({3, 2}),
       [](const Arrays& k, const Index& i) {
         return Index{place_of(k[0], i, 4), place_of(k[1], i, 3)};
       }},
      {"two axes behind a slice",
       {2, 4, 3},
       {indices_of({4}, {0, -1, 1, 2}), indices_of({4}, {2, 0, 0, 1})},
       [](auto& x, Tensors i) -> Tensor { return x(slice(), i[0], i[1]); },
       [](Tensor& x, Tensors i, auto& y) { x(slice(), i[0], i[1]) = y; },
       same({2, 4}),
       [](const Arrays& k, const Index& i) {
         return Index{i[0], place_of(k[0], {i[1]}, 4), place_of(k[1], {i[1]}, 3)};
       }},
      {"two axes around a slice",
       {3, 2, 4},
       {indices_of({3}, {2, 0, 1}), indices_of({1}, {-2})},
       [](auto& x, Tensors i) -> Tensor { return x(i[0], slice(), i[1]); },
       [](Tensor& x, Tensors i, auto& y) { x(i[0], slice(), i[1]) = y; },
       same({3, 2}),
       [](const Arrays& k, const Index& i) {
         return Index{place_of(k[0], {i[0]}, 3), i[1], place_of(k[1], {0}, 4)};
       }},
      {"an axis beside an integer and a slice",
       {2, 5, 3},
       {indices_of({2}, {2, 0})},
       [](auto& x, Tensors i) -> Tensor { return x(-1, slice(1, -1), newaxis, i[0]); },
       [](Tensor& x, Tensors i, auto& y) { x(-1, slice(1, -1), newaxis, i[0]) = y; },
       same({3, 1, 2}),
       [](const Arrays& k, const Index& i) {
         return Index{1, 1 + i[0], place_of(k[0], {i[2]}, 3)};
       }},
      {"no rows",
       {3, 2},
       {indices_of({0}, {})},
       [](auto& x, Tensors i) -> Tensor { return x(i[0]); },
       [](Tensor& x, Tensors i, auto& y) { x(i[0]) = y; },
       same({0, 2}),
       [](const Arrays&, const Index& i) { return i; }},
      {"a mask of all axes",
       {3, 4},
       {mask_of({3, 4})},
       [](auto& x, Tensors i) -> Tensor { return x(i[0]); },
       [](Tensor& x, Tensors i, auto& y) { x(i[0]) = y; },
       [](const Arrays& k) { return Shape{count_of(k[0])}; },
       [](const Arrays& k, const Index& i) { return chosen(k[0])[static_cast<std::size_t>(i[0])]; }},
      {"a mask of rows",
       {6, 2},
       {mask_of({6})},
       [](auto& x, Tensors i) -> Tensor { return x(i[0]); },
       [](Tensor& x, Tensors i, auto& y) { x(i[0]) = y; },
       [](const Arrays& k) {
         return Shape{count_of(k[0]), 2};
       },
       [](const Arrays& k, const Index& i) {
         return Index{chosen(k[0])[static_cast<std::size_t>(i[0])][0], i[1]};
       }},
      {"a mask of the last axes",
       {2, 3, 2},
       {mask_of({3, 2})},
       [](auto& x, Tensors i) -> Tensor { return x(ellipsis, i[0]); },
       [](Tensor& x, Tensors i, auto& y) { x(ellipsis, i[0]) = y; },
       [](const Arrays& k) {
         return Shape{2, count_of(k[0])};
       },
       [](const Arrays& k, const Index& i) {
         const Index place = chosen(k[0])[static_cast<std::size_t>(i[1])];
         return Index{i[0], place[0], place[1]};
       }},
      {"a mask and an index",
       {5, 2, 3},
       {mask_of({5}), indices_of({1}, {-1})},
       [](auto& x, Tensors i) -> Tensor { return x(i[0], slice(), i[1]); },
       [](Tensor& x, Tensors i, auto& y) { x(i[0], slice(), i[1]) = y; },
       [](const Arrays& k) {
         return Shape{count_of(k[0]), 2};
       },
       [](const Arrays& k, const Index& i) {
         return Index{chosen(k[0])[static_cast<std::size_t>(i[0])][0], i[1], place_of(k[1], {0}, 3)};
       }},
  };
}

void add_selections(std::vector<Row>& rows) {
  for (const Selected& c : selections()) {
    rows.push_back(read_row(c));
    rows.push_back(write_row(c, {}));
    bool is_masked =
        std::any_of(c.indices.begin(), c.indices.end(), [](const Input& input) { return input.fill == Fill::flags; });
    if (!is_masked) rows.push_back(write_row(c, c.shape({})));
    if (c.name == "a mask of rows") rows.push_back(write_row(c, {2}));
    if (c.name == "a mask of the last axes") rows.push_back(write_row(c, {2, 1}));
  }
  rows.push_back(
      {.name = "add_ to what a mask selects",
       .run =
           [](auto x) {
             Tensor written = copy(x[0]);
             written(x[2]) += x[1](x[2]);
             return written;
           },
       .inputs = {{{3, 4}}, {{3, 4}}, mask_of({3, 4})},
       .reference =
           [](const Arrays& x) {
             return make({3, 4}, [&](const Index& i) { return at(x[0], i) + (at(x[2], i) != 0 ? at(x[1], i) : 0); });
           },
       .dtypes = all_numbers});
}

// An index of x's rank along an axis.
struct Reducing {
  Shape x;
  int axis;
  Shape index;
  std::vector<std::int64_t> indices;
  ScatterReduction reduction = ScatterReduction::sum;
  bool include_self = true;

  Attributes attributes() const {
    return {{"axis", {static_cast<double>(axis)}},
            {"reduction", {static_cast<double>(reduction)}},
            {"include_self", {include_self ? 1.0 : 0.0}}};
  }
  std::size_t along() const { return static_cast<std::size_t>(axis < 0 ? axis + x.rank() : axis); }
};

double reduced(ScatterReduction reduction, const std::vector<double>& terms, bool is_integer) {
  double sum = 0, product = 1;
  for (double term : terms) {
    sum += term;
    product *= term;
  }
  switch (reduction) {
    case ScatterReduction::prod: return product;
    case ScatterReduction::mean: {
      double mean = sum / static_cast<double>(terms.size());
      return is_integer ? std::floor(mean) : mean;
    }
    case ScatterReduction::amax: return *std::max_element(terms.begin(), terms.end());
    case ScatterReduction::amin: return *std::min_element(terms.begin(), terms.end());
    default: return sum;
  }
}

bool are_integers(const Arrays& arrays) {
  for (const Array& array : arrays)
    for (double value : array.values)
      if (value != std::floor(value)) return false;
  return true;
}

Row scatter_reduce_row(const Reducing& c) {
  bool extreme = c.reduction == ScatterReduction::amax || c.reduction == ScatterReduction::amin;
  const char* names[] = {"sum", "prod", "mean", "amax", "amin"};
  return {.name = std::string("scatter_reduce ") + names[static_cast<int>(c.reduction)] + to_string(c.x) +
                  to_string(c.index) + (c.include_self ? " with x" : ""),
          .run =
              [c](auto x) {
                return scatter_reduce(x[0], c.axis, x[2], x[1], c.reduction, {.include_self = c.include_self});
              },
          .inputs = {{c.x}, {c.index}, indices_of(c.index, c.indices)},
          .reference =
              [c](const Arrays& x) {
                std::map<Index, std::vector<double>> terms;
                if (c.include_self) for_each_index(c.x, [&](const Index& i) { terms[i].push_back(at(x[0], i)); });
                for_each_index(c.index, [&](const Index& i) {
                  Index place = i;
                  place[c.along()] = place_of(x[2], i, c.x[static_cast<int>(c.along())]);
                  terms[place].push_back(at(x[1], i));
                });
                bool integers = are_integers({x[0], x[1]});
                Array y = make(c.x, [&](const Index& i) {
                  return terms.contains(i) ? reduced(c.reduction, terms[i], integers) : at(x[0], i);
                });
                for (double value : y.values) y.scales.push_back(std::max(8.0, std::abs(value)));
                return y;
              },
          .ulps = extreme ? 0.0 : 8.0,
          .dtypes = c.reduction == ScatterReduction::mean ? std::vector<DType>{f32, f64, bf16, f16, i64} : all_numbers,
          .half_roundings = extreme ? 1 : 40,
          .attributes = c.attributes()};
}

void add_scatter_reductions(std::vector<Row>& rows) {
  for (ScatterReduction reduction : {ScatterReduction::sum, ScatterReduction::prod, ScatterReduction::mean,
                                     ScatterReduction::amax, ScatterReduction::amin})
    for (bool self : {true, false}) {
      const Reducing cases[] = {
          {{4}, 0, {5}, {2, 2, -1, 0, 2}, reduction, self},
          {{3, 4}, 1, {2, 5}, {0, 3, -4, 1, 1, 1, 0, 0, 0, 3}, reduction, self},
          {{3, 2}, -2, {4, 2}, {0, 1, 2, 1, 0, -1, 2, 2}, reduction, self},
          {{2, 3, 2}, 1, {1, 2, 2}, {0, 2, 0, -3}, reduction, self},
          {{2, 3}, 1, {2, 0}, {}, reduction, self},
      };
      for (const Reducing& c : cases) rows.push_back(scatter_reduce_row(c));
    }
}

struct Slices {
  Shape x;
  int axis;
  std::vector<std::int64_t> indices;

  Shape source() const {
    Shape shape = x;
    shape[axis] = static_cast<std::int64_t>(indices.size());
    return shape;
  }
  Input index() const { return indices_of({static_cast<std::int64_t>(indices.size())}, indices); }
  // The last of the indices that names a slice of x; −1 if none does.
  std::int64_t last(const Array& index, std::int64_t slice) const {
    std::int64_t found = -1;
    for (std::int64_t j = 0; j < index.shape[0]; ++j)
      if (place_of(index, {j}, x[axis]) == slice) found = j;
    return found;
  }
  std::size_t along() const { return static_cast<std::size_t>(axis < 0 ? axis + x.rank() : axis); }
  Attributes attributes() const { return {{"axis", {static_cast<double>(axis)}}}; }
};

Row index_copy_row(const Slices& c) {
  return {.name = "index_copy" + to_string(c.x) + " axis " + std::to_string(c.axis),
          .run = [c](auto x) { return index_copy(x[0], c.axis, x[2], x[1]); },
          .inputs = {{c.x}, {c.source()}, c.index()},
          .reference =
              [c](const Arrays& x) {
                return make(c.x, [&](Index i) {
                  std::int64_t from = c.last(x[2], i[c.along()]);
                  if (from < 0) return at(x[0], i);
                  i[c.along()] = from;
                  return at(x[1], i);
                });
              },
          .ulps = 0,
          .dtypes = all_dtypes,
          .attributes = c.attributes()};
}

Row index_fill_row(const Slices& c) {
  return {.name = "index_fill" + to_string(c.x) + " axis " + std::to_string(c.axis),
          .run = [c](auto x) { return index_fill(x[0], c.axis, x[2], x[1]); },
          .inputs = {{c.x}, {{}}, c.index()},
          .reference =
              [c](const Arrays& x) {
                return make(
                    c.x, [&](const Index& i) { return c.last(x[2], i[c.along()]) < 0 ? at(x[0], i) : x[1].values[0]; });
              },
          .ulps = 0,
          .dtypes = all_dtypes,
          .attributes = c.attributes()};
}

Row masked_scatter_row(const Shape& x, const Shape& mask, const Shape& source) {
  return {.name = "masked_scatter" + to_string(x) + to_string(mask),
          .run = [](auto in) { return masked_scatter(in[0], in[2], in[1]); },
          .inputs = {{x}, {source}, mask_of(mask)},
          .reference =
              [x](const Arrays& in) {
                std::size_t next = 0;
                return make(x, [&](const Index& i) { return at(in[2], i) != 0 ? in[1].values[next++] : at(in[0], i); });
              },
          .ulps = 0,
          .dtypes = all_dtypes};
}

void add_rows(std::vector<Row>& rows) {
  add_selections(rows);
  add_scatter_reductions(rows);
  for (const Slices& c : {Slices{{4}, 0, {2, -4, 2}}, Slices{{3, 4}, 1, {3, 0}}, Slices{{2, 3, 2}, -2, {-1}},
                          Slices{{3, 2}, 0, {}}, Slices{{0, 2}, 1, {1}}}) {
    rows.push_back(index_copy_row(c));
    rows.push_back(index_fill_row(c));
  }
  rows.push_back(masked_scatter_row({3, 4}, {3, 4}, {3, 4}));
  rows.push_back(masked_scatter_row({3, 4}, {4}, {13}));
  rows.push_back(masked_scatter_row({2, 3, 2}, {3, 1}, {4, 3}));
  rows.push_back(masked_scatter_row({0, 2}, {2}, {0}));
  rows.push_back(masked_scatter_row({}, {}, {1}));
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int repeat = 0; repeat < 3; ++repeat) {
    Shape x = random_shape(random, 3, 12);
    int axis = static_cast<int>(random_size(random, 0, 2));
    Slices slices{x, axis, {}};
    for (std::int64_t i = 0; i < x[axis]; i += 2) slices.indices.push_back(i);
    rows.push_back(index_copy_row(slices));
    rows.push_back(index_fill_row(slices));
    rows.push_back(masked_scatter_row(x, {x[1], x[2]}, x));
    Reducing reducing{x, axis, x, {}, static_cast<ScatterReduction>(repeat + 2), repeat != 1};
    reducing.index[axis] = 9;
    for (std::int64_t i = reducing.index.numel(); i > 0; --i)
      reducing.indices.push_back(random_size(random, 0, x[axis] - 1));
    rows.push_back(scatter_reduce_row(reducing));
    reducing.reduction = repeat == 1 ? ScatterReduction::prod : ScatterReduction::sum;
    rows.push_back(scatter_reduce_row(reducing));
  }
}

}  // namespace

const RowFamily selection_rows{add_rows, add_random_rows};

}  // namespace reel_test
