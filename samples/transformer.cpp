// Learns to continue a text, character by character, with a Transformer that caches keys and values to sample.
//
// A decoder alone, as GPT-2: each character sees those before it, up to `--steps` of them; norms come before the parts of a
// layer. A sampled character is computed from the cached keys and values of those before it. The last tenth of the text is
// held back to measure the loss. Without --text it learns sentences of a small grammar. `char_rnn` does it by recurrence.
//
// Papers: Vaswani et al., Attention is all you need (2017);
//         Radford et al., Language models are unsupervised multitask learners (2019), GPT-2.
// Data: any text in UTF-8, such as Shakespeare's plays (1.1 MB) of Karpathy's char-rnn.
// Command: tools/run transformer --text shakespeare/input.txt --bf16
// Result: 1.6050 nats/char on the last tenth of Shakespeare's plays after 3 epochs, 213 s of processor time (seed 1; two cores
//         with AVX-512). `char_rnn` has 1.5033 after 222 s and 1.4383 after 593 s. Counts of pairs of characters give 2.48.

#include <sstream>

#include "texts.h"

using namespace reel;

struct Options : samples::TextOptions {
  std::int64_t width = 128, heads = 4, layers = 4;

  Options() { batch = 16, epochs = 3, learning_rate = 3e-3, steps = 64; }
};

using Caches = std::vector<nn::KeyValueCache>;  // of each layer

struct Transformer : nn::Module {
  nn::Embedding characters, positions;
  nn::ModuleList<nn::TransformerEncoderLayer> layers{*this, "layers"};  // a decoder's without attention to a memory
  nn::LayerNorm norm;
  nn::Linear output;

  Transformer(std::int64_t vocabulary, const Options& options)
      : characters(*this, "characters", vocabulary, options.width, {.initialiser = nn::normal(0, 0.02)}),
        positions(*this, "positions", options.steps, options.width, {.initialiser = nn::normal(0, 0.02)}),
        norm(*this, "norm", {options.width}),
        output(*this, "output", options.width, vocabulary) {
    nn::TransformerOptions layer{.feed_forward = 4 * options.width,
                                 .dropout = options.dropout,
                                 .activation = nn::TransformerActivation::gelu,
                                 .norm_first = true};
    for (std::int64_t i = 0; i < options.layers; ++i)
      layers.push_back(nn::TransformerEncoderLayer(options.width, options.heads, layer));
  }

  /// ids (B, T) of characters from position `first` on → (B, T, width).
  Tensor embed(const Tensor& ids, std::int64_t first) const {
    return characters(ids) + slice(positions.table, 0, first, first + ids.size(1));
  }

  /// ids (B, T) → logits of each one's successor (B, T, V).
  Tensor operator()(const Tensor& ids) const {
    Tensor x = embed(ids, 0);
    for (const auto& layer : layers) x = layer(x, {.causal = true});
    return output(norm(x));
  }

  /// The next ids (B, T) of texts whose characters so far the caches have seen → logits of each one's successor (B, T, V).
  Tensor operator()(const Tensor& ids, Caches& caches) const {
    caches.resize(layers.size());
    Tensor x = embed(ids, caches[0].length());
    for (std::size_t i = 0; i < layers.size(); ++i) x = layers[i](x, caches[i]);
    return output(norm(x));
  }
};

/// The mean loss over a text in nats per character, each of which is predicted from at least half of the characters that the
/// model can see, but without the last ones, which fill no half.
double loss_over(Transformer& model, const Tensor& text, const Options& options) {
  model.eval();
  std::int64_t last = text.size(0) - 1, steps = std::min(options.steps, last), half = (steps + 1) / 2;
  std::vector<Tensor> windows;
  double total = 0, count = 0;
  for (std::int64_t start = 0; start + steps <= last; start += half) {
    windows.push_back(slice(text, 0, start, start + steps + 1));
    if (std::ssize(windows) < options.batch && start + half + steps <= last) continue;
    Tensor batch = stack(windows);
    Tensor logits = slice(model(slice(batch, 1, 0, steps)), 1, steps - half, steps);
    Tensor y = flatten(slice(batch, 1, steps + 1 - half, steps + 1));
    total += cross_entropy(flatten(logits, 0, 1), y, {.reduction = LossReduction::sum}).item();
    count += static_cast<double>(y.size(0));
    windows.clear();
  }
  return total / count;
}

std::string sampled_text(Transformer& model, const samples::Texts& texts, const Options& options) {
  model.eval();
  std::vector<std::int64_t> ids{texts.learnt(0).item<std::int64_t>()};
  Caches caches;
  std::string made;
  for (int i = 0; i < options.sample; ++i) {
    std::int64_t unseen = 1;
    if (i > 0 && caches[0].length() == options.steps) {  // goes on from the last half of what it has seen
      caches.clear();
      unseen = (options.steps + 1) / 2;
    }
    Tensor logits = model(tensor(std::vector(ids.end() - unseen, ids.end()), {1, unseen}), caches);
    ids.push_back(samples::draw(logits(0, -1), options.temperature));
    made.push_back(texts.characters[ids.back()]);
  }
  return made;
}

void run(Options options) {
  manual_seed(options.seed);
  io::Contents file = samples::load(options, "transformer");
  if (!options.load.empty())
    std::istringstream(file.metadata["sizes"]) >> options.width >> options.heads >> options.layers >> options.steps;
  samples::Texts texts = samples::read_texts(options, file, options.steps + 1);
  Transformer model(texts.characters.size(), options);
  if (!options.load.empty()) io::load_into(model, file);
  std::string sizes = fmt::format("{} {} {} {}", options.width, options.heads, options.layers, options.steps);
  io::Metadata about{{"sample", "transformer"}, {"characters", texts.characters.words()}, {"sizes", sizes}};

  data::Loader loader(samples::random_segments(texts.learnt, options),
                      [](const std::vector<Tensor>& segments) { return stack(segments); },  // (B, T + 1)
                      {.batch_size = options.batch, .seed = options.seed});
  optim::AdamW adam(model.parameters(), {.learning_rate = options.learning_rate, .beta2 = 0.99});
  optim::Scheduler scheduler(adam, samples::warm_cosine(options, options.epochs * loader.batches().value_or(0)));
  auto step = [&](const Tensor& batch) {
    model.train();
    Tape tape;
    Tensor loss;
    {
      std::optional<AutocastScope> precision;
      if (options.bf16) precision.emplace(bf16, Location::here());
      Tensor logits = model(slice(batch, 1, 0, options.steps));
      loss = cross_entropy(flatten(logits, 0, 1), flatten(slice(batch, 1, 1, options.steps + 1)));
    }
    double value = loss.item();
    train::check_loss(value);
    tape.backward(loss);
    optim::clip_grad_norm(adam.parameters(), options.clip);
    adam.step();
    adam.zero_grad();
    scheduler.step();
    return value;
  };
  std::string opening =
      fmt::format("{} characters, {} different ones; {} parameters", texts.learnt.size(0) + texts.held_back.size(0),
                  texts.characters.size(), model.parameter_count());
  samples::Run run{options, model, adam, "segments", opening, about, {{"scheduler", scheduler}}};
  samples::train(run, loader, step, [&] {
    double loss = loss_over(model, texts.held_back, options);
    train::check_loss(loss);
    return samples::Reached{-loss, fmt::format("validation loss {:.4f}", loss)};
  });
  if (options.sample > 0) fmt::print("\n{}\n", sampled_text(model, texts, options));
  samples::print_losses(texts, loss_over(model, texts.held_back, options),
                        texts.test.defined() ? loss_over(model, texts.test, options) : 0);
}

int main(int argc, char** argv) {
  Options options;
  samples::CommandLine line("Learns to continue a text, character by character, with a Transformer.", "transformer");
  samples::add_text_options(line, options, "characters that the model sees at once");
  line.add_option("--width", options.width, "size of a character's vector", samples::at_least(1));
  line.add_option("--heads", options.heads, "parts of a vector that attend by themselves", samples::at_least(1));
  line.add_option("--layers", options.layers, "layers of attention and feed-forward nets", samples::at_least(1));
  return line.run(argc, argv, [&] { run(options); });
}
