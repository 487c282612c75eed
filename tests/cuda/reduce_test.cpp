#include "cuda/close.h"
#include "kernels/kernel_table.h"

// Reductions that are divided into parts, and columns of all widths; the op table's shapes are too small for these.

namespace reel_test {

using namespace reel;
using detail::Reduction;

namespace {

struct Case {
  Shape shape;
  std::vector<int> axes;   // reduced axes
  std::vector<int> order;  // of the axes in memory; empty: row-major
};

const std::vector<Case> cases = {
    {{1}, {0}, {}},
    {{7}, {0}, {}},
    {{100'000}, {0}, {}},
    {{20'001}, {0}, {}},
    {{3, 30'000}, {1}, {}},
    {{30'000, 3}, {0}, {}},
    {{30'000, 3}, {0}, {1, 0}},
    {{257, 1000}, {1}, {}},
    {{1000, 257}, {0}, {}},
    {{5000, 4}, {1}, {}},
    {{4, 5000}, {0}, {}},
    {{300, 33}, {}, {}},
    {{6, 40, 5, 50}, {0, 2}, {}},
    {{6, 40, 5, 50}, {1, 3}, {3, 1, 0, 2}},
    {{9, 20, 700}, {0, 2}, {}},
    {{9, 20, 700}, {0, 1, 2}, {}},
    {{4, 3, 50, 2, 70}, {0, 2, 4}, {}},
    {{5, 4, 3, 64}, {0, 2, 3}, {}},
    {{3, 70'016}, {1}, {}},
};

// The case's tensor on a device.
Tensor place(const Tensor& x, const Case& c, Device device) {
  if (c.order.empty()) return to(x, device);
  Shape axes, back = x.shape();
  for (int axis : c.order) axes.push_back(axis);
  for (int i = 0; i < x.rank(); ++i) back[c.order[static_cast<std::size_t>(i)]] = i;
  return permute(to(contiguous(permute(x, axes)), device), back);
}

Tensor result(const Case& c, DType dtype, Device device) {
  Shape shape = c.shape;
  for (int axis : c.axes) shape[axis] = 1;
  return to(zeros(shape, {.dtype = dtype}), device);
}

template <class Slot>
void compare(const Tensor& x, const Case& c, DType result_dtype, Slot slot) {
  Tensor expected = result(c, result_dtype, cpu), found = result(c, result_dtype, gpu);
  slot(detail::kernels(cpu), expected.body(), place(x, c, cpu).body());
  Tensor there = place(x, c, gpu);
  slot(detail::kernels(gpu), found.body(), there.body());
  CHECK(apart(found, expected) <= allowed(result_dtype));
}

void compare_reduction(Reduction op, const Tensor& x, const Case& c) {
  bool places = op == Reduction::argmax || op == Reduction::argmin,
       adds = op == Reduction::sum || op == Reduction::prod;
  DType dtype = places || (adds && !is_floating(x.dtype())) ? i64 : x.dtype();
  CAPTURE(static_cast<int>(op), to_string(c.shape), c.axes.size(), name_of(x.dtype()));
  compare(x, c, dtype, [op](const detail::KernelTable& table, const detail::View& out, const detail::View& in) {
    table.reduce[static_cast<int>(op)](out, in);
  });
}

Tensor drawn(const Shape& shape, DType dtype) {
  Generator generator(5);
  if (is_floating(dtype)) return to(randn(shape, {.generator = &generator}), dtype);
  return to(randint(0, 5, shape, {.generator = &generator}), dtype);
}

constexpr Reduction all_reductions[] = {Reduction::sum, Reduction::max, Reduction::min, Reduction::argmax,
                                        Reduction::argmin};

}  // namespace

TEST_CASE("reductions on a device give what they give on the CPU, in every dtype and for every shape") {
  if (lacks_device()) return;
  for (const Case& c : cases)
    for (DType dtype : {f32, f64, bf16, f16, i32, i64, u8, boolean, i8, i16}) {
      Tensor x = drawn(c.shape, dtype);
      for (Reduction op : all_reductions) compare_reduction(op, x, c);
      if (is_floating(dtype)) compare_reduction(Reduction::logsumexp, x, c);
      // Near 1, so that products of many stay in range.
      Tensor factors = is_floating(dtype) ? to(1 + to(x, f64) * 0.001, dtype) : x;
      compare_reduction(Reduction::prod, factors, c);
    }
}

TEST_CASE("reductions of rows on a device are those of the CPU for every length, wherever rows begin") {
  if (lacks_device()) return;
  for (DType dtype : {f32, f64, bf16, f16})
    for (std::int64_t length :
         {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 257, 511, 512, 513, 1023, 1024, 4100, 9000})
      for (std::int64_t start : {0, 1, 8}) {
        Tensor all = drawn({3, length + 16}, dtype), x = slice(all, 1, start, start + length);
        Tensor there = slice(to(all, gpu), 1, start, start + length);
        for (bool whole : {false, true}) {
          CAPTURE(name_of(dtype), length, start, whole);
          auto check = [&](DType result_dtype, const auto& slot) {
            Shape shape = whole ? Shape{1, 1} : Shape{3, 1};
            Tensor expected = zeros(shape, {.dtype = result_dtype}), found = to(expected, gpu);
            slot(detail::kernels(cpu), expected.body(), x.body());
            slot(detail::kernels(gpu), found.body(), there.body());
            CHECK(apart(found, expected) <= allowed(result_dtype));
          };
          using detail::KernelTable, detail::View;
          for (Reduction op : {Reduction::sum, Reduction::max, Reduction::argmin, Reduction::logsumexp})
            check(op == Reduction::argmin ? i64 : dtype,
                  [op](const KernelTable& table, const View& out, const View& in) {
                    table.reduce[static_cast<int>(op)](out, in);
                  });
          check(dtype, [](const KernelTable& table, const View& out, const View& in) { table.norm(out, in, 3); });
          if (length > 1)
            check(dtype,
                  [](const KernelTable& table, const View& out, const View& in) { table.variance(out, in, 2, false); });
        }
      }
}

TEST_CASE("variances and norms on a device are those of the CPU") {
  if (lacks_device()) return;
  for (const Case& c : cases)
    for (DType dtype : {f32, f64, bf16, f16}) {
      Tensor x = drawn(c.shape, dtype);
      CAPTURE(to_string(c.shape), c.axes.size(), name_of(dtype));
      for (const Tensor& shifted : {x, to(to(x, f64) + 10'000, dtype)})
        compare(shifted, c, dtype,
                [](const detail::KernelTable& table, const detail::View& out, const detail::View& in) {
                  table.variance(out, in, 3, false);
                });
      for (double p : {0.0, 1.0, 2.0, 3.0, -2.0, 0.5, HUGE_VAL, -HUGE_VAL}) {
        CAPTURE(p);
        compare(x, c, dtype, [p](const detail::KernelTable& table, const detail::View& out, const detail::View& in) {
          table.norm(out, in, p);
        });
      }
    }
}

TEST_CASE("reductions on a device treat NaN, infinities, ties and huge numbers as the CPU does") {
  if (lacks_device()) return;
  constexpr double nan = NAN, infinity = HUGE_VAL;
  const std::vector<double> rows[] = {{nan, 1, 2},
                                      {1, nan, nan},
                                      {infinity, -infinity, 0},
                                      {infinity, infinity, 1},
                                      {-infinity, -infinity, -infinity},
                                      {2, 2, 2},
                                      {-0.0, 0.0, 0},
                                      {infinity, nan, -infinity},
                                      {1e308, 1e308, -1e308},
                                      {1e-300, 1e-300, 1e-310},
                                      {-1e308, 0, 1}};
  for (std::int64_t length : {3, 40, 3000, 100'000})
    for (const std::vector<double>& row : rows)
      for (DType dtype : {f64, f32, bf16}) {
        std::vector<double> values(static_cast<std::size_t>(length));
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = row[(i * 7) % 3];
        Tensor x = to(tensor(values), dtype);
        Case c{{length}, {0}, {}};
        CAPTURE(row[0], row[1], row[2]);
        for (Reduction op :
             {Reduction::max, Reduction::min, Reduction::argmax, Reduction::argmin, Reduction::logsumexp})
          compare_reduction(op, x, c);
        for (double p : {2.0, 3.0, -1.0, HUGE_VAL}) {
          CAPTURE(p, length, name_of(dtype));
          compare(x, c, dtype, [p](const detail::KernelTable& table, const detail::View& out, const detail::View& in) {
            table.norm(out, in, p);
          });
        }
        if (std::abs(row[0]) == 1e308) continue;  // its square overflows
        compare(x, c, dtype, [](const detail::KernelTable& table, const detail::View& out, const detail::View& in) {
          table.variance(out, in, 2, true);
        });
      }
}

TEST_CASE("nonzero and has_anomaly on a device find what the CPU finds") {
  if (lacks_device()) return;
  for (const Case& c : cases) {
    Tensor x = drawn(c.shape, i32) > 2;
    Tensor there = place(x, c, gpu), here = place(x, c, cpu);
    std::int64_t count = detail::kernels(cpu).nonzero_count(here.body());
    CHECK(detail::kernels(gpu).nonzero_count(there.body()) == count);
    Tensor expected = zeros({count, x.rank()}, {.dtype = i64}), found = to(expected, gpu);
    detail::kernels(cpu).nonzero(expected.body(), here.body());
    detail::kernels(gpu).nonzero(found.body(), there.body());
    CHECK(apart(found, expected) == 0);
  }
  for (DType dtype : {f32, f64, bf16, f16})
    for (double number : {1.0, double{NAN}, -double{NAN}, HUGE_VAL, -HUGE_VAL, -0.0, 6e4})
      // In the middle, and in the elements behind the last 16 bytes.
      for (std::size_t place : {0, 4321, 5000})
        for (std::int64_t start : {0, 1}) {
          std::vector<double> values(5001, 2);
          values[place] = number;
          Tensor x = slice(to(tensor(values), dtype), 0, start, 5001);
          Tensor there = slice(to(to(tensor(values), dtype), gpu), 0, start, 5001);
          CAPTURE(name_of(dtype), number, place, start);
          for (bool infinities_count : {false, true})
            CHECK(detail::kernels(gpu).has_anomaly(there.body(), infinities_count) ==
                  detail::kernels(cpu).has_anomaly(x.body(), infinities_count));
        }
}

}  // namespace reel_test
