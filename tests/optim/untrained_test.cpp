#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "catch.h"
#include "printed_to_stderr.h"

using namespace reel;
using namespace reel_test;

namespace {

// Returns the text printed while a loss is differentiated and a step is made, repeatedly.
std::string trained(const std::function<Tensor()>& loss, const std::function<void()>& step, int steps = 4) {
  return printed_to_stderr([&] {
    for (int i = 0; i < steps; ++i) {
      {
        Tape tape;
        tape.backward(loss());
      }
      step();
    }
  });
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

Tensor parameter(const Shape& shape) { return ones(shape).requires_grad(); }

struct Held {
  Tensor w = parameter({3});
  optim::SGD sgd{{w}};
};

}  // namespace

TEST_CASE("layers that are no members of their module are reported once, with name, shape, line and remedy") {
  struct Model : nn::Module {
    nn::Linear known{*this, "known", 4, 2};
    int plain_line;
    nn::Linear plain;
    std::vector<nn::Linear> layers;
    Model() : plain_line(__LINE__), plain(2, 3) {
      for (int i = 0; i < 2; ++i) layers.emplace_back(3, 3);
    }
    Tensor operator()(const Arg& x) const { return layers[1](layers[0](plain(known(x)))); }
  } model;
  optim::Adam adam(model.parameters());
  std::string text = trained([&] { return sum(model(ones({1, 4}))); }, [&] { adam.step(); });
  CHECK(count_of(text, "reel: warning: parameters get gradients, but no optimiser holds them") == 1);
  CHECK_THAT(text, contains("nn::Linear layer{*this, \"layer\", 2, 3}"));
  CHECK_THAT(text, contains("'weight', (2, 3) f32, made at " + to_string(Location{__FILE__, model.plain_line})));
  CHECK_THAT(text, contains("'bias', (3,) f32, made at " + to_string(Location{__FILE__, model.plain_line})));
  CHECK(count_of(text, "'weight', (3, 3) f32, made at ") == 2);
  CHECK(count_of(text, "(4, 2)") == 0);
}

TEST_CASE("a parameter without a module, and one of a loss, are reported by their shapes and lines") {
  Held held;
  int line = __LINE__ + 1;
  Tensor temperature = full({}, 2.0).requires_grad();
  std::string text = trained([&] { return sum(held.w * temperature); }, [&] { held.sgd.step(); });
  CHECK_THAT(text, contains("() f32, made at " + to_string(Location{__FILE__, line})));
  Tensor later = parameter({5});
  text = trained([&] { return sum(held.w * temperature) + sum(later); }, [&] { held.sgd.step(); });
  CHECK_THAT(text, contains("(5,) f32"));
  CHECK(count_of(text, "() f32") == 0);
}

TEST_CASE("LBFGS counts as an optimiser that trains") {
  Tensor w = parameter({2}), loose = parameter({2});
  optim::LBFGS lbfgs({w}, {.max_iterations = 2});
  std::string text = printed_to_stderr([&] {
    lbfgs.step([&] {
      Tape tape;
      Tensor loss = sum(square(w * loose));
      tape.backward(loss);
      return loss.item();
    });
  });
  CHECK_THAT(text, contains("(2,) f32"));
}

TEST_CASE("nothing is reported without an optimiser, nor where all parameters have one") {
  Tensor a = parameter({2}), b = parameter({2});
  auto loss = [&] { return sum(a * b); };
  CHECK(trained(loss, [] {}).empty());
  optim::SGD generator({a}), discriminator({b});
  CHECK(trained(loss, [&] { generator.step(); }).empty());
  CHECK(trained(loss, [&] { discriminator.step(); }).empty());
}

TEST_CASE("a parameter that gets its optimiser late, or that goes with one, is reported only while it has none") {
  Tensor a = parameter({2}), b = parameter({2});
  optim::SGD first({a});
  std::optional<optim::SGD> second;
  auto loss = [&] { return sum(a * b); };
  auto step = [&] {
    first.step();
    if (!second) second.emplace(std::vector<Tensor>{b});
  };
  CHECK(trained(loss, step).empty());
  second.reset();
  CHECK_FALSE(trained(loss, [&] { first.step(); }).empty());
}

TEST_CASE("parameters that are frozen, trained by hand, or differentiated by tape.gradient are not reported") {
  Held held;
  Tensor frozen = parameter({3}).requires_grad(false), by_hand = parameter({3}), asked = parameter({3});
  auto loss = [&] { return sum(held.w * frozen * by_hand); };
  auto descend = [&] {
    NoRecord pause;
    add_(by_hand, by_hand.grad() * -0.1);
    by_hand.set_grad({});
  };
  CHECK(trained(loss, [&] { held.sgd.step(), descend(); }).empty());
  CHECK(trained(loss, [&] { descend(), held.sgd.step(); }).empty());
  CHECK(trained([&] { return sum(held.w); },
                [&] {
                  held.sgd.step();
                  Tape tape;
                  tape.gradient(sum(held.w * asked), asked);
                })
            .empty());
}

TEST_CASE("inputs whose gradients are asked for as parameters, new ones at each step, are not reported") {
  Held held;
  CHECK(trained([&] { return sum(held.w * ones({3}).requires_grad()); }, [&] { held.sgd.step(); }).empty());
}

TEST_CASE("gradients that several backwards add up before the first step are not reported yet") {
  Held held;
  Tensor loose = parameter({3});
  auto loss = [&] { return sum(held.w * loose); };
  CHECK(trained(loss, [] {}).empty());
  held.sgd.step();
  CHECK_FALSE(trained(
                  loss, [] {}, 1)
                  .empty());
}
