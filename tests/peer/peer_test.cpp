#include <torch/torch.h>

#include <reel/reel.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>

#include "catch.h"

namespace {

using Shapes = std::vector<reel::Shape>;
using ReelFunction = std::function<reel::Tensor(const std::vector<reel::Tensor>&)>;
using TorchFunction = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// What a case draws its shapes from.
struct Draw {
  std::mt19937_64& engine;
  std::int64_t size(std::int64_t low = 1, std::int64_t high = 40) const {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine);
  }
};

struct Case {
  const char* name;
  std::function<Shapes(Draw)> shapes;
  double low, high;  // range of the inputs' elements
  ReelFunction ours;
  TorchFunction theirs;
  // Terms of either sign are added up: the condition is that of the sum of their magnitudes.
  bool sums = false;
};

at::Tensor from_reel(const reel::Tensor& x) {
  reel::Shape shape = x.shape();
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  auto options = at::TensorOptions().dtype(x.dtype() == reel::f64 ? at::kDouble : at::kFloat);
  at::Tensor made = at::empty(sizes, options);
  reel::Tensor packed = reel::contiguous(x);
  std::memcpy(made.data_ptr(), packed.body().data, static_cast<std::size_t>(x.numel()) * reel::size_of(x.dtype()));
  return made;
}

// The result, then the gradient of each input under a fixed seed.
std::vector<at::Tensor> run_theirs(const TorchFunction& f, const std::vector<reel::Tensor>& inputs, at::ScalarType type,
                                   const reel::Tensor& seed) {
  std::vector<at::Tensor> leaves;
  for (const reel::Tensor& input : inputs) leaves.push_back(from_reel(input).to(type).requires_grad_(true));
  at::Tensor y = f(leaves);
  std::vector<at::Tensor> results = torch::autograd::grad({y}, leaves, {from_reel(seed).to(type).reshape(y.sizes())});
  results.insert(results.begin(), y.detach());
  return results;
}

std::vector<at::Tensor> run_ours(const ReelFunction& f, const std::vector<reel::Tensor>& inputs, reel::Tensor& seed) {
  reel::Tape tape;
  for (const reel::Tensor& input : inputs) tape.watch(input);
  reel::Tensor y = f(inputs);
  seed = reel::randn(y.shape());
  std::vector<at::Tensor> results{from_reel(reel::stop_gradient(y))};
  for (const reel::Tensor& gradient : tape.gradient(y, inputs, {.seed = seed})) results.push_back(from_reel(gradient));
  return results;
}

double largest(const at::Tensor& x) { return x.numel() == 0 ? 0 : x.abs().max().item<double>(); }

// The same shapes each time, unless REEL_SEED asks for others.
std::uint64_t chosen_seed() {
  if (const char* given = std::getenv("REEL_SEED")) return std::strtoull(given, nullptr, 10);
  return 1;
}

Shapes one(Draw d) { return {{d.size(), d.size()}}; }
Shapes two(Draw d) {
  reel::Shape shape{d.size(), d.size()};
  return {shape, shape};
}
Shapes broadcast_pair(Draw d) { return {{d.size(), 1, d.size()}, {d.size(), 1}}; }

const std::vector<Case>& cases() {
  using T = const std::vector<reel::Tensor>&;
  using A = const std::vector<at::Tensor>&;
  static const std::vector<Case> all{
      {"add", two, -3, 3, [](T x) { return x[0] + x[1]; }, [](A x) { return x[0] + x[1]; }},
      {"sub, broadcast", broadcast_pair, -3, 3, [](T x) { return x[0] - x[1]; }, [](A x) { return x[0] - x[1]; }, true},
      {"mul, broadcast", broadcast_pair, -3, 3, [](T x) { return x[0] * x[1]; }, [](A x) { return x[0] * x[1]; }, true},
      {"div", two, 0.5, 3, [](T x) { return x[0] / x[1]; }, [](A x) { return x[0] / x[1]; }},
      {"pow", two, 0.5, 3, [](T x) { return reel::pow(x[0], x[1]); }, [](A x) { return at::pow(x[0], x[1]); }},
      {"neg", one, -3, 3, [](T x) { return -x[0]; }, [](A x) { return -x[0]; }},
      {"exp", one, -5, 5, [](T x) { return reel::exp(x[0]); }, [](A x) { return at::exp(x[0]); }},
      {"log", one, 0.01, 5, [](T x) { return reel::log(x[0]); }, [](A x) { return at::log(x[0]); }},
      {"sqrt", one, 0.01, 5, [](T x) { return reel::sqrt(x[0]); }, [](A x) { return at::sqrt(x[0]); }},
      {"square", one, -5, 5, [](T x) { return reel::square(x[0]); }, [](A x) { return at::square(x[0]); }},
      {"tanh", one, -5, 5, [](T x) { return reel::tanh(x[0]); }, [](A x) { return at::tanh(x[0]); }},
      {"sigmoid", one, -8, 8, [](T x) { return reel::sigmoid(x[0]); }, [](A x) { return at::sigmoid(x[0]); }},
      {"relu", one, -3, 3, [](T x) { return reel::relu(x[0]); }, [](A x) { return at::relu(x[0]); }},
      {"where", two, -3, 3, [](T x) { return reel::where(x[0] > x[1], x[0], x[1]); },
       [](A x) { return at::where(x[0] > x[1], x[0], x[1]); }},
      {"sum over axis 0", one, -3, 3, [](T x) { return reel::sum(x[0], {0}); }, [](A x) { return x[0].sum(0); }, true},
      {"sum of all", one, -3, 3, [](T x) { return reel::sum(x[0]); }, [](A x) { return x[0].sum(); }, true},
      {"mean over axis 1", one, -3, 3, [](T x) { return reel::mean(x[0], {1}); }, [](A x) { return x[0].mean(1); },
       true},
      {"max over axis 1", one, -3, 3, [](T x) { return reel::max(x[0], {1}); }, [](A x) { return at::amax(x[0], 1); }},
      {"matmul",
       [](Draw d) {
         std::int64_t k = d.size(1, 200);
         return Shapes{{d.size(1, 90), k}, {k, d.size(1, 90)}};
       },
       -1, 1, [](T x) { return reel::matmul(x[0], x[1]); }, [](A x) { return at::matmul(x[0], x[1]); }, true},
      {"matmul, transposed operands",
       [](Draw d) {
         std::int64_t k = d.size();
         return Shapes{{k, d.size()}, {d.size(), k}};
       },
       -1, 1, [](T x) { return reel::matmul(reel::transpose(x[0]), reel::transpose(x[1])); },
       [](A x) { return at::matmul(x[0].t(), x[1].t()); }, true},
      {"matmul, broadcast batch",
       [](Draw d) {
         std::int64_t k = d.size();
         return Shapes{{d.size(1, 4), 1, d.size(), k}, {d.size(1, 4), k, d.size()}};
       },
       -1, 1, [](T x) { return reel::matmul(x[0], x[1]); }, [](A x) { return at::matmul(x[0], x[1]); }, true},
      {"concat and slice", two, -3, 3,
       [](T x) {
         return reel::slice(reel::concat({x[0], x[1]}, 1), 1, 0, 99, 2);
       },
       [](A x) {
         return at::cat({x[0], x[1]}, 1).slice(1, 0, 99, 2);
       }},
      {"stack and transpose", two, -3, 3,
       [](T x) {
         return reel::transpose(reel::stack({x[0], x[1]}, 1), 0, 2);
       },
       [](A x) {
         return at::stack({x[0], x[1]}, 1).transpose(0, 2);
       }},
      {"softmax over axis 0", one, -5, 5, [](T x) { return reel::softmax(x[0], 0); },
       [](A x) { return at::softmax(x[0], 0); }, true},
      {"log_softmax over axis 1", one, -5, 5, [](T x) { return reel::log_softmax(x[0], 1); },
       [](A x) { return at::log_softmax(x[0], 1); }, true},
      {"cross_entropy", one, -5, 5,
       [](T x) {
         reel::Tensor targets = reel::zeros({x[0].size(0)}, {.dtype = reel::i64});
         return reel::cross_entropy(x[0], targets);
       },
       [](A x) { return at::cross_entropy_loss(x[0], at::zeros({x[0].size(0)}, at::kLong)); }},
      {"embedding", one, -5, 5,
       [](T x) {
         return reel::embedding(x[0], reel::tensor({0L, x[0].size(0) - 1, 0L}));
       },
       [](A x) {
         return at::embedding(x[0], at::tensor({std::int64_t{0}, x[0].size(0) - 1, std::int64_t{0}}));
       }},
      {"gather", one, -5, 5,
       [](T x) {
         return reel::gather(x[0], 1, reel::zeros({x[0].size(0), 3}, {.dtype = reel::i64}));
       },
       [](A x) {
         return at::gather(x[0], 1, at::zeros({x[0].size(0), 3}, at::kLong));
       }},
  };
  return all;
}

}  // namespace

TEST_CASE("ops and their gradients are as accurate as libtorch's on random shapes") {
  std::uint64_t seed = chosen_seed();
  std::mt19937_64 engine(seed);
  reel::manual_seed(seed);
  constexpr double ulp = 1.1920929e-7;
  for (const Case& one : cases()) {
    for (int trial = 0; trial < 10; ++trial) {
      std::vector<reel::Tensor> inputs;
      for (const reel::Shape& shape : one.shapes(Draw{engine}))
        inputs.push_back(reel::rand(shape) * (one.high - one.low) + one.low);
      reel::Tensor weights;
      std::vector<at::Tensor> ours = run_ours(one.ours, inputs, weights);
      std::vector<at::Tensor> theirs = run_theirs(one.theirs, inputs, at::kFloat, weights);
      std::vector<at::Tensor> exact = run_theirs(one.theirs, inputs, at::kDouble, weights);
      std::vector<at::Tensor> magnitudes = exact;
      if (one.sums) {
        std::vector<reel::Tensor> positive;
        for (const reel::Tensor& input : inputs) positive.push_back(reel::sqrt(reel::square(input)));
        magnitudes = run_theirs(one.theirs, positive, at::kDouble, reel::sqrt(reel::square(weights)));
      }
      for (std::size_t i = 0; i < ours.size(); ++i) {
        INFO("REEL_SEED=" << seed << ", " << one.name << ", trial " << trial << ", "
                          << (i == 0 ? "result" : "gradient of input " + std::to_string(i - 1)) << ", first input "
                          << to_string(inputs[0].shape()));
        REQUIRE(ours[i].sizes() == exact[i].sizes());
        // A gradient Σ d y with Σ y = 1 adds terms up to the largest |d|.
        double magnitude = std::max(largest(magnitudes[i]), one.sums && i > 0 ? largest(from_reel(weights)) : 0.0);
        double our_error = largest(ours[i].to(at::kDouble) - exact[i]);
        double their_error = largest(theirs[i].to(at::kDouble) - exact[i]);
        CHECK(our_error <= std::max(4 * ulp * magnitude, 2 * their_error));
      }
    }
  }
}
