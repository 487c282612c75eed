#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include <fmt/format.h>
#include <reel/reel.h>

namespace samples {

using reel::Tensor;
namespace nn = reel::nn;

/// Computes the logits of a tagger of packed sequences with padding, for comparison: every word is padded to the
/// characters of the longest word and every tweet to the words of the longest tweet of the batch; masks exclude the
/// padding.
template <class Tagger>
class PaddedTagger {
 public:
  explicit PaddedTagger(const Tagger& model) : model_(model) {}

  Tensor operator()(const nn::Packed& bytes, const Tensor& ids, const std::vector<std::int64_t>& tweet_sizes) const {
    Tensor mask = bytes.mask();                          // (longest word, words)
    Tensor letters = model_.characters(bytes.padded());  // (longest word, words, D)
    for (const nn::LSTM& lstm : model_.over_characters) letters = run(lstm, letters, mask);
    Tensor weights = reel::unsqueeze(to(mask, reel::f32), 2);
    Tensor means = sum(letters * weights, {0}) / sum(weights, {0});  // (words, D)
    nn::Packed words{reel::concat({means, model_.words(ids)}, 1), tweet_sizes};
    Tensor word_mask = words.mask(), padded = words.padded();  // (longest tweet, tweets), (…, D)
    for (const nn::LSTM& lstm : model_.over_words) padded = run(lstm, padded, word_mask);
    return model_.output(nn::pack(padded, reel::tensor(tweet_sizes)).elements);
  }

 private:
  // A step does not change the state where the mask is false.
  static Tensor run(const nn::LSTM& lstm, Tensor x, const Tensor& mask) {
    for (std::size_t net = 0; net < lstm.nets.size(); net += 2)
      x = reel::concat({run_net(lstm.nets[net], x, mask, false), run_net(lstm.nets[net + 1], x, mask, true)}, 2);
    return x;
  }
  static Tensor run_net(const nn::LSTMCell& cell, const Tensor& x, const Tensor& mask, bool backwards) {
    nn::LSTMState state = cell.initial_state(x.size(1));
    std::vector<Tensor> shown(static_cast<std::size_t>(x.size(0)));
    for (std::int64_t step = 0; step < x.size(0); ++step) {
      std::int64_t t = backwards ? x.size(0) - 1 - step : step;
      nn::LSTMState next = cell(x(t), state);
      Tensor there = reel::unsqueeze(mask(t), 1);
      state = {where(there, next.h, state.h), reel::where(there, next.c, state.c)};
      shown[static_cast<std::size_t>(t)] = state.h;
    }
    return reel::stack(shown);
  }

  const Tagger& model_;
};

/// Prints the loss of a batch, packed and padded: its words as bytes, `characters`, and as `ids`, the sizes of its
/// tweets, `tweet_sizes`, and the tags of its words, `tags`.
template <class Tagger, class Batch>
void compare_padded(Tagger& model, const Batch& batch) {
  model.eval();
  auto loss = [&](const auto& tagger) {
    return cross_entropy(tagger(batch.characters, batch.ids, batch.tweet_sizes), batch.tags).item();
  };
  double packed = loss(model), padded = loss(PaddedTagger(model));
  fmt::print("loss of {} tweets: packed {:.7f}, padded and masked {:.7f}, difference {:.1e}\n",
             batch.tweet_sizes.size(), packed, padded, std::abs(packed - padded));
  model.train();
}

}  // namespace samples
