#include "workloads.h"

#include <fmt/format.h>

namespace reel_bench {

std::vector<Workload> workloads() {
  auto lstm = [](std::int64_t batch, std::int64_t size) {
    return [=] { return lstm_by_hand(LSTMForm::cell, batch, size); };
  };
  std::vector<Workload> all{
      {"op_chain", chain_length, 30, 260, op_chain},
      {"op_chain_backward", chain_length, 80, 800, op_chain_backward},
      {"product_tanh", product_count, 2100, 0, product_tanh},
      {"lstm_by_hand_1_128", 1, 0.8e6, 0, lstm(1, 128)},
      {"lstm_by_hand_32_128", 1, 12e6, 0, lstm(32, 128)},
      {"lstm_by_hand_1_512", 1, 31e6, 0, lstm(1, 512)},
      {"lstm_by_hand_32_512", 1, 190e6, 0, lstm(32, 512)},
      {"lstm_layer_32_512", 1, 180e6, 0, [] { return lstm_layer(lstm_steps, 32, 512); }},
      {"tree_lstm_1", 25, 1e9 / 700, 0, [] { return tree_lstm(1); }},
      {"tree_lstm_25", 25, 1e9 / 780, 0, [] { return tree_lstm(25); }},
      {"mlp", batch_size, 1e9 / 7500, 0, mlp},
      {"cnn", batch_size, 1e9 / 950, 0, cnn},
      {"matmul_2048", 1, 2.0 * matrix_size * matrix_size * matrix_size / 118, 0,
       [] { return square_product(reel::f32); }},
      {"vanishing_normal", 1, 0, 0, [] { return vanishing(false, true); }},
      {"vanishing_small", 1, 0, 0, [] { return vanishing(true, true); }},
  };
  for (bool layer : {false, true})
    for (bool trains : {false, true})
      for (reel::DType dtype : {reel::f32, reel::bf16, reel::f16})
        all.push_back({fmt::format("lstm_{}_1_512_{}_{}", layer ? "layer" : "cell", trains ? "train" : "forward",
                                   reel::name_of(dtype)),
                       1, 0, 0, [=] { return lstm_of_weight_dtype(layer, trains, dtype); }});
  return all;
}

}  // namespace reel_bench
