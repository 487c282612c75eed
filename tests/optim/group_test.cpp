#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>
#include <reel/threads.h>

#include <cmath>
#include <memory>

#include "../../lib/core/storage.h"
#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

Tensor ones_with_gradient(DType dtype = f32) {
  Tensor w = ones({2}, {.dtype = dtype}).requires_grad();
  w.set_grad(ones({2}, {.dtype = dtype}));
  return w;
}

double first(const Tensor& x) { return to(x, f64).to_vector<double>()[0]; }

}  // namespace

TEST_CASE("groups have options of their own, and can be added later") {
  Tensor a = ones_with_gradient(), b = ones_with_gradient(f64), c = ones_with_gradient();
  optim::SGD sgd({a}, {.learning_rate = 0.1});
  sgd.add_group({b, c}, {.learning_rate = 0.2, .weight_decay = 1});
  CHECK(sgd.group_count() == 2);
  CHECK(sgd.parameters().size() == 3);
  CHECK(sgd.learning_rate(1) == 0.2);
  CHECK(sgd.options(1).weight_decay == 1);
  sgd.step();
  CHECK(first(a) == Approx(0.9));
  CHECK(first(b) == Approx(1 - 0.2 * 2));
  CHECK(first(c) == Approx(1 - 0.2 * 2));
  sgd.set_learning_rate(1, 0);
  sgd.step();
  CHECK(first(a) == Approx(0.8));
  CHECK(first(b) == Approx(0.6));
  sgd.set_learning_rate(0);
  sgd.step();
  CHECK(first(a) == Approx(0.8));
  sgd.set_options(0, {.learning_rate = 0.5, .momentum = 0.9});
  sgd.step();
  CHECK(first(a) == Approx(0.3));
}

TEST_CASE("a parameter in two groups, groups that are not there, and options out of range are refused") {
  Tensor a = ones_with_gradient(), b = ones_with_gradient();
  optim::Adam adam({a});
  CHECK_THAT(error_of<Error>([&] { adam.add_group({b, a}); }), contains("parameter 1, (2,) f32, is listed twice"));
  CHECK_THAT(error_of<Error>([&] { adam.add_group({b}, {.beta2 = 2}); }), contains("the beta2 2 lies outside [0, 1)"));
  CHECK(adam.group_count() == 1);
  CHECK(adam.parameters().size() == 1);
  CHECK_THAT(error_of<IndexError>([&] { (void)adam.learning_rate(1); }), contains("there is no group 1; it has 1"));
  CHECK_THAT(error_of<IndexError>([&] { adam.set_learning_rate(2, 0.1); }), contains("no group 2"));
  CHECK_THAT(error_of<Error>([&] { adam.set_learning_rate(0, NAN); }), contains("learning rate nan"));
  CHECK_THAT(error_of<Error>([&] { adam.set_momentum(0, 1); }), contains("the momentum 1 lies outside [0, 1)"));
  CHECK_THAT(error_of<Error>([&] { adam.set_options(0, {.epsilon = -1}); }), contains("epsilon -1"));
  optim::Adagrad adagrad({b});
  CHECK_FALSE(adagrad.has_momentum());
  CHECK_THAT(error_of<Error>([&] { adagrad.set_momentum(0, 0.5); }), contains("Adagrad: it has no momentum"));
}

TEST_CASE("options out of range of every optimiser are refused in one sentence") {
  std::vector<Tensor> w{ones_with_gradient()};
  auto text = [](auto make) { return error_of<Error>(make); };
  CHECK_THAT(text([&] { optim::SGD o(w, {.momentum = 0.5, .dampening = 2}); }), contains("dampening 2 lies outside"));
  CHECK_THAT(text([&] { optim::SGD o(w, {.momentum = 0.5, .dampening = 0.5, .nesterov = true}); }),
             contains("nesterov needs a momentum above 0 and no dampening"));
  CHECK_THAT(text([&] { optim::AdamW o(w, {.weight_decay = -1}); }), contains("AdamW: the weight decay -1"));
  CHECK_THAT(text([&] { optim::NAdam o(w, {.momentum_decay = -1}); }), contains("NAdam: the momentum decay -1"));
  CHECK_THAT(text([&] { optim::RAdam o(w, {.beta1 = -1}); }), contains("RAdam: the beta1 -1"));
  CHECK_THAT(text([&] { optim::Adagrad o(w, {.initial_sum = -1}); }), contains("Adagrad: the initial sum -1"));
  CHECK_THAT(text([&] { optim::Adagrad o(w, {.rate_decay = -1}); }), contains("Adagrad: the rate decay -1"));
  CHECK_THAT(text([&] { optim::Adadelta o(w, {.rho = 1}); }), contains("Adadelta: the rho 1"));
  CHECK_THAT(text([&] { optim::RMSprop o(w, {.alpha = 1}); }), contains("RMSprop: the alpha 1"));
  CHECK_THAT(text([&] { optim::Adamax o(w, {.beta2 = 1}); }), contains("Adamax: the beta2 1"));
  CHECK_THAT(text([&] { optim::Lion o(w, {.learning_rate = -1}); }), contains("Lion: the learning rate -1"));
}

TEST_CASE("frozen parameters are left alone while they are, and may be given from the start") {
  Tensor a = ones_with_gradient(), b = ones_with_gradient();
  b.requires_grad(false);
  optim::Adam adam({a, b}, {.learning_rate = 0.1});
  adam.step();
  CHECK(first(a) == Approx(0.9));
  CHECK(first(b) == 1);
  b.requires_grad();
  a.requires_grad(false);
  adam.step();
  CHECK(first(a) == Approx(0.9));
  CHECK(first(b) == Approx(0.9));
}

TEST_CASE("a parameter that its module has replaced is an error that names the line, and nothing is changed") {
  Tensor a = ones_with_gradient(), b = ones_with_gradient();
  optim::SGD sgd({a, b});
  b.body().leaf->replaced_at = {"model.cpp", 17};
  CHECK_THAT(
      error_of<Error>([&] { sgd.step(); }),
      contains("SGD: parameter 1, (2,) f32, is its module's no more: another tensor took its place at model.cpp:17"));
  CHECK(first(a) == 1);
}

TEST_CASE("a gradient by rows is refused by optimisers that would have to touch the other rows") {
  Tensor table = ones({5, 2}).requires_grad();
  Tape tape;
  tape.backward(sum(embedding(table, tensor({std::int64_t{1}}), {.row_gradient = true})));
  std::vector<Tensor> list{table};
  auto refused = [&](auto optimiser) {
    CHECK_THAT(error_of<Error>([&] { optimiser->step(); }), contains("has a gradient by rows, for which only SGD"));
  };
  refused(std::make_unique<optim::AdamW>(list));
  refused(std::make_unique<optim::NAdam>(list));
  refused(std::make_unique<optim::RAdam>(list));
  refused(std::make_unique<optim::Adadelta>(list));
  refused(std::make_unique<optim::RMSprop>(list));
  refused(std::make_unique<optim::Adamax>(list));
  refused(std::make_unique<optim::Lion>(list));
  CHECK(min(table).item() == 1);
}

TEST_CASE("step with a loss forgets the gradients before it") {
  Tensor w = ones_with_gradient();
  optim::SGD sgd({w}, {.learning_rate = 0.5});
  double loss = sgd.step([&] {
    Tape tape;
    Tensor y = sum(square(w));
    tape.backward(y);
    return y.item();
  });
  CHECK(loss == 2);
  CHECK(first(w) == 0);
}

TEST_CASE("many small tensors of both dtypes, with gradients of some, make the steps that each would by itself") {
  manual_seed(3);
  std::vector<Tensor> together, apart;
  for (std::int64_t i = 0; i < 300; ++i) {
    Tensor w = randn({i * 7 % 900}, {.dtype = i % 3 ? f32 : f64});
    together.push_back(copy(w).requires_grad());
    apart.push_back(w.requires_grad());
  }
  optim::Adam one(together, {.learning_rate = 0.1});
  std::vector<std::unique_ptr<optim::Adam>> many;
  for (const Tensor& w : apart) many.push_back(std::make_unique<optim::Adam>(std::vector{w}, optim::AdamOptions{0.1}));
  for (int step = 0; step < 3; ++step) {
    for (std::size_t i = 0; i < apart.size(); ++i) {
      bool has_one = (i + static_cast<std::size_t>(step)) % 5 != 0;
      Tensor gradient = has_one ? to(randn(apart[i].shape()), apart[i].dtype()) : Tensor();
      apart[i].set_grad(gradient);
      together[i].set_grad(gradient);
    }
    one.step();
    for (auto& optimiser : many) optimiser->step();
  }
  for (std::size_t i = 0; i < apart.size(); ++i)
    CHECK(to(together[i], f64).to_vector<double>() == to(apart[i], f64).to_vector<double>());
}

TEST_CASE("a step gives the same bits for every number of threads") {
  auto stepped = [](int threads) {
    set_thread_count(threads);
    manual_seed(9);
    std::vector<Tensor> w;
    for (std::int64_t size : {1, 70'001, 33, 0, 250'003, 5}) {
      w.push_back(randn({size}).requires_grad());
      w.back().set_grad(randn({size}));
    }
    optim::NAdam nadam(w, {.weight_decay = 0.1});
    for (int step = 0; step < 3; ++step) nadam.step();
    std::vector<std::vector<float>> values;
    for (const Tensor& x : w) values.push_back(x.to_vector<float>());
    return values;
  };
  int before = thread_count();
  auto one = stepped(1), several = stepped(3);
  set_thread_count(before);
  CHECK((one == several));
}
