// Learns to tag words by the word before and the word after; saves weights and tags, and loads them again.
//
// Usage: tagger [FOLDER], which has the files "weights" and "tagged" of tagger.py; without it, makes them where it runs.

#include <filesystem>

#include <fmt/format.h>
#include <reel/reel.h>

using namespace reel;

struct Tagger : nn::Module {
  nn::Embedding words{*this, "words", 8, 16};
  nn::LSTM lstm{*this, "lstm", 16, 16, {.bidirectional = true}};
  nn::Linear output{*this, "output", 32, 3};

  Tensor operator()(const Tensor& indices) const { return output(lstm(words(indices)).output); }
};

/// Sentences (T, count) of ten words, and the tag of each word: how many of its neighbours are even.
std::pair<Tensor, Tensor> draw(std::int64_t count) {
  Tensor words = randint(0, 8, {10, count});
  Tensor even = to(words % 2 == 0, i64);
  Tensor outside = zeros({1, count}, {.dtype = i64});
  return {words, concat({outside, even(slice(0, -1))}) + concat({even(slice(1)), outside})};
}

void train(const Tagger& tagger) {
  optim::Adam adam(tagger.parameters(), {.learning_rate = 1e-2});
  for (int step = 0; step < 200; ++step) {
    auto [words, tags] = draw(32);
    Tape tape;
    Tensor loss = cross_entropy(flatten(tagger(words), 0, 1), flatten(tags));
    adam.zero_grad();
    tape.backward(loss);
    adam.step();
    if (step % 50 == 0) fmt::print("step {}: loss {:.3f}\n", step, loss.item());
  }
}

void save(const std::filesystem::path& folder) {
  Tagger tagger;
  train(tagger);
  auto [words, tags] = draw(100);
  io::save(folder / "weights", tagger, {.for_pytorch = true});
  io::save(folder / "tagged", {{"words", words}, {"tags", tags}, {"found", argmax(tagger(words), 2)}});
}

int main(int count, char** arguments) {
  manual_seed(1);
  std::filesystem::path folder = count > 1 ? arguments[1] : ".";
  if (count == 1) save(folder);
  Tagger tagger;
  io::load_into(tagger, folder / "weights", {.from_pytorch = true});
  io::Contents tagged = io::load(folder / "tagged");
  Tensor found = argmax(tagger(tagged.at("words")), 2);
  double accuracy = mean(to(found == tagged.at("tags"), f32)).item();
  double different = sum(found != tagged.at("found")).item();
  fmt::print("{:.1f} % of the tags are right, 95 % are required; {} are not those that were saved\n", 100 * accuracy,
             different);
  return accuracy < 0.95 || different > 0;
}
