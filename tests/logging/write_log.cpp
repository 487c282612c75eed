// Writes a log with every kind of entry to a folder, for readers in other languages to judge.
//
// Usage: write_log DIR
//
// The folder DIR gets, as TensorBoard names them (run, tag: step value, ...):
//   ".", "loss": steps 0 to 9, 1 / (step + 1); step 10 NaN, 11 ∞, 12 −∞
//   ".", "größe/π": step −1, 0.25
//   "train" and "validation", "accuracy": steps 1 to 3, step / 4 and step / 8
//   ".", "weights": histogram at step 5 of the integers −500 to 499, each divided by 100: count 1000, min −5, max 4.99
//   ".", "faulty": histogram at step 6 of {1, NaN, ∞, 2}: count 2, min 1, max 2; scalar "faulty/not_finite" 2
//   ".", "empty": histogram at step 6 without elements
//   ".", "notes": text at step 7, "# Notes\n\n*reel* & <b>π</b>"
//   ".", hyper-parameters learning_rate 0.01, layers 2, cell "lstm", shuffled true; metric "final_loss" 0.1 at step 12
//   ".", "picture": image at step 8, 3 wide, 2 high, RGB, whose red, green, blue bytes are 10 (6 c + 3 y + x)
//   ".", "grid": image at step 8 of 5 pictures of 4 × 4 pixels, grey: 3 columns, 2 rows, 2 pixels apart: 16 wide, 10 high
//   ".", "line plot" and "heat map": images at step 9, 640 wide, 480 high, RGB
//   ".", the graph of a matmul, add, tanh and mean with parameters "layer/weight" and "layer/bias"
//   ".", the embeddings "words" (3 vectors of 2 numbers, labels "a", "b", "(empty)") and "digits" with a sprite
// and scalars.csv and log.jsonl with the same scalars, whose run is "" for the folder itself.

#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include <reel/reel.h>

using namespace reel;

namespace {

void write_scalars(logging::Writer& log) {
  for (int step = 0; step < 10; ++step) log.scalar("loss", 1.0 / (step + 1), step);
  log.scalar("loss", std::numeric_limits<double>::quiet_NaN(), 10);
  log.scalar("loss", std::numeric_limits<double>::infinity(), 11);
  log.scalar("loss", -std::numeric_limits<double>::infinity(), 12);
  log.scalar("größe/π", 0.25, -1);
  for (int step = 1; step <= 3; ++step)
    log.scalars("accuracy", {{"train", step / 4.0}, {"validation", step / 8.0}}, step);
}

Tensor ramp(const Shape& shape) { return reshape(to(arange(shape.numel()), u8), shape); }

void write_pictures(logging::Writer& log) {
  log.image("picture", ramp({3, 2, 3}) * tensor(std::vector<unsigned char>{10}), 8);
  log.image("grid", rand({5, 1, 4, 4}), 8);
  std::vector<double> falling;
  for (int i = 0; i < 50; ++i) falling.push_back(1.0 / (1 + i));
  log.figure("line plot",
             logging::LinePlot{.title = "Loss of two models: (a) & (b)",
                               .x_label = "step",
                               .y_label = "loss / nats",
                               .curves = {{"falling", {}, falling}, {"V", {0, 20, 40}, {0.5, 0.1, 0.6}}}},
             9);
  log.figure("heat map",
             logging::HeatMap{.title = "Attention", .x_label = "key", .y_label = "query", .values = rand({12, 20})}, 9);
}

void write_graph(logging::Writer& log) {
  Tensor weight = ones({3, 2}).requires_grad(), bias = ones({2}).requires_grad();
  Tape tape;
  Tensor loss = mean(tanh(matmul(ones({4, 3}), weight) + bias));
  log.graph(tape, {{"layer.weight", weight}, {"layer.bias", bias}});
}

void write_embeddings(logging::Writer& log) {
  log.embedding("words", zeros({2, 2}));
  log.embedding("digits", reshape(arange(20.0f), {1, 20}), {"a\tb"}, rand({1, 1, 8, 8}));
  log.embedding("words", tensor({{0.5f, 1.0f}, {1.5f, 2.0f}, {2.5f, -3.0f}}), {"a", "b", ""});
}

void write_log(const std::string& directory) {
  logging::Writer log(directory, {.csv = true, .json = true});
  write_scalars(log);
  log.histogram("weights", arange(-500, 500) / 100.0, 5);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  log.histogram("faulty", tensor({1.0f, infinity - infinity, infinity, 2.0f}), 6);
  log.histogram("empty", zeros({0}), 6);
  log.text("notes", "# Notes\n\n*reel* & <b>π</b>", 7);
  log.hyper_parameters({{"learning_rate", 0.01}, {"layers", 2}, {"cell", "lstm"}, {"shuffled", true}},
                       {{"final_loss", 0.1}}, 12);
  write_pictures(log);
  write_graph(log);
  write_embeddings(log);
  log.flush();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: write_log DIR\n");
    return 2;
  }
  try {
    write_log(arguments[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_log: %s\n", error.what());
    return 1;
  }
}
