#include <reel/reel.h>

#include "catch.h"
#include "io/folder.h"

// The examples in the headers of files, with the declarations that they use.

using namespace reel;

TEST_CASE("the example of a file of PyTorch transposes the weight of a Linear") {
  reel_test::InFolder folder;
  struct Model : nn::Module {
    nn::Linear output{*this, "output", 2, 3};
  } model;
  Tensor weight = reshape(arange(6.0f), {3, 2});
  io::save("model.safetensors", {{"output.weight", weight}, {"output.bias", ones({3})}});
#include "examples/io_weights_1.h"
  CHECK(model.output.weight.to_vector<float>() == transpose(weight).to_vector<float>());
}

TEST_CASE("the example of a file with other names renames and transforms what it says") {
  reel_test::InFolder folder;
  struct Model : nn::Module {
    nn::Linear output{*this, "output", 2, 3};
    nn::Parameter mix{*this, "mix", {4, 2}, nn::constant(0)};
  } model;
  Tensor mix = reshape(arange(8.0f), {2, 4});
  io::save("model.safetensors", {{"output.weight", ones({3, 2})}, {"fc.bias", full({3}, 5.0f)}, {"mix", mix}});
#include "examples/io_weights_2.h"
  CHECK(model.output.bias.to_vector<float>() == std::vector<float>{5, 5, 5});
  CHECK(model.mix.to_vector<float>() == transpose(mix).to_vector<float>());
}

TEST_CASE("the example of an open file reads one row of a table") {
  reel_test::InFolder folder;
  io::save("model.safetensors", {{"embedding", reshape(arange(20.0f), {10, 2})}});
#include "examples/io_tensor_file_1.h"
  CHECK(row.to_vector<float>() == std::vector<float>{14, 15});
}
