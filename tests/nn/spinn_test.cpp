#include <functional>

#include <reel/batching.h>
#include <reel/debug/gradcheck.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>

#include "catch.h"
#include "nn/checks.h"

using namespace reel;
using namespace reel_test;

namespace {

constexpr nn::Transition S = nn::Transition::shift, R = nn::Transition::reduce;

using Lists = std::vector<std::vector<nn::Transition>>;

}  // namespace

TEST_CASE("SPINN's reduce is a binary node that also sees what the tracker knows") {
  manual_seed(6);
  nn::SPINNReduce reduce(3, {.tracker_size = 2, .dtype = f64});
  LSTMState left = draw_state(4, 3), right = draw_state(4, 3);
  Tensor known = draw({4, 2});
  std::vector<Tensor> a =
      split(matmul(concat({left.h, right.h, known}, 1), reduce.arguments.weight) + reduce.arguments.bias, 3, 1);
  LSTMState expected = node_by_hand(a[0], a[1], a[2], {a[3], a[4]}, {left, right}), found = reduce(left, right, known);
  check_close(found.h, expected.h);
  check_close(found.c, expected.c);
  CHECK_THAT(error_of<ShapeError>([&] { reduce(left, right); }), contains("takes what a tracker knows (B, 2)"));
  CHECK_THAT(error_of<ShapeError>([&] { reduce(left, draw_state(3, 3), known); }), contains("takes states (B, 3)"));
  CHECK_THAT(error_of<DTypeError>([&] { nn::SPINNReduce(3)(left, right); }),
             contains("SPINNReduce: (4, 3) f64 is not of the weights' dtype f32"));
}

TEST_CASE("SPINN without a tracker builds the trees that its transitions say") {
  manual_seed(7);
  nn::SPINN model(3, {.dtype = f64});
  CHECK(model.parameters().size() == 2);
  nn::Packed words{draw({6, 6}), {1, 3, 2}};
  auto word = [&](std::int64_t i) {
    Tensor row = slice(words.elements, 0, i, i + 1);
    return LSTMState{slice(row, 1, 0, 3), slice(row, 1, 3)};
  };
  nn::SPINNOutput found = model(words, Lists{{S}, {S, S, S, R, R}, {S, S, R}});
  LSTMState second = (*model.reduce)(word(1), (*model.reduce)(word(2), word(3))),
            third = (*model.reduce)(word(4), word(5));
  check_close(found.root.h, concat({word(0).h, second.h, third.h}));
  check_close(found.root.c, concat({word(0).c, second.c, third.c}));
  CHECK_FALSE(found.logits.defined());
  LSTMState other = (*model.reduce)((*model.reduce)(word(1), word(2)), word(3));
  check_close(slice(model(words, Lists{{S}, {S, S, R, S, R}, {S, S, R}}).root.h, 0, 1, 2), other.h);
}

TEST_CASE("SPINN's tracker reads the next word and the top of the stack, and predicts transitions") {
  manual_seed(8);
  nn::SPINN model(3, {.tracker_size = 2, .dtype = f64});
  nn::Packed words{draw({2, 6}), {2}};
  nn::SPINNOutput found = model(words, Lists{{S, S, R}});
  Tensor none = zeros({1, 3}, {.dtype = f64});
  auto part = [&](std::int64_t i, std::int64_t start) {
    return slice(slice(words.elements, 0, i, i + 1), 1, start, start + 3);
  };
  const nn::SPINNTracker& tracker = *model.tracker;
  LSTMState one = tracker(part(0, 0), none, none, tracker.cell.initial_state(1));
  LSTMState two = tracker(part(1, 0), part(0, 0), none, one);
  LSTMState three = tracker(none, part(1, 0), part(0, 0), two);
  check_close(found.logits, tracker.transition(concat({one.h, two.h, three.h})));
  LSTMState root = (*model.reduce)({part(0, 0), part(0, 3)}, {part(1, 0), part(1, 3)}, three.h);
  check_close(found.root.h, root.h);

  SECTION("each sentence of a batch gives what it gives alone") {
    nn::Packed batch{draw({6, 6}), {3, 1, 2}};
    Lists lists{{S, S, R, S, R}, {S}, {S, S, R}};
    nn::SPINNOutput together = model(batch, lists);
    std::vector<Tensor> sequences = batch.sequences(), roots, logits;
    for (std::size_t b = 0; b < 3; ++b) {
      nn::SPINNOutput alone = model(nn::pack({sequences[b]}), Lists{lists[b]});
      roots.push_back(alone.root.h);
      logits.push_back(alone.logits);
    }
    check_close(together.root.h, concat(roots));
    check_close(together.logits, concat(logits));
  }
  SECTION("and it can be cloned") {
    nn::SPINN copy = nn::clone(model);
    CHECK(copy.parameters().size() == 7);
    check_close(copy(words, Lists{{S, S, R}}).root.h, root.h);
  }
  SECTION("and its gradients agree with differences") {
    check_gradients(
        [&](std::span<const Tensor> in) {
          nn::SPINNOutput result = model(nn::Packed{in[0], {2, 1}}, Lists{{S, S, R}, {S}});
          return concat({flatten(result.root.h), flatten(result.root.c), flatten(result.logits)});
        },
        {draw({3, 6})});
  }
}

TEST_CASE("SPINN refuses transitions that build no tree") {
  nn::SPINN model(2);
  nn::Packed words{ones({2, 4}), {2}};
  for (const std::vector<nn::Transition>& list : Lists{{S, S}, {S, R, S}, {S, S, R, R}, {S, S, S, R, R}, {}})
    CHECK_THAT(error_of<Error>([&] { model(words, Lists{list}); }), contains("build no tree of its 2 words"));
  int line = __LINE__ + 1;
  std::string text = error_of<ShapeError>([&] { model(words, Lists{}); });
  CHECK(text == "SPINN: 0 lists of transitions do not fit 1 sentences; at " + to_string(Location{__FILE__, line}));
  CHECK_THAT(error_of<ShapeError>([&] { model({ones({2, 3}), {2}}, Lists{{S, S, R}}); }), contains("are not (N, 4)"));
  CHECK_THAT(error_of<Error>([&] { model({ones({0, 4}), {0}}, Lists{{}}); }), contains("of its 0 words"));
  CHECK_THAT(error_of<ShapeError>([] { nn::SPINN(0); }), contains("hidden 0"));
}

namespace {

// A sentence built by hand of the parts of a SPINN: transitions of its own choice where none are given.
nn::SPINNOutput interpreted(const nn::SPINN& model, const nn::SPINNCell& cell, const Tensor& words,
                            const std::vector<nn::Transition>* given) {
  std::int64_t size = model.hidden_size;
  Tensor none = zeros({1, size}, {.dtype = f64});
  std::vector<LSTMState> stack, buffer;
  for (std::int64_t i = words.size(0) - 1; i >= 0; --i) {
    Tensor row = slice(words, 0, i, i + 1);
    buffer.push_back({slice(row, 1, 0, size), slice(row, 1, size)});
  }
  LSTMState state = model.tracker->cell.initial_state(1);
  std::vector<Tensor> logits, nodes;
  std::vector<nn::Transition> taken;
  for (std::int64_t step = 0; step < 2 * words.size(0) - 1; ++step) {
    std::size_t depth = stack.size();
    state = (*model.tracker)(buffer.empty() ? none : buffer.back().h, depth > 0 ? stack[depth - 1].h : none,
                             depth > 1 ? stack[depth - 2].h : none, state);
    logits.push_back(model.tracker->transition(state.h));
    bool reduces = logits.back().to_vector<double>()[1] > logits.back().to_vector<double>()[0];
    if (depth < 2) reduces = false;
    if (buffer.empty()) reduces = true;
    if (given != nullptr) reduces = (*given)[static_cast<std::size_t>(step)] == R;
    if (reduces) {
      LSTMState joined = cell(stack[depth - 2], stack[depth - 1], state.h);
      stack.resize(depth - 2);
      stack.push_back(joined);
    } else {
      stack.push_back(buffer.back());
      buffer.pop_back();
    }
    taken.push_back(reduces ? R : S);
    nodes.push_back(stack.back().h);
  }
  REQUIRE(stack.size() == 1);
  return {stack[0], concat(logits), concat(nodes), {taken}};
}

void check_alike(const nn::SPINNOutput& a, const nn::SPINNOutput& b) {
  check_close(a.root.h, b.root.h);
  check_close(a.root.c, b.root.c);
  check_close(a.logits, b.logits);
  check_close(a.nodes, b.nodes);
  CHECK(a.transitions == b.transitions);
}

// A cell of the user's own, which has no gates.
struct SumCell : nn::Module {
  nn::Linear both{*this, "both", 8, 3, {.dtype = f64}};

  LSTMState operator()(const LSTMState& left, const LSTMState& right, const Tensor& tracking) const {
    return {tanh(both(concat({left.h, right.h, tracking}, 1))), left.c + right.c};
  }
};

}  // namespace

TEST_CASE("SPINN builds trees of its tracker's choice, and of any other only those that are trees") {
  for (bool own : {false, true})
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      INFO("seed " << seed << ", a cell of the user's own: " << own);
      manual_seed(seed);
      nn::SPINN model(3, {.tracker_size = 2, .dtype = f64, .reduce = !own});
      CHECK(model.parameters().size() == (own ? 5u : 7u));
      // From seed 5 on the tracker wants one transition only, whether it is possible or not.
      if (seed > 4) copy_(model.tracker->transition.bias, tensor({seed % 2 == 0 ? 9.0 : -9.0, 0.0}));
      SumCell sum_cell;
      nn::SPINNCell cell = std::cref(sum_cell);
      if (!own)
        cell = [&](const LSTMState& left, const LSTMState& right, const Tensor& tracking) {
          return (*model.reduce)(left, right, tracking);
        };
      nn::Packed words{2 * draw({15, 6}), {4, 1, 2, 8}};
      nn::SPINNOutput together = own ? model(words, cell) : model(words);
      std::vector<nn::SPINNOutput> each;
      for (const Tensor& sentence : words.sequences()) each.push_back(interpreted(model, cell, sentence, nullptr));
      nn::SPINNOutput expected;
      std::vector<Tensor> h, c, logits, nodes;
      for (const nn::SPINNOutput& one : each) {
        h.push_back(one.root.h);
        c.push_back(one.root.c);
        logits.push_back(one.logits);
        nodes.push_back(one.nodes);
        expected.transitions.push_back(one.transitions[0]);
      }
      expected = {{concat(h), concat(c)}, concat(logits), concat(nodes), expected.transitions};
      check_alike(together, expected);
      check_alike(own ? model(words, expected.transitions, cell) : model(words, expected.transitions), expected);
    }
}

TEST_CASE("SPINN gives one example within batch_map what it gives alone, gradients among it") {
  manual_seed(9);
  nn::SPINN model(3, {.tracker_size = 2, .dtype = f64});
  std::vector<Tensor> sentences;
  for (std::int64_t length : {3, 1, 5, 3, 7, 2}) sentences.push_back(2 * draw({length, 6}));
  auto gradients = [&](bool batched) {
    Tape tape;
    auto one = [&](const Tensor& words) { return model(nn::pack({words})); };
    std::vector<nn::SPINNOutput> results = batch_map(sentences, one, {.immediate = !batched});
    Tensor loss = zeros({}, {.dtype = f64});
    for (const nn::SPINNOutput& result : results)
      loss = loss + sum(square(result.nodes)) + sum(square(result.root.c)) + sum(tanh(result.logits));
    tape.backward(loss);
    std::vector<Tensor> all;
    for (const Tensor& parameter : model.parameters()) all.push_back(copy(parameter.grad()));
    for (const nn::SPINNOutput& result : results) all.push_back(result.nodes);
    model.zero_grad();
    return all;
  };
  std::vector<Tensor> batched = gradients(true), alone = gradients(false);
  for (std::size_t i = 0; i < batched.size(); ++i) check_close(batched[i], alone[i]);
}

TEST_CASE("the gradients of SPINN with predicted transitions and a cell of the user's own agree with differences") {
  manual_seed(10);
  nn::SPINN model(3, {.tracker_size = 2, .dtype = f64, .reduce = false});
  SumCell cell;
  check_gradients(
      [&](std::span<const Tensor> in) {
        nn::SPINNOutput result = model(nn::Packed{in[0], {3, 1}}, std::cref(cell));
        return concat({flatten(result.root.c), flatten(result.nodes), flatten(result.logits)});
      },
      {2 * draw({4, 6})});
}

TEST_CASE("SPINN says what it lacks to predict transitions or to reduce") {
  nn::SPINN plain(2), none(2, {.tracker_size = 1, .reduce = false});
  nn::Packed words{ones({2, 4}), {2}};
  CHECK_THAT(error_of<Error>([&] { plain(words); }),
             contains("SPINN: without a tracker no transitions are predicted; pass them, or set tracker_size; at "));
  CHECK_THAT(error_of<Error>([&] { none(words); }), contains("SPINN: there is no cell; pass one to the call; at "));
  CHECK_THAT(error_of<Error>([&] { none(words, nn::SPINNCell()); }), contains("the cell is an empty function"));
  auto wide = [](const LSTMState& left, const LSTMState& right, const Tensor&) {
    return LSTMState{concat({left.h, right.h}, 1), left.c};
  };
  CHECK_THAT(error_of<ShapeError>([&] { none(words, wide); }), contains("must return h and c (1, 2), not (1, 4)"));
  CHECK_THAT(error_of<ShapeError>([&] { none(words, Lists{{S, S, R}}, wide); }), contains("must return h and c"));
  auto left = [](const LSTMState& left, const LSTMState&, const Tensor&) { return left; };
  CHECK_THAT(error_of<Error>([&] { none({ones({2, 4}), {2, 0}}, left); }), contains("sentence 1 has no words"));
  CHECK_THAT(error_of<ShapeError>([&] { none({ones({0, 4}), {}}, left); }), contains("there is no sentence"));
}
