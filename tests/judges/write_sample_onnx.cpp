// Writes ONNX files of the models of six samples, and of recurrent layers, and, beside each, inputs of other sizes and the results that the
// samples compute from them, for judge_onnx.py.
//
// Usage: write_sample_onnx FOLDER
//
// There are 6 calls of each model, or with REEL_ENDURANCE=1 100. A model whose sample has a loop or a recursion in C++ is
// exported with io::onnx::scan or loop in its place, and compared with the sample's own function.

#include <reel/batching.h>

#include <random>

#include "../../samples/made_up.h"
#include "../../samples/padded_tagger.h"
#include "../../samples/stepwise_tagger.h"
#include "../../samples/texts.h"
#include "../../samples/training.h"
#include "judges/onnx_calls.h"

// The samples are programs of their own, whose names repeat. All that they include is included above.
namespace char_rnn {
#include "../../samples/char_rnn.cpp"
}
namespace tree_lstm {
#include "../../samples/tree_lstm.cpp"
}
namespace tweet_tagger {
#include "../../samples/tweet_tagger.cpp"
}
namespace seq2seq {
#include "../../samples/seq2seq.cpp"
}
namespace convnet {
#include "../../samples/convnet.cpp"
}
namespace transformer {
#include "../../samples/transformer.cpp"
}

namespace reel_test {

using namespace reel;
namespace onnx = io::onnx;

namespace {

std::mt19937_64 sizes(7);

std::int64_t size_in(std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(sizes);
}
Tensor ids(const Shape& shape, std::int64_t count) { return randint(0, count, shape); }

int calls() { return is_long() ? 100 : 6; }

// Exports f and saves calls: inputs() draws inputs of other sizes, expected(x) is what the sample computes.
template <class F>
void write_model(const std::filesystem::path& folder, const std::string& name, F f,
                 const std::vector<onnx::Input>& inputs, const std::vector<std::string>& outputs,
                 const std::function<std::vector<Tensor>()>& draw,
                 const std::function<std::vector<Tensor>(std::span<const Tensor>)>& expected) {
  onnx::save((folder / (name + ".onnx")).string(), f, inputs, {.outputs = outputs});
  std::vector<std::string> names;
  for (const onnx::Input& input : inputs) names.push_back(input.name);
  NoRecord pause;
  for (int call = 0; call < calls(); ++call) {
    std::vector<Tensor> x = draw(), y = expected(x);
    save_call(folder, name, call, names, x, outputs, y);
  }
  fmt::print("row {} {}\n", name, name);
}

void write_char_rnn(const std::filesystem::path& folder) {
  char_rnn::Options options;
  options.hidden = 24, options.embedding = 8, options.layers = 2;
  char_rnn::CharModel model(30, options);
  model.eval();
  auto exported = [&](std::span<const Tensor> in) {
    Tensor x = model.embedding(in[0]);
    std::vector<Tensor> results{Tensor()};
    for (std::size_t layer = 0; layer < model.cells.size(); ++layer) {
      const nn::LSTMCell& cell = model.cells[layer];
      auto step = [&](std::span<const Tensor> state, std::span<const Tensor> parts) -> onnx::ScanStep {
        LSTMState next = cell.step(parts[0], {state[0], state[1]});
        return {{next.h, next.c}, {next.h}};
      };
      Tensor projected = cell.project(flatten(x, 0, 1));
      projected = reshape(projected, {x.size(0), x.size(1), projected.size(1)});
      auto [state, shown] = onnx::scan(step, {in[1 + 2 * layer], in[2 + 2 * layer]}, {projected});
      x = shown[0];
      results.insert(results.end(), state.begin(), state.end());
    }
    results[0] = model.output(flatten(x, 0, 1));
    return results;
  };
  auto draw = [&](std::int64_t steps, std::int64_t batch) {
    std::vector<Tensor> x{ids({steps, batch}, 30)};
    for (int i = 0; i < 4; ++i) x.push_back(randn({batch, 24}));
    return x;
  };
  std::vector<Tensor> x = draw(5, 3);
  std::vector<onnx::Input> inputs{{"characters", x[0], {"time", "batch"}}};
  for (std::size_t i = 1; i < 5; ++i) inputs.push_back({fmt::format("state{}", i), x[i], {"batch"}});
  write_model(
      folder, "char_rnn", exported, inputs, {"logits", "h0", "c0", "h1", "c1"},
      [&] { return draw(size_in(1, 60), size_in(1, 9)); },
      [&](std::span<const Tensor> in) -> std::vector<Tensor> {
        char_rnn::States states{{in[1], in[2]}, {in[3], in[4]}};
        Tensor logits = model(in[0], states);
        return {logits, states[0].h, states[0].c, states[1].h, states[1].c};
      });
}

// A random binary tree over words: children before parents, the leaves first.
data::LabelledTree random_tree(std::int64_t words) {
  data::LabelledTree tree;
  std::vector<std::int64_t> open;
  for (std::int64_t i = 0; i < words; ++i) {
    tree.nodes.push_back({.label = {}, .word = i});
    tree.words.emplace_back("word");
    open.push_back(i);
  }
  while (open.size() > 1) {
    auto at = static_cast<std::size_t>(size_in(0, std::ssize(open) - 2));
    tree.nodes.push_back({.label = {}, .children = {open[at], open[at + 1]}});
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
    open[at] = std::ssize(tree.nodes) - 1;
  }
  return tree;
}

// The order in which the sample returns the nodes: each behind its descendants.
void list_nodes(const data::LabelledTree& tree, std::int64_t node, std::vector<std::int64_t>& order) {
  for (std::int64_t child : tree.nodes[static_cast<std::size_t>(node)].children) list_nodes(tree, child, order);
  order.push_back(node);
}

void write_tree_lstm(const std::filesystem::path& folder) {
  tree_lstm::SentimentModel model(50, {.embedding = 12, .hidden = 10});
  model.eval();
  // The states of all nodes in one table: the leaves', then a row for each inner node.
  auto exported = [&](const Tensor& words, const Tensor& children) {
    LSTMState leaves = model.cell(model.words(words));
    Tensor empty = zeros({children.size(0), leaves.h.size(1)}), count = onnx::size_of(children, 0);
    Tensor first = onnx::size_of(words, 0);
    auto body = [&](const Tensor& i, std::span<const Tensor> state) -> std::vector<Tensor> {
      Tensor pair = reshape(index_select(children, 0, reshape(i, {1})), {2});
      Tensor h = index_select(state[0], 0, pair), c = index_select(state[1], 0, pair);
      std::vector<LSTMState> both{{slice(h, 0, 0, 1), slice(c, 0, 0, 1)}, {slice(h, 0, 1, 2), slice(c, 0, 1, 2)}};
      LSTMState node = model.cell(nn::no_input, both);
      std::vector<Tensor> row{reshape(i + first, {1})};
      return {index_put(state[0], row, node.h), index_put(state[1], row, node.c)};
    };
    std::vector<Tensor> states = onnx::loop(count, body, {concat({leaves.h, empty}), concat({leaves.c, empty})});
    return model.output(states[0]);
  };
  data::LabelledTree tree;
  auto draw = [&](std::int64_t words) -> std::vector<Tensor> {
    tree = random_tree(words);
    std::vector<std::int64_t> table;
    for (const auto& node : tree.nodes) table.insert(table.end(), node.children.begin(), node.children.end());
    return {ids({words}, 50), reshape(tensor(table), {-1, 2})};
  };
  std::vector<Tensor> x = draw(4);
  write_model(
      folder, "tree_lstm", exported, {{"words", x[0], {"words"}}, {"children", x[1], {"inner_nodes"}}}, {"sentiments"},
      [&] { return draw(size_in(2, 40)); },
      [&](std::span<const Tensor> in) -> std::vector<Tensor> {
        Tensor in_order = model(tree, in[0].to_vector<std::int64_t>());
        std::vector<std::int64_t> order, place(tree.nodes.size());
        list_nodes(tree, std::ssize(tree.nodes) - 1, order);
        for (std::size_t i = 0; i < order.size(); ++i)
          place[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
        return {index_select(in_order, 0, tensor(place))};
      });
}

// The states that one direction of a layer shows over padded sequences x (T, N, I): a step without a character keeps the
// state.
Tensor masked_states(const nn::LSTMCell& cell, const Tensor& x, const Tensor& mask, bool backwards) {
  auto step = [&](std::span<const Tensor> state, std::span<const Tensor> in) -> onnx::ScanStep {
    LSTMState next = cell(in[0], {state[0], state[1]});
    Tensor there = unsqueeze(in[1], 1), h = where(there, next.h, state[0]);
    return {{h, where(there, next.c, state[1])}, {h}};
  };
  LSTMState start = cell.initial_state(x.size(1));
  std::vector<Tensor> inputs{x, mask};
  if (backwards) inputs = {flip(x, 0), flip(mask, 0)};
  Tensor shown = onnx::scan(step, {start.h, start.c}, inputs).outputs[0];
  return backwards ? flip(shown, 0) : shown;
}

void write_tweet_tagger(const std::filesystem::path& folder) {
  tweet_tagger::Tagger model(40, 6, {.characters = 8, .words = 8, .hidden = 12});
  model.eval();
  auto exported = [&](const Tensor& bytes, const Tensor& mask, const Tensor& words) {
    Tensor letters = model.characters(bytes);
    for (const nn::LSTM& lstm : model.over_characters)
      letters = concat(
          {masked_states(lstm.nets[0], letters, mask, false), masked_states(lstm.nets[1], letters, mask, true)}, 2);
    Tensor weights = unsqueeze(to(mask, f32), 2);
    Tensor means = sum(letters * weights, {0}) / sum(weights, {0});
    Tensor states = unsqueeze(concat({means, model.words(words)}, 1), 1);
    for (const nn::LSTM& lstm : model.over_words) states = lstm(states).output;
    return model.output(squeeze(states, 1));
  };
  nn::Packed packed;
  auto draw = [&](std::int64_t words) -> std::vector<Tensor> {
    std::vector<Tensor> letters;
    for (std::int64_t i = 0; i < words; ++i) letters.push_back(ids({size_in(1, 9)}, 256));
    packed = nn::pack(letters);
    return {packed.padded(), packed.mask(), ids({words}, 40)};
  };
  std::vector<Tensor> x = draw(4);
  write_model(
      folder, "tweet_tagger", exported,
      {{"characters", x[0], {"letters", "words"}},
       {"is_there", x[1], {"letters", "words"}},
       {"words", x[2], {"words"}}},
      {"tags"}, [&] { return draw(size_in(1, 30)); },
      [&](std::span<const Tensor> in) -> std::vector<Tensor> { return {model(packed, in[2], {in[2].size(0)})}; });
}

void write_seq2seq(const std::filesystem::path& folder) {
  seq2seq::Translator model(16);
  model.eval();
  // The log-probabilities of the characters behind those of a target.
  auto exported = [&](const Tensor& source, const Tensor& target) {
    Tensor states = model.encoder(model.characters(source)).output;
    seq2seq::Memory memory{states, model.key(states), ones({source.size(0), source.size(1)}, {.dtype = boolean})};
    seq2seq::State start = model.start(memory);
    auto step = [&](std::span<const Tensor> state, std::span<const Tensor> in) -> onnx::ScanStep {
      auto [logs, next] = model.write(memory, {{state[0], state[1]}, state[2], {}}, in[0]);
      return {{next.lstm.h, next.lstm.c, next.context}, {logs}};
    };
    return onnx::scan(step, {start.lstm.h, start.lstm.c, start.context}, {target}).outputs[0];
  };
  auto draw = [&](std::int64_t read, std::int64_t written, std::int64_t batch) -> std::vector<Tensor> {
    return {ids({read, batch}, seq2seq::tokens), ids({written, batch}, seq2seq::tokens)};
  };
  std::vector<Tensor> x = draw(6, 4, 2);
  write_model(
      folder, "seq2seq", exported,
      {{"source", x[0], {"source_time", "batch"}}, {"target", x[1], {"target_time", "batch"}}}, {"log_probabilities"},
      [&] { return draw(size_in(1, 30), size_in(1, 20), size_in(1, 5)); },
      [&](std::span<const Tensor> in) -> std::vector<Tensor> {
        std::vector<Tensor> sources, written;
        for (std::int64_t b = 0; b < in[0].size(1); ++b) sources.push_back(select(in[0], 1, b));
        seq2seq::Memory memory = model.read(nn::pack(sources));
        seq2seq::State state = model.start(memory);
        for (std::int64_t t = 0; t < in[1].size(0); ++t) {
          auto [logs, next] = model.write(memory, state, in[1](t));
          written.push_back(logs);
          state = next;
        }
        return {stack(written)};
      });
}

void write_convnet(const std::filesystem::path& folder) {
  convnet::ConvNet model(4, 10);
  // Means and variances other than 0 and 1.
  for (int i = 0; i < 3; ++i) static_cast<void>(model(rand({8, 1, 28, 28})));
  model.eval();
  write_model(
      folder, "convnet", [&](const Tensor& x) { return model(x); }, {{"images", rand({2, 1, 28, 28}), {"batch"}}},
      {"logits"},
      [&]() -> std::vector<Tensor> {
        return {rand({size_in(1, 12), 1, 28, 28})};
      },
      [&](std::span<const Tensor> in) -> std::vector<Tensor> { return {model(in[0])}; });
}

void write_transformer(const std::filesystem::path& folder) {
  transformer::Options options;
  options.width = 16, options.heads = 2, options.layers = 2, options.steps = 64;
  transformer::Transformer model(30, options);
  model.eval();
  write_model(
      folder, "transformer", [&](const Tensor& x) { return model(x); }, {{"ids", ids({2, 6}, 30), {"batch", "time"}}},
      {"logits"},
      [&]() -> std::vector<Tensor> {
        return {ids({size_in(1, 5), size_in(1, 64)}, 30)};
      },
      [&](std::span<const Tensor> in) -> std::vector<Tensor> { return {model(in[0])}; });
}

// Recurrent layers, which no sample has: two nets above each other, in both directions, and a plain one.
void write_layers(const std::filesystem::path& folder) {
  nn::LSTM lstm(5, 6, {.layers = 2, .bidirectional = true});
  nn::GRU gru(12, 7, {.bidirectional = true});
  nn::RNN rnn(14, 4);
  auto run = [&](const Tensor& x) { return rnn(gru(lstm(x).output).output).output; };
  write_model(
      folder, "layers", run, {{"x", randn({4, 2, 5}), {"time", "batch"}}}, {"states"},
      [&]() -> std::vector<Tensor> {
        return {randn({size_in(1, 50), size_in(1, 6), 5})};
      },
      [&](std::span<const Tensor> in) -> std::vector<Tensor> { return {run(in[0])}; });
}

}  // namespace
}  // namespace reel_test

int main(int count, char** arguments) {
  if (count < 2) return 2;
  reel::manual_seed(7);
  for (auto* write :
       {reel_test::write_char_rnn, reel_test::write_tree_lstm, reel_test::write_tweet_tagger, reel_test::write_seq2seq,
        reel_test::write_convnet, reel_test::write_transformer, reel_test::write_layers})
    try {
      write(arguments[1]);
    } catch (const std::exception& error) {
      fmt::print("problem {}\n", error.what());
    }
}
