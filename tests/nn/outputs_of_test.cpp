#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>

#include "catch.h"
#include "checks.h"

using namespace reel;
using namespace reel_test;

namespace {

struct Net : nn::Module {
  nn::Linear hidden{*this, "hidden", 2, 3, {.dtype = f64}};
  nn::Linear output{*this, "output", 3, 3, {.dtype = f64}};
  nn::ModuleList<nn::Linear> unused{*this, "unused"};

  Tensor operator()(const Arg& x) const {
    return call("Net", x, [&](const Tensor& x) { return output(tanh(output(tanh(hidden(x))))); });
  }
};

}  // namespace

TEST_CASE("outputs_of gives the results of named modules, of several calls one after the other") {
  Net model;
  Tensor x = draw({4, 2});
  std::vector<NamedTensor> found = nn::outputs_of(model, {"output", "hidden", ""}, x);
  REQUIRE(found.size() == 4);
  Tensor hidden = matmul(x, model.hidden.weight) + model.hidden.bias;
  Tensor first = matmul(tanh(hidden), model.output.weight) + model.output.bias;
  CHECK(found[0].name == "output");
  check_close(found[0].tensor, first);
  check_close(found[1].tensor, model(x));
  CHECK(found[2].name == "hidden");
  check_close(found[2].tensor, hidden);
  check_close(found[3].tensor, model(x));
  CHECK_FALSE(model.hidden.has_hooks());
}

TEST_CASE("what outputs_of gives has gradients") {
  Net model;
  Tensor x = draw({4, 2});
  Tape tape;
  std::vector<NamedTensor> found = nn::outputs_of(model, {"hidden"}, x);
  Tensor gradient = tape.gradient(sum(found[0].tensor), model.hidden.bias);
  check_close(gradient, full({3}, 4., {.dtype = f64}));
}

TEST_CASE("the example of outputs_of finds the results of two layers") {
  Net model;
  Tensor x = draw({4, 2});
#include "examples/nn_outputs_of_1.h"
  CHECK(hidden.shape() == Shape{4, 3});
}

TEST_CASE("outputs_of names a module that is missing, contains others only, or was not called") {
  Net model;
  model.unused.push_back(nn::Linear(2, 2));
  Tensor x = draw({4, 2});
  CHECK_THAT(error_of<Error>([&] { nn::outputs_of(model, {"head"}, x); }),
             contains("outputs_of: Net has no module 'head'; named_modules() lists their names") &&
                 contains("outputs_of_test.cpp:"));
  CHECK_THAT(error_of<Error>([&] { nn::outputs_of(model, {"unused"}, x); }), contains("is never called itself"));
  CHECK_THAT(error_of<Error>([&] { nn::outputs_of(model, {"unused.0"}, x); }),
             contains("outputs_of: the module 'unused.0' was not called"));
}
