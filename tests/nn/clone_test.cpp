#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>
#include <memory>
#include <vector>

#include "catch.h"
#include "checks.h"

using namespace reel;
using namespace reel_test;

namespace {

struct Tied : nn::Module {
  nn::Embedding table{*this, "table", 4, 3};
  nn::Parameter output{*this, "output", table.table};
  nn::Buffer mean{*this, "mean", ones({2})};
  std::vector<nn::Linear> layers;
  int depth;

  explicit Tied(int depth) : depth(depth) {
    for (int i = 0; i < depth; ++i) layers.emplace_back(*this, "layer" + std::to_string(i), 2, 2);
  }
};

}  // namespace

TEST_CASE("a clone has the same names and values, and tensors of its own") {
  Tied model(3);
  model.freeze("layer1.*");
  model.layers[2].train(false);
  Tied copy = nn::clone(model);
  CHECK(names_of(copy) == names_of(model));
  CHECK(copy.depth == 3);
  CHECK(copy.output.is(copy.table.table));
  CHECK_FALSE(copy.layers[2].is_training());
  CHECK(copy.layers[0].is_training());
  std::vector<Tensor> old = model.parameters(), made = copy.parameters();
  for (std::size_t i = 0; i < old.size(); ++i) {
    CHECK_FALSE(made[i].is(old[i]));
    CHECK(made[i].is_parameter() == old[i].is_parameter());
    CHECK(made[i].to_vector<float>() == old[i].to_vector<float>());
  }
  REQUIRE(copy.named_buffers().size() == 1);
  CHECK(copy.named_buffers()[0].tensor.is(copy.mean));
  copy.mean.write<float>()[0] = 5;
  CHECK(model.mean.to_vector<float>()[0] == 1);
}

TEST_CASE("a clone is trained without its model") {
  Tied model(1);
  Tape tape;
  tape.backward(sum(model.output));
  Tied copy = nn::clone(model);
  CHECK_FALSE(copy.output.grad().defined());
  tape.backward(sum(copy.output * 2));
  CHECK(copy.output.grad().to_vector<float>() == std::vector<float>(12, 2));
  CHECK(model.output.grad().to_vector<float>() == std::vector<float>(12, 1));
  CHECK(copy.unfreeze("*") == 4);
}

TEST_CASE("a part of a model is cloned as a model by itself") {
  Tied model(2);
  nn::Linear layer = nn::clone(model.layers[1]);
  CHECK(names_of(layer) == std::vector<std::string>{"weight", "bias"});
  CHECK(names_of(model).size() == 5);
}

TEST_CASE("a clone of a Sequential and of lists has parts of its own") {
  struct Lists : nn::Module {
    nn::ModuleList<nn::Linear> list{*this, "list"};
    nn::ModuleDict<nn::Linear> dictionary{*this, "dictionary"};
    nn::Sequential net{*this, "net", nn::Linear(2, 3), [](const Tensor& x) { return relu(x); }, nn::Linear(3, 1)};
  };
  Lists model;
  model.list.push_back(nn::Linear(1, 1));
  model.dictionary.insert("a", nn::Linear(1, 1));
  Lists copy = nn::clone(model);
  CHECK(names_of(copy) == names_of(model));
  Tensor x = ones({1, 2});
  CHECK(copy.net(x).item() == model.net(x).item());
  model.net.freeze("*");
  for (const Tensor& parameter : copy.parameters()) CHECK(parameter.is_parameter());
}

TEST_CASE("a part that is not copied with its model is an error that names it") {
  struct Holder : nn::Module {
    std::shared_ptr<nn::Linear> part;
  };
  Holder model;
  model.part = std::make_shared<nn::Linear>(model, "part", 1, 1);
  CHECK_THAT(error_of<Error>([&] { nn::clone(model); }), contains("clone: 'part' of Holder is not a member"));
  CHECK(model.parameters().size() == 2);
}

TEST_CASE("a clone may move its parts while they are copied") {
  struct Stack : nn::Module {
    std::vector<nn::Linear> layers;
    Stack() {
      for (int i = 0; i < 5; ++i) layers.emplace_back(*this, "layer" + std::to_string(i), 2, 2);
    }
    Stack(const Stack& other) : Module(other) {
      for (const nn::Linear& layer : other.layers) layers.push_back(layer);
    }
  };
  Stack model;
  Stack copy = nn::clone(model);
  CHECK(names_of(copy) == names_of(model));
  for (std::size_t i = 0; i < 5; ++i) CHECK(copy.named_parameters()[2 * i].tensor.is(copy.layers[i].weight));
}

TEST_CASE("a copy of a parameter that does not last is an error of the clone") {
  struct Model : nn::Module {
    nn::Parameter a{*this, "a", {1}, nn::constant(1)};
    Model() = default;
    Model(const Model& other) : Module(other), a() { nn::Parameter passing = other.a; }
  };
  Model model;
  CHECK_THAT(error_of<Error>([&] { nn::clone(model); }), contains("clone: 'a' of Model is not a member"));
}
