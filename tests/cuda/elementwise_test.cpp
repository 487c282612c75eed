#include <reel/batching.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "catch.h"
#include "cuda/close.h"
#include "cuda/gpu.h"
#include "kernels/optimise.h"

// Cases too large for the op table: rows that are read 16 bytes at a time, tiles, many parts.

namespace reel_test {

using namespace reel;

namespace {

constexpr DType every_dtype[] = {f32, f64, bf16, f16, i32, i64, u8, boolean, i8, i16};

Tensor drawn(const Shape& shape, DType dtype, std::uint64_t seed) {
  Generator generator(seed);
  Tensor x = randn(shape, {.dtype = f64, .generator = &generator});
  return to(is_floating(dtype) ? x : x * 40.0, dtype);
}

using Op = std::function<Tensor(const std::vector<Tensor>& x)>;

// Runs the op on both devices.
void check(const Op& op, const std::vector<Tensor>& x) {
  std::vector<Tensor> there;
  for (const Tensor& tensor : x) there.push_back(to(tensor, gpu));
  Tensor expected = op(x), found = op(there);
  REQUIRE(found.device() == gpu);
  CHECK(found.shape() == expected.shape());
  CHECK(apart(found, expected) <= allowed(expected.dtype()));
}

Tensor sum_of(const std::vector<Tensor>& x) { return x[0] + x[1]; }

}  // namespace

TEST_CASE("operands in order give the same whatever their length and wherever they begin") {
  if (lacks_device()) return;
  for (DType dtype : every_dtype)
    for (std::int64_t count : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 1000, 4099})
      for (std::int64_t start : {0, 1, 2, 8}) {
        CAPTURE(name_of(dtype), count, start);
        std::vector<Tensor> x = {drawn({count + start}, dtype, 1), drawn({count + start}, dtype, 2)};
        auto part = [&](const Tensor& x) { return slice(x, 0, start, start + count); };
        check([&](const std::vector<Tensor>& x) { return part(x[0]) + part(x[1]); }, x);
        check([&](const std::vector<Tensor>& x) { return part(x[0]) + slice(x[1], 0, 0, count); }, x);
        check([&](const std::vector<Tensor>& x) { return copy(part(x[0])); }, x);
        check([&](const std::vector<Tensor>& x) { return equal(part(x[0]), part(x[1])); }, x);
        check(
            [&](const std::vector<Tensor>& x) {
              Tensor y = copy(x[0]);
              fill_(part(y), 1);
              return y;
            },
            x);
      }
}

TEST_CASE("rows are broadcast, skipped and transposed as on the CPU, whatever their length") {
  if (lacks_device()) return;
  for (DType dtype : {f32, f64, bf16, u8})
    for (std::int64_t width : {1, 3, 4, 8, 16, 30, 48, 64}) {
      CAPTURE(name_of(dtype), width);
      auto x = [&](const Shape& shape, std::uint64_t seed) { return drawn(shape, dtype, seed); };
      check(sum_of, {x({5, 6, width}, 1), x({width}, 2)});
      check(sum_of, {x({5, 6, width}, 1), x({6, 1}, 2)});
      check(sum_of, {x({5, 1, width}, 1), x({1, 6, 1}, 2)});
      check(sum_of, {x({5, 6, width}, 1), x({}, 2)});
      auto second_half = [&](const std::vector<Tensor>& x) { return slice(x[0], 1, width, 2 * width) + x[1]; };
      check(second_half, {x({7, 2 * width}, 1), x({7, width}, 2)});
      auto transposed = [&](const std::vector<Tensor>& x) { return transpose(x[0]) + x[1]; };
      check(transposed, {x({width, 7}, 1), x({7, width}, 2)});
      auto chosen = [&](const std::vector<Tensor>& x) { return where(greater(x[0], x[1]), x[0], x[1]); };
      check(chosen, {x({9, width}, 1), x({width}, 2)});
      auto in_place = [&](const std::vector<Tensor>& x) {
        Tensor y = copy(x[0]);
        add_(slice(y, 1, 0, width), x[1]);
        return y;
      };
      check(in_place, {x({7, 2 * width}, 1), x({7, width}, 2)});
    }
}

TEST_CASE("numbers of f32 beside halves are not rounded, along contiguous elements, rows and strides") {
  if (lacks_device()) return;
  using NumberOp = Tensor (*)(const Tensor& x, const Arg& number);
  constexpr NumberOp ops[] = {
      [](const Tensor& x, const Arg& c) { return x * c; },
      [](const Tensor& x, const Arg& c) { return c / x; },
      [](const Tensor& x, const Arg& c) { return x % c; },
      [](const Tensor& x, const Arg& c) { return lerp(x, square(x), c); },
      [](const Tensor& x, const Arg& c) { return lerp(c, x, 0.3); },
      [](const Tensor& x, const Arg& c) { return maximum(x, c); },
      [](const Tensor& x, const Arg& c) {
        Tensor y = copy(x);
        sub_(y, c);
        return y;
      },
  };
  for (DType dtype : {bf16, f16})
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{3}, Shape{8}, Shape{1003}, Shape{6, 48}, Shape{5, 30}})
      for (double c : {0.3, 1e5, 1e-8})
        for (std::size_t i = 0; i < std::size(ops); ++i) {
          CAPTURE(name_of(dtype), to_string(shape), c, i);
          Tensor x = drawn(shape, dtype, 4);
          auto with_number = [&](const std::vector<Tensor>& x) { return ops[i](x[0], c); };
          check(with_number, {x});
          check([&](const std::vector<Tensor>& x) { return ops[i](x[0], x[1]); }, {x, full({}, c, {.dtype = f32})});
          if (x.rank() < 2) continue;
          check(with_number, {transpose(x)});
          check(with_number, {slice(x, 1, 0, 16)});
        }
  // Numbers of a batch, joined to a column.
  std::vector<double> examples = {0.3, 1e5, 1e-8, 2};
  for (const Shape& shape : {Shape{}, Shape{8}, Shape{5}}) {
    Tensor x = to(drawn(shape, f16, 6), gpu);
    auto run = [&](const BatchOptions& options) {
      return concat(batch_map(
                        examples, [&](double c) { return reshape(c / (x * c), {-1}); }, options),
                    0);
    };
    CHECK(apart(run({}), to(run({.immediate = true}), cpu)) == 0);
  }
  // Powers that have formulas of their own, of numbers on either side.
  for (double c : {2.0, 3.0, 0.5, -1.0, 0.3})
    for (const Shape& shape : {Shape{}, Shape{50}}) {
      Tensor x = abs(drawn(shape, f16, 5)) + 0.5;
      check([&](const std::vector<Tensor>& x) { return pow(x[0], c); }, {x});
      check([&](const std::vector<Tensor>& x) { return pow(std::abs(c), x[0]); }, {x});
    }
}

TEST_CASE("every dtype becomes every other one as on the CPU") {
  if (lacks_device()) return;
  std::vector<double> special = {0.0,   -0.0,  0.5,   1.5,    -1.5,       255.0,       256.0,     -1.0,
                                 1e5,   -1e5,  1e10,  -1e10,  0x1p63,     -0x1p63,     1e300,     -1e300,
                                 1e-40, 1e-8,  65519, 65520,  NAN,        HUGE_VAL,    -HUGE_VAL, 1 + 0x1p-8 + 0x1p-40,
                                 1.003, 1.004, 2049,  1.0005, 16777217.0, 4294967295.0};
  for (DType from : every_dtype)
    for (DType into : every_dtype) {
      CAPTURE(name_of(from), name_of(into));
      Tensor x = to(tensor(special), from);
      // Bit by bit: in f64 every value is exact, and its sign shows in 1 / x.
      for (const Tensor& y : {x, slice(x, 0, 1, 28), slice(concat({x, x}, 0), 0, 0, 60, 3)}) {
        Tensor expected = to(to(y, into), f64), found = to(to(to(to(y, gpu), into), cpu), f64);
        CHECK(apart(found, expected) == 0);
        CHECK(apart(1.0 / found, 1.0 / expected) == 0);
      }
    }
}

TEST_CASE("i64 becomes a half with one rounding on a device too") {
  if (lacks_device()) return;
  std::int64_t big = (std::int64_t{1} << 40) + (std::int64_t{1} << 32) + 1;
  CHECK(to(to(to(tensor({big}), gpu), bf16), cpu).item() == 0x1p40 + 0x1p33);
}

TEST_CASE("layouts whose innermost axes differ are copied by tiles") {
  if (lacks_device()) return;
  for (DType dtype : {f32, f64, bf16, u8})
    for (const Shape& shape : {Shape{8, 8}, Shape{33, 65}, Shape{100, 31}, Shape{3, 40, 50}, Shape{2, 70, 3, 40}}) {
      CAPTURE(name_of(dtype), to_string(shape));
      Tensor x = drawn(shape, dtype, 3);
      check([](const std::vector<Tensor>& x) { return copy(transpose(x[0])); }, {x});
      Shape axes;
      for (int i = x.rank(); i-- > 0;) axes.push_back(i);
      check([&](const std::vector<Tensor>& x) { return copy(permute(x[0], axes)); }, {x});
      check([&](const std::vector<Tensor>& x) { return copy(slice(transpose(x[0]), -1, 1, shape[-2])); }, {x});
    }
}

TEST_CASE("many parts are put together, of every size and layout") {
  if (lacks_device()) return;
  for (DType dtype : {f32, f64, bf16, u8})
    for (int axis : {0, 1, 2})
      for (std::int64_t step : {1, 4, 16}) {
        CAPTURE(name_of(dtype), axis, step);
        std::vector<Tensor> parts, alike;
        for (int i = 0; i < 450; ++i) {
          Shape shape{3, 4, 4};
          shape[axis] = i % 4 * step;
          parts.push_back(drawn(shape, dtype, static_cast<std::uint64_t>(i)));
          alike.push_back(drawn({3, 2}, dtype, static_cast<std::uint64_t>(i)));
        }
        check([&](const std::vector<Tensor>& x) { return concat(x, axis); }, parts);
        check([&](const std::vector<Tensor>& x) { return stack(x, axis); }, alike);
        check(
            [&](const std::vector<Tensor>& x) {
              std::vector<Tensor> transposed;
              for (std::size_t i = 0; i < 9; ++i) transposed.push_back(transpose(x[i]));
              return concat(transposed, 0);
            },
            alike);
      }
}

TEST_CASE("random numbers of a device are those of the CPU") {
  if (lacks_device()) return;
  auto draw = [](Device device, auto f) {
    Generator generator(77);
    return to(f(device, &generator), cpu);
  };
  auto check_draw = [&](double far, auto f) { CHECK(apart(draw(gpu, f), draw(cpu, f)) <= far); };
  const Shape shape{70, 301};
  for (DType dtype : {f32, f64, bf16, f16}) {
    CAPTURE(name_of(dtype));
    check_draw(0, [&](Device d, Generator* g) { return rand(shape, {.dtype = dtype, .device = d, .generator = g}); });
    check_draw(allowed(dtype),
               [&](Device d, Generator* g) { return randn(shape, {.dtype = dtype, .device = d, .generator = g}); });
    check_draw(allowed(dtype),
               [&](Device d, Generator* g) { return gumbel(shape, {.dtype = dtype, .device = d, .generator = g}); });
    Tensor x = rand(shape, {.dtype = dtype});
    check_draw(0, [&](Device d, Generator* g) { return bernoulli(to(x, d), {.generator = g}); });
    check_draw(0,
               [&](Device d, Generator* g) { return dropout(to(x, d), {.probability = 0.3, .generator = g}) == 0.0; });
    check_draw(0, [&](Device d, Generator* g) {
      return dropout(transpose(to(x, d)), {.probability = 0.3, .generator = g}) == 0.0;
    });
  }
  for (DType dtype : {i32, i64, u8, i8, i16})
    check_draw(0, [&](Device d, Generator* g) {
      return randint(3, dtype == i8 ? 120 : 250, shape, {.dtype = dtype, .device = d, .generator = g});
    });
  check_draw(0, [&](Device d, Generator* g) {
    return randint(-(std::int64_t{1} << 62), std::int64_t{1} << 62, shape, {.device = d, .generator = g});
  });
}

TEST_CASE("plain numbers beside a tensor are what they are, however many there have been") {
  if (lacks_device()) return;
  for (DType dtype : {f32, f64, f16, i32, boolean})
    for (int round : {0, 1}) {
      CAPTURE(name_of(dtype), round);
      Tensor x = drawn({5}, dtype, 1), there = to(x, gpu);
      for (int i = -150; i < 150; ++i) {
        CHECK(apart(there * i, x * i) <= allowed(f32));
        CHECK(apart(there * (i * 0.5), x * (i * 0.5)) <= allowed((x * 0.5).dtype()));
      }
    }
  Tensor one = to(tensor({1.0f}), gpu);
  CHECK(apart(one / -0.0, tensor({-HUGE_VALF})) == 0);
  CHECK(apart(one / 0.0, tensor({HUGE_VALF})) == 0);
  // Each use has its own tensor.
  one = to(full({}, 3.0f), gpu);
  one.requires_grad();
  Tape tape;
  tape.backward(one * 2.0);
  mul_(one.grad(), 5.0);
  CHECK((one * 2.0).item<float>() == 6);
  CHECK(one.grad().item<float>() == 10);
}

TEST_CASE("a probability that is none, and an index without a class, are named when the device is next waited for") {
  if (lacks_device()) return;
  CHECK_THROWS_WITH(to(bernoulli(to(tensor({0.5f, 1.5f}), gpu)), cpu),
                    Catch::Contains("bernoulli: the probability 1.5 lies outside [0, 1]"));
  CHECK_THROWS_WITH(to(one_hot(to(tensor({0, 3}), gpu), 3), cpu),
                    Catch::Contains("one_hot: index 3 is none of the 3 classes, for the indices (2,) i32"));
}

namespace {

// A parameter, its gradient and its state, from their `offset`th elements on.
detail::ParameterSlice slice_of(const std::vector<Tensor>& x, std::int64_t offset) {
  auto at = [&](std::size_t i) {
    return static_cast<char*>(x[i].body().data) + offset * static_cast<std::int64_t>(size_of(x[i].dtype()));
  };
  return {x[0].dtype(), x[0].numel() - offset, at(0), at(1), {at(2), at(3), at(4)}};
}

// Makes one step of an optimiser on both devices, for `times` as many parameters as there are sizes and dtypes.
template <class F>
void check_step(const detail::NumbersOf<F>& numbers, int times = 1) {
  static_cast<void>(to(zeros({1}), gpu));  // kernels are there once a tensor has been
  std::vector<std::vector<Tensor>> here, there;
  std::vector<detail::ParameterSlice> slices_here, slices_there;
  for (int time = 0; time < times; ++time)
    for (DType dtype : {f32, f64})
      for (std::int64_t count : {1, 7, 0, 64, 1001, 5000}) {
        here.emplace_back();
        there.emplace_back();
        for (std::uint64_t i = 0; i < 5; ++i) {
          here.back().push_back(abs(drawn({count}, dtype, i)) + 0.1);
          there.back().push_back(to(here.back().back(), gpu));
        }
        std::int64_t offset = count % 2;  // those of odd size are not aligned to 16 bytes
        slices_here.push_back(slice_of(here.back(), offset));
        slices_there.push_back(slice_of(there.back(), offset));
      }
  detail::kernel_of<F>(detail::optimiser_kernels(cpu))(slices_here, numbers, nullptr);
  detail::kernel_of<F>(detail::optimiser_kernels(gpu))(slices_there, numbers, nullptr);
  for (std::size_t k = 0; k < here.size(); ++k)
    for (std::size_t i = 0; i < 5; ++i) {
      CAPTURE(here[k][i].numel(), name_of(here[k][i].dtype()), i);
      CHECK(apart(there[k][i], here[k][i]) <= allowed(here[k][i].dtype()));
    }
}

}  // namespace

TEST_CASE("every optimiser's step is that of the CPU") {
  if (lacks_device()) return;
  using namespace detail;
  check_step<formulas::Sgd>({0.01, 0.9, 0.8, 0.3, 0.7, 0.1});
  check_step<formulas::SgdMomentum>({0.01, 0.9, 0.8, 0.3, 0.7, 0.1});
  AdamNumbers adam{0.01, 0.99, 0.9, 0.1, 0.95, 0.05, 0.2, 0.3, 1.5, 1e-3};
  check_step<formulas::Adam>(adam);
  check_step<formulas::AmsGrad>(adam);
  check_step<formulas::Adagrad>({0.01, 0.1, 1e-3});
  check_step<formulas::Adadelta>({0.01, 0.9, 0.1, 0.5, 1e-3});
  RMSpropNumbers rmsprop{0.01, 0.9, 0.1, 0.8, 0.1, 0.1};
  check_step<formulas::Rmsprop>(rmsprop);
  check_step<formulas::RmspropMomentum>(rmsprop);
  check_step<formulas::RmspropCentred>(rmsprop);
  check_step<formulas::RmspropCentredMomentum>(rmsprop);
  check_step<formulas::Adamax>({0.01, 0.9, 0.1, 0.95, 0.1, 1e-3});
  check_step<formulas::Lion>({0.99, 0.9, 0.1, 0.8, 0.2, 0.1});
  check_step<formulas::Average>({0.9, 0.1});
  check_step<formulas::Scale>({0.7});
  check_step<formulas::Cut>({0.5});
}

TEST_CASE("a step of more parameters than fit the arguments of a kernel is that of the CPU") {
  if (lacks_device()) return;
  detail::AdamNumbers adam{0.01, 0.99, 0.9, 0.1, 0.95, 0.05, 0.2, 0.3, 1.5, 1e-3};
  check_step<formulas::AmsGrad>(adam, 20);
}

TEST_CASE("the norm of many tensors is that of all their elements, and neither overflows nor underflows") {
  if (lacks_device()) return;
  auto norm_of = [](const std::vector<Tensor>& tensors) {
    static_cast<void>(to(zeros({1}), gpu));
    std::vector<detail::TensorSlice> slices;
    for (const Tensor& x : tensors) slices.push_back({x.dtype(), x.numel(), x.body().data});
    Tensor norm = zeros({}, {.dtype = f64, .device = gpu});
    detail::optimiser_kernels(gpu).norm(static_cast<double*>(norm.body().data), slices);
    return norm.item();
  };
  for (DType dtype : {f32, f64}) {
    double sum = 0;
    std::vector<Tensor> tensors;
    for (std::uint64_t i = 0; i < 300; ++i) {
      Tensor x = to(drawn({static_cast<std::int64_t>(i * i % 97 * 151)}, f64, i), dtype);
      for (double value : to(x, f64).to_vector<double>()) sum += value * value;
      tensors.push_back(to(x, gpu));
    }
    CHECK(norm_of(tensors) == Approx(std::sqrt(sum)).epsilon(1e-12));
    CHECK(norm_of({}) == 0);
    CHECK(norm_of({zeros({3}, {.dtype = dtype, .device = gpu})}) == 0);
    for (double bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
      std::vector<Tensor> worse = tensors;
      worse.push_back(full({1}, bad, {.dtype = dtype, .device = gpu}));
      CHECK_FALSE(std::isfinite(norm_of(worse)));
    }
  }
  for (double size : {3e38, 1e19, 1e-19, 1e-37})
    CHECK(norm_of({full({9000}, static_cast<float>(size), {.device = gpu})}) ==
          Approx(std::sqrt(9000) * size).epsilon(1e-6));
  auto wide = [](std::int64_t count, double value) { return full({count}, value, {.dtype = f64, .device = gpu}); };
  auto is_close = [](double found, double expected) { return std::abs(found / expected - 1) < 1e-12; };
  CHECK(is_close(norm_of({wide(9000, 1e300)}), std::sqrt(9000) * 1e300));
  CHECK(is_close(norm_of({wide(9000, 1e-300)}), std::sqrt(9000) * 1e-300));
  CHECK(is_close(norm_of({wide(4, 1e200), wide(4, 1e-200), wide(4, 1)}), 2e200));
  CHECK(is_close(norm_of({wide(4, 1e-200), wide(4, 1)}), 2));
  CHECK(is_close(norm_of({wide(1, 0x1p-511 * 0.75), wide(1, 0x1p-511)}), 0x1p-511 * 1.25));
}

}  // namespace reel_test
