#include <reel/batching.h>
#include <reel/reel.h>

#include <vector>

#include "catch.h"
#include "checks.h"
#include "net.h"

// Hooks on tensors of examples, gradients with respect to them, and overwriting them.

using namespace reel;
using namespace reel_test;

TEST_CASE("a hook on an op sees the gradients of all its calls") {
  manual_seed(25);
  Net net;
  std::vector<Tensor> inputs = rows(6);
  check_as_immediate([&](const BatchOptions& options) {
    Tape tape;
    Tensor sums = zeros({6}, {.dtype = f64});
    std::int64_t elements = 0;
    int line = 0;
    tape.hook_op("sin", [&](const OpGradients& gradients) {
      CHECK(gradients.where.line == line);
      elements += gradients.outputs[0].numel();
      Tensor d = reshape(gradients.outputs[0], {-1, 6});
      sums = sums + sum(square(d), {0});
      gradients.inputs[0] = gradients.inputs[0] * 2;
    });
    std::vector<Tensor> made = batch_map(
        inputs,
        [&](const Tensor& x) {
          Tensor h = net.hidden(x);
          line = __LINE__ + 1;
          Tensor y = sin(h);
          return matmul(y, net.V);
        },
        options);
    std::vector<Tensor> results = gradients_and(tape, made, net.parameters());
    CHECK(elements == 36);
    results.push_back(sums);
    return results;
  });
}

TEST_CASE("a hook on a tensor of one example sees and replaces that example's gradient only") {
  manual_seed(10);
  Net net;
  std::vector<Tensor> inputs = rows(6);
  check_as_immediate([&](const BatchOptions& options) {
    Tape tape;
    std::vector<Tensor> seen(6);
    int calls = 0;
    std::vector<Tensor> made = batch_map(
        numbers(6),
        [&](int i) {
          Tensor h = net.hidden(inputs[static_cast<std::size_t>(i)]);
          if (i % 2 == 1)
            tape.hook(h, [&, i](const Tensor& gradient) {
              ++calls;
              seen[static_cast<std::size_t>(i)] = copy(gradient);
              return gradient * (10.0 * i);
            });
          return matmul(sin(h), net.V);
        },
        options);
    std::vector<Tensor> results = gradients_and(tape, made, net.parameters());
    CHECK(calls == 3);
    for (int i : {1, 3, 5}) CHECK(seen[static_cast<std::size_t>(i)].shape() == Shape{1, 6});
    results.insert(results.end(), seen.begin(), seen.end());
    return results;
  });
}

TEST_CASE("gradients are computed with respect to tensors that examples have computed") {
  manual_seed(11);
  Net net;
  std::vector<Tensor> inputs = rows(6);
  struct Pair {
    Tensor h, y;
  };
  check_as_immediate([&](const BatchOptions& options) {
    Tape tape({.persistent = true});
    std::vector<Pair> made = batch_map(
        inputs,
        [&](const Tensor& x) {
          Tensor h = net.hidden(x);
          return Pair{h, matmul(h * tanh(h), net.V)};
        },
        options);
    std::vector<Tensor> hidden, ys;
    for (const Pair& one : made) {
      hidden.push_back(one.h);
      ys.push_back(one.y);
    }
    Tensor total = sum(square(concat(ys, 0)));
    std::vector<Tensor> results = tape.gradient(total, hidden);
    // The gradients of one example alone; the others' are zeros.
    std::vector<Tensor> alone = tape.gradient(ys[2], hidden, {.unconnected = Unconnected::zeros});
    for (std::size_t i = 0; i < 6; ++i) CHECK((sum(abs(alone[i])).item() > 0) == (i == 2));
    results.insert(results.end(), alone.begin(), alone.end());
    results.push_back(tape.gradient(ys[4], hidden[4]));
    results.push_back(tape.gradient(ys[4], net.W));
    return results;
  });
}

TEST_CASE("an example's result does not depend on another's tensors") {
  manual_seed(12);
  Net net;
  std::vector<Tensor> inputs = rows(4);
  Tape tape({.persistent = true});
  std::vector<Tensor> hidden(4);
  std::vector<Tensor> made = batch_map(numbers(4), [&](int i) {
    Tensor h = net.hidden(inputs[static_cast<std::size_t>(i)]);
    hidden[static_cast<std::size_t>(i)] = h;
    return matmul(h, net.V);
  });
  std::vector<Tensor> found = tape.gradient(made[1], hidden, {.unconnected = Unconnected::zeros});
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    check_close({found[i]}, {i == 1 ? transpose(net.V) : zeros({1, 6}, {.dtype = f64})});
  }
}

TEST_CASE("traced gradients are those of single examples") {
  manual_seed(13);
  Net net;
  std::vector<Tensor> inputs = rows(5);
  check_as_immediate([&](const BatchOptions& options) {
    Tape tape({.persistent = true});
    std::vector<Tensor> made = batch_map(
        inputs,
        [&](const Tensor& x) {
          Tensor h = net.hidden(x);
          tape.trace(h);
          return matmul(sin(h), net.V);
        },
        options);
    std::vector<Tensor> results = gradients_and(tape, made, net.parameters());
    std::vector<Traced> traced = tape.traced();
    REQUIRE(traced.size() == 5);
    for (const Traced& one : traced) results.push_back(one.gradient);
    return results;
  });
}

TEST_CASE("a truncation within an example ends its gradient") {
  manual_seed(14);
  Net net;
  check_gradients(net, rows(5), [&](const Tensor& x) {
    Tensor h = net.hidden(x);
    if (h(0, 0).item() > 0) h = truncate(h);
    return matmul(sin(h), net.V);
  });
}

TEST_CASE("a table's gradient by rows lists the rows of all examples once") {
  manual_seed(15);
  Tensor table = draw({20, 4}).requires_grad();
  std::vector<std::vector<std::int64_t>> words{{3, 5}, {5}, {1, 3, 3}, {19}, {5, 6}};
  auto run = [&](const BatchOptions& options) {
    table.set_grad({});
    Tape tape;
    std::vector<Tensor> made = batch_map(
        words,
        [&](const std::vector<std::int64_t>& indices) {
          return sum(square(tanh(embedding(table, tensor(indices), {.row_gradient = true}))));
        },
        options);
    Tensor all = stack(made);
    tape.backward(sum(all));
    RowGradient gradient = table.row_grad();
    REQUIRE(gradient.rows.defined());
    CHECK(gradient.rows.to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 3, 5, 6, 19});
    return std::vector<Tensor>{gradient.values, all};
  };
  check_as_immediate(run);
}

TEST_CASE("backward accumulates into the gradients of parameters what single examples do") {
  manual_seed(16);
  Net net;
  std::vector<Tensor> inputs = rows(6);
  check_as_immediate([&](const BatchOptions& options) {
    for (const Tensor& one : net.parameters()) one.set_grad(ones_like(one));
    Tape tape;
    std::vector<Tensor> made = batch_map(
        inputs, [&](const Tensor& x) { return net(x); }, options);
    tape.backward(sum(square(concat(made, 0))));
    std::vector<Tensor> results;
    for (const Tensor& one : net.parameters()) results.push_back(copy(one.grad()));
    return results;
  });
}

TEST_CASE("an example may overwrite a copy of a result") {
  manual_seed(17);
  Net net;
  std::vector<Tensor> inputs = rows(6);
  check_gradients(net, numbers(6), [&](int i) {
    Tensor h = copy(net.hidden(inputs[static_cast<std::size_t>(i)]));
    h *= 2.0 + i;
    Tensor own = zeros({1, 6}, {.dtype = f64});
    own(0, slice(0, 3)) += 1;
    fill_(own(0, i), 4.0);
    return matmul(sin(h) * own, net.V);
  });
}

TEST_CASE("an example may overwrite a result while a gradient of another example needs its part of it") {
  manual_seed(19);
  Net net;
  Tensor C = draw({5, 6});
  std::vector<Tensor> inputs = rows(6);
  for (bool tracked : {false, true}) {
    CAPTURE(tracked);
    check_gradients(net, numbers(6), [&](int i) {
      const Tensor& x = inputs[static_cast<std::size_t>(i)];
      Tensor result = tracked ? addmm(net.b, x, net.W) : matmul(x, C), h = net.hidden(inputs[0]);
      if (i < 3) return matmul(h * square(result), net.V);
      for (int step = 0; step < 4; ++step) h = sin(h);
      result += 1;
      return matmul(h * result, net.V);
    });
  }
}

TEST_CASE("without a tape an example may overwrite its results") {
  manual_seed(20);
  Net net;
  std::vector<Tensor> inputs = rows(6);
  check_as_immediate([&](const BatchOptions& options) {
    return batch_map(
        numbers(6),
        [&](int i) {
          Tensor h = net.hidden(inputs[static_cast<std::size_t>(i)]);
          Tensor before = h * 1;
          h *= 1.0 + i;
          Tensor y = matmul(h + before, net.V);
          if (i % 2 == 0) y += 3;
          return concat({y, matmul(tanh(h), net.V)}, 1);
        },
        options);
  });
}

TEST_CASE("variables that all examples share are shared, and what they write into is seen by all") {
  manual_seed(21);
  Net net;
  std::vector<Tensor> inputs = rows(6);
  Tensor sums = zeros({6}, {.dtype = f64});
  batch_map(numbers(6), [&](int i) {
    Tensor y = net(inputs[static_cast<std::size_t>(i)]);
    add_(sums(i), y(0, 0));
  });
  for (int i = 0; i < 6; ++i) check_close({sums(i)}, {net(inputs[static_cast<std::size_t>(i)])(0, 0)});
}

TEST_CASE("adjacent rows of one tensor that are leaves, each or some of them, have gradients of their own") {
  manual_seed(17);
  Net net;
  Tensor all = draw({6, 5}), others = draw({6, 5});
  for (int every : {1, 2, 3})
    for (int first : {0, 1})
      for (bool watched : {false, true})
        check_as_immediate([&](const BatchOptions& options) {
          CAPTURE(every, first, watched);
          std::vector<Tensor> inputs, leaves;
          Tape tape;
          for (int i = 0; i < 6; ++i) {
            inputs.push_back(slice(all, 0, i, i + 1));
            if (i % every != first % every) continue;
            if (watched)
              tape.watch(inputs.back());
            else
              inputs.back().requires_grad();
            leaves.push_back(inputs.back());
          }
          std::vector<Tensor> made = batch_map(
              numbers(6),
              [&](int i) {
                const Tensor& x = inputs[static_cast<std::size_t>(i)];
                return net(x) + sum(square(x + slice(others, 0, i, i + 1)));
              },
              options);
          std::vector<Tensor> results = gradients_and(tape, made, leaves);
          for (std::size_t i = 0; i < leaves.size(); ++i) CHECK(max(abs(results[i])).item() > 0);
          return results;
        });
}

TEST_CASE("many small gradients of rows of halves add up as they do outside of a batch") {
  manual_seed(18);
  struct Row {
    DType dtype;
    double small;  // a quarter of the distance between numbers above 1, so that 1 + small is 1 in a half
  };
  for (auto [dtype, small] : {Row{f16, 0x1p-12}, Row{bf16, 0x1p-9}}) {
    Tensor W = to(draw({5, 6}), dtype).requires_grad(), V = to(draw({5, 6}), dtype).requires_grad();
    std::vector<Tensor> inputs, first(6), second(6);
    for (const Tensor& x : rows(6)) inputs.push_back(to(x, dtype));
    for (bool immediate : {true, false}) {
      CAPTURE(name_of(dtype), immediate);
      Tape tape({.persistent = true});
      std::vector<Tensor> made = batch_map(numbers(6),
                                           [&](int i) {
                                             auto example = static_cast<std::size_t>(i);
                                             Tensor h = first[example] = matmul(inputs[example], W),
                                                    g = second[example] = matmul(inputs[example], V);
                                             Tensor total = zeros({1, 6}, {.dtype = dtype});
                                             // Half of a group's examples read the one, half the other, so that it gathers rows of two tensors.
                                             for (int k = 0; k < 120; ++k)
                                               total = total + ((i + k) % 2 == 0 ? h : g) * small;
                                             return sum(total + h + g + (h + g) * 0.5);
                                           },
                                           {.immediate = immediate});
      for (const std::vector<Tensor>& parts : {first, second})
        for (const Tensor& d : tape.gradient(sum(stack(made)), parts))
          // The sum of the small ones is rounded, and the total.
          CHECK(max(abs(to(d, f64) - (1.5 + 60 * small))).item() <= 4 * small);
    }
  }
}
