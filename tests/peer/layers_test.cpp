#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/modules/transformerlayer.h>

#include "peer/layers.h"

namespace reel_test {

using namespace reel;

namespace {

// Theirs has two biases of which ours is the sum; that of the state stays 0.
std::vector<ParameterPair> lstm_pairs(nn::LSTM& ours, torch::nn::LSTM& theirs) {
  std::vector<ParameterPair> pairs;
  auto parameters = theirs->all_weights();
  std::size_t each = parameters.size() / ours.nets.size();
  for (std::size_t net = 0; net < ours.nets.size(); ++net) {
    nn::LSTMCell& cell = ours.nets[net];
    pairs.push_back(transposed(cell.W_x, parameters[each * net]));
    pairs.push_back(transposed(cell.W_h, parameters[each * net + 1]));
    pairs.push_back(same(cell.bias, parameters[each * net + 2]));
    at::NoGradGuard pause;
    parameters[each * net + 3].zero_();
    if (cell.W_r.defined()) pairs.push_back(transposed(cell.W_r, parameters[each * net + 4]));
  }
  return pairs;
}

void compare_lstms(std::int64_t layers, bool bidirectional, std::int64_t projection) {
  INFO(layers << " layers, " << (bidirectional ? "bi" : "uni") << "directional, projection " << projection);
  nn::LSTM ours(5, 8, {.layers = layers, .bidirectional = bidirectional, .projection = projection});
  torch::nn::LSTM theirs(
      torch::nn::LSTMOptions(5, 8).num_layers(layers).bidirectional(bidirectional).proj_size(projection));
  std::int64_t nets = layers * (bidirectional ? 2 : 1), width = projection > 0 ? projection : 8;
  compare_layers(
      ours, *theirs, lstm_pairs(ours, theirs), {randn({6, 3, 5}), randn({nets, 3, width}), randn({nets, 3, 8})},
      [&](const std::vector<Tensor>& in) {
        LSTMOutput result = ours(in[0], {in[1], in[2]});
        return std::vector<Tensor>{result.output, result.h_n, result.c_n};
      },
      [&](const std::vector<at::Tensor>& in) {
        auto [output, state] = theirs->forward(in[0], std::make_tuple(in[1], in[2]));
        return std::vector<at::Tensor>{output, std::get<0>(state), std::get<1>(state)};
      });
}

}  // namespace

TEST_CASE("LSTM layers equal libtorch's, and their gradients") {
  manual_seed(1);
  compare_lstms(1, false, 0);
  compare_lstms(2, true, 0);
  compare_lstms(2, false, 4);
  compare_lstms(2, true, 3);
}

TEST_CASE("GRU layers equal libtorch's, and their gradients") {
  manual_seed(2);
  nn::GRU ours(5, 8, {.layers = 2, .bidirectional = true});
  torch::nn::GRU theirs(torch::nn::GRUOptions(5, 8).num_layers(2).bidirectional(true));
  std::vector<ParameterPair> pairs;
  auto parameters = theirs->all_weights();
  for (std::size_t net = 0; net < ours.nets.size(); ++net) {
    nn::GRUCell& cell = ours.nets[net];
    pairs.push_back(transposed(cell.W_x, parameters[4 * net]));
    pairs.push_back(transposed(cell.W_h, parameters[4 * net + 1]));
    // b_r, b_z, b_n are in the first of theirs, b_m in the second.
    at::NoGradGuard pause;
    parameters[4 * net + 3].zero_();
    pairs.push_back({cell.bias, parameters[4 * net + 2], 0, 24, false, 0, 24});
    pairs.push_back({cell.bias, parameters[4 * net + 3], 16, 8, false, 24, 8});
  }
  compare_layers(
      ours, *theirs, pairs, {randn({6, 3, 5}), randn({4, 3, 8})},
      [&](const std::vector<Tensor>& in) {
        RecurrentOutput result = ours(in[0], in[1]);
        return std::vector<Tensor>{result.output, result.h_n};
      },
      [&](const std::vector<at::Tensor>& in) {
        auto [output, h] = theirs->forward(in[0], in[1]);
        return std::vector<at::Tensor>{output, h};
      });
}

TEST_CASE("RNN layers equal libtorch's, and their gradients") {
  manual_seed(3);
  for (RNNActivation activation : {RNNActivation::tanh, RNNActivation::relu}) {
    nn::RNN ours(5, 8, {.layers = 2, .activation = activation});
    torch::nn::RNNOptions options = torch::nn::RNNOptions(5, 8).num_layers(2);
    if (activation == RNNActivation::relu) options.nonlinearity(torch::kReLU);
    torch::nn::RNN theirs(options);
    std::vector<ParameterPair> pairs;
    auto parameters = theirs->all_weights();
    for (std::size_t net = 0; net < 2; ++net) {
      pairs.push_back(transposed(ours.nets[net].W_x, parameters[4 * net]));
      pairs.push_back(transposed(ours.nets[net].W_h, parameters[4 * net + 1]));
      pairs.push_back(same(ours.nets[net].bias, parameters[4 * net + 2]));
      at::NoGradGuard pause;
      parameters[4 * net + 3].zero_();
    }
    compare_layers(
        ours, *theirs, pairs, {randn({6, 3, 5})},
        [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{ours(in[0]).output}; },
        [&](const std::vector<at::Tensor>& in) {
          return std::vector<at::Tensor>{std::get<0>(theirs->forward(in[0]))};
        });
  }
}

namespace {

void add_linear(std::vector<ParameterPair>& pairs, nn::Linear& ours, torch::nn::Linear& theirs) {
  pairs.push_back(transposed(ours.weight, theirs->weight));
  pairs.push_back(same(ours.bias, theirs->bias));
}

void add_norm(std::vector<ParameterPair>& pairs, nn::LayerNorm& ours, torch::nn::LayerNorm& theirs) {
  pairs.push_back(same(ours.weight, theirs->weight));
  pairs.push_back(same(ours.bias, theirs->bias));
}

// Theirs keeps the three matrices in one.
void add_attention(std::vector<ParameterPair>& pairs, nn::MultiHeadAttention& ours,
                   torch::nn::MultiheadAttention& theirs) {
  std::int64_t size = ours.output.weight.size(0), start = 0;
  for (nn::Linear* part : {&ours.query, &ours.key, &ours.value}) {
    pairs.push_back(transposed(part->weight, theirs->in_proj_weight, start));
    pairs.push_back(same(part->bias, theirs->in_proj_bias, start));
    start += size;
  }
  pairs.push_back(transposed(ours.output.weight, theirs->out_proj->weight));
  pairs.push_back(same(ours.output.bias, theirs->out_proj->bias));
}

// Theirs has the length in front.
at::Tensor exchanged(const at::Tensor& x) { return x.transpose(0, 1); }

// Padding of two sequences, the last two keys of the second; and keys that queries do not see.
Tensor padding_of(std::int64_t keys) { return unsqueeze(arange(keys), 0) >= tensor<std::int64_t>({{9}, {keys - 2}}); }
Tensor later_keys(std::int64_t length) { return arange(length) > unsqueeze(arange(length), 1); }

at::Tensor bools_of(const Tensor& x) { return theirs_of(x).to(at::kBool); }
// libtorch 1.13 adds masks of this kind, whatever their type, in C++.
at::Tensor added_of(const Tensor& hidden, const at::Tensor& like) {
  return at::zeros(bools_of(hidden).sizes(), like.scalar_type()).masked_fill(bools_of(hidden), -INFINITY);
}

}  // namespace

TEST_CASE("multi-head attention equals libtorch's, with its masks, and its gradients") {
  manual_seed(4);
  nn::MultiHeadAttention ours(12, 3);
  torch::nn::MultiheadAttention theirs(torch::nn::MultiheadAttentionOptions(12, 3));
  std::vector<ParameterPair> pairs;
  add_attention(pairs, ours, theirs);
  Tensor padding = padding_of(6), hidden = later_keys(6);
  for (bool masked : {false, true}) {
    ours.to(f32);
    theirs->to(at::kFloat);
    compare_layers(
        ours, *theirs, pairs, {randn({2, 6, 12}), randn({2, 6, 12}), randn({2, 6, 12})},
        [&](const std::vector<Tensor>& in) {
          nn::AttentionMasks masks;
          if (masked) masks = {.attention_mask = hidden, .key_padding_mask = padding};
          return std::vector<Tensor>{ours(in[0], in[1], in[2], masks)};
        },
        [&](const std::vector<at::Tensor>& in) {
          auto [found, weights] = theirs->forward(exchanged(in[0]), exchanged(in[1]), exchanged(in[2]),
                                                  masked ? bools_of(padding) : at::Tensor(), false,
                                                  masked ? added_of(hidden, in[0]) : at::Tensor());
          return std::vector<at::Tensor>{exchanged(found)};
        });
  }
}

TEST_CASE("Transformer encoder layers equal libtorch's, and their gradients") {
  manual_seed(5);
  for (bool gelu : {false, true})
    for (bool norm_first : {false, true}) {
      INFO((gelu ? "gelu" : "relu") << (norm_first ? ", norms first" : ""));
      nn::TransformerEncoderLayer ours(
          12, 3,
          {.feed_forward = 20,
           .dropout = 0,
           .activation = gelu ? nn::TransformerActivation::gelu : nn::TransformerActivation::relu,
           .norm_first = norm_first});
      torch::nn::TransformerEncoderLayerOptions options =
          torch::nn::TransformerEncoderLayerOptions(12, 3).dim_feedforward(20).dropout(0);
      if (gelu) options.activation(torch::kGELU);
      torch::nn::TransformerEncoderLayer theirs(options);
      std::vector<ParameterPair> pairs;
      add_attention(pairs, ours.attention, theirs->self_attn);
      add_norm(pairs, ours.attention_norm, theirs->norm1);
      add_linear(pairs, ours.feed_forward.expand, theirs->linear1);
      add_linear(pairs, ours.feed_forward.contract, theirs->linear2);
      add_norm(pairs, ours.feed_forward_norm, theirs->norm2);
      Tensor padding = padding_of(6);
      // libtorch 1.13 has norm_first only in Python: here it is composed of libtorch's layers.
      auto in_front = [&](const at::Tensor& x) {
        at::Tensor normal = theirs->norm1(x);
        at::Tensor seen = x + std::get<0>(theirs->self_attn(normal, normal, normal, bools_of(padding)));
        at::Tensor wide = theirs->linear1(theirs->norm2(seen));
        return seen + theirs->linear2(gelu ? at::gelu(wide) : at::relu(wide));
      };
      compare_layers(
          ours, *theirs, pairs, {randn({2, 6, 12})},
          [&](const std::vector<Tensor>& in) {
            return std::vector<Tensor>{ours(in[0], {.key_padding_mask = padding})};
          },
          [&](const std::vector<at::Tensor>& in) {
            at::Tensor x = exchanged(in[0]);
            return std::vector<at::Tensor>{
                exchanged(norm_first ? in_front(x) : theirs->forward(x, {}, bools_of(padding)))};
          });
    }
}

TEST_CASE("Transformer decoder layers equal libtorch's, and their gradients") {
  manual_seed(6);
  nn::TransformerDecoderLayer ours(12, 3, {.feed_forward = 20, .dropout = 0});
  torch::nn::TransformerDecoderLayer theirs(
      torch::nn::TransformerDecoderLayerOptions(12, 3).dim_feedforward(20).dropout(0));
  std::vector<ParameterPair> pairs;
  add_attention(pairs, ours.attention, theirs->self_attn);
  add_norm(pairs, ours.attention_norm, theirs->norm1);
  add_attention(pairs, ours.memory_attention, theirs->multihead_attn);
  add_norm(pairs, ours.memory_norm, theirs->norm2);
  add_linear(pairs, ours.feed_forward.expand, theirs->linear1);
  add_linear(pairs, ours.feed_forward.contract, theirs->linear2);
  add_norm(pairs, ours.feed_forward_norm, theirs->norm3);
  Tensor padding = padding_of(5);
  compare_layers(
      ours, *theirs, pairs, {randn({2, 4, 12}), randn({2, 5, 12})},
      [&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{ours(in[0], in[1], {.causal = true}, {.key_padding_mask = padding})};
      },
      [&](const std::vector<at::Tensor>& in) {
        return std::vector<at::Tensor>{exchanged(theirs->forward(
            exchanged(in[0]), exchanged(in[1]), added_of(later_keys(4), in[0]), {}, {}, bools_of(padding)))};
      });
}

}  // namespace reel_test
