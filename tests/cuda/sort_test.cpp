#include "cuda/close.h"
#include "kernels/kernel_table.h"
#include "kernels/sampling.h"

// Rows of all lengths: sorted by one block, in several rounds, or by the library.

namespace reel_test {

using namespace reel;

namespace {

// Many ties, both zeros, NaN and infinities.
Tensor drawn(const Shape& shape, DType dtype, bool many_ties) {
  Generator generator(9);
  if (!is_floating(dtype)) return to(randint(0, many_ties ? 4 : 250, shape, {.generator = &generator}), dtype);
  Tensor x = randn(shape, {.generator = &generator});
  if (many_ties) x = round(x);
  x = where(x > 2.5, double{NAN}, where(x < -2.5, -HUGE_VAL, x));
  return to(x, dtype);
}

struct Case {
  Shape shape;
  int axis;
};

const std::vector<Case> cases = {{{1}, 0},       {{5}, 0},       {{33, 3}, 0},    {{33, 3}, 1},
                                 {{3, 2048}, 1}, {{2048, 3}, 0}, {{2049}, 0},     {{5, 3000}, 1},
                                 {{3000, 5}, 0}, {{20'000}, 0},  {{2, 3, 70}, 1}, {{4, 2500, 2}, 1}};

Tensor on(Device device, const Shape& shape, DType dtype) { return to(zeros(shape, {.dtype = dtype}), device); }

// Compares run(values, indices, x) on both devices.
template <class Run>
void compare_sorts(const Tensor& x, const Shape& shape, Run run) {
  Tensor values[2], indices[2], inputs[2];
  for (int i = 0; i < 2; ++i) {
    Device device = i == 0 ? cpu : gpu;
    values[i] = on(device, shape, x.dtype());
    indices[i] = on(device, shape, i64);
    inputs[i] = to(x, device);
    run(detail::kernels(device), values[i].body(), indices[i].body(), inputs[i].body());
  }
  CHECK(apart(values[1], values[0]) == 0);
  CHECK(apart(indices[1], indices[0]) == 0);
}

}  // namespace

TEST_CASE("sorted rows on a device are those of the CPU, with their indices") {
  if (lacks_device()) return;
  for (const Case& c : cases)
    for (DType dtype : {f32, f64, bf16, f16, i32, i64, u8, boolean, i8, i16})
      for (bool many_ties : {false, true}) {
        Tensor x = drawn(c.shape, dtype, many_ties);
        CAPTURE(to_string(c.shape), c.axis, name_of(dtype), many_ties);
        for (bool descending : {false, true})
          compare_sorts(x, c.shape,
                        [&](const detail::KernelTable& table, const detail::View& values, const detail::View& indices,
                            const detail::View& x) { table.sort(values, indices, x, c.axis, descending); });
        for (std::int64_t count : {std::int64_t{1}, std::int64_t{3}, std::int64_t{100}, std::int64_t{500}}) {
          if (count > c.shape[c.axis]) continue;
          Shape shape = c.shape;
          shape[c.axis] = count;
          CAPTURE(count);
          for (bool largest : {false, true})
            compare_sorts(x, shape,
                          [&](const detail::KernelTable& table, const detail::View& values, const detail::View& indices,
                              const detail::View& x) { table.topk(values, indices, x, c.axis, largest); });
        }
      }
}

TEST_CASE("the places of ranks on a device are those of the CPU") {
  if (lacks_device()) return;
  for (std::int64_t length : {1, 2, 5, 100, 2048, 2049, 5000})
    for (DType dtype : {f32, f64, f16, i64, u8, i8})
      for (bool many_ties : {false, true}) {
        // With this many rows, only some hold NaN.
        Tensor x = drawn({7, length}, dtype, many_ties);
        if (is_floating(dtype) && length > 10)
          x = where(logical_and(reshape(arange(7) < 4, {7, 1}), isnan(x)), zeros_like(x), x);
        // The ranks of the ends and the middle; the last one where NaN are the largest elements.
        const std::int64_t pairs[][2] = {{0, length / 2}, {length - 1, -1 - length / 2}};
        for (const auto& ranks : pairs) {
          Tensor there = to(x, gpu), expected = zeros({7, 2}, {.dtype = i64}), found = to(expected, gpu);
          detail::kernels(cpu).places_of_ranks(expected.body(), x.body(), ranks);
          detail::kernels(gpu).places_of_ranks(found.body(), there.body(), ranks);
          CAPTURE(length, name_of(dtype), many_ties, ranks[0]);
          CHECK(apart(found, expected) == 0);
        }
      }
}

TEST_CASE("permutations and draws on a device are those of the CPU") {
  if (lacks_device()) return;
  detail::RandomCall call{12, 34};
  for (std::int64_t count : {1, 10, 2048, 2500, 40'000})
    for (DType dtype : {i64, i32}) {
      Tensor expected = zeros({count}, {.dtype = dtype}), found = to(expected, gpu);
      detail::kernels(cpu).randperm(expected.body(), call);
      detail::kernels(gpu).randperm(found.body(), call);
      CAPTURE(count, name_of(dtype));
      CHECK(apart(found, expected) == 0);
    }
  for (std::int64_t classes : {1, 7, 1500, 5000})
    for (DType dtype : {f32, f64, bf16})
      for (bool replacement : {false, true})
        for (std::int64_t count : {std::int64_t{1}, std::int64_t{5}, classes}) {
          if (count > classes && !replacement) continue;
          Generator generator(3);
          Tensor p = to(rand({4, classes}, {.generator = &generator}) + 0.001, dtype), there = to(p, gpu);
          Tensor expected = zeros({4, count}, {.dtype = i64}), found = to(expected, gpu);
          detail::BadRow bad;
          CHECK(detail::kernels(cpu).sampling->multinomial(expected.body(), p.body(), replacement, call, bad));
          CHECK(detail::kernels(gpu).sampling->multinomial(found.body(), there.body(), replacement, call, bad));
          CAPTURE(classes, count, name_of(dtype), replacement);
          CHECK(apart(found, expected) == 0);
        }
}

TEST_CASE("running sums, products and recurrences on a device are those of the CPU") {
  if (lacks_device()) return;
  const std::vector<Case> lines = {{{1}, 0},         {{16}, 0},      {{17}, 0},        {{5, 300}, 1},
                                   {{300, 5}, 0},    {{3, 3000}, 1}, {{40'000}, 0},    {{2, 20'000}, 1},
                                   {{20'000, 2}, 0}, {{100, 12}, 1}, {{2, 900, 3}, 1}, {{70, 90, 3}, 0}};
  for (const Case& c : lines)
    for (DType dtype : {f32, f64, bf16, i32, i64, boolean})
      for (bool backwards : {false, true}) {
        Generator generator(4);
        Tensor x = is_floating(dtype) ? to(1 + randn(c.shape, {.dtype = f64, .generator = &generator}) * 0.01, dtype)
                                      : to(randint(0, 4, c.shape, {.generator = &generator}), dtype);
        DType result = is_floating(dtype) ? dtype : i64;
        Tensor there = to(x, gpu), expected = zeros(c.shape, {.dtype = result}), found = to(expected, gpu);
        CAPTURE(to_string(c.shape), c.axis, name_of(dtype), backwards);
        detail::kernels(cpu).cumsum(expected.body(), x.body(), c.axis, backwards);
        detail::kernels(gpu).cumsum(found.body(), there.body(), c.axis, backwards);
        CHECK(apart(found, expected) <= allowed(result));
        detail::kernels(cpu).cumprod(expected.body(), x.body(), c.axis, backwards);
        detail::kernels(gpu).cumprod(found.body(), there.body(), c.axis, backwards);
        CHECK(apart(found, expected) <= allowed(result));
        if (!is_floating(dtype)) continue;
        Tensor a = to(randn(c.shape, {.generator = &generator}) * 0.8, dtype), a_there = to(a, gpu);
        detail::kernels(cpu).recurrence(expected.body(), a.body(), x.body(), c.axis, backwards);
        detail::kernels(gpu).recurrence(found.body(), a_there.body(), there.body(), c.axis, backwards);
        CHECK(apart(found, expected) <= allowed(result));
      }
}

TEST_CASE(
    "running products and recurrences on a device survive what overflows where it is joined to other ends first") {
  if (lacks_device()) return;
  std::vector<double> large(40'000, 1e30);
  large[0] = 0;
  Tensor x = to(tensor(large), f32), there = to(x, gpu), found = to(x, gpu), nothing = to(zeros({40'000}), gpu);
  detail::kernels(gpu).cumprod(found.body(), there.body(), 0, false);
  CHECK(apart(found, zeros({40'000})) == 0);
  detail::kernels(gpu).recurrence(found.body(), there.body(), nothing.body(), 0, false);
  CHECK(apart(found, zeros({40'000})) == 0);
}

TEST_CASE("places in sorted rows on a device are those of the CPU") {
  if (lacks_device()) return;
  for (DType dtype : {f32, f64, f16, i32, u8, i16})
    for (bool right : {false, true})
      for (bool one_row : {false, true}) {
        Tensor rows = reel::sort(drawn(one_row ? Shape{900} : Shape{4, 900}, dtype, true)).values;
        Tensor values = drawn({4, 77}, dtype, true), rows_there = to(rows, gpu), values_there = to(values, gpu);
        Tensor expected = zeros({4, 77}, {.dtype = i64}), found = to(expected, gpu);
        detail::kernels(cpu).searchsorted(expected.body(), rows.body(), values.body(), right);
        detail::kernels(gpu).searchsorted(found.body(), rows_there.body(), values_there.body(), right);
        CAPTURE(name_of(dtype), right, one_row);
        CHECK(apart(found, expected) == 0);
      }
}

}  // namespace reel_test
