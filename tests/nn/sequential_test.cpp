#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>
#include <vector>

#include "catch.h"
#include "checks.h"

using namespace reel;
using namespace reel_test;

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
        "Linear: sizes must be positive, not in 0, out 3; in may be nn::infer_size; at " +
            to_string(Location{__FILE__, line}));
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

TEST_CASE("the parts of a Sequential are functions by their indices, and layers by their types") {
  nn::Sequential net(nn::Linear(2, 3), relu, nn::Linear(3, 1));
  Tensor x = randn({4, 2});
  auto same = [](const Tensor& a, const Tensor& b) { return a.to_vector<float>() == b.to_vector<float>(); };
  CHECK(same(net[0](x), net.at<nn::Linear>(0)(x)));
  CHECK(same(net[-1](net[1](net[0](x))), net(x)));
  CHECK(same(net.slice(0, 2)(x), relu(net.at<nn::Linear>(0)(x))));
  CHECK(same(net.slice(2, -1)(x), x));
  CHECK(net.slice(1, 3).size() == 2);
  const nn::Sequential& fixed = net;
  CHECK(fixed.at<nn::Linear>(-1).weight.is(net.parameters()[2]));
  net.at<nn::Linear>(0).weight = zeros({2, 3});
  net.at<nn::Linear>(0).bias = zeros({3});
  CHECK(same(net[0](x), zeros({4, 3})));
}

TEST_CASE("a Sequential names the part that it has not, or that is of another type") {
  nn::Sequential net(nn::Linear(2, 3), relu);
  CHECK_THAT(error_of<Error>([&] { net[2]; }),
             contains("Sequential: there is no part 2 of 2") && contains("_test.cpp:"));
  CHECK_THAT(error_of<Error>([&] { net[-3]; }), contains("there is no part -3 of 2"));
  CHECK_THAT(error_of<Error>([&] { net.slice(1, 3); }),
             contains("Sequential: parts 1 to 3 are not a range of its 2 parts"));
  CHECK_THAT(error_of<Error>([&] { net.slice(1, 0); }), contains("Sequential: parts 1 to 0 are not a range"));
  CHECK_THAT(error_of<Error>([&] { net.at<nn::Embedding>(0); }),
             contains("Sequential: part 0 is a Linear, not a Embedding"));
  CHECK_THAT(error_of<Error>([&] { net[0](Tensor()); }), contains("Sequential: ") && contains("undefined"));
}

TEST_CASE("Flatten joins all axes but the first, or a range of them") {
  Tensor x = randn({2, 3, 4, 5});
  CHECK(nn::Flatten()(x).shape() == Shape{2, 60});
  CHECK(nn::Flatten({.first = 0, .last = 1})(x).shape() == Shape{6, 4, 5});
  nn::Sequential net(nn::Flatten(), nn::Linear(60, 3));
  CHECK(net(x).shape() == Shape{2, 3});
  CHECK_THAT(error_of<Error>([&] { nn::Flatten({.first = 4})(x); }), contains("flatten: "));
}
