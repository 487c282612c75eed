// Writes modules in PyTorch's layout with inputs and outputs of theirs, for Python to load and to compare.
//
// Usage: write_for_pytorch FOLDER

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include <reel/reel.h>

using namespace reel;

namespace {

// NAME.weights.safetensors has the weights, NAME.data.safetensors the input x and the output y.
template <class Module>
void write(const std::filesystem::path& folder, const std::string& name, Module& module, const Tensor& x,
           const Tensor& y) {
  io::save(folder / (name + ".weights.safetensors"), module, {.for_pytorch = true});
  io::save(folder / (name + ".data.safetensors"), {{"x", x}, {"y", y}});
}

struct Tied : nn::Module {
  nn::Linear first{*this, "0", 6, 6}, second{*this, "1", 6, 6};
  Tied() { second.weight = first.weight; }
};

void write_all(const std::filesystem::path& folder) {
  manual_seed(1);
  Tensor rows = randn({5, 6}), steps = randn({4, 2, 6}), images = randn({2, 3, 8, 8});
  nn::Sequential dense(nn::Linear(6, 4), relu, nn::Linear(4, 3, {.bias = false}));
  write(folder, "dense", dense, rows, dense(rows));
  nn::Sequential image(nn::Conv2d(3, 4, 3), nn::BatchNorm2d(4), relu, nn::ConvTransposed2d(4, 2, 3));
  image(images);  // moves the running statistics
  image.eval();
  write(folder, "image", image, images, image(images));
  nn::LSTM lstm(6, 5, {.layers = 2, .bidirectional = true});
  write(folder, "lstm", lstm, steps, lstm(steps).output);
  nn::LSTM projected(6, 5, {.projection = 3});
  write(folder, "projected", projected, steps, projected(steps).output);
  nn::GRU gru(6, 5, {.layers = 2});
  write(folder, "gru", gru, steps, gru(steps).output);
  nn::RNN rnn(6, 5);
  write(folder, "rnn", rnn, steps, rnn(steps).output);
  nn::TransformerEncoderLayer encoder(6, 2, {.dropout = 0});
  Tensor batch = transpose(steps, 0, 1);
  encoder.eval();
  write(folder, "encoder", encoder, batch, encoder(batch));
  nn::Embedding words(7, 6);
  Tensor indices = tensor({{1, 2}, {6, 0}}, {.dtype = i64});
  write(folder, "words", words, indices, words(indices));
  Tied tied;
  write(folder, "tied", tied, rows, tied.second(tied.first(rows)));
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 2) throw Error("usage: write_for_pytorch FOLDER", {});
  write_all(arguments[1]);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
