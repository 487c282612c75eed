#include <fmt/format.h>

#include "cpu/onednn/onednn_product.h"
#include "models.h"
#include "report.h"

// The table of goals, measured on another machine on one thread: ns, ms or operations per second of libtorch
// and of DyNet, and the goal of reel. Here a goal is a ratio to libtorch's time in this run, and DyNet's column,
// which is not measured here, is given as its ratio to libtorch's.

namespace reel_bench {

namespace {

constexpr double nanosecond = 1e-6, millisecond = 1;

struct Lstm {
  std::int64_t batch, size;
  double libtorch, goal, dynet;  // ms
};

ModelCase by_hand(const Lstm& one) {
  std::string name = fmt::format("lstm_by_hand B={} H={}", one.batch, one.size);
  return {name,
          {"ms", 1, millisecond},
          {{"", 0, 0, one.goal / one.libtorch, one.dynet / one.libtorch},
           {"its inputs' products at once", 1, 0, 0, 0},
           {"composed of [x, h] W + b, chunks, sigmoid, tanh", 2, 0, 0, 0}},
          [=] {
            std::vector<Work> ways;
            for (LSTMForm form : {LSTMForm::cell, LSTMForm::projected, LSTMForm::composed})
              ways.push_back(lstm_by_hand(form, one.batch, one.size));
            return ways;
          },
          [=] { return std::vector<Work>{torch_lstm_by_hand(one.batch, one.size)}; }};
}

// Trees per second of libtorch, node by node and by level, and of DyNet.
ModelCase trees(int minibatch, double libtorch, double by_level, double goal, double dynet) {
  std::string name = fmt::format("tree_lstm, minibatch {}", minibatch);
  return {name,
          {"trees/s", 25, 0},
          {{"", 0, 0, libtorch / goal, libtorch / dynet},
           {"libtorch by level, by hand", 0, 1, by_level / goal, 0},
           {"composed of chunks, sigmoid, tanh", 1, 0, 0, 0}},
          [=] {
            return std::vector<Work>{tree_lstm(minibatch), tree_lstm(minibatch, TreeForm::composed)};
          },
          [=] {
            return std::vector<Work>{torch_tree_lstm(minibatch, false), torch_tree_lstm(minibatch, true)};
          }};
}

template <class Ours, class Theirs>
ModelCase simple(const std::string& name, const Unit& unit, double goal, double dynet, Ours ours, Theirs theirs) {
  return {name,
          unit,
          {{"", 0, 0, goal, dynet}},
          [=] { return std::vector<Work>{ours()}; },
          [=] { return std::vector<Work>{theirs()}; }};
}

}  // namespace

std::vector<ModelCase> model_cases() {
  std::vector<ModelCase> cases;
  cases.push_back({"op_chain, forward, no tape",
                   {"ns/op", chain_length, nanosecond},
                   {{"", 0, 0, 30.0 / 810, 118.0 / 810}, {"libtorch in inference mode", 0, 1, 30.0 / 660, 0}},
                   [] { return std::vector<Work>{op_chain()}; },
                   [] {
                     return std::vector<Work>{torch_op_chain(false), torch_op_chain(true)};
                   }});
  cases.push_back(simple("op_chain, record, backward, free", {"ns/op", chain_length, nanosecond}, 80.0 / 5370,
                         203.0 / 5370, op_chain_backward, torch_op_chain_backward));
  cases.push_back(simple("product_tanh [1, 128] x [128, 128]", {"ns", product_count, nanosecond},
                         2100.0 / (4110 + 15390), 4260.0 / (4110 + 15390), product_tanh, torch_product_tanh));
  for (const Lstm& one :
       {Lstm{1, 128, 16.7, 0.8, 1.86}, {32, 128, 32.9, 12, 25}, {1, 512, 470, 31, 62.7}, {32, 512, 649, 190, 367}})
    cases.push_back(by_hand(one));
  cases.push_back(simple(
      "lstm_layer B=32 H=512", {"ms", 1, millisecond}, 180.0 / 338, 0, [] { return lstm_layer(lstm_steps, 32, 512); },
      [] { return torch_lstm_layer(lstm_steps, 32, 512); }));
  cases.push_back(trees(1, 60, 144, 700, 209));
  cases.push_back(trees(25, 56, 832, 780, 273));
  cases.push_back(
      simple("mlp 784-1024-1024-10", {"samples/s", batch_size, 0}, 5300.0 / 7500, 5300.0 / 3940, mlp, torch_mlp));
  cases.push_back(
      simple("cnn 1-32-64, 9216-128-10", {"samples/s", batch_size, 0}, 592.0 / 950, 592.0 / 213, cnn, torch_cnn));
  constexpr double billions = 2e-9 * matrix_size * matrix_size * matrix_size;
  cases.push_back(simple(
      "matmul_2048 f32", {"GFLOP/s", billions, 0}, 120.0 / 118, 120.0 / 73, [] { return square_product(reel::f32); },
      [] { return torch_square_product(at::kFloat); }));
  if (reel::detail::has_bf16_tiles())
    cases.push_back(simple(
        "matmul_2048 bf16", {"GFLOP/s", billions, 0}, 542.0 / 600, 0, [] { return square_product(reel::bf16); },
        [] { return torch_square_product(at::kBFloat16); }));
  return cases;
}

}  // namespace reel_bench
