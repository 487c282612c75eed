#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "catch.h"
#include "ops/table/table.h"

// Softmax, its logarithm, their gradients and cross-entropy along any axis of any layout.

namespace reel_test {

using namespace reel;

namespace {

constexpr std::uint64_t seed = 20261128;
constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

// Views of one tensor's values with other strides.
std::vector<Tensor> layouts(const Tensor& x) {
  Shape reversed;
  for (int axis = x.rank(); axis-- > 0;) reversed.push_back(axis);
  std::vector<Tensor> views{permute(copy(permute(x, reversed)), reversed), flip(copy(flip(x)))};
  for (int axis = 0; axis < x.rank(); ++axis) {
    views.push_back(transpose(copy(transpose(x, axis, -1)), axis, -1));
    // Every second element of twice as many.
    Tensor twice = concat({unsqueeze(x, axis + 1), full_like(unsqueeze(x, axis + 1), 100.0)}, axis + 1);
    views.push_back(select(twice, axis + 1, 0));
  }
  return views;
}

// The values of one slice along an axis, as the others have it.
template <class F>
Array along(const Array& x, int axis, F f) {
  return make(x.shape, [&](const Index& index) {
    std::vector<double> row;
    Index i = index;
    auto place = static_cast<std::size_t>(axis);
    for (i[place] = 0; i[place] < x.shape[axis]; ++i[place]) row.push_back(at(x, i));
    return f(row, static_cast<std::size_t>(index[place]), index);
  });
}

double log_sum(const std::vector<double>& row) {
  double largest = *std::max_element(row.begin(), row.end()), sum = 0;
  for (double x : row) sum += std::exp(x - largest);
  return largest + std::log(sum);
}

double sum_of_products(const Array& d, const Array& y, int axis, Index index) {
  double sum = 0;
  auto place = static_cast<std::size_t>(axis);
  for (index[place] = 0; index[place] < y.shape[axis]; ++index[place]) sum += at(d, index) * at(y, index);
  return sum;
}

Tensor gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& d) {
  Tape tape;
  tape.watch(x);
  return tape.gradient(sum(f(x) * d), x);
}

void check_close(const Tensor& y, const Array& expected, double bound) {
  Array found = array_of(y);
  REQUIRE(found.shape == expected.shape);
  double worst = 0;
  for (std::size_t i = 0; i < found.values.size(); ++i)
    worst = std::max(worst, std::abs(found.values[i] - expected.values[i]));
  CHECK(worst <= bound);
}

const std::vector<Shape> shapes{{7},          {1},          {17},          {64},        {133},         {3, 5},
                                {5, 1},       {1, 5},       {37, 16},      {16, 37},    {9, 100},      {100, 9},
                                {2, 3, 5},    {3, 41, 2},   {2, 19, 7},    {2, 11, 33}, {2, 5, 8},     {5, 70, 3},
                                {2, 3, 4, 5}, {2, 5, 1, 3}, {3, 2, 7, 11}, {2, 300, 2}, {1, 33, 1, 64}};

}  // namespace

TEST_CASE("softmax along any axis of any layout") {
  CAPTURE(seed);
  manual_seed(seed);
  for (DType dtype : floating_dtypes)
    for (const Shape& shape : shapes)
      for (int axis = 0; axis < shape.rank(); ++axis) {
        CAPTURE(name_of(dtype), to_string(shape), axis);
        Tensor x = to(rand(shape, {.dtype = f64}) * 4 - 2, dtype), d = to(rand(shape, {.dtype = f64}) * 2 - 1, dtype);
        Tensor mask = rand(shape) > 0.3f;
        Array values = array_of(x), given = array_of(d), seen = array_of(where(mask, x, -infinity));
        auto probability = [](const std::vector<double>& row, std::size_t i, const Index&) {
          return row[i] == -infinity ? 0 : std::exp(row[i] - log_sum(row));
        };
        auto logarithm = [](const std::vector<double>& row, std::size_t i, const Index&) {
          return row[i] - log_sum(row);
        };
        Array p = along(values, axis, probability);
        // Numbers of at most 1, and some 10 for logarithms, after a few roundings of each of some terms.
        double unit = dtype == f64 ? 0x1p-52 : dtype == f32 ? 0x1p-23 : dtype == f16 ? 0x1p-10 : 0x1p-7;
        auto soft = [=](const Tensor& v) { return softmax(v, axis); };
        auto log = [=](const Tensor& v) { return log_softmax(v, axis); };
        check_close(soft(x), p, 8 * unit);
        check_close(softmax(x, axis, {.mask = mask}), along(seen, axis, probability), 8 * unit);
        check_close(log(x), along(values, axis, logarithm), 16 * unit);
        Tensor masked = where(mask, log_softmax(x, axis, {.mask = mask}), 0.0);
        Array expected = along(seen, axis, logarithm), flags = array_of(mask);
        for (std::size_t i = 0; i < expected.values.size(); ++i)
          if (flags.values[i] == 0) expected.values[i] = 0;
        check_close(masked, expected, 16 * unit);
        Array slope =
            make(shape, [&](const Index& i) { return at(p, i) * (at(given, i) - sum_of_products(given, p, axis, i)); });
        check_close(gradient(soft, x, d), slope, 16 * unit);
        Array ones = make(shape, [](const Index&) { return 1.0; });
        Array log_slope = make(
            shape, [&](const Index& i) { return at(given, i) - at(p, i) * sum_of_products(given, ones, axis, i); });
        // Halves round the logarithm, up to 8, that is raised to a power again.
        check_close(gradient(log, x, d), log_slope, 64 * unit);
        // One order of summation for all layouts, and also where the calls are stacked.
        Tensor stacked_axis = stack({x, x * 0.5});
        CHECK(same_bits(select(softmax(stacked_axis, axis + 1), 0, 0), soft(x)));
        CHECK(same_bits(select(log_softmax(stacked_axis, axis + 1), 0, 0), log(x)));
        for (const Tensor& view : layouts(x)) {
          CHECK(same_bits(soft(view), soft(x)));
          CHECK(same_bits(log(view), log(x)));
          CHECK(same_bits(gradient(soft, view, d), gradient(soft, x, d)));
        }
        for (const Tensor& view : layouts(mask))
          CHECK(same_bits(softmax(x, axis, {.mask = view}), softmax(x, axis, {.mask = mask})));
        for (const Tensor& view : layouts(d)) CHECK(same_bits(gradient(log, x, view), gradient(log, x, d)));
      }
}

TEST_CASE("an element that is no number spoils its own slice only") {
  for (DType dtype : {f32, f64})
    for (std::int64_t inner : {1, 2, 3, 7, 16, 33, 70})
      for (double odd : {nan, infinity, -infinity})
        for (std::int64_t length : {1, 2, 9, 70}) {
          CAPTURE(name_of(dtype), inner, odd, length);
          Tensor x = reshape(arange(3 * length * inner, {.dtype = dtype}) * 0.01, {3, length, inner});
          std::int64_t column = inner / 2;
          Tensor spoilt = copy(x);
          for (Tensor part : {select(select(spoilt, 2, column), 0, 1)})
            fill_(slice(part, 0, length / 2, length / 2 + 1), odd);
          bool all = odd != -infinity || length == 1;
          for (decltype(&softmax) op : {softmax, log_softmax}) {
            Tensor y = op(x, 1, {}), z = op(spoilt, 1, {}), whole = isnan(z);
            Tensor own = select(select(whole, 2, column), 0, 1);
            CHECK(count_nonzero(whole).item() == (all ? length : 0));
            CHECK(count_nonzero(own).item() == (all ? length : 0));
            CHECK(same_bits(select(y, 0, 0), select(z, 0, 0)));
            CHECK(same_bits(select(y, 0, 2), select(z, 0, 2)));
          }
        }
}

TEST_CASE("cross_entropy along axis 1 of any layout") {
  CAPTURE(seed);
  manual_seed(seed);
  for (DType dtype : floating_dtypes)
    for (const Shape& shape : shapes) {
      if (shape.rank() < 2) continue;
      CAPTURE(name_of(dtype), to_string(shape));
      Tensor x = to(rand(shape, {.dtype = f64}) * 4 - 2, dtype);
      Shape examples;
      for (int axis = 0; axis < shape.rank(); ++axis)
        if (axis != 1) examples.push_back(shape[axis]);
      Tensor targets = randint(0, shape[1], examples);
      targets = where(rand(examples) > 0.2f, targets, -100);
      fill_(slice(reshape(targets, {targets.numel()}), 0, 0, 1), 0.0);
      Array chosen = array_of(to(targets, f64));
      Array p = along(array_of(x), 1, [](const std::vector<double>& row, std::size_t i, const Index&) {
        return std::exp(row[i] - log_sum(row));
      });
      Array logits = array_of(x);
      auto loss_index = [](Index i) {
        i.erase(i.begin() + 1);
        return i;
      };
      double count = 0;
      for (double t : chosen.values) count += t >= 0 ? 1 : 0;
      Array losses = make(examples, [&](const Index& i) {
        double t = at(chosen, i);
        if (t < 0) return 0.0;
        Index at_target = i;
        at_target.insert(at_target.begin() + 1, static_cast<std::int64_t>(t));
        return -std::log(at(p, at_target));
      });
      Array slope = make(shape, [&](const Index& i) {
        double t = at(chosen, loss_index(i));
        return t < 0 ? 0 : (at(p, i) - (static_cast<double>(i[1]) == t ? 1 : 0)) / count;
      });
      double unit = dtype == f64 ? 0x1p-52 : dtype == f32 ? 0x1p-23 : dtype == f16 ? 0x1p-10 : 0x1p-7;
      CrossEntropyOptions each{.reduction = LossReduction::none};
      check_close(cross_entropy(x, targets, each), losses, 16 * unit);
      check_close(nll_loss(log_softmax(x, 1), targets, {.reduction = LossReduction::none}), losses, 16 * unit);
      auto mean_loss = [&](const Tensor& v) { return cross_entropy(v, targets); };
      Tensor one = ones({}, {.dtype = dtype});
      check_close(gradient(mean_loss, x, one), slope, 8 * unit);
      auto weighted = [&](const Tensor& v) { return sum(to(cross_entropy(v, targets, each), f64) * to(targets, f64)); };
      Array weighted_slope =
          make(shape, [&](const Index& i) { return at(slope, i) * count * std::max(at(chosen, loss_index(i)), 0.0); });
      check_close(gradient(weighted, x, ones({}, {.dtype = f64})), weighted_slope,
                  8 * unit * static_cast<double>(shape[1]));
      for (const Tensor& view : layouts(x)) {
        CHECK(same_bits(cross_entropy(view, targets, each), cross_entropy(x, targets, each)));
        CHECK(same_bits(gradient(mean_loss, view, one), gradient(mean_loss, x, one)));
      }
    }
}

TEST_CASE("sums of long slices lose nothing, along any axis") {
  // Equal terms are rounded alike. At most sixteen are added to one sum, and these in pairs, of which there are fourteen
  // levels for one lane, and vectors of four and their lanes: six levels at most.
  constexpr std::int64_t n = 1 << 18;
  constexpr double bound = (16 + 14 + 6) * 0x1p-24;
  for (std::int64_t inner : {1, 2, 5, 64}) {
    CAPTURE(inner);
    Shape shape{n / inner, inner};
    double length = static_cast<double>(n / inner);
    auto third = static_cast<double>(1.0f / 3);
    // dx = d − e^y Σ d with y = −log n
    Tensor x = zeros(shape), d = full(shape, 1.0f / 3);
    Array slope = array_of(gradient([](const Tensor& v) { return log_softmax(v, 0); }, x, d));
    double e =
        static_cast<double>(static_cast<float>(std::exp(-static_cast<double>(static_cast<float>(std::log(length))))));
    CHECK(std::abs((third - slope.values[0]) / (e * length * third) - 1) < bound + 6e-6);
    // dx = y (d − Σ d y), where d is 1 at one place more than elsewhere.
    Tensor y = softmax(x, 0);
    double share = y.to_vector<float>()[0];
    CHECK(std::abs(share * length - 1) < bound + 0x1p-23);
    Array soft = array_of(gradient([](const Tensor& v) { return softmax(v, 0); }, x, d));
    CHECK(std::abs(soft.values[0]) < share * third * (bound + 0x1p-22 + std::abs(share * length - 1)));
    Tensor losses = cross_entropy(reshape(x, {1, n / inner, inner}), zeros({1, inner}, {.dtype = i64}),
                                  {.reduction = LossReduction::none});
    CHECK(std::abs(losses.to_vector<float>()[0] - std::log(length)) < bound + 0x1p-20);
  }
}

}  // namespace reel_test
