#include <reel/debug/note.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>
#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "catch.h"
#include "checks.h"

using namespace reel;
using namespace reel_test;

namespace {

struct Block : nn::Module {
  using Module::Module;
  nn::Linear first{*this, "first", 2, 3};
  nn::Parameter scale{*this, "scale", {3}, nn::constant(1)};
  nn::Linear second{*this, "second", 3, 2, {.bias = false}};
  nn::Buffer steps{*this, "steps", zeros({1})};
};

struct Model : nn::Module {
  Block encoder{*this, "encoder"};
  nn::Embedding table{*this, "table", 5, 2};
};

struct Stack : nn::Module {
  explicit Stack(int depth) {
    for (int i = 0; i < depth; ++i) layers.emplace_back(*this, "layer" + std::to_string(i), 2, 2);
  }
  std::vector<nn::Linear> layers;
};

const std::vector<std::string> model_names = {"encoder.first.weight", "encoder.first.bias", "encoder.scale",
                                              "encoder.second.weight", "table.table"};

// Checks that every name gives the tensor of the member that it names.
void check_model(const Model& model) {
  REQUIRE(names_of(model) == model_names);
  std::vector<Tensor> parameters = model.parameters();
  CHECK(parameters[0].is(model.encoder.first.weight));
  CHECK(parameters[1].is(model.encoder.first.bias));
  CHECK(parameters[2].is(model.encoder.scale));
  CHECK(parameters[3].is(model.encoder.second.weight));
  CHECK(parameters[4].is(model.table.table));
}

}  // namespace

TEST_CASE("parameters have dotted names in the order of declaration") {
  Model model;
  check_model(model);
  CHECK(model.parameter_count() == 6 + 3 + 3 + 6 + 10);
  for (const Tensor& parameter : model.parameters()) CHECK(parameter.is_parameter());
}

TEST_CASE("buffers are listed apart from parameters and are none") {
  Model model;
  std::vector<NamedTensor> buffers = model.named_buffers();
  REQUIRE(buffers.size() == 1);
  CHECK(buffers[0].name == "encoder.steps");
  CHECK(buffers[0].tensor.is(model.encoder.steps));
  CHECK_FALSE(buffers[0].tensor.is_parameter());
}

TEST_CASE("a layer alone lists its parameters without a prefix") {
  nn::Linear layer(2, 3);
  CHECK(names_of(layer) == std::vector<std::string>{"weight", "bias"});
}

TEST_CASE("modules move, and are copied by clone only") {
  STATIC_REQUIRE(std::is_nothrow_move_constructible_v<Model>);
  STATIC_REQUIRE(std::is_move_assignable_v<Model>);
  STATIC_REQUIRE_FALSE(std::is_copy_assignable_v<Model>);
  Model model;
  CHECK_THAT(error_of<Error>([&] { Model copy(model); }),
             contains("Module: a Model was copied; pass it by reference, move it, or copy it with nn::clone(model)"));
  check_model(model);
}

TEST_CASE("a moved model lists the parameters of its new place") {
  Model model;
  Tensor weight = model.encoder.first.weight;
  Model moved = std::move(model);
  check_model(moved);
  CHECK(moved.encoder.first.weight.is(weight));

  SECTION("and its old place lists none, but can be given a model again") {
    CHECK(model.parameters().empty());
    model = Model();
    check_model(model);
    check_model(moved);
  }
  SECTION("also when it is assigned over another model") {
    Model other;
    other = std::move(moved);
    check_model(other);
    CHECK(other.encoder.first.weight.is(weight));
    CHECK(moved.parameters().empty());
  }
  SECTION("also when its old place is gone") {
    auto first = std::make_unique<Model>(std::move(moved));
    auto second = std::make_unique<Model>(std::move(*first));
    first.reset();
    check_model(*second);
  }
  SECTION("also after a swap") {
    Model other;
    Tensor other_weight = other.encoder.first.weight;
    std::swap(moved, other);
    check_model(moved);
    check_model(other);
    CHECK(moved.encoder.first.weight.is(other_weight));
    CHECK(other.encoder.first.weight.is(weight));
  }
}

TEST_CASE("models in a growing vector keep their parameters") {
  std::vector<Model> models;
  for (int i = 0; i < 9; ++i) models.emplace_back();
  for (const Model& model : models) check_model(model);
  models.erase(models.begin());
  for (const Model& model : models) check_model(model);
}

TEST_CASE("sub-modules in a vector are found while it grows, shrinks and moves") {
  Stack stack(5);
  auto check = [](const Stack& whole, std::size_t depth) {
    std::vector<NamedTensor> named = whole.named_parameters();
    REQUIRE(named.size() == 2 * depth);
    for (std::size_t i = 0; i < depth; ++i) {
      CHECK(named[2 * i].name == "layer" + std::to_string(i) + ".weight");
      CHECK(named[2 * i].tensor.is(whole.layers[i].weight));
      CHECK(named[2 * i + 1].tensor.is(whole.layers[i].bias));
    }
  };
  check(stack, 5);
  Stack moved = std::move(stack);
  check(moved, 5);
  CHECK(stack.parameters().empty());
  Stack assigned(2);
  assigned = std::move(moved);
  check(assigned, 5);
  assigned.layers.pop_back();
  check(assigned, 4);
  Tensor second = assigned.layers[1].weight;
  assigned.layers.erase(assigned.layers.begin());
  check(assigned, 3);
  CHECK(assigned.layers[0].weight.is(second));
}

TEST_CASE("a sub-module in an optional or behind a pointer is found, and leaves its parent when it is destroyed") {
  struct Holder : nn::Module {
    std::optional<nn::Linear> maybe;
    std::unique_ptr<nn::Linear> pointed;
  };
  Holder holder;
  holder.maybe.emplace(holder, "maybe", 1, 1);
  holder.pointed = std::make_unique<nn::Linear>(holder, "pointed", 1, 1);
  CHECK(holder.parameters().size() == 4);
  Holder moved = std::move(holder);
  CHECK(names_of(moved) == std::vector<std::string>{"maybe.weight", "maybe.bias", "pointed.weight", "pointed.bias"});
  moved.maybe.reset();
  CHECK(names_of(moved) == std::vector<std::string>{"pointed.weight", "pointed.bias"});
  moved.maybe.emplace(moved, "maybe", 1, 1);
  CHECK(moved.parameters().size() == 4);
}

TEST_CASE("assigning to a sub-module replaces what it holds and keeps its name") {
  Model model, donor;
  model.encoder.first = nn::Linear(2, 3, {.bias = false});
  CHECK(names_of(model) ==
        std::vector<std::string>{"encoder.first.weight", "encoder.scale", "encoder.second.weight", "table.table"});
  CHECK(model.parameters()[0].is(model.encoder.first.weight));
  Tensor weight = donor.encoder.first.weight;
  model.encoder = std::move(donor.encoder);
  check_model(model);
  CHECK(model.encoder.first.weight.is(weight));
  CHECK(names_of(donor) == std::vector<std::string>{"table.table"});
}

TEST_CASE("a sub-module that outlives its parent goes on by itself") {
  std::unique_ptr<nn::Linear> part;
  {
    Stack parent(0);
    part = std::make_unique<nn::Linear>(parent, "part", 2, 2);
    CHECK(parent.parameters().size() == 2);
  }
  CHECK(part->parameters().size() == 2);
  nn::Linear moved = std::move(*part);
  CHECK(moved.parameters().size() == 2);
}

TEST_CASE("a module whose constructor fails leaves nothing behind in its parent") {
  Stack parent(0);
  CHECK_THROWS_AS(nn::Linear(parent, "part", 0, 2), ShapeError);
  CHECK(parent.parameters().empty());
  nn::Linear part(parent, "part", 1, 2);
  CHECK(parent.parameters().size() == 2);
}

TEST_CASE("a name that is taken, empty or dotted is an error that says so") {
  nn::Module module;
  nn::Parameter weight(module, "weight", ones({1}));
  int line = __LINE__ + 1;
  std::string text = error_of<Error>([&] { nn::Parameter(module, "weight", {1}, nn::constant(0)); });
  CHECK(text == "Module: it has a parameter named 'weight' already; choose another name; at " +
                    to_string(Location{__FILE__, line}));
  nn::Buffer mean(module, "mean", ones({1}));
  CHECK_THAT(error_of<Error>([&] { nn::Linear(module, "mean", 1, 1); }), contains("has a buffer named 'mean' already"));
  nn::Linear part(module, "part", 1, 1);
  CHECK_THAT(error_of<Error>([&] { nn::Linear(module, "part", 1, 1); }),
             contains("has a sub-module named 'part' already"));
  CHECK_THAT(error_of<Error>([&] { nn::Buffer(module, "", ones({1})); }),
             contains("must not be empty or contain a dot"));
  CHECK_THAT(error_of<Error>([&] { nn::Buffer(module, "a.b", ones({1})); }), contains("'a.b' cannot be a name here"));
  CHECK_THAT(error_of<Error>([&] { nn::Buffer(module, "none", Tensor()); }),
             contains("the buffer 'none' is an undefined"));
  CHECK_THAT(error_of<Error>([&] { part.join(module, "again"); }), contains("'again' is part of a module already"));
  CHECK(module.parameters().size() == 3);
}

TEST_CASE("a tensor that two modules share is listed once") {
  struct Tied : nn::Module {
    nn::Embedding table{*this, "table", 4, 3};
    nn::Parameter output{*this, "output", table.table};
  };
  Tied model;
  CHECK(names_of(model) == std::vector<std::string>{"table.table"});
  CHECK(model.parameter_count() == 12);
}

TEST_CASE("train holds for a module and its sub-modules") {
  Model model;
  CHECK(model.is_training());
  model.train(false);
  CHECK_FALSE(model.encoder.second.is_training());
  Model moved = std::move(model);
  CHECK_FALSE(moved.is_training());
  CHECK_FALSE(moved.table.is_training());
  moved.train();
  CHECK(moved.encoder.first.is_training());
}

TEST_CASE("zero_grad forgets every gradient") {
  Model model;
  Tape tape;
  tape.backward(sum(model.encoder.first(ones({1, 2}))));
  CHECK(model.encoder.first.weight.grad().defined());
  model.zero_grad();
  CHECK_FALSE(model.encoder.first.weight.grad().defined());
}

TEST_CASE("a tensor that is assigned to a parameter is the module's from then on") {
  Model model;
  Tensor before = model.encoder.scale, other = full({3}, 2.0);
  model.encoder.scale = other;
  CHECK(other.is_parameter());
  CHECK(model.named_parameters()[2].tensor.is(other));
  Tape tape;
  tape.backward(sum(model.encoder.scale * 3));
  CHECK(model.named_parameters()[2].tensor.grad().defined());
  CHECK_FALSE(before.grad().defined());
  CHECK_THROWS_AS(model.encoder.scale = zeros({3}, {.dtype = i64}), DTypeError);
  CHECK(model.encoder.scale.is(other));
}

TEST_CASE("a parameter that is assigned to another ties the two") {
  Model model;
  model.encoder.second.weight = model.encoder.first.weight;
  CHECK(names_of(model) ==
        std::vector<std::string>{"encoder.first.weight", "encoder.first.bias", "encoder.scale", "table.table"});
  CHECK(model.encoder.second.named_parameters()[0].tensor.is(model.encoder.first.weight));
}

TEST_CASE("a copy of a parameter is a tensor that belongs to no module") {
  Model model;
  {
    auto copy = model.encoder.scale;
    CHECK(copy.is(model.encoder.scale));
  }
  check_model(model);
}

TEST_CASE("an optional parameter can be removed and put back") {
  nn::Linear layer(2, 3);
  layer.bias.reset();
  CHECK(names_of(layer) == std::vector<std::string>{"weight"});
  layer.bias = zeros({3});
  CHECK(names_of(layer) == std::vector<std::string>{"weight", "bias"});
}

TEST_CASE("a frozen parameter is listed and not tracked") {
  Model model;
  CHECK(model.freeze("encoder.*") == 4);
  check_model(model);
  CHECK_FALSE(model.encoder.scale.is_parameter());
  CHECK(model.table.table.is_parameter());
  CHECK(model.unfreeze("*.f?rst.*") == 2);
  CHECK(model.encoder.first.weight.is_parameter());
  CHECK_FALSE(model.encoder.scale.is_parameter());
  int line = __LINE__ + 1;
  CHECK(error_of<Error>([&] { model.freeze("decoder.*"); }) ==
        "Module: no parameter of Model fits 'decoder.*'; named_parameters() lists their names; at " +
            to_string(Location{__FILE__, line}));
}

TEST_CASE("a model is converted with its gradients, and what shares a tensor goes on sharing it") {
  struct Tied : nn::Module {
    nn::Embedding table{*this, "table", 4, 3};
    nn::Parameter output{*this, "output", table.table};
    nn::Buffer mean{*this, "mean", ones({2})};
    nn::Buffer steps{*this, "steps", zeros({1}, {.dtype = i64})};
  };
  Tied model;
  Tensor before = model.output;
  Tape tape;
  tape.backward(sum(model.output * 3));
  SECTION("from the outermost module") { model.to(f64); }
  SECTION("or from a part of it") { model.table.to(f64); }
  CHECK(model.output.dtype() == f64);
  CHECK(model.output.is(model.table.table));
  CHECK(model.output.is_parameter());
  CHECK(model.output.grad().to_vector<double>() == std::vector<double>(12, 3));
  CHECK(model.steps.dtype() == i64);
  CHECK(to(before, f64).to_vector<double>() == model.output.to_vector<double>());
  CHECK_THROWS_AS(model.to(i64), DTypeError);
}

TEST_CASE("a converted model keeps what is frozen so") {
  nn::Linear layer(2, 2);
  layer.freeze("bias");
  layer.to(bf16);
  CHECK(layer.weight.is_parameter());
  CHECK_FALSE(layer.bias.is_parameter());
  CHECK(layer.bias.dtype() == bf16);
}

TEST_CASE("every module is listed with its name, the outermost first") {
  Model model;
  std::vector<std::string> lines;
  for (const auto& [name, module] : model.named_modules()) lines.push_back(name + ":" + module->type_name());
  CHECK(lines == std::vector<std::string>{":Model", "encoder:Block", "encoder.first:Linear", "encoder.second:Linear",
                                          "table:Embedding"});
  int count = 0;
  model.for_each_module([&](nn::Module&) { ++count; });
  CHECK(count == 5);
}

TEST_CASE("what is put in the place of a part that was moved out is the model's") {
  Model model;
  {
    nn::Linear old = std::exchange(model.encoder.first, nn::Linear(2, 3));
    check_model(model);
    CHECK(old.parameters().size() == 2);
    CHECK_FALSE(old.weight.is(model.encoder.first.weight));
    Tensor scale = std::exchange(model.encoder.scale, full({3}, 2.0));
    check_model(model);
    CHECK(model.encoder.scale.is_parameter());
  }
  check_model(model);
  Model moved = std::move(model);
  nn::Linear old = std::exchange(moved.encoder.second, nn::Linear(3, 2, {.bias = false}));
  check_model(moved);
}

TEST_CASE("a part that was moved out and destroyed leaves its place, and the model can be given another") {
  Model model;
  { nn::Linear gone = std::move(model.encoder.first); }
  CHECK(names_of(model) == std::vector<std::string>{"encoder.scale", "encoder.second.weight", "table.table"});
}

TEST_CASE("parts that are swapped keep their names, whatever they hold") {
  struct Pair : nn::Module {
    nn::Linear a{*this, "a", 2, 2}, b{*this, "b", 2, 2};
    nn::Parameter c{*this, "c", {2}, nn::constant(1)}, d{*this, "d", {2}, nn::constant(2)};
  };
  Pair pair;
  Tensor weight_a = pair.a.weight, c = pair.c;
  swap(pair.a, pair.b);
  swap(pair.c, pair.d);
  CHECK(names_of(pair) == std::vector<std::string>{"a.weight", "a.bias", "b.weight", "b.bias", "c", "d"});
  CHECK(pair.b.weight.is(weight_a));
  for (const NamedTensor& named : pair.named_parameters()) {
    if (named.name == "b.weight") CHECK(named.tensor.is(weight_a));
    if (named.name == "d") CHECK(named.tensor.is(c));
  }
  Stack stack(3);
  Tensor first = stack.layers[0].weight;
  std::reverse(stack.layers.begin(), stack.layers.end());
  CHECK(stack.named_parameters()[4].name == "layer2.weight");
  CHECK(stack.named_parameters()[4].tensor.is(first));
  CHECK(stack.layers[2].weight.is(first));
}

TEST_CASE("a model that is moved back and forth keeps what its parts hold") {
  Model first;
  Model second = std::move(first);
  first = std::move(second);
  check_model(first);
  second = Model();
  check_model(second);
  check_model(first);
  first = nn::clone(second);
  check_model(first);
  check_model(second);
}

TEST_CASE("an optional bias that a layer was made without can be given later") {
  nn::Linear layer(2, 3, {.bias = false});
  CHECK(names_of(layer) == std::vector<std::string>{"weight"});
  layer.bias = zeros({3});
  CHECK(names_of(layer) == std::vector<std::string>{"weight", "bias"});
  CHECK(layer.bias.is_parameter());
}

TEST_CASE("a parameter that is tied to a frozen one is frozen") {
  nn::Module model;
  nn::Parameter first(model, "first", {2}, nn::constant(1));
  model.freeze("first");
  nn::Parameter second(model, "second", first);
  CHECK_FALSE(first.is_parameter());
}

TEST_CASE("a module cannot be a part of itself") {
  Stack outer(0);
  nn::Module inner(outer, "inner");
  CHECK_THAT(error_of<Error>([&] { outer.join(outer, "self"); }), contains("a Stack cannot be a part of itself"));
  CHECK_THAT(error_of<Error>([&] { outer.join(inner, "self"); }), contains("a Stack cannot be a part of itself"));
}

TEST_CASE("an optimiser that holds parameters which a module has replaced throws, also after a backward") {
  nn::Linear layer(2, 2);
  optim::SGD sgd(layer.parameters());
  Tape tape;
  Tensor loss = sum(layer(ones({1, 2})));
  layer.to(f64);
  tape.backward(loss);
  CHECK_THROWS_AS(sgd.step(), Error);
}

TEST_CASE("names of a reader's own, and ops, mean the same within a module as elsewhere") {
  struct Part {
    double factor = 2;
  };
  struct Entry {
    Part part;
  };
  struct Model : nn::Module {
    Entry entry;
    Tensor operator()(const Tensor& x) const { return add(to(x, f64), entry.part.factor); }
  };
  CHECK(Model()(ones({1})).item() == 3);
}

TEST_CASE("an error within a module names the module and the notes of the program") {
  struct Inner : nn::Module {
    nn::Linear first{*this, "first", 3, 3};
    Tensor operator()(const Arg& x) const {
      return call("Inner", x, [&](const Tensor& x) { return first(x) + ones({7}); });
    }
  };
  struct Outer : nn::Module {
    nn::ModuleList<Inner> layers{*this, "layers"};
    Outer() {
      layers.push_back(Inner());
      layers.push_back(Inner());
    }
    Tensor operator()(const Arg& x) const {
      return call("Outer", x, [&](const Tensor& x) { return layers[1](x); });
    }
  };
  Outer outer;
  CHECK_THAT(error_of<ShapeError>([&] { outer(ones({2, 3})); }), contains("add: ") && contains("; in layers.1; at "));
  auto epoch = debug::note("epoch", 3);
  CHECK_THAT(error_of<ShapeError>([&] {
               outer(ones({2, 4}));
             }),
             contains("Linear: x (2, 4) does not end in an axis of size 3, as the weight (3, 3) needs; in "
                      "layers.1.first with epoch = 3; at ") &&
                 contains("module_test.cpp:"));
  // A module that no other contains has no path.
  CHECK_THAT(error_of<ShapeError>([&] { outer.layers[0].first(ones({2, 4})); }), contains("; in layers.0.first with "));
  nn::Linear single(3, 3);
  CHECK_THAT(error_of<ShapeError>([&] { single(ones({2, 4})); }), contains("(3, 3) needs; with epoch = 3; at "));
}

TEST_CASE("the call of a module that was moved from says so") {
  nn::Linear layer(3, 2);
  nn::Linear moved = std::move(layer);
  int line = __LINE__ + 1;
  std::string text = error_of<Error>([&] { layer(ones({1, 3})); });  // NOLINT(bugprone-use-after-move)
  CHECK_THAT(text, contains("Linear: it was moved from, and has no parameters any more; call the module that it was "
                            "moved to; at ") &&
                       contains("module_test.cpp:" + std::to_string(line)));
  CHECK(moved(ones({1, 3})).shape() == Shape{1, 2});
  layer = std::move(moved);
  CHECK(layer(ones({1, 3})).shape() == Shape{1, 2});
  nn::Linear other(3, 2);
  std::swap(layer, other);
  CHECK(layer(ones({1, 3})).shape() == Shape{1, 2});
  CHECK(other(ones({1, 3})).shape() == Shape{1, 2});
}
