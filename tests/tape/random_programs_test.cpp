#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "catch.h"

// Random recurrent programs. What a tape with deferred products, hooks and traces finds is held against a tape without,
// and that against finite differences.

using namespace reel;

namespace {

constexpr std::int64_t size = 96;  // so large that products of up to two rows wait

struct Leaves {
  std::vector<Tensor> weights, states;
  Tensor indices;  // of rows of a weight, one for each row of a state

  std::vector<Tensor> all() const { return {weights[0], weights[1], states[0], states[1]}; }
};

Leaves random_leaves(unsigned seed) {
  std::mt19937 random(seed);
  std::int64_t rows = random() % 4;
  Generator generator(seed);
  auto normal = [&](Shape shape, double deviation) {
    return stop_gradient(randn(shape, {.dtype = f64, .generator = &generator}) * deviation);
  };
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < rows; ++i) indices.push_back(random() % 4);
  return {{normal({size, size}, 0.1), normal({size, size}, 0.1)},
          {normal({rows, size}, 0.5), normal({rows, size}, 0.5)},
          rows == 0 ? zeros({0}, {.dtype = i64}) : tensor(indices)};
}

struct Program {
  std::vector<Tensor> weights, states;
  Tensor loss;

  std::vector<Tensor> computed() const {
    std::vector<Tensor> all = weights;
    all.insert(all.end(), states.begin(), states.end());
    return all;
  }
};

Program run(unsigned seed, const Leaves& leaves) {
  std::mt19937 random(seed);
  Program program{leaves.weights, leaves.states, {}};
  std::vector<Tensor>&weights = program.weights, &states = program.states;
  for (unsigned step = 0, steps = 8 + random() % 12; step < steps; ++step) {
    Tensor h = states[states.size() - 1 - random() % 2], other = states[random() % states.size()];
    Tensor w = weights[random() % weights.size()], v = weights[random() % weights.size()];
    switch (random() % 16) {
      case 0:
      case 1:
      case 2: states.push_back(tanh(matmul(h, w))); break;
      case 3: states.push_back(transpose(tanh(matmul(w, transpose(h))))); break;
      case 4: states.push_back(h * other + h); break;
      case 5: states.push_back(embedding(w, leaves.indices, {.row_gradient = true}) + h); break;
      case 6: states.push_back(concat({slice(h, 1, size / 2, size), sin(slice(h, 1, 0, size / 2))}, 1)); break;
      case 7: {
        Tensor changed = h * 1.0;
        add_(changed, other);
        if (h.size(0) > 0) changed(0) = other(-1);
        states.push_back(changed);
        break;
      }
      case 8: states.push_back(checkpoint([w](const Tensor& h) { return tanh(matmul(h, w)); }, h)); break;
      case 9:
        states.push_back(checkpoint(
            [w, rows = leaves.indices](const Tensor& h, const Tensor& v) {
              Tensor inner = checkpoint([w](const Tensor& h) { return matmul(h, w); }, h);
              return tanh(matmul(h, v)) + embedding(w, rows, {.row_gradient = true}) + inner;
            },
            h, v));
        break;
      case 10: states.push_back(sum(matmul(stack({h, other}), w), 0)); break;
      case 11: states.push_back(h * mean(w) + h); break;
      case 12: weights.push_back(w * 0.7 + v * 0.2); break;
      case 13: weights.push_back(transpose(w)); break;
      case 14: weights.push_back(matmul(w, v)); break;
      case 15: {
        Tensor changed = w * 0.5;
        if (h.size(0) > 0) changed(3) = h(0);
        add_(changed, v);
        weights.push_back(changed);
        break;
      }
    }
  }
  program.loss = sum(sin(states.back())) + sum(cos(states[states.size() / 2])) + sum(sin(weights.back())) * 0.01;
  return program;
}

double distance(const Tensor& a, const Tensor& b) {
  NoRecord pause;
  return a.numel() == 0 ? 0 : max(abs(a - b)).item() / std::max(1.0, max(abs(b)).item());
}

// What a tape with these options finds for the leaves and all that is computed, of the loss and of the last state, after
// `prepare` has done something to the tape.
using Prepare = std::function<void(Tape&, const Program&)>;
std::vector<Tensor> gradients(unsigned seed, const Leaves& leaves, TapeOptions options, const Prepare& prepare) {
  options.persistent = true;
  Tape tape(options);
  for (const Tensor& leaf : leaves.all()) tape.watch(leaf);
  Program program = run(seed, leaves);
  std::vector<Tensor> sources = program.computed(), found;
  prepare(tape, program);
  Tensor last = program.states.back();
  for (const Tensor& target : {program.loss, last}) {
    std::vector<Tensor> some =
        tape.gradient(target, sources, {.seed = cos(stop_gradient(target)), .unconnected = Unconnected::zeros});
    found.insert(found.end(), some.begin(), some.end());
  }
  Tensor few = slice(reshape(last, {last.numel()}), 0, 0, std::min<std::int64_t>(3, last.numel()));
  std::vector<Tensor> rows = tape.jacobian(few, leaves.all(), {.unconnected = Unconnected::zeros});
  found.insert(found.end(), rows.begin(), rows.end());
  return found;
}

void keep_gradients(Tape& tape, const Program& program) {
  int number = 0;
  for (const Tensor& x : program.computed()) switch (number++ % 4) {
      case 0: tape.hook(x, [](const Tensor&) {}); break;
      case 1: tape.hook(x, [](const Tensor& gradient) { return gradient * 1; }); break;
      case 2: tape.trace(x); break;
      default: break;
    }
}

void keep_gradients_of_ops(Tape& tape, const Program&) {
  for (const char* op : {"matmul", "embedding", "checkpoint"})
    tape.hook_op(op, [](const OpGradients& gradients) {
      for (Tensor& gradient : gradients.inputs)
        if (gradient.defined()) gradient = gradient * 1;
    });
}

// Differentiations of which some fail on the way.
void fail_before(Tape& tape, const Program& program) {
  auto left = std::make_shared<int>(0);
  tape.hook_op("matmul", [left](const OpGradients&) {
    if (--*left == 0) throw std::runtime_error("enough");
  });
  for (int calls : {1, 3, 5}) {
    *left = calls;
    try {
      tape.gradient(program.loss, program.computed(), {.unconnected = Unconnected::zeros});
    } catch (const std::runtime_error&) {
      CHECK(*left == 0);
    }
  }
  *left = 0;
}

}  // namespace

TEST_CASE("random programs have the same gradients with and without deferred products, hooks, traces and failures") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Leaves leaves = random_leaves(seed);
    Prepare nothing = [](Tape&, const Program&) {};
    std::vector<Tensor> expected = gradients(seed, leaves, {.deferred_products = false}, nothing);
    for (const Prepare& prepare :
         {nothing, Prepare(keep_gradients), Prepare(keep_gradients_of_ops), Prepare(fail_before)}) {
      std::vector<Tensor> found = gradients(seed, leaves, {}, prepare);
      REQUIRE(found.size() == expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) CHECK(distance(found[i], expected[i]) < 1e-11);
    }
  }
}

TEST_CASE("random programs have the gradients that finite differences show") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Leaves leaves = random_leaves(seed);
    std::vector<Tensor> directions, points = leaves.all(), found;
    Generator generator(seed + 1000);
    for (const Tensor& x : points) directions.push_back(randn(x.shape(), {.dtype = f64, .generator = &generator}));
    double slope = 0, scale = 1;
    {
      Tape tape;
      for (const Tensor& x : points) tape.watch(x);
      found = tape.gradient(run(seed, leaves).loss, points, {.unconnected = Unconnected::zeros});
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      double part = sum(found[i] * directions[i]).item();
      slope += part;
      scale = std::max(scale, std::abs(part));
    }
    auto at = [&](double step) {
      Leaves moved = leaves;
      for (std::size_t i = 0; i < 2; ++i) {
        moved.weights[i] = leaves.weights[i] + directions[i] * step;
        moved.states[i] = leaves.states[i] + directions[i + 2] * step;
      }
      return run(seed, moved).loss.item();
    };
    constexpr double step = 1e-6;
    CHECK(std::abs((at(step) - at(-step)) / (2 * step) - slope) < 1e-5 * scale);
  }
}
