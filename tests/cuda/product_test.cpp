#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "catch.h"
#include "core/parameter_version.h"
#include "cuda/gpu.h"
#include "kernels/kernel_table.h"

// Products, attention and linear algebra in sizes and layouts that the op table does not have.

namespace reel_test {

using namespace reel;

namespace {

std::string message_of(const std::function<void()>& run) {
  try {
    run();
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

Tensor batch_with(std::int64_t bad, const Tensor& good, const Tensor& other) {
  std::vector<Tensor> matrices(6, good);
  matrices[static_cast<std::size_t>(bad)] = other;
  return reshape(stack(matrices), {2, 3, good.size(0), good.size(1)});
}

double largest_difference(const Tensor& found, const Tensor& expected) {
  return to(max(abs(to(found, cpu) - expected)), f64).item<double>();
}

}  // namespace

TEST_CASE("integer products of many tiles wrap around on a device") {
  if (lacks_device()) return;
  std::int64_t rows = 130, depth = 70, columns = 129;
  Tensor a = randint(-1000000, 1000000, {rows, depth}), b = randint(-1000000, 1000000, {depth, columns});
  Tensor found = to(matmul(to(to(a, i32), gpu), to(to(b, i32), gpu)), cpu);
  auto x = a.to_vector<std::int64_t>(), y = b.to_vector<std::int64_t>();
  auto z = found.to_vector<std::int32_t>();
  bool right = true;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      std::int64_t sum = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum += x[static_cast<std::size_t>(i * depth + k)] * y[static_cast<std::size_t>(k * columns + j)];
      right &= z[static_cast<std::size_t>(i * columns + j)] == static_cast<std::int32_t>(sum);
    }
  CHECK(right);
}

TEST_CASE("a device names the matrix at fault as the CPU does") {
  if (lacks_device()) return;
  Tensor one = eye(3), none = zeros({3, 3}), side = ones({2, 3, 3, 1});
  struct Case {
    const char* name;
    Tensor bad;
    std::function<Tensor(const Tensor&, const Tensor&)> run;
  };
  const Case cases[] = {
      {"solve", none, [](const Tensor& a, const Tensor& b) { return solve(a, b); }},
      {"inv", none, [](const Tensor& a, const Tensor&) { return inv(a); }},
      {"triangular_solve", none, [](const Tensor& a, const Tensor& b) { return triangular_solve(a, b); }},
      {"cholesky", -one, [](const Tensor& a, const Tensor&) { return cholesky(a); }},
      {"svd", full({3, 3}, NAN), [](const Tensor& a, const Tensor&) { return svd(a).u; }},
      {"eigh", full({3, 3}, INFINITY), [](const Tensor& a, const Tensor&) { return eigh(a).values; }},
  };
  for (const Case& each : cases)
    for (std::int64_t bad : {0, 4}) {
      Tensor a = batch_with(bad, one, each.bad), b = side, there = to(a, gpu), right = to(side, gpu);
      auto run = [&](const Tensor& matrices, const Tensor& sides) {
        return message_of([&] { static_cast<void>(to(each.run(matrices, sides), cpu)); });
      };
      CAPTURE(each.name, bad);
      std::string expected = run(a, b);
      CHECK(expected.find(bad == 0 ? "matrix (0, 0) of (2, 3, 3, 3) f32" : "matrix (1, 1) of (2, 3, 3, 3) f32") !=
            std::string::npos);
      CHECK(run(there, right) == expected);
    }
}

TEST_CASE("attention with more scores than are kept at a time is that of the CPU") {
  if (lacks_device()) return;
  struct Case {
    std::int64_t heads, queries, keys;
    bool causal;
  };
  // Blocks of queries, blocks of heads.
  for (auto [heads, queries, keys, causal] : {Case{1, 2, 1100000, true}, Case{3, 1, 900000, false}}) {
    CAPTURE(heads, queries, keys, causal);
    auto drawn = [](const Shape& shape) { return randn(shape, {.dtype = f64}); };
    Tensor q = drawn({heads, queries, 1}), k = drawn({heads, keys, 1}), v = drawn({heads, keys, 1});
    Tensor d = drawn({heads, queries, 1});
    auto run = [causal = causal](const std::vector<Tensor>& x) {
      Tape tape;
      for (const Tensor& each : {x[0], x[1], x[2]}) tape.watch(each);
      Tensor y = scaled_dot_product_attention(x[0], x[1], x[2], {.causal = causal});
      std::vector<Tensor> found = tape.gradient(y, std::vector<Tensor>{x[0], x[1], x[2]}, {.seed = x[3]});
      found.push_back(y);
      return found;
    };
    std::vector<Tensor> expected = run({q, k, v, d});
    std::vector<Tensor> found = run({to(q, gpu), to(k, gpu), to(v, gpu), to(d, gpu)});
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(largest_difference(found[i], expected[i]) < 1e-10);
  }
}

TEST_CASE("long causal attention, divided into tiles of queries, is that of the CPU on a device") {
  if (lacks_device()) return;
  struct Case {
    std::int64_t heads, queries, keys;
    bool masked;
    DType dtype;
  };
  // Keys as many as queries, fewer and more; tiles of uneven length; several blocks of heads.
  for (auto [heads, queries, keys, masked, dtype] :
       {Case{2, 1024, 1024, false, f32}, Case{3, 1100, 700, true, f64}, Case{2, 700, 2000, false, f64},
        Case{1, 2100, 2051, true, f32}, Case{9, 512, 2048, false, f32}}) {
    CAPTURE(heads, queries, keys, masked, name_of(dtype));
    auto drawn = [dtype = dtype](const Shape& shape) { return randn(shape, {.dtype = dtype}); };
    Tensor q = drawn({heads, queries, 2}), k = drawn({heads, keys, 2}), v = drawn({heads, keys, 3});
    Tensor d = drawn({heads, queries, 3}), mask = masked ? drawn({heads, queries, keys}) : Tensor();
    auto run = [](const std::vector<Tensor>& x, const Tensor& mask) {
      Tape tape;
      for (const Tensor& each : {x[0], x[1], x[2]}) tape.watch(each);
      Tensor y = scaled_dot_product_attention(x[0], x[1], x[2], {.mask = mask, .causal = true});
      std::vector<Tensor> found = tape.gradient(y, std::vector<Tensor>{x[0], x[1], x[2]}, {.seed = x[3]});
      found.push_back(y);
      return found;
    };
    std::vector<Tensor> expected = run({q, k, v, d}, mask);
    std::vector<Tensor> found =
        run({to(q, gpu), to(k, gpu), to(v, gpu), to(d, gpu)}, masked ? to(mask, gpu) : Tensor());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CAPTURE(i);
      CHECK(largest_difference(found[i], expected[i]) < (dtype == f64 ? 1e-10 : 1e-3));
    }
  }
}

TEST_CASE("vectors of decompositions have the same signs on a device and on the CPU") {
  if (lacks_device()) return;
  for (Shape shape : {Shape{4, 5, 5}, Shape{4, 7, 3}, Shape{4, 3, 7}}) {
    Tensor a = randn(shape, {.dtype = f64});
    auto [u, s, vh] = svd(a);
    auto found = svd(to(a, gpu));
    CHECK(largest_difference(found.u, u) < 1e-9);
    CHECK(largest_difference(found.vh, vh) < 1e-9);
    CHECK(largest_difference(matmul(u * unsqueeze(s, -2), vh), a) < 1e-9);
  }
  Tensor a = randn({4, 6, 6}, {.dtype = f64});
  CHECK(largest_difference(eigh(to(a, gpu)).vectors, eigh(a).vectors) < 1e-9);
}

// Halves are multiplied in tiles where the library has no product for them.
TEST_CASE("a bias is added to a product of halves on a device before it is rounded") {
  if (lacks_device()) return;
  Generator generator(4);
  for (DType dtype : {f16, bf16})
    for (const Shape& bias : {Shape{65}, Shape{1, 65}, Shape{70, 1}, Shape{70, 65}, Shape{}}) {
      CAPTURE(name_of(dtype), to_string(bias));
      // Few digits, so that sums in f32 are exact.
      auto few = [&](const Shape& shape) {
        return to(to(randint(-60, 60, shape, {.generator = &generator}), f32) / 64.0, dtype);
      };
      Tensor c = few(bias), a = few({70, 40}), b = few({40, 65});
      Tensor expected = to(matmul(to(a, f32), to(b, f32)) + to(c, f32), dtype);
      Tensor found = addmm(to(c, gpu), to(a, gpu), to(b, gpu));
      CHECK(found.dtype() == dtype);
      CHECK(largest_difference(found, expected) == 0);
    }
}

TEST_CASE("a product is added to a matrix of halves on a device") {
  if (lacks_device()) return;
  for (DType dtype : {f32, bf16, f16}) {
    CAPTURE(name_of(dtype));
    Tensor c = to(reshape(arange(12), {3, 4}), dtype), a = full({3, 5}, 0.5, {.dtype = dtype}),
           b = ones({5, 4}, {.dtype = dtype});
    Tensor found = to(addmm(to(c, gpu), to(a, gpu), to(b, gpu)), cpu);
    CHECK(largest_difference(found, c + 2.5) == 0);
    detail::DeviceModule& module = detail::device_module();
    module.enter(0);
    Tensor sum = to(c, gpu), left = to(a, gpu), right = to(b, gpu);
    module.kernels().matmul_add(sum.body(), left.body(), right.body(), {});
    CHECK(largest_difference(sum, c + 2.5) == 0);
  }
}

}  // namespace reel_test
