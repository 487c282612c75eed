#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "catch.h"
#include "ops/bad_input.h"
#include "ops/gradient_orders.h"
#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr std::uint64_t seed = 4711;
constexpr double epsilon = 1e-3, infinity = std::numeric_limits<double>::infinity();

Tensor standardised(const Tensor& x, const Shape& axes) {
  Tensor centred = x - mean(x, axes, {.keepdims = true});
  return centred / sqrt(mean(centred * centred, axes, {.keepdims = true}) + epsilon);
}

Tensor composed_group_norm(std::span<const Tensor> x, std::int64_t groups) {
  Tensor rows = standardised(reshape(x[0], {x[0].size(0), groups, -1}), {2});
  Shape column{x[0].size(1), 1};
  return reshape(rows, x[0].shape()) * reshape(x[1], column) + reshape(x[2], column);
}

Tensor composed_batch_norm(std::span<const Tensor> x, const Tensor& mean, const Tensor& variance) {
  Tensor standard = mean.defined() ? (x[0] - reshape(mean, {-1, 1})) / sqrt(reshape(variance, {-1, 1}) + epsilon)
                                   : standardised(x[0], {0, 2});
  return standard * reshape(x[1], {-1, 1}) + reshape(x[2], {-1, 1});
}

struct Pair {
  std::string name;
  Shape x, parameter;
  Function fused, composed;
};

std::vector<Pair> pairs() {
  Tensor running_mean = tensor({0.25, -1.0, 0.5}), running_variance = tensor({0.5, 2.0, 1.0});
  auto train = [](auto x) {
    Tensor running = ones({3}, {.dtype = f64}), other = ones({3}, {.dtype = f64});
    return batch_norm(x[0], x[1], x[2], running, other, {.training = true, .epsilon = epsilon});
  };
  return {
      {"layer_norm",
       {4, 37},
       {37},
       [](auto x) { return layer_norm(x[0], {37}, x[1], x[2], {.epsilon = epsilon}); },
       [](auto x) { return standardised(x[0], {1}) * x[1] + x[2]; }},
      {"layer_norm over two axes",
       {3, 2, 5},
       {2, 5},
       [](auto x) {
         return layer_norm(x[0], {2, 5}, x[1], x[2], {.epsilon = epsilon});
       },
       [](auto x) {
         return standardised(x[0], {1, 2}) * x[1] + x[2];
       }},
      {"rms_norm",
       {4, 37},
       {37},
       [](auto x) { return rms_norm(x[0], {37}, x[1], {.epsilon = epsilon}) + 0 * x[2]; },
       [](auto x) { return x[0] / sqrt(mean(square(x[0]), {1}, {.keepdims = true}) + epsilon) * x[1] + 0 * x[2]; }},
      {"group_norm",
       {3, 6, 4},
       {6},
       [](auto x) { return group_norm(x[0], 2, x[1], x[2], {.epsilon = epsilon}); },
       [](auto x) { return composed_group_norm(x, 2); }},
      {"instance_norm",
       {3, 2, 7},
       {2},
       [](auto x) { return instance_norm(x[0], x[1], x[2], {.epsilon = epsilon}); },
       [](auto x) { return composed_group_norm(x, 2); }},
      // Rows, groups and channels that are computed together, or in several pieces.
      {"layer_norm of short rows",
       {21, 5},
       {5},
       [](auto x) { return layer_norm(x[0], {5}, x[1], x[2], {.epsilon = epsilon}); },
       [](auto x) { return standardised(x[0], {1}) * x[1] + x[2]; }},
      {"instance_norm of short channels",
       {2, 21, 3},
       {21},
       [](auto x) { return instance_norm(x[0], x[1], x[2], {.epsilon = epsilon}); },
       [](auto x) { return composed_group_norm(x, 21); }},
      {"group_norm of pieces",
       {1, 4, 601},
       {4},
       [](auto x) { return group_norm(x[0], 2, x[1], x[2], {.epsilon = epsilon}); },
       [](auto x) { return composed_group_norm(x, 2); }},
      {"batch_norm of small planes", {230, 3, 5}, {3}, train, [](auto x) { return composed_batch_norm(x, {}, {}); }},
      {"batch_norm in training", {4, 3, 9}, {3}, train, [](auto x) { return composed_batch_norm(x, {}, {}); }},
      {"batch_norm out of training",
       {4, 3, 9},
       {3},
       [=](auto x) { return batch_norm(x[0], x[1], x[2], running_mean, running_variance, {.epsilon = epsilon}); },
       [=](auto x) { return composed_batch_norm(x, running_mean, running_variance); }},
  };
}

using Tensors = std::vector<Tensor>;

double apart(const Tensor& a, const Tensor& b) {
  Array left = array_of(a), right = array_of(b);
  double worst = left.values.size() == right.values.size() ? 0 : infinity;
  for (std::size_t i = 0; i < left.values.size(); ++i)
    worst = std::max(worst, std::abs(left.values[i] - right.values[i]));
  return worst;
}

}  // namespace

TEST_CASE("fused normalisations equal composed ones, forward and to first and second order") {
  CAPTURE(seed);
  manual_seed(seed);
  for (const Pair& pair : pairs()) {
    CAPTURE(pair.name);
    Tensors x{randn(pair.x, {.dtype = f64}) * 2 + 1, randn(pair.parameter, {.dtype = f64}),
              randn(pair.parameter, {.dtype = f64})};
    check_orders(pair.fused, pair.composed, x);
  }
}

TEST_CASE("each gradient of a normalisation can be had alone") {
  manual_seed(seed);
  for (const Pair& pair : pairs()) {
    Tensors x{randn(pair.x, {.dtype = f64}), randn(pair.parameter, {.dtype = f64}),
              randn(pair.parameter, {.dtype = f64})};
    Tensors all = first_order(pair.fused, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      CAPTURE(pair.name, i);
      Function of_one = [&](std::span<const Tensor> one) {
        Tensors given = x;
        given[i] = one[0];
        return pair.fused(given);
      };
      CHECK(apart(first_order(of_one, {x[i]}), {all[i]}) < 1e-12);
      CHECK(apart(orders(of_one, {x[i]}).first, {all[i]}) < 1e-12);
    }
  }
}

TEST_CASE("large and close numbers keep what tells them apart") {
  manual_seed(seed);
  Tensor close = to(randn({8, 3, 1500}) + 1e4, f32);
  auto same = [&](const Function& f) {
    Tensor wide = to(close, f64);
    // Relative to numbers of about 1, except for the few large ones.
    return apart(to(f({&close, 1}), f64), f({&wide, 1}));
  };
  CHECK(same([](auto x) { return layer_norm(x[0], {1500}); }) < 2e-6);
  CHECK(same([](auto x) { return group_norm(x[0], 1); }) < 2e-6);
  CHECK(same([](auto x) { return instance_norm(x[0]); }) < 2e-6);
  CHECK(same([](auto x) {
          Tensor mean = zeros({3}, {.dtype = x[0].dtype()}), variance = ones({3}, {.dtype = x[0].dtype()});
          return batch_norm(x[0], mean, variance, {.training = true});
        }) < 2e-6);
  // Pieces of one row that lie far apart.
  Tensor steps = concat({full({1, 1024}, -1e4), full({1, 1024}, 1e4)}, 1);
  CHECK(apart(layer_norm(steps, {2048}), steps / 1e4) < 1e-6);
}

TEST_CASE("NaN and infinity stay within their row or channel, and equal numbers give the bias") {
  Tensor x = tensor({{1.0, std::nan(""), 2.0}, {infinity, 1.0, 2.0}, {3.0, 3.0, 3.0}, {-1.0, 0.0, 1.0}});
  Tensor bias = tensor({1.0, 2.0, 3.0});
  Array y = array_of(layer_norm(x, {3}, ones_like(bias), bias));
  for (std::size_t i = 0; i < 6; ++i) CHECK(std::isnan(y.values[i]));
  for (std::size_t i = 6; i < 9; ++i) CHECK(y.values[i] == static_cast<double>(i - 5));
  for (std::size_t i = 9; i < 12; ++i) CHECK(std::isfinite(y.values[i]));
  Tensor mean = zeros({4}, {.dtype = f64}), variance = ones({4}, {.dtype = f64});
  Array z = array_of(batch_norm(transpose(x), mean, variance, {.training = true}));
  for (std::size_t i = 0; i < 12; ++i) CHECK(std::isfinite(z.values[i]) == (i % 4 >= 2));
  CHECK(array_of(mean).values[2] == Approx(0.3));
}

TEST_CASE("batch_norm in training brings the running statistics up to date, and nothing else does") {
  Tensor x = tensor({{1.0, 2.0}, {3.0, 8.0}, {5.0, 2.0}});
  Tensor mean = tensor({1.0, 2.0}), variance = tensor({1.0, 4.0});
  batch_norm(x, mean, variance);
  CHECK(mean.to_vector<double>() == std::vector<double>{1, 2});
  batch_norm(x, mean, variance, {.training = true, .momentum = 0.25});
  CHECK(mean.to_vector<double>() == std::vector<double>{1.5, 2.5});
  CHECK(variance.to_vector<double>() == std::vector<double>{1.75, 6});
  for (Layout layout : {Layout::nchw, Layout::nhwc}) {
    Tensor ones_of_f32 = ones({2}), zeros_of_f32 = zeros({2});
    Tensor half = to(layout == Layout::nhwc ? reshape(x, {3, 1, 2}) : reshape(x, {3, 2, 1}), bf16);
    CHECK(batch_norm(half, zeros_of_f32, ones_of_f32, {.training = true, .layout = layout}).dtype() == bf16);
    CHECK(zeros_of_f32.to_vector<float>()[0] == Approx(0.3f));
    CHECK(ones_of_f32.to_vector<float>()[1] == Approx(0.9f + 1.2f));
  }
}

TEST_CASE("batch_norm by given moments equals its equation for planes of any size") {
  CAPTURE(seed);
  manual_seed(seed);
  // Results are below 64, so their roundings are at most 2⁻⁴⁷ of f64, a few 2⁻¹⁸ of f32, and 2⁻³ of bf16.
  const std::pair<DType, double> dtypes[] = {{f64, 1e-13}, {f32, 3e-5}, {bf16, 0.13}};
  // Planes of an element, those that are read in the order of memory, and those of several pieces.
  for (std::int64_t size : {1, 2, 63, 64, 255, 256, 1024, 1025, 2100})
    for (auto [dtype, bound] : dtypes) {
      CAPTURE(size, name_of(dtype));
      DType parameters = dtype == f64 ? f64 : f32;
      Tensor x = to(randn({5, 7, size}, {.dtype = f64}), dtype), w = randn({7}, {.dtype = parameters}),
             b = randn({7}, {.dtype = parameters}), mean = randn({7}, {.dtype = parameters}),
             variance = rand({7}, {.dtype = parameters}) + 0.5;
      Tensor y = batch_norm(x, w, b, mean, variance, {.epsilon = epsilon});
      Tensors wide{to(x, f64), to(w, f64), to(b, f64)};
      Tensor expected = composed_batch_norm(wide, to(mean, f64), to(variance, f64));
      CHECK(max(abs(expected)).item<double>() < 64);
      CHECK(apart(y, expected) < bound);
    }
}

TEST_CASE("normalisations of large tensors, written past the caches, have the bits of those of their parts") {
  CAPTURE(seed);
  manual_seed(seed);
  // Outputs of more than 8 MB. Each part is small enough to be stored as usual.
  auto gradient = [](const Function& f, const Tensors& x, const Tensor& seed_of_y) {
    Tape tape;
    tape.watch(x[0]);
    return tape.gradient(f(x), x[0], {.seed = seed_of_y});
  };
  auto same_bits = [](const Tensor& whole, const Tensors& parts, std::int64_t axis) {
    return whole.to_vector<float>() == concat(parts, axis).to_vector<float>();
  };
  // Rows that begin at cache lines, and rows that do not.
  for (std::int64_t length : {1024, 1001}) {
    CAPTURE(length);
    Tensor x = randn({2100, length}), d = randn(x.shape()), w = randn({length}), b = randn({length});
    Function norm = [&](std::span<const Tensor> in) { return layer_norm(in[0], {length}, w, b); };
    Tensors rows, dx;
    for (std::int64_t first = 0; first < 2100; first += 700) {
      Tensors part{copy(slice(x, 0, first, first + 700))};
      rows.push_back(norm(part));
      dx.push_back(gradient(norm, part, slice(d, 0, first, first + 700)));
    }
    CHECK(same_bits(norm(Tensors{x}), rows, 0));
    CHECK(same_bits(gradient(norm, {x}, d), dx, 0));
  }
  for (std::int64_t size : {16640, 16641}) {
    CAPTURE(size);
    Tensor x = randn({2, 64, size}), d = randn(x.shape()), mean = randn({64}), variance = rand({64}) + 0.5;
    auto trained = [](std::span<const Tensor> in) {
      Tensor running = zeros({in[0].size(1)}), other = ones({in[0].size(1)});
      return batch_norm(in[0], running, other, {.training = true});
    };
    Tensors planes, channels, dx;
    for (std::int64_t n : {0, 1}) planes.push_back(batch_norm(copy(slice(x, 0, n, n + 1)), mean, variance));
    for (std::int64_t first = 0; first < 64; first += 16) {
      Tensors part{copy(slice(x, 1, first, first + 16))};
      channels.push_back(trained(part));
      dx.push_back(gradient(trained, part, slice(d, 1, first, first + 16)));
    }
    CHECK(same_bits(batch_norm(x, mean, variance), planes, 0));
    CHECK(same_bits(trained(Tensors{x}), channels, 1));
    CHECK(same_bits(gradient(trained, {x}, d), dx, 1));
  }
}

TEST_CASE("a short row or channel has the bits among many that it has alone") {
  CAPTURE(seed);
  manual_seed(seed);
  for (DType dtype : {f32, f64, bf16})
    for (std::int64_t length : {1, 2, 3, 4, 5, 8, 13, 16, 17, 31, 32, 33, 48, 63, 64, 65}) {
      CAPTURE(name_of(dtype), length);
      constexpr std::int64_t count = 53;
      Tensor x = to(randn({count, length}) * 3 + 100, dtype), w = to(randn({length}), dtype),
             b = to(randn({length}), dtype);
      Tensor layer = layer_norm(x, {length}, w, b), plain = layer_norm(x, {length}), rms = rms_norm(x, {length}, w);
      Tensor scale = to(randn({count}), dtype), shift = to(randn({count}), dtype), channels = transpose(x);
      // Groups of one channel, whose parameters are those of its row.
      Tensor groups = group_norm(reshape(x, {1, count, length}), count, scale, shift);
      auto train = [&](const Tensor& batch, const Tensor& scales, const Tensor& shifts) {
        Tensor mean = zeros({batch.size(1)}, {.dtype = dtype == f64 ? f64 : f32}), variance = ones_like(mean);
        return batch_norm(batch, scales, shifts, mean, variance, {.training = true});
      };
      Tensor batch = length > 1 ? train(channels, scale, shift) : Tensor();
      auto gradient = [&](const Tensor& rows, auto norm) {
        Tape tape;
        tape.watch(rows);
        return tape.gradient(sum(norm(rows) * (rows - 99.5)), rows);
      };
      auto by_layer = [&](const Tensor& rows) { return layer_norm(rows, {length}, w, b); };
      auto by_rms = [&](const Tensor& rows) { return rms_norm(rows, {length}, w); };
      Tensor layer_gradient = gradient(x, by_layer), rms_gradient = gradient(x, by_rms);
      for (std::int64_t row = 0; row < count; ++row) {
        CAPTURE(row);
        auto part = [&](const Tensor& of, int axis = 0) { return copy(slice(of, axis, row, row + 1)); };
        CHECK(same_bits(part(layer), layer_norm(part(x), {length}, w, b)));
        CHECK(same_bits(part(plain), layer_norm(part(x), {length})));
        CHECK(same_bits(part(rms), rms_norm(part(x), {length}, w)));
        CHECK(same_bits(part(layer_gradient), gradient(part(x), by_layer)));
        CHECK(same_bits(part(rms_gradient), gradient(part(x), by_rms)));
        CHECK(same_bits(part(groups, 1), group_norm(reshape(part(x), {1, 1, length}), 1, part(scale), part(shift))));
        if (length > 1) CHECK(same_bits(part(batch, 1), train(part(channels, 1), part(scale), part(shift))));
      }
    }
}

TEST_CASE("the running statistics count as overwritten") {
  Tensor x = tensor({{1.0, 2.0}, {3.0, 8.0}}), mean = tensor({1.0, 2.0}), variance = tensor({1.0, 4.0});
  Tape tape;
  tape.watch(x);
  Tensor y = sum(x * mean);
  batch_norm(x, mean, variance, {.training = true});
  CHECK_THAT(error_of<TapeError>([&] { tape.gradient(y, x); }), contains("overwritten"));
}

TEST_CASE("an evaluation has the gradient of its own statistics after a training has overwritten them") {
  for (DType dtype : {f32, f64}) {
    CAPTURE(name_of(dtype));
    Tensor x = to(tensor({{1.0, 2.0}, {3.0, 8.0}}), dtype), mean = to(tensor({1.0, 2.0}), dtype),
           variance = to(tensor({1.0, 4.0}), dtype);
    Tape tape;
    tape.watch(x);
    Tensor y = sum(batch_norm(x, mean, variance, {.epsilon = 0}));
    batch_norm(x, mean, variance, {.training = true});
    CHECK(to(tape.gradient(y, x), f64).to_vector<double>() == std::vector<double>{1, 0.5, 1, 0.5});
  }
}

TEST_CASE("f32 weights go with x of bf16, and get gradients of f32") {
  Tensor x = to(randn({3, 4}), bf16), weight = ones({4}), bias = zeros({4});
  Tape tape;
  tape.watch(weight);
  tape.watch(bias);
  Tensor y = layer_norm(x, {4}, weight, bias);
  CHECK(y.dtype() == bf16);
  auto [dw, db] = tape.gradient(sum(y), weight, bias);
  CHECK(dw.dtype() == f32);
  CHECK(db.to_vector<float>() == std::vector<float>{3, 3, 3, 3});
}

TEST_CASE("bad normalisations are refused by name") {
  Tensor x = zeros({2, 3, 4}), w = ones({3}), four = ones({4}), five = ones({5}), ints = zeros({2, 4}, {.dtype = i32}),
         u, number = zeros({}), wide = ones({4}, {.dtype = f64}), one = zeros({1, 3}), row = zeros({3}),
         repeated = expand(ones({1}), {3}), none = zeros({0, 3, 4});
  auto layout = static_cast<Layout>(7);
  all_fail<Error>({
      Bad("layer_norm: an operand is an undefined tensor", [&] { layer_norm(u, {4}); }),
      Bad("layer_norm: an operand is an undefined tensor", [&] { layer_norm(x, {4}, u); }),
      Bad("layer_norm: an operand is an undefined tensor", [&] { layer_norm(x, {4}, four, u); }),
      Bad("rms_norm: an operand is an undefined tensor", [&] { rms_norm(u, {4}); }),
      Bad("group_norm: an operand is an undefined tensor", [&] { group_norm(u, 1); }),
      Bad("instance_norm: an operand is an undefined tensor", [&] { instance_norm(x, u, w); }),
      Bad("batch_norm: an operand is an undefined tensor", [&] { batch_norm(x, w, w, u, w); }),
      Bad("layer_norm: epsilon is -1, not a number of at least 0", [&] { layer_norm(x, {4}, {.epsilon = -1}); }),
      Bad("rms_norm: epsilon is nan, not", [&] { rms_norm(x, {4}, {.epsilon = NAN}); }),
      Bad("group_norm: epsilon is -1, not", [&] { group_norm(x, 1, {.epsilon = -1}); }),
      Bad("batch_norm: epsilon is -1, not", [&] { batch_norm(x, w, w, {.epsilon = -1}); }),
      Bad("batch_norm: there is no layout of the number 7", [&] { batch_norm(x, w, w, {.layout = layout}); }),
      Bad("instance_norm: there is no layout of the number 7", [&] { instance_norm(x, {.layout = layout}); }),
  });
  all_fail<DTypeError>({
      Bad("layer_norm: ", [&] { layer_norm(ints, {4}); }),
      Bad("rms_norm: ", [&] { rms_norm(ints, {4}); }),
      Bad("group_norm: ", [&] { group_norm(ints, 2); }),
      Bad("batch_norm: ", [&] { batch_norm(ints, four, four); }),
      Bad("layer_norm: weight (4,) f64 beside x (2, 3, 4) f32; convert it with to(weight, f32)",
          [&] { layer_norm(x, {4}, wide); }),
      Bad("layer_norm: ", [&] { layer_norm(x, {4}, 1.0); }),
      Bad("batch_norm: running_mean (3,) i32 beside", [&] { batch_norm(x, to(w, i32), w); }),
  });
  all_fail<ShapeError>({
      Bad("layer_norm: x (2, 3, 4) f32 does not end in the sizes (3,) of the axes to normalise",
          [&] { layer_norm(x, {3}); }),
      Bad("layer_norm: x (2, 3, 4) f32 does not end in the sizes ()", [&] { layer_norm(x, {}, NormaliseOptions{}); }),
      Bad("layer_norm: x () f32 does not end in the sizes (1,)", [&] { layer_norm(number, {1}); }),
      Bad("layer_norm: weight (5,) f32 wants the shape (4,) for x (2, 3, 4) f32", [&] { layer_norm(x, {4}, five); }),
      Bad("layer_norm: bias (5,) f32 wants the shape (4,)", [&] { layer_norm(x, {4}, four, five); }),
      Bad("rms_norm: weight (4,) f32 wants the shape (3, 4)",
          [&] {
            rms_norm(x, {3, 4}, four);
          }),
      Bad("group_norm: the 3 channels of x (2, 3, 4) f32 are not 2 groups of one size", [&] { group_norm(x, 2); }),
      Bad("group_norm: the 3 channels of x (2, 3, 4) f32 are not 0 groups", [&] { group_norm(x, 0); }),
      Bad("group_norm: the 4 channels", [&] { group_norm(x, 3, {.layout = Layout::nhwc}); }),
      Bad("group_norm: x (3,) f32 has a rank below 2", [&] { group_norm(row, 1); }),
      Bad("group_norm: weight (4,) f32 wants the shape (3,)", [&] { group_norm(x, 3, four, four); }),
      Bad("instance_norm: x (1, 3) f32 has a rank below 3", [&] { instance_norm(one); }),
      Bad("instance_norm: x (1, 3, 1) f32 has one element a channel",
          [&] {
            instance_norm(reshape(one, {1, 3, 1}));
          }),
      Bad("instance_norm: bias (4,) f32 wants the shape (3,)", [&] { instance_norm(x, w, four); }),
      Bad("batch_norm: x (3,) f32 has a rank below 2", [&] { batch_norm(row, w, w); }),
      Bad("batch_norm: x (1, 3) f32 has one element a channel in training",
          [&] { batch_norm(one, w, w, {.training = true}); }),
      Bad("batch_norm: x (0, 3, 4) f32 has no elements a channel in training",
          [&] { batch_norm(none, w, w, {.training = true}); }),
      Bad("batch_norm: running_variance (4,) f32 wants the shape (3,)", [&] { batch_norm(x, w, four); }),
      Bad("batch_norm: weight (4,) f32 wants the shape (3,)", [&] { batch_norm(x, four, w, w, w); }),
      Bad("batch_norm: running_mean (3,) f32 repeats one element",
          [&] { batch_norm(x, repeated, w, {.training = true}); }),
  });
}

}  // namespace reel_test
