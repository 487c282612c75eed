#include "ops/table/table.h"

#include "catch.h"
#include "core/context.h"

namespace reel_test {

using namespace reel;

namespace {

template <class F>
double multiplications_of(F f) {
  double before = detail::context().multiplications;
  f();
  return detail::context().multiplications - before;
}

}  // namespace

TEST_CASE("a thread counts the multiplications of its products") {
  Tensor a = rand({3, 4}), b = rand({4, 5});
  CHECK(multiplications_of([&] { matmul(a, b); }) == 3 * 4 * 5);
  CHECK(multiplications_of([&] { addmm(rand({5}), a, b); }) == 3 * 4 * 5);
  CHECK(multiplications_of([&] { matmul(rand({2, 7, 3, 4}), b); }) == 2 * 7 * 3 * 4 * 5);
  CHECK(multiplications_of([&] { bmm(rand({6, 3, 4}), rand({6, 4, 5})); }) == 6 * 3 * 4 * 5);
  CHECK(multiplications_of([&] { einsum("ij,kj->ik", {a, rand({8, 4})}); }) == 3 * 4 * 8);
  CHECK(multiplications_of([&] { dot(rand({9}), rand({9})); }) == 9);
  CHECK(multiplications_of([&] { a + relu(a) * 3; }) == 0);
  CHECK(multiplications_of([&] { matmul(rand({0, 4}), b); }) == 0);
}

TEST_CASE("a thread counts the multiplications of its convolutions") {
  Tensor x = rand({2, 6, 8, 9}), w = rand({10, 3, 3, 3});
  CHECK(multiplications_of([&] { conv2d(x, w, {.padding = 1, .groups = 2}); }) == 2 * 10 * 8 * 9 * 3 * 9);
  CHECK(multiplications_of([&] { conv_transposed2d(x, rand({6, 4, 2, 2}), {.stride = 2}); }) == 2 * 6 * 8 * 9 * 4 * 4);
}

TEST_CASE("a thread counts the multiplications of attention, of recurrent nets and of sparse matrices") {
  Tensor q = rand({2, 3, 5, 8}), k = rand({2, 3, 7, 8}), v = rand({2, 3, 7, 4});
  CHECK(multiplications_of([&] { scaled_dot_product_attention(q, k, v); }) == 6 * 5 * 7 * (8 + 4));
  RecurrentWeights weights{rand({3, 16}), rand({4, 16}), rand({16})};
  CHECK(multiplications_of([&] {
          lstm(rand({6, 2, 3}), {zeros({1, 2, 4}), zeros({1, 2, 4})}, weights);
        }) == 6 * 2 * (3 + 4) * 16);
  Tensor dense = where(rand({6, 7}) < 0.5, 0.0, 1.0);
  CHECK(multiplications_of([&] { matmul(csr_from_dense(dense), rand({7, 3})); }) == 3 * sum(dense).item());
}

TEST_CASE("a thread counts the multiplications of a backward") {
  Tensor x = rand({30, 4}), w = rand({4, 5}).requires_grad();
  Tape tape;
  tape.watch(x);
  Tensor y = sum(matmul(x, w));
  CHECK(multiplications_of([&] { tape.gradient(y, x, w); }) == 2 * 30 * 4 * 5);
}

}  // namespace reel_test
