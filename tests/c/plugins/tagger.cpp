// A model with several inputs and results, which is made by a factory.
#include <reel/c/plugin.h>
#include <reel/nn/embedding.h>
#include <reel/nn/linear.h>
#include <reel/nn/recurrent.h>
#include <reel/ops/softmax.h>

using namespace reel;

namespace {

struct Tags {
  Tensor scores;
  std::vector<Tensor> states;
};

struct Tagger : nn::Module {
  nn::Embedding embedding;
  nn::LSTM lstm;
  nn::Linear output;

  explicit Tagger(std::int64_t words)
      : embedding(*this, "embedding", words, 8), lstm(*this, "lstm", 8, 16), output(*this, "output", 16, 3) {}

  // words: (T, N) indices; h_0, c_0: (1, N, 16), the state before, given or not.
  Tags operator()(const Tensor& words) const { return tags(words, {}); }
  Tags operator()(const Tensor& words, const Tensor& h_0, const Tensor& c_0) const { return tags(words, {h_0, c_0}); }

 private:
  Tags tags(const Tensor& words, const nn::LSTMState& state) const {
    auto [y, h_n, c_n] = lstm(embedding(words), state);
    return {log_softmax(output(y)), {h_n, c_n}};
  }
};

}  // namespace

extern "C" const Plugin* reel_plugin() {
  return plugin("tagger", [] { return Tagger(20); });
}
