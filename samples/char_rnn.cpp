// Learns to continue a text, character by character, with LSTM cells that a native `for` loop unrolls.
//
// The text is read in parallel streams. Gradients flow back through `--steps` characters; the state is carried on beyond them
// with stop_gradient. The last tenth of the text is held back to measure the loss. Without --text it learns sentences of a
// small grammar that it makes up itself. `transformer` learns the same texts by attention.
//
// Papers: Graves, Generating sequences with recurrent neural networks (2013);
//         Zaremba, Sutskever and Vinyals, Recurrent neural network regularization (2014), the dropout between layers.
// Data: any text in UTF-8, such as Shakespeare's plays (1.1 MB) of Karpathy's char-rnn.
// Command: tools/run char_rnn --text shakespeare/input.txt --hidden 512 --epochs 8 --dropout 0.3 --bf16
// Result: 1.4383 nats/char on the last tenth of Shakespeare's plays, which chose epoch 7 of 8, after 593 s of processor time
//         (seed 1; two cores with AVX-512; 470 s alone on the machine); 1.5033 after 222 s, the time in which
//         `transformer` reaches 1.6050. Counts of single characters give 3.35, of pairs 2.48.

#include <sstream>

#include "texts.h"

using namespace reel;

struct Options : samples::TextOptions {
  std::int64_t hidden = 256, embedding = 64, layers = 1;
  std::string weight_dtype = "f32";

  Options() { epochs = 3, learning_rate = 3e-3; }
};

// The dtype to which the cells' weights are rounded in products.
DType dtype_named(const std::string& name) { return name == "bf16" ? bf16 : name == "f16" ? f16 : f32; }

using States = std::vector<LSTMState>;  // of each layer, h and c (B, H)

struct CharModel : nn::Module {
  nn::Embedding embedding;
  nn::ModuleList<nn::LSTMCell> cells{*this, "cells"};
  nn::Dropout dropout;
  nn::Linear output;

  CharModel(std::int64_t vocabulary, const Options& options)
      : embedding(*this, "embedding", vocabulary, options.embedding),
        dropout(*this, "dropout", options.dropout),
        output(*this, "output", options.hidden, vocabulary) {
    for (std::int64_t i = 0; i < options.layers; ++i)
      cells.push_back(nn::LSTMCell(i == 0 ? options.embedding : options.hidden, options.hidden,
                                   {.weight_dtype = dtype_named(options.weight_dtype)}));
  }

  States initial_states(std::int64_t batch) const {
    States states;
    for (const nn::LSTMCell& cell : cells) states.push_back(cell.initial_state(batch));
    return states;
  }

  /// characters (T, B) → logits of each one's successor (T · B, V); moves the states on.
  Tensor operator()(const Tensor& characters, States& states) const {
    Tensor x = flatten(embedding(characters), 0, 1);
    for (std::size_t layer = 0; layer < cells.size(); ++layer) {
      std::vector<Tensor> shown;
      for (const Tensor& step : split(cells[layer].project(x), characters.size(1))) {
        states[layer] = cells[layer].step(step, states[layer]);
        shown.push_back(states[layer].h);
      }
      x = dropout(concat(shown));
    }
    return output(x);
  }
};

/// The mean loss over a text in nats per character, without the characters that are too few for a step of all streams.
double loss_over(CharModel& model, const Tensor& text, std::int64_t steps) {
  model.eval();
  std::int64_t streams = std::clamp<std::int64_t>(text.size(0) / 1000, 1, 32);
  Tensor parts = stack(data::parallel_parts(text, streams), 1);  // (T, streams)
  States states = model.initial_states(streams);
  double total = 0;
  std::int64_t last = parts.size(0) - 1;
  for (std::int64_t t = 0; t < last; t += steps) {
    std::int64_t end = std::min(t + steps, last);
    Tensor y = flatten(slice(parts, 0, t + 1, end + 1));
    total += cross_entropy(model(slice(parts, 0, t, end), states), y, {.reduction = LossReduction::sum}).item();
  }
  return total / static_cast<double>(last * streams);
}

std::string sampled_text(CharModel& model, const samples::Texts& texts, const Options& options) {
  model.eval();
  States states = model.initial_states(1);
  auto id = texts.learnt(0).item<std::int64_t>();
  std::string made;
  for (int i = 0; i < options.sample; ++i) {
    id = samples::draw(select(model(tensor(std::vector{id}, {1, 1}), states), 0, 0), options.temperature);
    made.push_back(texts.characters[id]);
  }
  return made;
}

void run(Options options) {
  manual_seed(options.seed);
  io::Contents file = samples::load(options, "char_rnn");
  if (!options.load.empty())
    std::istringstream(file.metadata["sizes"]) >> options.embedding >> options.hidden >> options.layers;
  samples::Texts texts = samples::read_texts(options, file, options.batch * (options.steps + 1));
  CharModel model(texts.characters.size(), options);
  if (!options.load.empty()) io::load_into(model, file);
  io::Metadata about{{"sample", "char_rnn"},
                     {"characters", texts.characters.words()},
                     {"sizes", fmt::format("{} {} {}", options.embedding, options.hidden, options.layers)}};

  data::Loader loader(samples::segments_in_order(texts.learnt, options),
                      [](const std::vector<Tensor>& segments) { return stack(segments, 1); },  // (T + 1, B)
                      {.batch_size = options.batch, .seed = options.seed});
  optim::Adam adam(model.parameters(), {.learning_rate = options.learning_rate});
  optim::Scheduler scheduler(adam, samples::warm_cosine(options, options.epochs * loader.batches().value_or(0)));
  States states = model.initial_states(options.batch);
  auto step = [&](const Tensor& batch) {
    model.train();
    if (loader.position() == 1) std::ranges::move(model.initial_states(options.batch), states.begin());
    Tape tape;
    Tensor loss;
    {
      std::optional<AutocastScope> precision;
      if (options.bf16) precision.emplace(bf16, Location::here());
      Tensor logits = model(slice(batch, 0, 0, options.steps), states);
      loss = cross_entropy(logits, flatten(slice(batch, 0, 1, options.steps + 1)));
    }
    double value = loss.item();
    train::check_loss(value);
    tape.backward(loss);
    for (LSTMState& state : states) state = stop_gradient(state);
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
  for (std::size_t i = 0; i < states.size(); ++i) {
    run.also.emplace_back(fmt::format("h{}", i), states[i].h);
    run.also.emplace_back(fmt::format("c{}", i), states[i].c);
  }
  samples::train(run, loader, step, [&] {
    double loss = loss_over(model, texts.held_back, options.steps);
    train::check_loss(loss);
    return samples::Reached{-loss, fmt::format("validation loss {:.4f}", loss)};
  });
  if (options.sample > 0) fmt::print("\n{}\n", sampled_text(model, texts, options));
  samples::print_losses(texts, loss_over(model, texts.held_back, options.steps),
                        texts.test.defined() ? loss_over(model, texts.test, options.steps) : 0);
}

int main(int argc, char** argv) {
  Options options;
  samples::CommandLine line("Learns to continue a text, character by character, with LSTM cells.", "char_rnn");
  samples::add_text_options(line, options, "characters that gradients flow back");
  line.add_option("--hidden", options.hidden, "size of a cell's state", samples::at_least(1));
  line.add_option("--embedding", options.embedding, "size of a character's vector", samples::at_least(1));
  line.add_option("--layers", options.layers, "cells, each of which reads the one before", samples::at_least(1));
  line.add_option("--weight-dtype", options.weight_dtype, "dtype to which the weights of cells are rounded in products",
                  samples::one_of({"f32", "bf16", "f16"}));
  return line.run(argc, argv, [&] { run(options); });
}
