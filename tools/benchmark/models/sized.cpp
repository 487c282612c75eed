#include <numeric>

#include "drawn.h"
#include "example_training.h"

// Nets of any width, whose examples differ in shape or length.

namespace reel_bench {

using namespace reel;

namespace {

constexpr std::int64_t vocabulary = 1000, classes = 5;

struct SizedNet : nn::Module {
  std::int64_t width;
  nn::Embedding words;
  nn::Linear outer;

  explicit SizedNet(std::int64_t width)
      : width(width),
        words(*this, "words", vocabulary, width, {.row_gradient = true}),
        outer(*this, "outer", width, classes) {}

  Tensor word(std::int64_t index) const { return words(tensor({index % vocabulary})); }
  Tensor loss_of(const Tensor& h, std::int64_t label) const {
    return cross_entropy(outer(h), tensor({label % classes}), {.reduction = LossReduction::sum});
  }
  std::vector<std::int64_t> sentence(std::size_t example) const {
    Splitmix random(example);
    std::size_t length = 5 + random.next() % 26;
    return random_classes(random, vocabulary, length);
  }
};

// h = tanh(W (h_left + h_right) + b) of a tree.
struct RecursiveNet : SizedNet {
  nn::Linear inner;
  std::vector<Tree> trees = random_trees();

  explicit RecursiveNet(std::int64_t width) : SizedNet(width), inner(*this, "inner", width, width) {}
  Tensor visit(const Tree& tree, const TreeNode& node) const {
    if (node.left < 0) return word(node.word);
    Tensor left = visit(tree, tree[static_cast<std::size_t>(node.left)]);
    return tanh(inner(left + visit(tree, tree[static_cast<std::size_t>(node.right)])));
  }
  Tensor loss(std::size_t example, const BatchOptions&) const {
    const Tree& tree = trees[example % trees.size()];
    return loss_of(visit(tree, tree.back()), tree.back().label);
  }
};

// A gated recurrent unit of single ops, with a class for each word.
struct Tagger : SizedNet {
  nn::Linear update, reset, candidate;

  explicit Tagger(std::int64_t width)
      : SizedNet(width),
        update(*this, "update", 2 * width, width),
        reset(*this, "reset", 2 * width, width),
        candidate(*this, "candidate", 2 * width, width) {}
  Tensor loss(std::size_t example, const BatchOptions&) const {
    Tensor h = zeros({1, width}), total;
    for (std::int64_t index : sentence(example)) {
      Tensor x = word(index), both = concat({x, h}, 1), z = sigmoid(update(both)), r = sigmoid(reset(both));
      h = (1 - z) * h + z * tanh(candidate(concat({x, r * h}, 1)));
      Tensor one = loss_of(h, index);
      total = total.defined() ? total + one : one;
    }
    return total;
  }
};

// Shifts a word, or reduces the two topmost, as a score that is read says.
struct ShiftReduce : SizedNet {
  nn::Linear compose, score;

  explicit ShiftReduce(std::int64_t width)
      : SizedNet(width), compose(*this, "compose", 2 * width, width), score(*this, "score", 2 * width, 1) {}
  Tensor loss(std::size_t example, const BatchOptions&) const {
    std::vector<std::int64_t> all = sentence(example);
    std::vector<Tensor> stack;
    for (std::size_t next = 0; next < all.size() || stack.size() > 1;) {
      bool reduces = next == all.size();
      Tensor top;
      if (stack.size() > 1) {
        top = concat({stack[stack.size() - 2], stack.back()}, 1);
        reduces = reduces || score(top).item() > 0;
      }
      if (!reduces) {
        stack.push_back(word(all[next++]));
        continue;
      }
      stack.resize(stack.size() - 2);
      stack.push_back(tanh(compose(top)));
    }
    return loss_of(stack[0], all[0]);
  }
};

// Steps of a cell until a value says that it is enough.
struct Halting : SizedNet {
  nn::GRUCell cell;
  nn::Linear halt;

  explicit Halting(std::int64_t width)
      : SizedNet(width), cell(*this, "cell", width, width), halt(*this, "halt", width, 1) {}
  Tensor loss(std::size_t example, const BatchOptions&) const {
    Tensor h = zeros({1, width});
    for (std::int64_t index : sentence(example)) {
      Tensor x = word(index);
      for (int step = 0; step < 3; ++step) {
        h = cell(x, h);
        if (halt(h).item() > 0) break;
      }
    }
    return loss_of(h, static_cast<std::int64_t>(example));
  }
};

template <class Net>
SizedWorkload workload(const char* name) {
  return {name, [](std::int64_t width, std::size_t examples, const BatchOptions& options) -> Work {
            std::vector<std::size_t> all(examples);
            std::iota(all.begin(), all.end(), 0);
            return train_examples<Net>(std::move(all), options, width);
          }};
}

}  // namespace

std::vector<SizedWorkload> sized_workloads() {
  return {workload<RecursiveNet>("recursive net, sums of two children"), workload<Tagger>("tagger, single ops"),
          workload<ShiftReduce>("parser, decisions read"), workload<Halting>("GRU that halts by a value")};
}

}  // namespace reel_bench
