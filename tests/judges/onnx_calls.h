#pragma once

#include <fmt/format.h>
#include <reel/io/numpy.h>
#include <reel/io/onnx.h>
#include <reel/reel.h>
#include <reel/testing.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

// Shared by the programs that write ONNX files for judge_onnx.py.

namespace reel_test {

/// Prints a line that makes the judge fail, unless the file computes in reel what is expected.
inline void check_loaded(const std::filesystem::path& file, const std::string& name,
                         std::span<const reel::Tensor> inputs, std::span<const reel::Tensor> expected) {
  try {
    reel::io::onnx::Model model = reel::io::onnx::load(file.string());
    std::vector<reel::Tensor> found = model(inputs);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      reel::testing::Closeness close =
          reel::testing::all_close(found.at(i), expected[i], {.relative = 1e-5, .absolute = 1e-5, .equal_nan = true});
      if (!close) fmt::print("problem {} in reel: {}\n", name, close.difference());
    }
  } catch (const std::exception& error) {
    fmt::print("problem {} in reel: {}\n", name, error.what());
  }
}

/// Saves a call of the model NAME.onnx in a folder, and checks it in reel.
inline void save_call(const std::filesystem::path& folder, const std::string& name, int call,
                      const std::vector<std::string>& names, std::span<const reel::Tensor> inputs,
                      const std::vector<std::string>& outputs, std::span<const reel::Tensor> expected) {
  std::vector<reel::NamedTensor> arrays;
  for (std::size_t i = 0; i < inputs.size(); ++i) arrays.push_back({"in." + names[i], inputs[i]});
  for (std::size_t i = 0; i < expected.size(); ++i) arrays.push_back({"out." + outputs[i], expected[i]});
  reel::io::save_npz((folder / fmt::format("{}.{}.npz", name, call)).string(), arrays);
  check_loaded(folder / (name + ".onnx"), name, inputs, expected);
}

/// True if the long checks are asked for.
inline bool is_long() { return std::getenv("REEL_ENDURANCE") != nullptr; }

}  // namespace reel_test
