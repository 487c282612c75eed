#include <reel/reel.h>
#include <reel/train.h>

#include <vector>

#include "catch.h"

// The examples in the headers of modules, with the declarations that they use.

using namespace reel;

namespace {

#include "examples/nn_module_1.h"

struct Called : nn::Module {
  nn::Linear hidden{*this, "hidden", 4, 5}, output{*this, "output", 5, 3};

#include "examples/nn_module_2.h"
};

struct Similarity : nn::Module {
#include "examples/nn_module_3.h"
};

}  // namespace

TEST_CASE("the example of a module has named parameters, and its output is scaled") {
  Classifier classifier;
  CHECK(classifier.named_parameters().front().name == "hidden.weight");
  CHECK(classifier(zeros({2, 784})).shape() == Shape{2, 10});
}

TEST_CASE("the examples of call compute what they wrap") {
  Called called;
  Tensor x = randn({2, 4}), y = randn({2, 4});
  CHECK(called(x).to_vector<float>() == called.output(relu(called.hidden(x))).to_vector<float>());
  CHECK(Similarity()(x, y).to_vector<float>() == sum(x * y, {1}).to_vector<float>());
}

TEST_CASE("the example of a module list names its layers by their index") {
  struct Model : nn::Module {
    explicit Model(int depth, int size) {
#include "examples/nn_module_list_1.h"
      CHECK(hidden.size() == 3);
      CHECK(named_parameters()[2].name == "hidden.1.weight");
    }
  };
  Model(3, 4);
}

TEST_CASE("the example of a cache of keys and values attends to all steps so far") {
  nn::MultiHeadAttention attention(4, 2);
  std::vector<Tensor> steps{randn({2, 1, 4}), randn({2, 1, 4})}, shown;
#include "examples/nn_attention_1.h"
  CHECK(cache.length() == 2);
  Tensor expected = attention(concat(steps, 1), {.causal = true});
  CHECK(max(abs(concat(shown, 1) - expected)).item() < 1e-5);
}

TEST_CASE("the example of a mixture of experts adds the balance to the loss") {
  struct Model : nn::Module {
    Model(const Tensor& x, const Tensor& targets) {
#include "examples/nn_mixture_of_experts_1.h"
      CHECK(y.shape() == Shape{5, 128});
      CHECK(loss.item() == Approx(cross_entropy(y, targets).item() + balance.item()));
    }
  };
  Model(randn({5, 64}), zeros({5}, {.dtype = i64}));
}

TEST_CASE("the example of a sequence's layers chains them") {
  Tensor x = zeros({2, 784});
#include "examples/nn_sequential_1.h"
  CHECK(net(x).shape() == Shape{2, 10});
  CHECK(features.shape() == Shape{2, 128});
  CHECK(first_weight.shape() == Shape{784, 128});
}

TEST_CASE("the example of a recurrent layer has the shapes that it names") {
  struct Model : nn::Module {
    explicit Model(const nn::Packed& words) {
#include "examples/nn_recurrent_1.h"
      CHECK(output.elements.shape() == Shape{7, 256});
      CHECK(h_n.shape() == Shape{4, 2, 128});
      CHECK(c_n.shape() == Shape{4, 2, 128});
    }
  };
  Model(nn::pack({randn({5, 64}), randn({2, 64})}));
}

TEST_CASE("the example of packed sequences has the shapes that it names") {
  using namespace reel::nn;
  constexpr std::int64_t D = 3, H = 4;
  nn::LSTM lstm(D, H);
  Tensor first = randn({5, D}), second = randn({2, D});
#include "examples/nn_packed_1.h"
  CHECK(states.elements.shape() == Shape{7, H});
  CHECK(sentences.shape() == Shape{2, H});
}

TEST_CASE("the example of carried states resets what is finished") {
  using namespace reel::nn;
  struct Batch {
    Tensor x;
    std::vector<std::int64_t> ids, finished;
  };
  nn::LSTM lstm(3, 4);
  std::vector<Batch> batches{{randn({2, 2, 3}), {7, 8}, {}}, {randn({2, 1, 3}), {7}, {7}}};
#include "examples/nn_carried_states_1.h"
  LSTMState kept = carried.of(std::vector<std::int64_t>{7, 8});
  CHECK(sum(abs(kept.h(0, 0))).item() == 0);
  CHECK(sum(abs(kept.h(0, 1))).item() > 0);
}

TEST_CASE("the example of a CRF has a loss and the best tags") {
  using namespace reel::nn;
  CRF crf(3);
  Packed emissions = pack({randn({4, 3}), randn({2, 3})});
  Tensor tags = tensor(std::vector<std::int64_t>{0, 1, 2, 0, 1, 1});
#include "examples/nn_crf_1.h"
  CHECK(loss.item() > 0);
  CHECK(best.elements.shape() == Shape{6});
}

TEST_CASE("the example of a tree of LSTM cells reads a tree") {
  struct Node {
    Tensor word;
    std::vector<Node> children = {};
    const Node &left = children.empty() ? *this : children[0], &right = children.empty() ? *this : children[1];
    bool is_leaf() const { return children.empty(); }
  };
  struct Reader {
    nn::Embedding embedding{5, 3};
    nn::NaryTreeLSTM cell{3, 4, 2};

#include "examples/nn_tree_lstm_1.h"
  };
  auto word = [](std::int64_t index) { return Node{.word = tensor({index})}; };
  Reader reader;
  CHECK(reader.read(Node{.word = {}, .children = {word(1), word(2)}}).h.shape() == Shape{1, 4});
}

TEST_CASE("the example of a parser builds the trees that it is given, and predicts others") {
  using nn::SPINN, nn::SPINNOutput;
  nn::Packed words{randn({5, 200}), {3, 2}};
  using enum nn::Transition;
  std::vector<std::vector<nn::Transition>> transitions = {{shift, shift, reduce, shift, reduce},
                                                          {shift, shift, reduce}};
#include "examples/nn_spinn_1.h"
  CHECK(given.root.h.shape() == Shape{2, 100});
  CHECK(given.transitions == transitions);
  CHECK(predicted.nodes.shape() == Shape{8, 100});
  CHECK(predicted.transitions[1] == transitions[1]);
}

TEST_CASE("the examples of functional_call compute a loss after a step of learning") {
  manual_seed(8);
  nn::Linear model(2, 1);
  Tensor x = randn({8, 2}), y = randn({8, 1});
  constexpr double rate = 0.1;
  std::vector<Tensor> gradients;
  double before = 0;
  {
    Tape tape;
    Tensor loss = mse_loss(model(x), y);
    gradients = tape.gradient(loss, model.parameters());
    before = loss.item();
  }
#include "examples/nn_functional_call_2.h"
  CHECK(loss.item() < before);
  double after = loss.item();
  {
#include "examples/nn_functional_call_1.h"
    CHECK(loss.item() == after);
  }
}

TEST_CASE("the example of a beam search finds the likeliest sequence") {
  using State = int;
  constexpr std::int64_t begin = 0, end = 1;
  // Counts up to its source, which ends it.
  struct {
    State start(State source) const { return source; }
    std::pair<Tensor, State> next(State left, std::int64_t) const {
      return {log_softmax(left > 0 ? tensor({0.0, 0.0, 3.0}) : tensor({0.0, 3.0, 0.0}), 0), left - 1};
    }
  } model;
  State source = 3;
#include "examples/nn_beam_search_1.h"
  CHECK(translation == std::vector<std::int64_t>{2, 2, 2});
}
