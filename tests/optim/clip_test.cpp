#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>

#include <cmath>
#include <limits>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

// Two parameters whose gradients together have the norm 13.
struct Pair {
  Tensor a = zeros({2}).requires_grad();
  Tensor b = zeros({1}, {.dtype = f64}).requires_grad();
  Pair() {
    a.set_grad(tensor({3.f, 4.f}));
    b.set_grad(tensor({12.0}));
  }
  std::vector<Tensor> list() const { return {a, b}; }
};

}  // namespace

TEST_CASE("clip_grad_norm scales all gradients by one factor and returns the norm from before") {
  Pair pair;
  CHECK(optim::clip_grad_norm(pair.list(), 6.5) == Approx(13));
  double factor = 6.5 / (13 + 1e-6);
  CHECK(pair.a.grad().to_vector<float>()[1] == Approx(4 * factor));
  CHECK(pair.b.grad().to_vector<double>()[0] == Approx(12 * factor).epsilon(1e-14));
  CHECK(optim::clip_grad_norm(pair.list(), 100) == Approx(6.5));
}

TEST_CASE("clip_grad_norm leaves gradients within the norm to the bit") {
  Pair pair;
  CHECK(optim::clip_grad_norm(pair.list(), 14) == Approx(13));
  CHECK(pair.a.grad().to_vector<float>() == std::vector<float>{3, 4});
}

TEST_CASE("clip_grad_norm does not count parameters without a gradient") {
  Pair pair;
  CHECK(optim::clip_grad_norm({pair.a, ones({3}).requires_grad()}, 1) == Approx(5));
  CHECK(optim::clip_grad_norm(std::vector<Tensor>{}, 1) == 0);
}

TEST_CASE("clip_grad_norm returns a norm that is not finite and changes nothing") {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Pair pair;
    pair.b.set_grad(tensor({static_cast<double>(bad)}));
    CHECK_FALSE(std::isfinite(optim::clip_grad_norm(pair.list(), 1)));
    CHECK(pair.a.grad().to_vector<float>() == std::vector<float>{3, 4});
  }
}

TEST_CASE("clip_grad_norm finds the norm of f32 gradients whose squares f32 cannot hold") {
  Tensor w = zeros({2}).requires_grad();
  w.set_grad(tensor({3e30f, 4e30f}));
  CHECK(optim::clip_grad_norm({w}, 1) == Approx(5e30));
  CHECK(w.grad().to_vector<float>()[0] == Approx(0.6));
}

TEST_CASE("clip_grad_norm adds up many elements, and reads strided gradients") {
  Tensor w = zeros({37, 29}).requires_grad();
  w.set_grad(transpose(full({29, 37}, 2.0)));
  CHECK(optim::clip_grad_norm({w}, 1) == Approx(2 * std::sqrt(37 * 29)));
  CHECK(sum(square(w.grad())).item() == Approx(1));
}

TEST_CASE("clip_grad_norm does not change a gradient that is held elsewhere") {
  Tensor w = ones({2}).requires_grad();
  Tape tape;
  tape.backward(sum(w * 30.0));
  Tensor held = w.grad();
  Tensor mine = tensor({3.f, 4.f});
  Tensor other = ones({2}).requires_grad();
  other.set_grad(mine);
  optim::clip_grad_norm({w, other}, 1);
  CHECK(held.to_vector<float>() == std::vector<float>{30, 30});
  CHECK(mine.to_vector<float>() == std::vector<float>{3, 4});
  CHECK(w.grad().to_vector<float>()[0] < 1);
  CHECK(other.grad().to_vector<float>()[0] < 1);
}

TEST_CASE("clip_grad_norm refuses a negative norm and half gradients") {
  Pair pair;
  CHECK_THAT(error_of<Error>([&] { optim::clip_grad_norm(pair.list(), -1); }), contains("largest norm -1"));
  Tensor half = ones({2}, {.dtype = f16}).requires_grad();
  half.set_grad(ones({2}, {.dtype = f16}));
  CHECK_THAT(error_of<DTypeError>([&] { optim::clip_grad_norm({half}, 1); }), contains("not (2,) f16"));
}

TEST_CASE("clip_grad_norm_each scales each gradient by its own norm") {
  Pair pair;
  std::vector<Tensor> list = pair.list();
  list.push_back(ones({3}).requires_grad());
  CHECK(optim::clip_grad_norm_each(list, 6) == std::vector<double>{5, 12, 0});
  CHECK(pair.a.grad().to_vector<float>() == std::vector<float>{3, 4});
  CHECK(pair.b.grad().to_vector<double>()[0] == Approx(6));
  CHECK_THAT(error_of<Error>([&] { optim::clip_grad_norm_each(list, NAN); }), contains("largest norm nan"));
}

TEST_CASE("clip_grad_value cuts every element, and leaves NaN") {
  Pair pair;
  pair.a.set_grad(tensor({-7.f, 0.5f}));
  pair.b.set_grad(tensor({std::numeric_limits<double>::quiet_NaN()}));
  optim::clip_grad_value(pair.list(), 2);
  CHECK(pair.a.grad().to_vector<float>() == std::vector<float>{-2, 0.5});
  CHECK(std::isnan(pair.b.grad().item()));
  CHECK_THAT(error_of<Error>([&] { optim::clip_grad_value(pair.list(), -1); }), contains("the limit -1"));
}

TEST_CASE("scale_grad turns the sum of several backwards into their mean, by rows too") {
  Tensor w = ones({2}).requires_grad(), table = ones({3, 1}).requires_grad();
  for (double x : {1.0, 5.0}) {
    Tape tape;
    tape.backward(sum(w * x) + sum(embedding(table, tensor({std::int64_t{1}}), {.row_gradient = true}) * x));
  }
  Tensor held = w.grad();
  optim::scale_grad({w, table, ones({2}).requires_grad()}, 1.0 / 2);
  CHECK(w.grad().to_vector<float>() == std::vector<float>{3, 3});
  CHECK(held.to_vector<float>() == std::vector<float>{6, 6});
  CHECK(table.row_grad().values.to_vector<float>() == std::vector<float>{3});
  CHECK_THAT(error_of<Error>([&] { optim::scale_grad({w}, INFINITY); }), contains("the factor inf is not finite"));
}

TEST_CASE("an undefined tensor is refused in the name of the function") {
  Tensor w = ones({1}).requires_grad();
  std::vector<Tensor> tensors{w, Tensor()};
  CHECK_THAT(error_of<Error>([&] { optim::clip_grad_norm(tensors, 1); }),
             contains("clip_grad_norm: tensor 1 is undefined"));
  CHECK_THAT(error_of<Error>([&] { optim::scale_grad(tensors, 1); }), contains("scale_grad: tensor 1 is undefined"));
}
