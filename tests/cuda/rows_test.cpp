#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "cuda/close.h"
#include "kernels/activation.h"
#include "kernels/kernel_table.h"

// Kernels that process rows, of all lengths from one element to more than a group's threads have in registers, wherever
// in memory they begin, compared with plain loops in f64.

namespace reel_test {

using namespace reel;

namespace {

using Numbers = std::vector<double>;
constexpr unsigned seed = 20;
constexpr DType floating_dtypes[] = {f32, f64, f16, bf16};
constexpr std::int64_t row_count = 3;

// Around all sizes of packs, warps and chunks: 2 or 4 packs of 2, 4 or 8 elements for each of 32, 128, 256 and 512 threads.
const std::vector<std::int64_t> lengths = {1,    2,    3,    4,    5,    7,    8,    9,    31,   32,   33,   63,   64,
                                           65,   127,  128,  129,  248,  255,  256,  257,  511,  512,  513,  1000, 1023,
                                           1024, 1025, 2047, 2048, 2049, 4096, 4100, 8192, 8200, 9001, 16392};

// Numbers that have the dtype's precision.
Numbers drawn(std::int64_t count, DType dtype, unsigned number) {
  std::mt19937_64 random(seed + number);
  std::normal_distribution<double> normal(0.5, 2);
  Numbers numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(normal(random));
  return to(to(tensor(numbers), dtype), f64).to_vector<double>();
}

// A contiguous tensor on the device whose memory begins at element `start` of a storage.
Tensor placed(Numbers numbers, const Shape& shape, DType dtype, std::int64_t start) {
  auto count = static_cast<std::int64_t>(numbers.size());
  numbers.insert(numbers.begin(), static_cast<std::size_t>(start), 7);
  Tensor x = reshape(slice(to(to(tensor(numbers), dtype), gpu), 0, start, start + count), shape);
  REQUIRE(detail::View(x.body()).contiguous);
  return x;
}

Numbers numbers_of(const Tensor& x) { return to(to(x, cpu), f64).to_vector<double>(); }

void check_close(const Tensor& found, const Numbers& expected, DType dtype) {
  CHECK(apart(found, reshape(tensor(expected), found.shape())) <= allowed(dtype));
}

// Calls row(first, end) for the elements of each row.
void for_rows(std::int64_t length, const std::function<void(std::size_t, std::size_t)>& row) {
  auto n = static_cast<std::size_t>(length);
  for (std::size_t i = 0; i < row_count; ++i) row(i * n, (i + 1) * n);
}

// softmax, or its logarithm, of the elements of each row that are seen.
Numbers softmax_of(const Numbers& x, std::int64_t length, bool logarithm, const std::vector<bool>& seen) {
  Numbers y(x.size(), logarithm ? -HUGE_VAL : 0);
  for_rows(length, [&](std::size_t first, std::size_t end) {
    double largest = -HUGE_VAL, sum = 0;
    for (std::size_t i = first; i < end; ++i)
      if (seen[i]) largest = std::max(largest, x[i]);
    for (std::size_t i = first; i < end; ++i)
      if (seen[i]) sum += std::exp(x[i] - largest);
    for (std::size_t i = first; i < end; ++i)
      if (seen[i]) y[i] = logarithm ? x[i] - largest - std::log(sum) : std::exp(x[i] - largest) / sum;
  });
  return y;
}

Numbers softmax_gradient_of(const Numbers& d, const Numbers& y, std::int64_t length, bool logarithm) {
  Numbers dx(d.size());
  for_rows(length, [&](std::size_t first, std::size_t end) {
    double sum = 0;
    for (std::size_t i = first; i < end; ++i) sum += logarithm ? d[i] : d[i] * y[i];
    for (std::size_t i = first; i < end; ++i) dx[i] = logarithm ? d[i] - std::exp(y[i]) * sum : y[i] * (d[i] - sum);
  });
  return dx;
}

struct Normalised {
  Numbers y, dx, dweight, dbias;
};

// Rows normalised by mean and deviation, or by root mean square, with the gradients for dy = d.
Normalised normalised(const Numbers& x, const Numbers& weight, const Numbers& bias, const Numbers& d,
                      std::int64_t length, bool centred) {
  auto n = static_cast<std::size_t>(length);
  auto count = static_cast<double>(length);
  Normalised all{Numbers(x.size()), Numbers(x.size()), Numbers(n), Numbers(n)};
  for_rows(length, [&](std::size_t first, std::size_t) {
    double mean = 0, variance = 0, of_d = 0, of_dx = 0;
    for (std::size_t i = 0; i < n && centred; ++i) mean += x[first + i] / count;
    for (std::size_t i = 0; i < n; ++i) variance += std::pow(x[first + i] - mean, 2) / count;
    double inverse = 1 / std::sqrt(variance + 1e-3);
    auto normal = [&](std::size_t i) { return (x[first + i] - mean) * inverse; };
    for (std::size_t i = 0; i < n; ++i) {
      all.y[first + i] = normal(i) * weight[i] + (centred ? bias[i] : 0);
      all.dweight[i] += d[first + i] * normal(i);
      all.dbias[i] += d[first + i];
      of_d += centred ? d[first + i] * weight[i] / count : 0;
      of_dx += d[first + i] * weight[i] * normal(i) / count;
    }
    for (std::size_t i = 0; i < n; ++i)
      all.dx[first + i] = (d[first + i] * weight[i] - of_d - normal(i) * of_dx) * inverse;
  });
  return all;
}

// Where the result and two operands begin: alike at the beginning, alike behind it, and each elsewhere.
const std::vector<std::vector<std::int64_t>> starts = {{0, 0, 0}, {1, 1, 1}, {3, 0, 1}};

// Kernels are there once a tensor has been.
const detail::KernelTable& kernels_of_device() {
  static_cast<void>(to(zeros({1}), gpu));
  return detail::kernels(gpu);
}

}  // namespace

TEST_CASE("softmax on a device is right for rows of any length, wherever they begin") {
  if (lacks_device()) return;
  CAPTURE(seed);
  const detail::KernelTable& table = kernels_of_device();
  for (DType dtype : floating_dtypes)
    for (std::int64_t length : lengths)
      for (const std::vector<std::int64_t>& at : starts) {
        CAPTURE(name_of(dtype), length, at[0], at[1], at[2]);
        std::int64_t count = row_count * length;
        Shape shape{row_count, length};
        Numbers x = drawn(count, dtype, 1), d = drawn(count, dtype, 2), nothing(x.size(), 7);
        std::vector<bool> seen(x.size(), true);
        Tensor given = placed(x, shape, dtype, at[1]), of_y = placed(d, shape, dtype, at[2]);
        for (bool logarithm : {false, true}) {
          CAPTURE(logarithm);
          Tensor y = placed(nothing, shape, dtype, at[0]);
          (logarithm ? table.log_softmax : table.softmax)(y.body(), given.body());
          check_close(y, softmax_of(x, length, logarithm, seen), dtype);
          Numbers rounded = numbers_of(y);
          Tensor dx = placed(nothing, shape, dtype, at[0]), again = placed(rounded, shape, dtype, at[1]);
          (logarithm ? table.log_softmax_gradient : table.softmax_gradient)(dx.body(), of_y.body(), again.body());
          check_close(dx, softmax_gradient_of(d, rounded, length, logarithm), dtype);
        }
      }
}

TEST_CASE("masked softmax on a device is right for rows of any length, wherever they begin") {
  if (lacks_device()) return;
  CAPTURE(seed);
  const detail::ActivationKernels& table = *kernels_of_device().activation;
  for (DType dtype : floating_dtypes)
    for (std::int64_t length : lengths)
      for (const std::vector<std::int64_t>& at : starts) {
        CAPTURE(name_of(dtype), length, at[0], at[1], at[2]);
        std::int64_t count = row_count * length;
        Numbers x = drawn(count, dtype, 1), is_seen(x.size()), nothing(x.size(), 7);
        std::vector<bool> seen(x.size());
        // The last row sees nothing.
        for (std::size_t i = 0; i < x.size(); ++i) {
          seen[i] = i % 5 != 2 && i < x.size() - static_cast<std::size_t>(length);
          is_seen[i] = seen[i] ? 1 : 0;
        }
        Shape shape{row_count, length};
        Tensor given = placed(x, shape, dtype, at[1]), mask = placed(is_seen, shape, boolean, at[2]);
        for (bool logarithm : {false, true}) {
          CAPTURE(logarithm);
          Tensor y = placed(nothing, shape, dtype, at[0]);
          (logarithm ? table.masked_log_softmax : table.masked_softmax)(y.body(), given.body(), mask.body());
          check_close(y, softmax_of(x, length, logarithm, seen), dtype);
        }
      }
}

TEST_CASE("softmax on a device is right for rows that are broadcast, strided, reversed or apart") {
  if (lacks_device()) return;
  CAPTURE(seed);
  for (DType dtype : floating_dtypes)
    for (std::int64_t length : {7, 256, 1024, 1028}) {
      CAPTURE(name_of(dtype), length);
      Numbers x = drawn(row_count * 2 * length, dtype, 1);
      Tensor whole = placed(x, {row_count, 2 * length}, dtype, 0);
      // Every view is copied, and its elements in order are the operand of the plain loop.
      for (const Tensor& view :
           {slice(whole, 1, 0, length), slice(whole, 1, 1, length + 1), slice(whole, 1, 0, 2 * length, 2),
            slice(slice(whole, 1, 0, length), 0, -1, -4, -1), expand(slice(whole, 0, 1, 2), {row_count, 2 * length})}) {
        Numbers given = numbers_of(view);
        std::int64_t width = view.shape()[1];
        check_close(softmax(view), softmax_of(given, width, false, std::vector<bool>(given.size(), true)), dtype);
      }
    }
}

TEST_CASE("cross entropy and its gradient on a device are right for any number of classes") {
  if (lacks_device()) return;
  CAPTURE(seed);
  for (DType dtype : floating_dtypes)
    for (std::int64_t length : lengths)
      for (std::int64_t start : {0, 1}) {
        CAPTURE(name_of(dtype), length, start);
        Numbers x = drawn(row_count * length, dtype, 1), d = drawn(row_count, dtype, 2);
        std::vector<std::int64_t> targets = {length - 1, length / 2, -100};
        Tensor given = placed(x, {row_count, length}, dtype, start);
        Tape tape;
        tape.watch(given);
        Tensor losses = cross_entropy(given, to(tensor(targets), gpu), {.reduction = LossReduction::none});
        Tensor dx = tape.gradient(losses, given, {.seed = placed(d, {row_count}, dtype, 0)});
        Numbers p = softmax_of(x, length, true, std::vector<bool>(x.size(), true)), expected, gradient(x.size());
        std::size_t row = 0;
        for_rows(length, [&](std::size_t first, std::size_t end) {
          std::size_t target = first + static_cast<std::size_t>(targets[row]);
          bool counts = targets[row] >= 0;
          expected.push_back(counts ? -p[target] : 0);
          for (std::size_t i = first; i < end && counts; ++i)
            gradient[i] = d[row] * (std::exp(p[i]) - (i == target ? 1 : 0));
          ++row;
        });
        check_close(stop_gradient(losses), expected, dtype);
        check_close(dx, gradient, dtype);
      }
}

TEST_CASE("rows are normalised on a device, with all gradients, whatever their length and wherever they begin") {
  if (lacks_device()) return;
  CAPTURE(seed);
  for (DType dtype : floating_dtypes)
    for (std::int64_t length : lengths)
      for (std::int64_t start : {0, 1})
        for (bool centred : {true, false}) {
          CAPTURE(name_of(dtype), length, start, centred);
          Shape shape{row_count, length}, normal{length};
          Numbers x = drawn(row_count * length, dtype, 1), d = drawn(row_count * length, dtype, 2),
                  weight = drawn(length, dtype, 3), bias = drawn(length, dtype, 4);
          std::vector<Tensor> sources = {placed(x, shape, dtype, start), placed(weight, normal, dtype, start),
                                         placed(bias, normal, dtype, start)};
          if (!centred) sources.pop_back();
          Tape tape;
          for (const Tensor& source : sources) tape.watch(source);
          Tensor y = centred ? layer_norm(sources[0], normal, sources[1], sources[2], {.epsilon = 1e-3})
                             : rms_norm(sources[0], normal, sources[1], {.epsilon = 1e-3});
          std::vector<Tensor> found = tape.gradient(y, sources, {.seed = placed(d, shape, dtype, start)});
          Normalised expected = normalised(x, weight, bias, d, length, centred);
          check_close(stop_gradient(y), expected.y, dtype);
          check_close(found[0], expected.dx, dtype);
          check_close(found[1], expected.dweight, dtype);
          if (centred) check_close(found[2], expected.dbias, dtype);
        }
}

namespace {

// Returns the gradients of x, weight and bias, y, and the running statistics of channels in training.
std::vector<Tensor> channels_on(Device device, DType dtype, const Shape& shape, std::int64_t start) {
  Numbers x = drawn(shape.numel(), dtype, 1), d = drawn(shape.numel(), dtype, 2), weight = drawn(shape[1], dtype, 3);
  auto at = [&](const Numbers& numbers, const Shape& shape) {
    return device == gpu ? placed(numbers, shape, dtype, start) : to(reshape(tensor(numbers), shape), dtype);
  };
  Shape channels{shape[1]};
  std::vector<Tensor> sources = {at(x, shape), at(weight, channels), at(weight, channels)};
  Tensor mean = at(Numbers(weight.size(), 0), channels), variance = at(Numbers(weight.size(), 1), channels);
  Tape tape;
  for (const Tensor& source : sources) tape.watch(source);
  Tensor y = batch_norm(sources[0], sources[1], sources[2], mean, variance, {.training = true});
  std::vector<Tensor> all = tape.gradient(y, sources, {.seed = at(d, shape)});
  all.insert(all.end(), {stop_gradient(y), mean, variance});
  return all;
}

}  // namespace

TEST_CASE("channels are normalised on a device as on the CPU, whatever the length of their planes") {
  if (lacks_device()) return;
  CAPTURE(seed);
  const Shape shapes[] = {{5, 2, 1},   {4, 3, 3},    {2, 3, 64},   {3, 2, 128},    {3, 2, 129},   {7, 2, 8},
                          {9, 2, 256}, {3, 1, 1000}, {2, 3, 4096}, {3, 2, 12'000}, {2, 1, 40'000}};
  for (DType dtype : floating_dtypes)
    for (const Shape& shape : shapes)
      for (std::int64_t start : {0, 1}) {
        std::vector<Tensor> expected = channels_on(cpu, dtype, shape, start),
                            found = channels_on(gpu, dtype, shape, start);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          CAPTURE(name_of(dtype), to_string(shape), start, i);
          CHECK(apart(found[i], expected[i]) <= allowed(dtype));
        }
      }
}

TEST_CASE("softmax of rows with NaN and infinities is NaN on a device, and −∞ counts nothing, in every place") {
  if (lacks_device()) return;
  for (DType dtype : floating_dtypes)
    for (std::int64_t length : {9, 512, 20'000})
      for (std::int64_t place : {0, 1, 2, 3, 4, 5, 6, 7, 8})
        for (std::int64_t at : {place, length - 9 + place}) {
          CAPTURE(name_of(dtype), length, at);
          auto with = [&](double number) {
            Numbers x(static_cast<std::size_t>(length), 1.0);
            x[static_cast<std::size_t>(at)] = number;
            return softmax(placed(x, {1, length}, dtype, 0));
          };
          for (double number : {double{NAN}, HUGE_VAL}) {
            Numbers y = numbers_of(with(number));
            CHECK(std::all_of(y.begin(), y.end(), [](double each) { return std::isnan(each); }));
          }
          Numbers expected(static_cast<std::size_t>(length), 1 / static_cast<double>(length - 1));
          expected[static_cast<std::size_t>(at)] = 0;
          check_close(with(-HUGE_VAL), expected, dtype);
        }
  Numbers nothing = numbers_of(softmax(placed(Numbers(512, -HUGE_VAL), {1, 512}, f32, 0)));
  CHECK(std::all_of(nothing.begin(), nothing.end(), [](double each) { return std::isnan(each); }));
}

TEST_CASE("the bits of rows on a device do not depend on where they begin") {
  if (lacks_device()) return;
  using Run = Tensor (*)(const Tensor&);
  constexpr Run runs[] = {
      [](const Tensor& x) { return softmax(x); },
      [](const Tensor& x) { return log_softmax(x); },
      [](const Tensor& x) { return layer_norm(x, {x.shape()[1]}); },
      [](const Tensor& x) { return sum(x, -1); },
      [](const Tensor& x) { return logsumexp(x, -1); },
      [](const Tensor& x) { return var(x, -1); },
      [](const Tensor& x) { return sum(x); },
  };
  for (DType dtype : floating_dtypes)
    for (std::int64_t length : {5, 128, 1000, 5000, 100'000}) {
      Numbers x = drawn(row_count * length, dtype, 1);
      for (std::size_t i = 0; i < std::size(runs); ++i) {
        CAPTURE(name_of(dtype), length, i);
        Shape shape{row_count, length};
        CHECK(numbers_of(runs[i](placed(x, shape, dtype, 0))) == numbers_of(runs[i](placed(x, shape, dtype, 1))));
      }
    }
}

}  // namespace reel_test
