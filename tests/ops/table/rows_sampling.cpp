#include <algorithm>
#include <cmath>
#include <utility>

#include "core/philox.h"
#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr std::uint64_t seed = 77;

// Returns true if `dropout` drops element i in a generator's first call.
bool is_dropped(double probability, std::uint64_t i) {
  return detail::philox(seed, 0, i).word[0] < std::ceil(probability * 0x1p32);
}

void add_dropouts(std::vector<Row>& rows, const Shape& shape, double probability) {
  std::string name = " of " + std::to_string(probability) + to_string(shape);
  for (int axis = 0; axis < shape.rank(); ++axis)
    rows.push_back({.name = "variational_dropout" + name + " along " + std::to_string(axis),
                    .run =
                        [=](auto x) {
                          Generator generator(seed);
                          return variational_dropout(
                              x[0], {.probability = probability, .axis = axis, .generator = &generator});
                        },
                    .inputs = {{shape}},
                    .reference =
                        [=](const Arrays& x) {
                          return make(shape, [&](const Index& index) {
                            std::uint64_t place = 0;
                            for (int k = 0; k < shape.rank(); ++k)
                              if (k != axis)
                                place = place * static_cast<std::uint64_t>(shape[k]) +
                                        static_cast<std::uint64_t>(index[static_cast<std::size_t>(k)]);
                            return is_dropped(probability, place) ? 0 : at(x[0], index) / (1 - probability);
                          });
                        },
                    // The scale is rounded, and the product.
                    .ulps = 1});
  rows.push_back({.name = "alpha_dropout" + name,
                  .run =
                      [=](auto x) {
                        Generator generator(seed);
                        return alpha_dropout(x[0], {.probability = probability, .generator = &generator});
                      },
                  .inputs = {{shape}},
                  .reference =
                      [=](const Arrays& x) {
                        const double limit = -1.0507009873554805 * 1.6732632423543772, kept = 1 - probability;
                        double a = kept > 0 ? 1 / std::sqrt(kept + limit * limit * kept * probability) : 0;
                        double b = -a * limit * probability;
                        Array y = x[0];
                        for (std::size_t i = 0; i < y.values.size(); ++i)
                          y.values[i] = a * (is_dropped(probability, i) ? limit : y.values[i]) + b;
                        // The product is at most 2 a, the shift 1.8 a p.
                        y.scales.assign(y.values.size(), 4 * a);
                        return y;
                      },
                  .ulps = 2});
}

double gumbel_number(std::uint64_t i) {
  return -std::log(-std::log((static_cast<double>(detail::philox(seed, 0, i).word[0]) + 0.5) * 0x1p-32));
}

// The noise of f64 has more digits.
void add_gumbel_softmax(std::vector<Row>& rows, const Shape& shape, int axis, double temperature, bool hard) {
  auto place = static_cast<std::size_t>(axis);
  rows.push_back(
      {.name = "gumbel_softmax" + to_string(shape) + " along " + std::to_string(axis) + (hard ? " hard" : ""),
       .run =
           [=](auto x) {
             Generator generator(seed);
             return gumbel_softmax(x[0],
                                   {.temperature = temperature, .hard = hard, .axis = axis, .generator = &generator});
           },
       .inputs = {{shape}},
       .reference =
           [=](const Arrays& x) {
             std::uint64_t number = 0;
             Array e = make(shape, [&](const Index& i) {
               return std::exp((at(x[0], i) + gumbel_number(number++)) / temperature);
             });
             return make(shape, [&](Index i) {
               double own = at(e, i), sum = 0, largest = 0;
               for (i[place] = 0; i[place] < shape[axis]; ++i[place]) {
                 sum += at(e, i);
                 largest = std::max(largest, at(e, i));
               }
               return hard ? static_cast<double>(own == largest) : own / sum;
             });
           },
       // Noise of up to 23 is rounded, added and divided, and then the exponent of a number.
       .ulps = 100,
       .dtypes = {f32, bf16, f16},
       // A step's gradient is not that of its differences.
       .differentiable = !hard,
       .reorders = true});
}

// Draws with probabilities that are exact in every dtype.
void add_multinomial(std::vector<Row>& rows, const Shape& shape, std::int64_t count, bool replacement) {
  Shape result = shape;
  result[shape.rank() - 1] = count;
  rows.push_back(
      {.name = "multinomial" + to_string(shape) + " of " + std::to_string(count) + (replacement ? " replaced" : ""),
       .run =
           [=](auto x) {
             Generator generator(seed);
             return multinomial(x[0], count, {.replacement = replacement, .generator = &generator});
           },
       .inputs = {{shape, Fill::positive}},
       .reference =
           [=](const Arrays& x) {
             auto classes = static_cast<std::size_t>(shape[shape.rank() - 1]);
             Array y{result, {}};
             for (std::size_t row = 0; row * classes < x[0].values.size(); ++row) {
               const double* p = x[0].values.data() + row * classes;
               double largest = *std::max_element(p, p + classes);
               std::vector<std::pair<double, std::size_t>> keys;
               for (std::size_t c = 0; c < classes; ++c) {
                 auto w = detail::philox(seed, 0, row * classes + c);
                 auto bits = (static_cast<std::uint64_t>(w.word[0]) << 32 | w.word[1]) >> 12;
                 keys.emplace_back(-std::log((static_cast<double>(bits) + 0.5) * 0x1p-52) / p[c], c);
               }
               std::sort(keys.begin(), keys.end());
               for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
                 if (!replacement) {
                   y.values.push_back(static_cast<double>(keys[i].second));
                   continue;
                 }
                 auto w = detail::philox(seed, 0, row * static_cast<std::size_t>(count) + i);
                 double sum = 0, number = detail::unit_double(w.word[0], w.word[1]);
                 for (std::size_t c = 0; c < classes; ++c) sum += p[c] / largest;
                 std::size_t chosen = 0;
                 for (double below = p[0] / largest; below <= number * sum; below += p[++chosen] / largest) {
                 }
                 y.values.push_back(static_cast<double>(chosen));
               }
             }
             return y;
           },
       .ulps = 0,
       .differentiable = false});
}

void add_rows(std::vector<Row>& rows) {
  for (double probability : {0.0, 0.3, 1.0})
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{4, 1, 3}, Shape{2, 0}, Shape{3, 30}})
      add_dropouts(rows, shape, probability);
  for (bool hard : {false, true}) {
    add_gumbel_softmax(rows, {5}, 0, 1, hard);
    add_gumbel_softmax(rows, {3, 4}, 1, 0.5, hard);
    add_gumbel_softmax(rows, {3, 4, 2}, 1, 2, hard);
    add_gumbel_softmax(rows, {0, 4}, 1, 1, hard);
  }
  for (bool replacement : {false, true}) {
    add_multinomial(rows, {7}, 3, replacement);
    add_multinomial(rows, {1}, 1, replacement);
    add_multinomial(rows, {3, 40}, 40, replacement);
    add_multinomial(rows, {0, 4}, 2, replacement);
    add_multinomial(rows, {3, 4}, 0, replacement);
  }
  add_multinomial(rows, {2, 3}, 50, true);
}

}  // namespace

const RowFamily sampling_rows{add_rows};

}  // namespace reel_test
