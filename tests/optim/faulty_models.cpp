#include "faulty_models.h"

#include <utility>

using namespace reel;

namespace reel_test {
namespace {

class Perceptron : public FaultyModel {
 public:
  explicit Perceptron(bool wide)
      : net_(
            nn::Linear(16, wide ? 1024 : 24), [](const Tensor& x) { return tanh(x); }, nn::Linear(wide ? 1024 : 24, 3)),
        x_{randn({wide ? 40 : 5, 16}), randn({wide ? 40 : 5, 16})},
        targets_{arange(x_[0].size(0)) % 3, (arange(x_[0].size(0)) + 1) % 3} {
    parameters = net_.parameters();
    optimiser = std::make_unique<optim::Adam>(parameters);
  }
  Tensor loss(int part) const override { return cross_entropy(net_(x_[part]), targets_[part]); }

 private:
  nn::Sequential net_;
  Tensor x_[2], targets_[2];
};

struct OwnOptions {
  double learning_rate = 0.1, momentum = 0.9;
};

struct OwnMomentum : optim::CustomOptimiser<OwnOptions> {
  explicit OwnMomentum(std::vector<Tensor> parameters) : CustomOptimiser("OwnMomentum", {"velocity", "largest"}) {
    add_group(std::move(parameters));
  }
  void update(Tensor& w, Tensor g, std::span<Tensor> state, const OwnOptions& o, std::int64_t step) const override {
    state[0] = o.momentum * state[0] + g;
    state[1] = maximum(state[1], abs(g));
    w -= o.learning_rate / static_cast<double>(step) * state[0] / (state[1] + 1);
  }
};

class OwnPerceptron : public Perceptron {
 public:
  explicit OwnPerceptron(bool wide) : Perceptron(wide) { optimiser = std::make_unique<OwnMomentum>(parameters); }
};

class RaggedLSTM : public FaultyModel {
 public:
  explicit RaggedLSTM(bool wide)
      : lstm_(wide ? 64 : 4, wide ? 96 : 6, {.layers = 2}), output_(wide ? 96 : 6, 2), target_(randn({3, 2})) {
    std::int64_t size = lstm_.nets[0].input_size(), longest = wide ? 40 : 4;
    for (nn::Packed& x : x_) x = nn::pack({randn({2, size}), randn({longest, size}), randn({1, size})});
    parameters = lstm_.parameters();
    for (const Tensor& parameter : output_.parameters()) parameters.push_back(parameter);
    optimiser = std::make_unique<optim::SGD>(parameters, optim::SGDOptions{.learning_rate = 0.1, .momentum = 0.9});
  }
  Tensor loss(int part) const override {
    return mean(square(output_(nn::masked_mean(lstm_(x_[part]).output)) - target_));
  }
  void clip() const override {
    // A gradient with other handles is replaced, which allocates memory.
    Tensor held = parameters[1].grad();
    optim::clip_grad_norm(parameters, 1e-3);
  }

 private:
  nn::LSTM lstm_;
  nn::Linear output_;
  nn::Packed x_[2];
  Tensor target_;
};

struct Tree {
  int word = 0;
  std::vector<Tree> children = {};
};

class TreeLSTM : public FaultyModel {
 public:
  explicit TreeLSTM(bool wide)
      : words_(7, wide ? 200 : 4, {.row_gradient = true}),
        cell_(wide ? 200 : 4, wide ? 300 : 5),
        output_(wide ? 300 : 5, 2) {
    for (Tensor& word : indices_) word = tensor(std::vector<std::int64_t>{&word - indices_});
    for (const nn::Module* part : {static_cast<const nn::Module*>(&words_), static_cast<const nn::Module*>(&cell_),
                                   static_cast<const nn::Module*>(&output_)})
      for (const Tensor& parameter : part->parameters()) parameters.push_back(parameter);
    optimiser = std::make_unique<optim::Adagrad>(parameters, optim::AdagradOptions{.learning_rate = 0.1});
  }
  Tensor loss(int part) const override { return cross_entropy(output_(read(trees_[part]).h), label_); }

 private:
  nn::LSTMState read(const Tree& tree) const {
    if (tree.children.empty()) return cell_(words_(indices_[tree.word]));
    if (tree.children.size() == 1) return cell_(words_(indices_[tree.word]), {read(tree.children[0])});
    return cell_(nn::no_input, {read(tree.children[0]), read(tree.children[1])});
  }

  nn::Embedding words_;
  nn::ChildSumTreeLSTM cell_;
  nn::Linear output_;
  Tensor indices_[7], label_ = tensor(std::vector<std::int64_t>{1});
  Tree trees_[2] = {{0, {{1}, {2, {{3}}}}}, {0, {{1, {{4}}}, {0, {{5}, {1}}}}}};
};

// A scaled loss plus the square of its gradient by the input, with a checkpoint.
class Penalty : public FaultyModel {
 public:
  explicit Penalty(bool wide)
      : first_(8, wide ? 1000 : 6),
        second_(wide ? 1000 : 6, 1),
        x_{randn({wide ? 40 : 3, 8}), randn({wide ? 40 : 3, 8})} {
    for (const nn::Linear* layer : {&first_, &second_})
      for (const Tensor& parameter : layer->parameters()) parameters.push_back(parameter);
    optimiser = std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.amsgrad = true});
  }
  Tensor loss(int part) const override {
    const nn::Linear &first = first_, &second = second_;
    Tensor x = copy(x_[part]), y, slope;
    {
      Tape tape;
      tape.watch(x);
      y = checkpoint([&](const Tensor& x) { return second(tanh(first(x))); }, x);
      slope = tape.gradient(sum(y), x);
    }
    Tensor total = y * 1;
    total(0) = square(y(0));
    total *= y;
    return scaler_.scale(mean(total) + mean(square(slope)));
  }
  void clip() const override {
    if (std::exchange(unscaled_, false)) scaler_.update();
    scaler_.unscale(*optimiser);
    unscaled_ = true;
  }

 private:
  nn::Linear first_, second_;
  Tensor x_[2];
  mutable optim::LossScaler scaler_;
  mutable bool unscaled_ = false;
};

template <class Model>
std::unique_ptr<FaultyModel> made(bool wide) {
  return std::make_unique<Model>(wide);
}

}  // namespace

std::span<const FaultyModelKind> faulty_models() {
  static constexpr FaultyModelKind kinds[] = {
      {"MLP with Adam", made<Perceptron>},
      {"MLP with an optimiser of ops", made<OwnPerceptron>},
      {"ragged LSTM with momentum and clipping", made<RaggedLSTM>},
      {"tree-LSTM with Adagrad by rows", made<TreeLSTM>},
      {"checkpoint, gradient penalty and overwrites with AdamW", made<Penalty>},
  };
  return kinds;
}

}  // namespace reel_test
