#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/modules/transformerlayer.h>

#include <unistd.h>

#include <cstdio>

#include "peer/layers.h"

// Weights under PyTorch's names, saved and loaded, give what libtorch gives.

namespace reel_test {

using namespace reel;

namespace {

// Loads the tensors that Python calls model.state_dict(), through a file.
void load_state_of(const torch::nn::Module& theirs, nn::Module& ours) {
  std::vector<io::NamedTensor> state;
  auto add = [&](const std::string& name, const at::Tensor& values, DType dtype) {
    Shape shape(std::span(values.sizes().data(), values.sizes().size()));
    state.push_back({name, to(reshape(tensor(doubles_of(values)), shape), dtype)});
  };
  for (const auto& named : theirs.named_parameters()) add(named.key(), named.value(), f32);
  for (const auto& named : theirs.named_buffers())
    add(named.key(), named.value(), named.value().scalar_type() == at::kLong ? i64 : f32);
  std::string path = "/tmp/reel_peer_weights_" + std::to_string(getpid());
  io::save(path, state);
  io::load_into(ours, path, {.from_pytorch = true});
  std::remove(path.c_str());
}

void check_near(const Tensor& ours, const at::Tensor& theirs) {
  // Sums of some 100 products of numbers of about 1, and what follows them.
  CHECK(largest_difference(doubles_of(ours), doubles_of(theirs)) <= 100 * 0x1p-23);
}

at::Tensor floats_of(const Tensor& x) { return theirs_of(x).to(at::kFloat); }

template <class Ours, class Theirs>
void check_recurrent(Ours ours, Theirs theirs) {
  load_state_of(*theirs, ours);
  Tensor x = randn({6, 3, 5});
  check_near(ours(x).output, std::get<0>(theirs->forward(floats_of(x))));
}

}  // namespace

TEST_CASE("weights that libtorch has of a Linear and an Embedding are loaded") {
  manual_seed(11);
  struct Ours : nn::Module {
    nn::Embedding embedding{*this, "embedding", 9, 6};
    nn::Linear square{*this, "square", 6, 6};
    nn::Linear output{*this, "output", 6, 2};
  } ours;
  struct Theirs : torch::nn::Module {
    torch::nn::Embedding embedding = register_module("embedding", torch::nn::Embedding(9, 6));
    torch::nn::Linear square = register_module("square", torch::nn::Linear(6, 6));
    torch::nn::Linear output = register_module("output", torch::nn::Linear(6, 2));
  } theirs;
  load_state_of(theirs, ours);
  Tensor words = tensor<std::int64_t>({0, 8, 3, 3});
  check_near(ours.output(ours.square(ours.embedding(words))),
             theirs.output(theirs.square(theirs.embedding(theirs_of(words).to(at::kLong)))));
}

TEST_CASE("weights that libtorch has of convolutions, norms and bilinear layers are loaded") {
  manual_seed(14);
  struct Ours : nn::Module {
    nn::Conv2d conv{*this, "conv", 3, 4, 3};
    nn::BatchNorm2d norm{*this, "norm", 4};
    nn::GroupNorm groups{*this, "groups", 2, 4};
    nn::ConvTransposed2d back{*this, "back", 4, 2, 3};
    Tensor operator()(const Tensor& x) const { return back(groups(norm(conv(x)))); }
  } ours;
  struct Theirs : torch::nn::Module {
    torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(3, 4, 3));
    torch::nn::BatchNorm2d norm = register_module("norm", torch::nn::BatchNorm2d(4));
    torch::nn::GroupNorm groups = register_module("groups", torch::nn::GroupNorm(2, 4));
    torch::nn::ConvTranspose2d back = register_module("back", torch::nn::ConvTranspose2d(4, 2, 3));
    at::Tensor operator()(const at::Tensor& x) { return back(groups(norm(conv(x)))); }
  } theirs;
  Tensor x = randn({2, 3, 7, 7});
  theirs(floats_of(x) * 2 + 1);  // moves the running statistics
  theirs.eval();
  ours.eval();
  load_state_of(theirs, ours);
  check_near(ours(x), theirs(floats_of(x)));
  nn::Bilinear bilinear(3, 4, 2);
  torch::nn::Bilinear their_bilinear(3, 4, 2);
  load_state_of(*their_bilinear, bilinear);
  Tensor a = randn({5, 3}), b = randn({5, 4});
  check_near(bilinear(a, b), their_bilinear(floats_of(a), floats_of(b)));
}

TEST_CASE("weights that libtorch has of recurrent layers and cells are loaded") {
  manual_seed(12);
  check_recurrent(nn::LSTM(5, 8), torch::nn::LSTM(5, 8));
  check_recurrent(nn::LSTM(5, 8, {.layers = 2, .bidirectional = true, .projection = 3}),
                  torch::nn::LSTM(torch::nn::LSTMOptions(5, 8).num_layers(2).bidirectional(true).proj_size(3)));
  check_recurrent(nn::GRU(5, 8, {.layers = 2, .bidirectional = true}),
                  torch::nn::GRU(torch::nn::GRUOptions(5, 8).num_layers(2).bidirectional(true)));
  check_recurrent(nn::RNN(5, 8, {.layers = 3}), torch::nn::RNN(torch::nn::RNNOptions(5, 8).num_layers(3)));

  Tensor x = randn({3, 5}), h = randn({3, 8}), c = randn({3, 8});
  nn::LSTMCell lstm(5, 8);
  torch::nn::LSTMCell their_lstm(5, 8);
  load_state_of(*their_lstm, lstm);
  check_near(lstm(x, {h, c}).c, std::get<1>(their_lstm(floats_of(x), std::make_tuple(floats_of(h), floats_of(c)))));
  nn::GRUCell gru(5, 8);
  torch::nn::GRUCell their_gru(5, 8);
  load_state_of(*their_gru, gru);
  check_near(gru(x, h), their_gru(floats_of(x), floats_of(h)));
  nn::RNNCell rnn(5, 8);
  torch::nn::RNNCell their_rnn(5, 8);
  load_state_of(*their_rnn, rnn);
  check_near(rnn(x, h), their_rnn(floats_of(x), floats_of(h)));
}

TEST_CASE("weights that libtorch has of attention and of Transformers are loaded") {
  manual_seed(13);
  Tensor x = randn({2, 4, 12}), memory = randn({2, 5, 12}), narrow = randn({2, 5, 7});
  auto with_length_first = [](const Tensor& x) { return floats_of(transpose(x, 0, 1)); };
  nn::MultiHeadAttention attention(12, 3);
  torch::nn::MultiheadAttention their_attention(12, 3);
  load_state_of(*their_attention, attention);
  at::Tensor q = with_length_first(x), m = with_length_first(memory);
  check_near(attention(x, memory, memory), std::get<0>(their_attention(q, m, m)).transpose(0, 1));

  // libtorch 1.13 wants keys and values of one width.
  nn::MultiHeadAttention uneven(12, 3, {.key_size = 7, .value_size = 7});
  torch::nn::MultiheadAttention their_uneven(torch::nn::MultiheadAttentionOptions(12, 3).kdim(7).vdim(7));
  load_state_of(*their_uneven, uneven);
  at::Tensor n = with_length_first(narrow);
  check_near(uneven(x, narrow, narrow), std::get<0>(their_uneven(q, n, n)).transpose(0, 1));

  nn::TransformerEncoderLayer encoder(12, 3, {.feed_forward = 20, .dropout = 0});
  torch::nn::TransformerEncoderLayer their_encoder(
      torch::nn::TransformerEncoderLayerOptions(12, 3).dim_feedforward(20).dropout(0));
  load_state_of(*their_encoder, encoder);
  check_near(encoder(x), their_encoder(q).transpose(0, 1));

  struct Ours : nn::Module {
    nn::TransformerDecoderLayer decoder{*this, "decoder", 12, 3, {.feed_forward = 20, .dropout = 0}};
  } ours;
  struct Theirs : torch::nn::Module {
    torch::nn::TransformerDecoderLayer decoder = register_module(
        "decoder", torch::nn::TransformerDecoderLayer(
                       torch::nn::TransformerDecoderLayerOptions(12, 3).dim_feedforward(20).dropout(0)));
  } theirs;
  load_state_of(theirs, ours);
  check_near(ours.decoder(x, memory), theirs.decoder(q, m).transpose(0, 1));
}

}  // namespace reel_test
