#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>

#include "../../lib/core/storage.h"
#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

void put(Tensor x, double value) {
  if (x.dtype() == f32)
    for (float& element : x.write<float>()) element = static_cast<float>(value);
  else
    for (double& element : x.write<double>()) element = value;
}

double first(const Tensor& x) { return to(x, f64).to_vector<double>()[0]; }

}  // namespace

TEST_CASE("a moving average follows its equation from the starting values, also of what is no parameter") {
  Tensor w = ones({100'003}).requires_grad(), running = zeros({2}, {.dtype = f64});
  optim::MovingAverage average({w, running}, {.decay = 0.75});
  put(w, 5);
  put(running, 8);
  average.update();
  average.update();
  // 0.75 (0.75 + 0.25 · 5) + 0.25 · 5
  CHECK(first(average.average(0)) == Approx(2.75));
  CHECK(min(average.average(0)).item() == max(average.average(0)).item());
  CHECK(first(average.average(1)) == Approx(0.75 * 2 + 2));
  CHECK(average.steps() == 2);
}

TEST_CASE("a moving average that warms up keeps less at first") {
  Tensor w = zeros({1}, {.dtype = f64});
  optim::MovingAverage average({w}, {.decay = 0.9, .warms_up = true});
  put(w, 1);
  average.update();
  CHECK(first(average.average(0)) == Approx(1 - 2.0 / 11));
}

TEST_CASE("a scope puts the averages in place, for products with packed weights too, and the weights back") {
  manual_seed(1);
  Tensor w = randn({64, 64}).requires_grad(), x = randn({16, 64});
  optim::MovingAverage average({w}, {.decay = 0.5});
  Tensor original = copy(stop_gradient(w));
  put(w, 0);
  average.update();  // half of the original
  double before = sum(matmul(x, w)).item();
  CHECK(before == 0);
  {
    auto scope = average.in_place();
    CHECK(sum(square(matmul(x, w) - matmul(x, original * 0.5))).item() < 1e-6);
    CHECK(first(average.average(0)) == Approx(0.5 * first(original)));
    CHECK_THAT(error_of<Error>([&] { average.update(); }), contains("it cannot be updated while the averages"));
    CHECK_THAT(error_of<Error>([&] { auto second = average.in_place(); }), contains("cannot have a second scope"));
  }
  CHECK(sum(abs(w)).item() == 0);
  CHECK(sum(matmul(x, w)).item() == 0);
}

TEST_CASE("a scope between the forward and the backward is noticed") {
  Tensor w = ones({2}).requires_grad();
  optim::MovingAverage average({w});
  Tape tape;
  Tensor y = sum(w * w);
  { auto scope = average.in_place(); }
  CHECK_THAT(error_of<TapeError>([&] { tape.backward(y); }), contains("overwritten at"));
}

TEST_CASE("averages are put in place of all tensors or of none") {
  Tensor w = ones({2}).requires_grad(), running = ones({2});
  optim::MovingAverage average({w, running}, {.decay = 0.5});
  put(w, 3);
  average.update();
  Tape tape;
  tape.watch(running);
  CHECK_THAT(error_of<TapeError>([&] { auto scope = average.in_place(); }),
             contains("MovingAverage: tensor 1, (2,) f32, made at ") && contains("is tracked by an open tape"));
  CHECK(first(w) == 3);
  CHECK(first(average.average(0)) == 2);
}

TEST_CASE("the weights come back also where a tape has begun to track them within the scope") {
  Tensor w = ones({2}).requires_grad(), running = ones({2});
  optim::MovingAverage average({w, running}, {.decay = 0.5});
  put(w, 3);
  put(running, 5);
  average.update();
  Tape tape;
  Tensor y;
  {
    auto scope = average.in_place();
    tape.watch(running);
    y = sum(running * running) + sum(w * w);
    w.requires_grad(false);
  }
  CHECK(w.data<float>()[0] == 3);
  CHECK(running.data<float>()[0] == 5);
  CHECK_THAT(error_of<TapeError>([&] { tape.gradient(y, running); }), contains("overwritten at"));
}

TEST_CASE("views of one another have their weights again after a scope") {
  Tensor w = tensor({1.0f, 2.0f});
  optim::MovingAverage average({w, slice(w, 0, 0, 1)}, {.decay = 0.5});
  put(w, 3);
  average.update();
  { auto scope = average.in_place(); }
  CHECK(w.to_vector<float>() == std::vector<float>{3, 3});
}

TEST_CASE("a moving average goes on from its state") {
  Tensor w = ones({2}).requires_grad();
  optim::MovingAverage one({w}, {.decay = 0.5, .warms_up = true}), other({w}, {.decay = 0.5, .warms_up = true});
  put(w, 3);
  one.update();
  other.load_state(one.state());
  put(w, 4);
  one.update();
  other.update();
  CHECK(one.average(0).to_vector<float>() == other.average(0).to_vector<float>());
  CHECK_THAT(error_of<Error>([&] { other.load_state(std::vector<NamedTensor>{}); }),
             contains("MovingAverage: the state lacks 'steps'"));
  std::vector<NamedTensor> negative = one.state();
  negative[0].tensor = tensor<std::int64_t>({-11});
  CHECK_THAT(error_of<Error>([&] { other.load_state(negative); }), contains("the state's 'steps' is -11"));
}

TEST_CASE("a moving average refuses what it cannot average") {
  Tensor w = ones({2}).requires_grad();
  CHECK_THAT(error_of<Error>([&] { optim::MovingAverage a({w}, {.decay = 1.5}); }), contains("the decay 1.5 lies"));
  CHECK_THAT(error_of<Error>([&] { optim::MovingAverage a({Tensor()}); }), contains("tensor 0 is undefined"));
  CHECK_THAT(error_of<Error>([&] { optim::MovingAverage a({w, w}); }), contains("tensor 1, (2,) f32, is listed twice"));
  CHECK_THAT(error_of<DTypeError>([&] { optim::MovingAverage a({ones({2}, {.dtype = bf16})}); }),
             contains("(2,) bf16, is neither f32 nor f64"));
  CHECK_THAT(error_of<ShapeError>([&] {
               optim::MovingAverage a({transpose(ones({2, 3}))});
             }),
             contains("is not contiguous"));
  optim::MovingAverage average({w});
  CHECK_THAT(error_of<IndexError>([&] { average.average(1); }), contains("there is no tensor 1; it has 1"));
  w.body().leaf->replaced_at = {"model.cpp", 9};
  CHECK_THAT(error_of<Error>([&] { average.update(); }), contains("another one took its place at model.cpp:9"));
}
