#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>
#include <memory>
#include <vector>

#include "catch.h"

using namespace reel;
using reel_test::contains;
using reel_test::error_of;

namespace {

std::vector<std::string> names_of(const nn::Module& module) {
  std::vector<std::string> names;
  for (const NamedTensor& named : module.named_parameters()) names.push_back(named.name);
  return names;
}

}  // namespace

TEST_CASE("a Sequential runs its parts one after the other and names layers by their place") {
  nn::Sequential net(nn::Linear(2, 3), relu, nn::Linear(3, 1, {.bias = false}));
  CHECK(names_of(net) == std::vector<std::string>{"0.weight", "0.bias", "2.weight"});
  Tensor x = tensor({1., -2.}), W0 = net.parameters()[0], b0 = net.parameters()[1], W2 = net.parameters()[2];
  Tensor expected = matmul(relu(matmul(to(x, f32), W0) + b0), W2);
  CHECK(net(to(x, f32)).item() == Approx(expected.item()));
  CHECK(nn::Sequential()(x).to_vector<double>() == std::vector<double>{1, -2});
}

TEST_CASE("a Sequential is a part of a model, moves with it, and grows") {
  struct Model : nn::Module {
    nn::Sequential net{*this, "net", nn::Linear(2, 2)};
  };
  Model model;
  model.net.add(nn::Linear(2, 1));
  model.net.add([](const Tensor& x) { return x * 2; });
  Model moved = std::move(model);
  CHECK(names_of(moved) == std::vector<std::string>{"net.0.weight", "net.0.bias", "net.1.weight", "net.1.bias"});
  CHECK(moved.net.size() == 3);
  CHECK(model.parameters().empty());
  CHECK(moved.net(ones({5, 2})).shape() == Shape{5, 1});
}

TEST_CASE("lists and dictionaries of modules name their parts") {
  struct Model : nn::Module {
    nn::ModuleList<nn::Linear> hidden{*this, "hidden"};
    nn::ModuleDict<nn::Linear> heads{*this, "heads"};
  };
  Model model;
  for (int i = 0; i < 3; ++i) model.hidden.push_back(nn::Linear(2, 2, {.bias = false}));
  model.heads.insert("tag", nn::Linear(2, 4));
  model.heads.insert("parse", nn::Linear(2, 5));
  CHECK(names_of(model) == std::vector<std::string>{"hidden.0.weight", "hidden.1.weight", "hidden.2.weight",
                                                    "heads.tag.weight", "heads.tag.bias", "heads.parse.weight",
                                                    "heads.parse.bias"});
  Tensor x = ones({1, 2});
  for (const nn::Linear& layer : model.hidden) x = layer(x);
  CHECK(model.heads.at("parse")(x).shape() == Shape{1, 5});
  CHECK(model.heads.contains("tag"));
  CHECK_FALSE(model.heads.contains("ner"));
  int line = __LINE__ + 1;
  CHECK(error_of<Error>([&] { model.heads.at("ner"); }) ==
        "ModuleDict: there is no 'ner'; it has tag, parse; at " + to_string(Location{__FILE__, line}));
  nn::Linear spare(1, 1);
  line = __LINE__ + 1;
  CHECK(error_of<Error>([&] { model.heads.insert("tag", std::move(spare)); }) ==
        "Module: it has a sub-module named 'tag' already; choose another name; at " +
            to_string(Location{__FILE__, line}));
  CHECK(spare.weight.defined());
  line = __LINE__ + 1;
  CHECK(error_of<ShapeError>([&] { model.hidden.push_back(nn::Linear(0, 3)); }) ==
        "Linear: sizes must be positive, not in 0, out 3; at " + to_string(Location{__FILE__, line}));
  CHECK_THAT(error_of<Error>([&] { nn::Sequential(std::move(model.heads.at("tag"))); }),
             contains("the Linear is part of a module already; give a clone of it"));
  CHECK(model.heads.at("tag").weight.defined());
  CHECK(model.heads.size() == 2);
}

TEST_CASE("a summary lists modules with shapes, numbers and the operations of the last call") {
  struct Model : nn::Module {
    nn::Linear hidden{*this, "hidden", 784, 128};
    nn::Linear output{*this, "output", 128, 10};
  };
  Model model;
  model.freeze("output.bias");
  std::string text = nn::summary(model);
  CHECK_THAT(text, contains("Model"));
  CHECK_THAT(text, contains("  hidden: Linear  weight (784, 128), bias (128,)"));
  CHECK_THAT(text, contains("bias (10,) (frozen)"));
  CHECK_THAT(text, contains("100,480"));
  CHECK_THAT(text, contains("101,770 numbers in parameters, 101,760 of them trained; 407 kB"));
}
