// Learns to continue a text, character by character, with an LSTM that a native `for` loop unrolls.
//
// The text is cut into parallel streams. Gradients flow back through `--steps` characters; the state is carried on
// beyond them with stop_gradient. The last tenth of the text is held back to measure the loss. Without --text it learns
// sentences of a small grammar that it makes up itself.
//
// Paper: Graves, Generating sequences with recurrent neural networks (2013).
// Command: tools/run char_rnn --text FILE --epochs 3
// Result: 1.5736 nats/char on 1.1 MB of Shakespeare's plays, after 38 s on two cores.

#include <algorithm>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <reel/reel.h>

#include "command_line.h"

using namespace reel;

struct Options {
  std::string text;
  std::int64_t hidden = 256;
  std::int64_t embedding = 64;
  std::int64_t batch = 32;
  std::int64_t steps = 64;
  int epochs = 3;
  double learning_rate = 3e-3;
  double clip = 1;
  std::uint64_t seed = 1;
  int sample = 300;
  double temperature = 0.8;
};

struct CharModel : nn::Module {
  nn::Embedding embedding;
  nn::LSTMCell cell;
  nn::Linear output;

  CharModel(std::int64_t vocabulary, const Options& options)
      : embedding(*this, "embedding", vocabulary, options.embedding),
        cell(*this, "cell", options.embedding, options.hidden),
        output(*this, "output", options.hidden, vocabulary) {}

  /// characters (T, B) → logits of each one's successor (T · B, V); moves the state on.
  Tensor operator()(const Tensor& characters, nn::LSTMState& state) const {
    std::int64_t batch = characters.size(1);
    Tensor projected = cell.project(reshape(embedding(characters), {-1, cell.input_size()}));
    std::vector<Tensor> shown;
    for (const Tensor& step : split(projected, batch)) {
      state = cell.step(step, state);
      shown.push_back(state.h);
    }
    return output(concat(shown));
  }
};

/// The bytes of a text as numbers, 0 for the smallest byte that occurs.
struct Text {
  std::vector<std::int64_t> characters;
  std::string vocabulary;

  explicit Text(const std::string& bytes) {
    std::vector<std::int64_t> number(256, -1);
    for (unsigned char byte : bytes) number[byte] = 0;
    for (int byte = 0; byte < 256; ++byte)
      if (number[byte] == 0) {
        number[byte] = static_cast<std::int64_t>(vocabulary.size());
        vocabulary.push_back(static_cast<char>(byte));
      }
    for (unsigned char byte : bytes) characters.push_back(number[byte]);
  }
};

std::string read_file(const std::string& path) {
  std::string text = io::read_text(path);
  if (text.empty()) throw std::runtime_error(fmt::format("the text '{}' is empty.", io::printable(path)));
  return text;
}

/// Sentences in which verbs agree with their subjects.
std::string made_up_text(std::uint64_t seed) {
  const char* nouns[] = {"cat", "dog", "fox", "crow", "bear", "child", "river", "stone"};
  const char* adjectives[] = {"old", "red", "small", "quiet"};
  const char* verbs[] = {"see", "hear", "follow", "know", "fear"};
  std::mt19937_64 random(seed);
  auto pick = [&](const auto& words) { return words[random() % std::size(words)]; };
  auto noun_phrase = [&](bool plural) {
    std::string phrase = plural ? "many " : "the ";
    while (random() % 3 == 0) phrase += fmt::format("{} ", pick(adjectives));
    return phrase + pick(nouns) + (plural ? "s" : "");
  };
  std::string text;
  while (text.size() < 60'000) {
    bool plural = random() % 2;
    text += noun_phrase(plural) + " ";
    text += pick(verbs) + std::string(plural ? " " : "s ");
    text += noun_phrase(random() % 2) + ".\n";
  }
  return text;
}

/// Characters first to last as parallel streams: (time, batch), stream b being a run of successive characters.
Tensor streams(const Text& text, std::size_t first, std::size_t last, std::int64_t batch) {
  auto length = static_cast<std::int64_t>(last - first) / batch;
  if (length < 2)
    throw std::runtime_error(
        fmt::format("the text is too short: {} characters for {} streams; lower --batch or take a "
                    "longer text.",
                    last - first, batch));
  std::vector<std::int64_t> rows(text.characters.begin() + static_cast<std::ptrdiff_t>(first),
                                 text.characters.begin() + static_cast<std::ptrdiff_t>(first) + batch * length);
  return contiguous(transpose(tensor(rows, {batch, length})));
}

/// Calls f with the characters of each chunk and with those that follow them.
template <class F>
void for_each_chunk(const Tensor& data, std::int64_t steps, F f) {
  for (std::int64_t start = 0; start + 1 < data.size(0); start += steps) {
    std::int64_t stop = std::min(start + steps, data.size(0) - 1);
    f(slice(data, 0, start, stop), reshape(slice(data, 0, start + 1, stop + 1), {-1}));
  }
}

void train_epoch(const CharModel& model, optim::Adam& adam, const Tensor& data, const Options& options, int epoch) {
  nn::Progress progress(fmt::format("epoch {}/{}", epoch + 1, options.epochs), data.numel(), "characters");
  nn::LSTMState state = model.cell.initial_state(data.size(1));
  for_each_chunk(data, options.steps, [&](const Tensor& inputs, const Tensor& targets) {
    Tape tape;
    Tensor loss = cross_entropy(model(inputs, state), targets);
    double value = loss.item();
    train::check_loss(value);
    tape.backward(loss);
    state = stop_gradient(state);
    optim::clip_grad_norm(adam.parameters(), options.clip);
    adam.step();
    adam.zero_grad();
    progress.advance(inputs.numel(), value);
  });
  progress.clear();
  fmt::print("epoch {}/{}  training loss {:.4f}  {:.1f} s\n", epoch + 1, options.epochs, progress.loss(),
             progress.seconds());
}

/// The mean loss over a text, in nats per character.
double validation_loss(const CharModel& model, const Tensor& data, std::int64_t steps) {
  nn::LSTMState state = model.cell.initial_state(data.size(1));
  double total = 0, count = 0;
  for_each_chunk(data, steps, [&](const Tensor& inputs, const Tensor& targets) {
    total += cross_entropy(model(inputs, state), targets, {.reduction = LossReduction::sum}).item();
    count += static_cast<double>(targets.numel());
  });
  return total / count;
}

/// Draws from softmax(logits / temperature).
std::int64_t draw(const Tensor& logits, double temperature) {
  std::vector<float> chances = softmax(logits / temperature).to_vector<float>();
  double left = rand({}).item();
  std::size_t chosen = 0;
  while (chosen + 1 < chances.size() && (left -= chances[chosen]) >= 0) ++chosen;
  return static_cast<std::int64_t>(chosen);
}

std::string sampled_text(const CharModel& model, const Text& text, const Options& options) {
  nn::LSTMState state = model.cell.initial_state(1);
  std::int64_t character = text.characters.front();
  std::string made;
  for (int i = 0; i < options.sample; ++i) {
    Tensor logits = model(tensor(std::vector{character}, {1, 1}), state);
    character = draw(select(logits, 0, 0), options.temperature);
    made.push_back(text.vocabulary[static_cast<std::size_t>(character)]);
  }
  return made;
}

void train_model(const Options& options) {
  manual_seed(options.seed);
  Text text(options.text.empty() ? made_up_text(options.seed) : read_file(options.text));
  std::size_t size = text.characters.size(), trained = size - size / 10;
  Tensor training = streams(text, 0, trained, options.batch);
  Tensor validation = streams(text, trained, size, options.batch);
  CharModel model(static_cast<std::int64_t>(text.vocabulary.size()), options);
  fmt::print("{} characters, {} different ones; {} parameters\n", size, text.vocabulary.size(),
             model.parameter_count());
  optim::Adam adam(model.parameters(), {.learning_rate = options.learning_rate});
  for (int epoch = 0; epoch < options.epochs; ++epoch) train_epoch(model, adam, training, options, epoch);
  if (options.sample > 0) fmt::print("\n{}\n\n", sampled_text(model, text, options));
  double loss = validation_loss(model, validation, options.steps);
  train::check_loss(loss);
  fmt::print("validation loss {:.4f} nats/char\n", loss);
}

int main(int argc, char** argv) {
  Options options;
  samples::CommandLine line("Learns to continue a text, character by character, with an LSTM.", "char_rnn");
  line.add_option("--text", options.text, "text to learn, in UTF-8; without it, sentences of a small grammar");
  line.add_option("--hidden", options.hidden, "size of the LSTM's state", samples::at_least(1));
  line.add_option("--embedding", options.embedding, "size of a character's vector", samples::at_least(1));
  line.add_option("--batch", options.batch, "parallel streams", samples::at_least(1));
  line.add_option("--steps", options.steps, "characters that gradients flow back", samples::at_least(1));
  line.add_option("--epochs", options.epochs, "passes over the text", samples::at_least(1));
  line.add_option("--learning-rate", options.learning_rate, "Adam's", samples::at_least(0));
  line.add_option("--clip", options.clip, "largest norm of the gradient", samples::at_least(0));
  line.add_option("--seed", options.seed, "of all random numbers", samples::at_least(0));
  line.add_option("--sample", options.sample, "characters to make up at the end", samples::at_least(0));
  line.add_option("--temperature", options.temperature, "of the sampled text; lower is more cautious",
                  samples::at_least(0.01));
  return line.run(argc, argv, [&] { train_model(options); });
}
