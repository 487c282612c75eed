// Learns to evaluate nested differences modulo 3 by shifts and reductions: SPINN with a cell of its own.

#include <random>

#include <fmt/format.h>
#include <reel/batching.h>
#include <reel/reel.h>

using namespace reel;

constexpr std::int64_t size = 32, tracking_size = 16;

/// A random tree of at most that depth: its words, and of each node the transition that makes it and its value.
struct Tree {
  std::vector<std::int64_t> words, values;
  std::vector<bool> transitions;

  Tree(std::int64_t depth, std::mt19937& random) { grow(depth, random); }

  std::int64_t grow(std::int64_t depth, std::mt19937& random) {
    bool is_word = depth == 0 || random() % 4 == 0;
    std::int64_t value;
    if (is_word) {
      value = random() % 3;
      words.push_back(value);
    } else {
      std::int64_t left = grow(depth - 1, random);
      value = (left - grow(depth - 1, random) + 3) % 3;
    }
    transitions.push_back(!is_word);
    values.push_back(value);
    return value;
  }
};

/// The state of a node, given those of its children and the tracker's.
struct Cell : nn::Module {
  nn::Linear factor{*this, "factor", size + tracking_size, size};
  nn::Linear hidden{*this, "hidden", 3 * size, 2 * size};
  nn::Linear output{*this, "output", 2 * size, size};

  using Module::Module;
  Tensor operator()(const Tensor& left, const Tensor& right, const Tensor& tracking) const {
    Tensor product = factor(concat({left, tracking}, 1)) * right;
    return tanh(output(relu(hidden(concat({left, right, product}, 1)))));
  }
};

struct SPINN : nn::Module {
  nn::Embedding words{*this, "words", 3, size};
  nn::LSTMCell tracker{*this, "tracker", 3 * size, tracking_size};
  Cell cell{*this, "cell"};
  nn::Linear output{*this, "output", size, 3};

  /// Logits of the value of each node, in the order of the transitions that make them.
  Tensor operator()(const Tree& tree) const {
    Tensor none = zeros({1, size});
    std::vector<Tensor> buffer = split(concat({none, words(flip(tensor(tree.words)))}), 1), stack{none, none}, nodes;
    LSTMState state = tracker.initial_state(1);
    for (bool reduces : tree.transitions) {
      Tensor top = stack.back(), second = stack[stack.size() - 2];
      state = tracker(concat({buffer.back(), top, second}, 1), state);
      if (reduces) {
        stack.resize(stack.size() - 2);
        stack.push_back(cell(second, top, state.h));
      } else {
        stack.push_back(buffer.back());
        buffer.pop_back();
      }
      nodes.push_back(stack.back());
    }
    return output(concat(nodes));
  }
};

int main() {
  manual_seed(1);
  std::mt19937 random(1);
  SPINN model;
  optim::Adam adam(model.parameters(), {.learning_rate = 5e-3});
  for (int step = 0; step < 120; ++step) {
    std::vector<Tree> trees;
    for (int i = 0; i < 16; ++i) trees.emplace_back(3, random);
    Tape tape;
    auto loss_of = [&](const Tree& tree) { return cross_entropy(model(tree), tensor(tree.values)); };
    Tensor loss = mean(stack(batch_map(trees, loss_of)));
    adam.zero_grad();
    tape.backward(loss);
    adam.step();
    if (step % 20 == 0) fmt::print("step {}: loss {:.3f}\n", step, loss.item());
  }
  int right = 0;
  for (int i = 0; i < 200; ++i) {
    Tree tree(4, random);
    right += argmax(model(tree)(-1)).item<std::int64_t>() == tree.values.back();
  }
  fmt::print("{} of 200 deeper trees are evaluated correctly; 160 are required\n", right);
  return right < 160;
}
