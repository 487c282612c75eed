#include <reel/batching.h>
#include <reel/reel.h>

#include <cmath>
#include <optional>
#include <vector>

#include "catch.h"
#include "checks.h"
#include "net.h"

// Tapes, checkpoints, custom gradients, casts and other scopes around and within examples.

using namespace reel;
using namespace reel_test;

namespace {

// y = x³, with another gradient.
struct Cubed {
  static constexpr const char* name = "cubed";
  struct Saved {
    Tensor x;
  };
  Tensor forward(Saved& saved, const Tensor& x) const {
    saved.x = x;
    return x * x * x;
  }
  Tensor gradient(const Saved& saved, const Tensor& dy) const { return 5 * dy * saved.x; }
};

}  // namespace

TEST_CASE("an example may differentiate on an inner tape and be differentiated: a penalty on its gradient") {
  manual_seed(1);
  Net net;
  check_gradients(net, rows(6), [&](const Tensor& given) {
    Tensor x = given * 1, g;
    {
      Tape inner;
      inner.watch(x);
      g = inner.gradient(net(sin(x)), x);
    }
    Tensor length = sqrt(sum(square(g), {1}));
    return square(length - 1) + net(x)(0);
  });
}

TEST_CASE("gradients of a batch of examples can be differentiated") {
  manual_seed(2);
  Net net;
  std::vector<Tensor> inputs = rows(6);
  check_as_immediate([&](const BatchOptions& options) {
    Tape outer;
    std::vector<Tensor> first;
    {
      Tape inner;
      std::vector<Tensor> made = batch_map(
          inputs, [&](const Tensor& x) { return net(net.hidden(x)(0, newaxis, slice(0, 5)) * x); }, options);
      first = inner.gradient(sum(square(concat(made, 0))), net.parameters());
    }
    std::vector<Tensor> results =
        outer.gradient(sum(square(first[0])) + sum(first[1] * first[1] * first[1]), net.parameters());
    results.insert(results.end(), first.begin(), first.end());
    return results;
  });
}

TEST_CASE("each example may have a tape of its own where none is around") {
  manual_seed(3);
  Net net;
  std::vector<Tensor> inputs = rows(6);
  check_as_immediate([&](const BatchOptions& options) {
    auto made = batch_map(
        inputs,
        [&](const Tensor& given) {
          Tensor x = tanh(given);
          Tape tape;
          Tensor y = square(net(x));
          return tape.gradient(y, net.parameters());
        },
        options);
    std::vector<Tensor> results;
    for (const std::vector<Tensor>& one : made) results.insert(results.end(), one.begin(), one.end());
    return results;
  });
}

TEST_CASE("derivatives of functions are computed within examples, and can be differentiated") {
  manual_seed(4);
  Net net;
  check_gradients(net, rows(5), [&](const Tensor& x) {
    Tensor scaled = x * 0.5;
    Tensor j = jacobian([&](const Tensor& z) { return net.hidden(z); }, scaled);
    Tensor product = hvp([&](const Tensor& z) { return sum(net(z)); }, scaled, ones_like(scaled)).product;
    return reshape(sum(square(j)) + sum(product), {1, 1});
  });
}

TEST_CASE("checkpoints within examples have the values and gradients of the function") {
  manual_seed(5);
  Net net;
  std::vector<Tensor> inputs = rows(6);
  check_gradients(net, inputs, [&](const Tensor& x) {
    Tensor h = sin(x);
    h = checkpoint([&net](const Tensor& z) { return net.hidden(z) * 2; }, h);
    h = checkpoint([&net](const Tensor& z) { return matmul(z, net.V) + sum(z, {1}, {.keepdims = true}); }, h);
    return h * h;
  });
  // The gradients without a checkpoint.
  auto run = [&](bool kept) {
    Tape tape;
    std::vector<Tensor> made = batch_map(inputs, [&](const Tensor& x) {
      auto f = [&net](const Tensor& z) { return net.hidden(z) * 2; };
      return kept ? f(sin(x)) : checkpoint(f, sin(x));
    });
    return gradients_and(tape, made, {net.W, net.b});
  };
  check_close(run(false), run(true));
}

TEST_CASE("custom gradients within examples are used") {
  manual_seed(6);
  Net net;
  std::vector<Tensor> inputs = rows(6);
  auto run = [&](const BatchOptions& options) {
    Tape tape;
    std::vector<Tensor> made = batch_map(
        inputs,
        [&](const Tensor& x) {
          Tensor h = net.hidden(x);
          h = custom_gradient([](const Tensor& z) { return tanh(2 * z); }, [](const Tensor& dy) { return -3 * dy; }, h);
          return matmul(apply(Cubed{}, h), net.V);
        },
        options);
    return gradients_and(tape, made, net.parameters());
  };
  check_as_immediate(run);
  // By hand: the outer derivative of (tanh(2 h)³ V)² by h is −15 times that of tanh(2 h).
  Tape tape;
  std::vector<Tensor> terms;
  for (const Tensor& x : inputs) {
    Tensor h = net.hidden(x), t = stop_gradient(tanh(2 * h)), y = stop_gradient(matmul(t * t * t, net.V));
    terms.push_back(sum(2 * y * matmul(-15.0 * t * h, stop_gradient(net.V))));
  }
  Tensor expected = tape.gradient(sum(stack(terms)), net.W);
  check_close({run({})[0]}, {expected});
}

TEST_CASE("an example under NoRecord is a constant, and the others are recorded") {
  manual_seed(7);
  Net net;
  std::vector<Tensor> inputs = rows(6);
  auto run = [&](const BatchOptions& options) {
    Tape tape;
    std::vector<Tensor> made = batch_map(
        numbers(6),
        [&](int i) {
          const Tensor& x = inputs[static_cast<std::size_t>(i)];
          Tensor h = net.hidden(x);
          if (i % 3 == 1) {
            NoRecord paused;
            CHECK_FALSE(is_recording());
            return matmul(tanh(h), net.V);
          }
          CHECK(is_recording());
          Tensor y = tanh(h);
          if (i % 3 == 2) y = stop_gradient(y);
          CHECK(is_recording());
          return matmul(y, net.V);
        },
        options);
    return gradients_and(tape, made, net.parameters());
  };
  check_as_immediate(run);
  std::vector<Tensor> found = run({});
  // The gradients that flow: all of examples 0 and 3, and V's of 2 and 5.
  Tape tape;
  Tensor total = zeros({}, {.dtype = f64});
  for (int i : {0, 3})
    total = total + sum(square(matmul(tanh(net.hidden(inputs[static_cast<std::size_t>(i)])), net.V)));
  for (int i : {2, 5})
    total = total + sum(square(matmul(stop_gradient(tanh(net.hidden(inputs[static_cast<std::size_t>(i)]))), net.V)));
  std::vector<Tensor> expected = tape.gradient(total, net.parameters());
  expected.push_back(found.back());
  check_close(found, expected);
}

TEST_CASE("an example may differentiate on a tape of its own while another waits under NoRecord") {
  manual_seed(23);
  Net net;
  std::vector<Tensor> inputs = rows(6);
  for (bool around : {false, true}) {
    CAPTURE(around);
    auto run = [&](const BatchOptions& options) {
      std::optional<NoRecord> paused;
      if (!around) paused.emplace();
      auto f = [&](int i) {
        const Tensor& x = inputs[static_cast<std::size_t>(i)];
        if (i % 2 == 0) {
          NoRecord own;
          Tensor h = x;
          for (int step = 0; step < 4; ++step) h = sin(h);
          CHECK_FALSE(is_recording());
          return net(h);
        }
        Tensor h = x * 1;
        if (i > 2) h = tanh(h);
        Tensor g;
        {
          Tape inner;
          inner.watch(h);
          g = inner.gradient(net(h), h);
        }
        return net(sin(g));
      };
      std::vector<Tensor> made = batch_map(numbers(6), f, options);
      return std::vector<Tensor>{concat(made, 0)};
    };
    check_as_immediate([&](const BatchOptions& options) {
      if (!around) return run(options);
      Tape outer;
      Tensor all = run(options)[0];
      std::vector<Tensor> results = outer.gradient(sum(square(all)), net.parameters());
      results.push_back(all);
      return results;
    });
  }
}

TEST_CASE("autocast around a batch, and within some of its examples, gives the dtypes of single examples") {
  manual_seed(8);
  Tensor W = (randn({5, 6}) * 0.5).requires_grad(), V = (randn({6, 3}) * 0.5).requires_grad();
  std::vector<Tensor> inputs;
  for (int i = 0; i < 6; ++i) inputs.push_back(randn({1, 5}));
  auto f = [&](const Tensor& x) { return matmul(tanh(matmul(x, W)), V); };
  // Halves have eight bits, and are rounded at several places.
  constexpr double bound = 0.03;
  check_as_immediate(
      [&](const BatchOptions& options) {
        Tape tape;
        std::vector<Tensor> made;
        {
          auto scope = autocast(bf16);
          made = batch_map(inputs, f, options);
        }
        for (const Tensor& one : made) CHECK(one.dtype() == bf16);
        std::vector<Tensor> results = gradients_and(tape, made, {W, V});
        CHECK(results[0].dtype() == f32);
        return results;
      },
      bound);
  check_as_immediate(
      [&](const BatchOptions& options) {
        Tape tape;
        std::vector<Tensor> made = batch_map(
            numbers(6),
            [&](int i) {
              const Tensor& x = inputs[static_cast<std::size_t>(i)];
              Tensor before = f(x);
              CHECK(before.dtype() == f32);
              Tensor y;
              if (i % 2 == 0) {
                auto scope = autocast(bf16);
                y = f(x);
                y = y + f(x);
                CHECK(y.dtype() == bf16);
              } else {
                y = f(x) + f(x);
                CHECK(y.dtype() == f32);
              }
              CHECK(f(x).dtype() == f32);
              return to(y, f32) + before;
            },
            options);
        return gradients_and(tape, made, {W, V});
      },
      bound);
}

TEST_CASE("anomaly detection around a batch names the op, the line and the values of the example") {
  manual_seed(9);
  Net net;
  auto scope = debug::detect_anomaly();
  for (bool immediate : {true, false}) {
    CAPTURE(immediate);
    int line = 0;
    try {
      batch_map(numbers(5),
                [&](int i) {
                  Tensor x = full({1, 5}, i == 3 ? -2.0 : 2.0, {.dtype = f64});
                  x = x * ones({5}, {.dtype = f64});
                  line = __LINE__ + 1;
                  Tensor y = log(x);
                  return net(y);
                },
                {.immediate = immediate});
      FAIL();
    } catch (const AnomalyError& error) {
      CHECK(error.anomaly().op == "log");
      CHECK(error.where().line == line);
      CHECK(error.anomaly().output.shape == Shape{1, 5});
      CHECK(error.anomaly().output.nans == 5);
      REQUIRE(error.anomaly().inputs.size() == 1);
      CHECK(error.anomaly().inputs[0].statistics.max == -2);
    }
    // In the backward pass.
    Tape tape;
    Tensor w = full({1, 5}, 1.0, {.dtype = f64}).requires_grad();
    std::vector<Tensor> made = batch_map(numbers(5),
                                         [&](int i) {
                                           Tensor x = w * (i == 3 ? 0.0 : 2.0);
                                           line = __LINE__ + 1;
                                           return sqrt(x);
                                         },
                                         {.immediate = immediate});
    Tensor total = sum(stack(made));
    try {
      tape.gradient(total, w);
      FAIL();
    } catch (const AnomalyError& error) {
      CHECK(error.anomaly().gradient_of == "sqrt");
      CHECK(error.where().line == line);
    }
  }
}

TEST_CASE("anomaly detection within one example does not look at the others") {
  manual_seed(24);
  for (int watched : {1, 2}) {
    CAPTURE(watched);
    auto run = [&] {
      return batch_map(numbers(4), [&](int i) {
        Tensor x = full({1, 5}, i == 2 ? -1.0 : 1.0, {.dtype = f64}) * ones({5}, {.dtype = f64});
        if (i == watched) {
          auto scope = debug::detect_anomaly();
          return log(x) * 2;
        }
        return log(x) * 2;
      });
    };
    if (watched == 1)
      CHECK(run().size() == 4);
    else
      CHECK_THROWS_AS(run(), AnomalyError);
  }
}

TEST_CASE("a checkpoint around a batch runs its function again with the same groups, to the bit") {
  manual_seed(25);
  nn::Linear layer(48, 48), gate(48, 48);
  Tensor x = randn({7, 48}), y = randn({7, 48});
  for (bool casts : {false, true})
    for (bool watches : {false, true}) {
      CAPTURE(casts, watches);
      auto f = [&](const BatchOptions& options) {
        return [&, options](const Tensor& z) {
          return sum(stack(batch_map(
              numbers(7),
              [&](int i) {
                Tensor h = slice(z, 0, i, i + 1), constant = tanh(slice(y, 0, i, i + 1));
                // Tracked and untracked tensors run in one bucket, and views between them.
                Tensor either = i % 2 ? tanh(layer(h)) : tanh(layer(constant));
                for (int k = 0; k < 2 + i % 3; ++k) {
                  Tensor halves = reshape(either, {2, 24});
                  either = sigmoid(gate(either)) * reshape(softmax(halves), {1, 48}) + 0.5 * either;
                  if (k == 1) constant = constant * sum(halves(0));
                }
                return sum(to(either, f32)) + sum(to(constant, f32) * 0.01);
              },
              options)));
        };
      };
      std::vector<Tensor> expected, found;
      for (bool immediate : {true, false}) {
        Tape tape;
        if (watches) tape.watch(x);
        std::optional<AutocastScope> cast;
        if (casts) cast.emplace(bf16, Location::here());
        Tensor loss = checkpoint(f({.immediate = immediate}), x);
        cast.reset();
        std::vector<Tensor> sources{layer.weight, gate.weight};
        if (watches) sources = {x};  // the parameters' gradients are not asked for
        (immediate ? expected : found) = tape.gradient(loss, sources);
      }
      check_close(found, expected, casts ? 0.1 : 1e-4);
    }
}

TEST_CASE("checkpoints within examples run alike each time that one around the batch runs") {
  manual_seed(27);
  nn::Linear layer(48, 48);
  Tensor x = randn({7, 48});
  auto gradient = [&](bool immediate) {
    Tape tape;
    Tensor loss = checkpoint(
        [&, immediate](const Tensor& all) {
          return sum(stack(batch_map(numbers(7),
                                     [&](int i) {
                                       Tensor h = checkpoint([&layer](const Tensor& z) { return tanh(layer(z)); },
                                                             slice(all, 0, i, i + 1));
                                       return sum(sigmoid(layer(h)));
                                     },
                                     {.immediate = immediate})));
        },
        x);
    return std::vector<Tensor>{tape.gradient(loss, layer.weight)};
  };
  check_close(gradient(false), gradient(true), 1e-4);
}

TEST_CASE("a checkpoint around a batch with constants among its examples can be differentiated twice") {
  manual_seed(27);
  nn::Linear layer(48, 48);
  Tensor x = randn({7, 48}), y = randn({7, 48});
  std::vector<Tensor> expected, found;
  for (bool immediate : {true, false}) {
    Tape outer;
    outer.watch(x);
    Tensor g;
    {
      Tape tape;
      tape.watch(x);
      Tensor loss = checkpoint(
          [&](const Tensor& z) {
            return sum(stack(batch_map(numbers(7),
                                       [&](int i) {
                                         // Two in three do not depend on z, nor on the parameters.
                                         Tensor row = i % 3 ? sin(slice(y, 0, i, i + 1)) : sin(slice(z, 0, i, i + 1));
                                         Tensor weights = i % 3 ? stop_gradient(layer.weight) * 1 : layer.weight * 1;
                                         Tensor halves = softmax(reshape(tanh(matmul(row, weights)), {2, 24}));
                                         return sum(halves * halves) + sum(matmul(tanh(row * 2), weights));
                                       },
                                       {.immediate = immediate})));
          },
          x);
      g = tape.gradient(loss, x);
    }
    (immediate ? expected : found) = outer.gradient(sum(square(g)), std::vector<Tensor>{layer.weight, x});
  }
  check_close(found, expected, 1e-3);
}

TEST_CASE("a checkpoint around a batch that is differentiated twice runs alike each time") {
  manual_seed(26);
  Net net;
  std::vector<Tensor> inputs = rows(5);
  check_as_immediate([&](const BatchOptions& options) {
    BatchOptions inner = options;
    Tape outer;
    Tensor x = concat(inputs, 0) * 1, g;
    outer.watch(x);
    {
      Tape tape;
      tape.watch(x);
      Tensor y = checkpoint(
          [&](const Tensor& z) {
            return stack(batch_map(
                numbers(5), [&](int i) { return sum(square(net(slice(z, 0, i, i + 1)))); }, inner));
          },
          x);
      g = tape.gradient(sum(y), x);
    }
    std::vector<Tensor> results = outer.gradient(sum(square(g)), {net.W, net.V});
    results.push_back(g);
    return results;
  });
}

TEST_CASE("examples may differentiate on a persistent tape around the batch, each by itself") {
  for (bool immediate : {true, false}) {
    CAPTURE(immediate);
    Tensor W = ones({4}).requires_grad();
    Tape tape({.persistent = true});
    batch_map(numbers(3), [&](int i) { tape.backward(sum(W * double(i + 1))); }, {.immediate = immediate});
    CHECK(W.grad().to_vector<float>() == std::vector<float>{6, 6, 6, 6});
    std::vector<Tensor> made =
        batch_map(numbers(3),
                  [&](int i) {
                    Tensor y = tanh(W * double(i + 1)), g = tape.gradient(sum(y), W);
                    return tape.jacobian(y * g, W) + checkpoint([](const Tensor& z) { return z * 2; }, y);
                  },
                  {.immediate = immediate});
    for (int i = 0; i < 3; ++i) {
      double t = std::tanh(i + 1.0), g = (i + 1) * (1 - t * t);
      CHECK(made[static_cast<std::size_t>(i)](1, 1).item() == Approx(g * g + 2 * t).margin(1e-5));
      CHECK(made[static_cast<std::size_t>(i)](1, 0).item() == Approx(2 * t));
    }
  }
}

TEST_CASE("a hook on an op sees each of its calls, and may replace their gradients") {
  Tensor W = full({4}, 0.5).requires_grad();
  for (bool immediate : {true, false}) {
    CAPTURE(immediate);
    Tape tape;
    std::vector<float> seen;
    tape.hook_op("tanh", [&](const OpGradients& gradients) {
      REQUIRE(gradients.outputs[0].shape() == Shape{4});
      seen.push_back(gradients.outputs[0].to_vector<float>()[0]);
      gradients.inputs[0] = gradients.inputs[0] * 2;
    });
    std::vector<Tensor> made =
        batch_map(numbers(6), [&](int i) { return tanh(W * 1.0) * double(i); }, {.immediate = immediate});
    Tensor found = tape.gradient(sum(stack(made)), W);
    CHECK(seen == std::vector<float>{5, 4, 3, 2, 1, 0});
    double t = std::tanh(0.5);
    CHECK(found(0).item() == Approx(2 * 15 * (1 - t * t)));
  }
  // The hook ends with its tape.
  BatchReport report;
  Tape tape;
  batch_map(numbers(6), [&](int i) { return tanh(W * double(i)); }, {.report = &report});
  for (const BatchedLine& line : report.lines)
    if (line.op == "tanh") CHECK(line.grouped == 6);
}
