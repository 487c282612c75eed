#include <reel/autocast.h>
#include <reel/batching.h>
#include <reel/debug/gradcheck.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>

#include "catch.h"
#include "nn/checks.h"

using namespace reel;
using namespace reel_test;

TEST_CASE("a Child-Sum Tree-LSTM computes its equations for any number of children, with an input and without") {
  manual_seed(1);
  constexpr std::int64_t size = 3;
  nn::ChildSumTreeLSTM cell(2, size, {.dtype = f64});
  for (std::size_t count = 0; count < 9; ++count)
    for (bool has_input : {true, false}) {
      if (!has_input && count == 0) continue;
      std::vector<LSTMState> children;
      for (std::size_t k = 0; k < count; ++k) children.push_back(draw_state(4, size));
      Tensor x = has_input ? draw({4, 2}) : Tensor(), together = zeros({4, size}, {.dtype = f64});
      for (const LSTMState& child : children) together = together + child.h;
      auto block = [&](const Tensor& all, int gate) { return slice(all, -1, gate * size, (gate + 1) * size); };
      auto argument = [&](int gate, const Tensor& from_states) {
        Tensor a = block(cell.bias, gate) + from_states;
        return has_input ? a + matmul(x, block(cell.W_x, gate)) : a;
      };
      auto own = [&](int gate) { return argument(gate, matmul(together, block(cell.W_h, gate))); };
      std::vector<Tensor> f;
      for (const LSTMState& child : children) f.push_back(argument(3, matmul(child.h, cell.W_f)));
      LSTMState expected = node_by_hand(own(0), own(1), own(2), f, children), found = cell(x, children);
      check_close(found.h, expected.h);
      check_close(found.c, expected.c);
    }
  // The order of children does not matter.
  LSTMState a = draw_state(1, size), b = draw_state(1, size);
  check_close(cell(nn::no_input, {a, b}).h, cell(nn::no_input, {b, a}).h);
}

TEST_CASE("an N-ary Tree-LSTM computes its equations, with matrices for each child") {
  manual_seed(2);
  constexpr std::int64_t size = 3;
  nn::NaryTreeLSTM cell(2, size, 3, {.dtype = f64});
  CHECK(cell.W_h.shape() == Shape{9, 18});
  CHECK(cell.children() == 3);
  for (std::size_t count = 0; count <= 3; ++count)
    for (bool has_input : {true, false}) {
      if (!has_input && count == 0) continue;
      std::vector<LSTMState> children;
      for (std::size_t k = 0; k < count; ++k) children.push_back(draw_state(4, size));
      Tensor x = has_input ? draw({4, 2}) : Tensor();
      auto block = [&](const Tensor& all, std::size_t gate) {
        auto first = static_cast<std::int64_t>(gate) * size;
        return slice(all, -1, first, first + size);
      };
      // Gates of W_x: i, o, u, f; of W_h: i, o, u, f_1 …
      auto argument = [&](std::size_t gate_x, std::size_t gate_h) {
        Tensor a = expand(block(cell.bias, gate_x), {4, size});
        if (has_input) a = a + matmul(x, block(cell.W_x, gate_x));
        for (std::size_t l = 0; l < count; ++l) {
          auto row = static_cast<std::int64_t>(l) * size;
          a = a + matmul(children[l].h, slice(block(cell.W_h, gate_h), 0, row, row + size));
        }
        return a;
      };
      std::vector<Tensor> f;
      for (std::size_t k = 0; k < count; ++k) f.push_back(argument(3, 3 + k));
      LSTMState expected = node_by_hand(argument(0, 0), argument(1, 1), argument(2, 2), f, children);
      LSTMState found = cell(x, children);
      check_close(found.h, expected.h);
      check_close(found.c, expected.c);
    }
}

TEST_CASE("the weights of an N-ary Tree-LSTM have the gradients of its equations, in batch_map, too") {
  manual_seed(6);
  constexpr std::int64_t size = 3;
  nn::NaryTreeLSTM cell(2, size, 2, {.dtype = f64});
  Tensor x = draw({4, 2});
  std::vector<LSTMState> children{draw_state(4, size), draw_state(4, size)};
  auto block = [](const Tensor& all, std::int64_t gate) { return slice(all, -1, gate * size, (gate + 1) * size); };
  auto plain = [&](const Tensor& x, const std::vector<LSTMState>& children) {
    Tensor p = x.defined() ? matmul(x, cell.W_x) + cell.bias : cell.bias;
    Tensor a = matmul(concat({children[0].h, children[1].h}, 1), cell.W_h);
    return node_by_hand(block(a, 0) + block(p, 0), block(a, 1) + block(p, 1), block(a, 2) + block(p, 2),
                        {block(a, 3) + block(p, 3), block(a, 4) + block(p, 3)}, children);
  };
  auto gradients = [&](auto node) {
    std::vector<Tensor> sources = cell.parameters();
    for (const LSTMState& child : children) sources.insert(sources.end(), {child.h, child.c});
    Tape tape;
    for (const LSTMState& child : children) tape.watch(child.h), tape.watch(child.c);
    return tape.gradient(node(), sources, {.unconnected = Unconnected::zeros});
  };
  auto total = [](const LSTMState& state) { return sum(square(state.h)) + sum(state.c * state.h); };
  auto expect_equal = [](const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) check_close(found[i], expected[i]);
  };
  for (const Tensor& input : {x, Tensor()}) {
    std::vector<Tensor> expected = gradients([&] { return total(plain(input, children)); });
    expect_equal(gradients([&] { return total(cell(input.defined() ? Arg(input) : Arg(nn::no_input), children)); }),
                 expected);
    std::vector<Tensor> grouped = gradients([&] {
      std::vector<std::int64_t> rows{0, 1, 2, 3};
      return sum(concat(batch_map(rows, [&](std::int64_t row) {
        std::vector<LSTMState> own;
        for (const LSTMState& child : children)
          own.push_back({slice(child.h, 0, row, row + 1), slice(child.c, 0, row, row + 1)});
        Tensor one = input.defined() ? slice(input, 0, row, row + 1) : Tensor();
        return reshape(total(cell(one.defined() ? Arg(one) : Arg(nn::no_input), own)), {1});
      })));
    });
    expect_equal(grouped, expected);
  }
}

TEST_CASE("trees of one child each are chains, whichever cell reads them") {
  manual_seed(3);
  nn::NaryTreeLSTM nary(2, 3, 1, {.dtype = f64});
  nn::ChildSumTreeLSTM sum(2, 3, {.dtype = f64});
  sum.W_x = nary.W_x;
  sum.bias = nary.bias;
  sum.W_h = copy(stop_gradient(slice(nary.W_h, 1, 0, 9)));
  sum.W_f = copy(stop_gradient(slice(nary.W_h, 1, 9)));
  Tensor first = draw({1, 2}), second = draw({1, 2});
  check_close(nary(second, {nary(first)}).h, sum(second, {sum(first)}).h);
}

TEST_CASE("Tree-LSTMs start as asked") {
  nn::ChildSumTreeLSTM sum(6, 4, {.forget_bias = 2, .bias_initialiser = nn::constant(1)});
  CHECK(sum.bias.to_vector<float>() == std::vector<float>{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3});
  manual_seed(4);
  nn::NaryTreeLSTM nary(6, 4, 2, {.forget_bias = 2, .recurrent_initialiser = nn::orthogonal()});
  Tensor block = slice(slice(nary.W_h, 0, 4, 8), 1, 8, 12);
  CHECK(max(abs(matmul(transpose(block), block) - eye(4))).item() < 1e-5);
  CHECK(mean(slice(nary.bias, 0, 12)).item() > 1.5);
  CHECK(max(nary.W_x).item() <= 0.5);
}

TEST_CASE("gradients of trees agree with differences") {
  manual_seed(5);
  nn::ChildSumTreeLSTM sum(2, 2, {.dtype = f64});
  nn::NaryTreeLSTM nary(2, 2, 2, {.dtype = f64});
  auto read = [](const auto& cell) {
    return [&](std::span<const Tensor> in) {
      LSTMState left = cell(in[0]), right = cell(in[1], {cell(in[0])});
      LSTMState root = cell(nn::no_input, {left, right});
      return concat({root.h, root.c}, 1);
    };
  };
  check_gradients(read(sum), {draw({2, 2}), draw({2, 2})});
  check_gradients(read(nary), {draw({2, 2}), draw({2, 2})});
}

TEST_CASE("tree cells name what does not fit") {
  nn::NaryTreeLSTM cell(2, 3, 2);
  LSTMState state{ones({1, 3}), ones({1, 3})};
  int line = __LINE__ + 1;
  CHECK(error_of<ShapeError>([&] {
          cell(ones({1, 5}));
        }) == "NaryTreeLSTM: the input (1, 5) f32 is not (B, 2); at " + to_string(Location{__FILE__, line}));
  CHECK_THAT(error_of<ShapeError>([&] {
               cell(nn::no_input, {state, state, state});
             }),
             contains("a node has 3 children, of 2 at most"));
  CHECK_THAT(error_of<ShapeError>([&] {
               cell(ones({2, 2}), {state});
             }),
             contains("h (1, 3) and c (1, 3) of child 0 are not (2, 3)"));
  CHECK_THAT(error_of<Error>([&] { cell(nn::no_input); }), contains("neither an input nor children"));
  nn::ChildSumTreeLSTM sum(2, 3);
  CHECK_THAT(error_of<ShapeError>([&] {
               sum(nn::no_input, {state, {ones({1, 3}), Tensor()}});
             }),
             contains("c undefined of child 1"));
  CHECK_THAT(error_of<ShapeError>([] { nn::NaryTreeLSTM(2, 3, 0); }), contains("at most 0 children"));
  CHECK_THAT(error_of<ShapeError>([] { nn::ChildSumTreeLSTM(0, 3); }), contains("not input 0, hidden 3"));
}

TEST_CASE("hooks of tree cells see the children, and the gradients that flow to them") {
  nn::ChildSumTreeLSTM sum_cell(2, 3);
  nn::NaryTreeLSTM nary_cell(2, 3, 2);
  auto check = [](auto& cell) {
    LSTMState left{ones({1, 3}), full({1, 3}, 2.0)}, right{full({1, 3}, 3.0), full({1, 3}, 4.0)};
    for (const LSTMState* state : {&left, &right})
      for (const Tensor* part : {&state->h, &state->c}) part->requires_grad();
    LSTMState replaced = cell(nn::no_input, {left, {right.h, zeros({1, 3})}});
    std::vector<double> seen;
    std::size_t gradients = 0;
    auto before = cell.before_forward([&](std::span<Tensor> inputs) {
      REQUIRE(inputs.size() == 5);
      for (const Tensor& input : inputs) seen.push_back(input.defined() ? input(0)(0).item() : 0);
      inputs[4] = zeros({1, 3});
    });
    auto after = cell.after_backward([&](std::span<Tensor> inputs) {
      REQUIRE(inputs.size() == 5);
      CHECK_FALSE(inputs[0].defined());
      for (const Tensor& input : inputs) gradients += input.defined();
      inputs[1] = full({1, 3}, 7.0);
    });
    Tape tape;
    LSTMState root = cell(nn::no_input, {left, right});
    CHECK(seen == std::vector<double>{0, 1, 2, 3, 4});
    CHECK(max(abs(root.c - replaced.c)).item() == 0);
    tape.backward(sum(root.h));
    CHECK(gradients == 3);
    CHECK(left.h.grad().to_vector<float>() == std::vector<float>{7, 7, 7});
    CHECK(left.c.grad().defined());
    CHECK_FALSE(right.c.grad().defined());
  };
  check(sum_cell);
  check(nary_cell);
}

TEST_CASE("tree cells refuse what is not in the dtype of their weights") {
  nn::ChildSumTreeLSTM sum_cell(2, 3);
  nn::NaryTreeLSTM nary_cell(2, 3, 2);
  LSTMState narrow{ones({1, 3}), ones({1, 3})}, wide{draw({1, 3}), draw({1, 3})};
  auto check = [&](const auto& cell, const std::string& name) {
    CHECK_THAT(error_of<DTypeError>([&] { cell(draw({1, 2})); }), contains(name) && contains("the weights' dtype f32"));
    CHECK_THAT(error_of<DTypeError>([&] {
                 cell(ones({1, 2}), {narrow, wide});
               }),
               contains(name) && contains("child 1") && contains("f64"));
    CHECK_THAT(error_of<DTypeError>([&] { cell(nn::no_input, {{narrow.h, wide.c}}); }), contains("child 0"));
    auto scope = autocast(bf16);
    cell(ones({1, 2}, {.dtype = bf16}), {narrow, cell(ones({1, 2}))});
  };
  check(sum_cell, "ChildSumTreeLSTM");
  check(nary_cell, "NaryTreeLSTM");
}
