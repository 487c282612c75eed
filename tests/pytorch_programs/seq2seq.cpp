// Learns to write words of any lengths backwards: an encoder and a decoder with attention, over ragged batches.

#include <fmt/format.h>
#include <reel/reel.h>

using namespace reel;

constexpr std::int64_t letter_count = 8, end = 8, begin = 9;

struct Translator : nn::Module {
  nn::Embedding letters;
  nn::GRU encoder;
  nn::GRUCell decoder;
  nn::Linear key, query, energy, output;

  explicit Translator(std::int64_t size = 32)
      : letters(*this, "letters", letter_count + 2, size),
        encoder(*this, "encoder", size, size, {.bidirectional = true}),
        decoder(*this, "decoder", 3 * size, size),
        key(*this, "key", 2 * size, size, {.bias = false}),
        query(*this, "query", size, size),
        energy(*this, "energy", size, 1, {.bias = false}),
        output(*this, "output", 3 * size, letter_count + 1) {}

  /// Logits (T, N, letters) of what is written: given the letters before it (T, N), or its own.
  Tensor operator()(const nn::Packed& words, const Tensor& targets = {}, std::int64_t longest = 8) const {
    nn::Packed encoded = encoder(words.with(letters(words.elements))).output;
    Tensor states = encoded.padded(), mask = encoded.mask(), keys = key(states);
    Tensor h = decoder.initial_state(words.size());
    Tensor before = full({words.size()}, begin, {.dtype = i64});
    std::vector<Tensor> logits;
    for (std::int64_t t = 0; t < (targets.defined() ? targets.size(0) : longest); ++t) {
      Tensor energies = squeeze(energy(tanh(keys + query(h))), 2);
      Tensor weights = softmax(where(mask, energies, -INFINITY), 0);
      Tensor context = sum(unsqueeze(weights, 2) * states, 0);
      h = decoder(concat({letters(before), context}, 1), h);
      logits.push_back(output(concat({h, context}, 1)));
      before = targets.defined() ? targets(t) : argmax(logits.back(), 1);
    }
    return stack(logits);
  }
};

/// Words of three to six letters, each with the end mark, and their reversals (T, count), padded with end marks.
std::pair<nn::Packed, Tensor> draw(std::int64_t count) {
  std::vector<Tensor> words, reversals;
  for (std::int64_t length : randint(3, 7, {count}).to_vector<std::int64_t>()) {
    Tensor letters = randint(0, letter_count, {length}), mark = full({1}, end, {.dtype = i64});
    words.push_back(concat({letters, mark}));
    reversals.push_back(concat({flip(letters), mark}));
  }
  return {nn::pack(words), nn::pack(reversals).padded({.value = end})};
}

int main() {
  manual_seed(1);
  Translator model;
  optim::Adam adam(model.parameters(), {.learning_rate = 5e-3});
  for (int step = 0; step < 400; ++step) {
    auto [words, targets] = draw(32);
    Tape tape;
    Tensor loss = cross_entropy(flatten(model(words, targets), 0, 1), flatten(targets));
    adam.zero_grad();
    tape.backward(loss);
    optim::clip_grad_norm(model.parameters(), 1);
    adam.step();
    if (step % 50 == 0) fmt::print("step {}: loss {:.3f}\n", step, loss.item());
  }
  auto [words, targets] = draw(200);
  Tensor written = argmax(model(words, {}, targets.size(0)), 2);
  double exact = mean(to(all(written == targets, 0), f32)).item();
  fmt::print("{:.1f} % of 200 new words are written backwards without a mistake; 70 % are required\n", 100 * exact);
  return exact < 0.7;
}
