#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "batching/checks.h"

// Random programs with branches that read what they have just computed: batched as one after the other.
// REEL_RANDOM_PROGRAMS=n runs n programs in place of 1,000.

namespace reel_test {

using namespace reel;

namespace {

constexpr std::int64_t width = 4;

struct Parameters {
  Tensor W = (draw({width, width}) * 0.7).requires_grad(), wide = (draw({2 * width, width}) * 0.5).requires_grad(),
         bias = draw({width}).requires_grad(), table = draw({7, width}).requires_grad(),
         gates = draw({width, 4 * width}).requires_grad(), filters = draw({2, 1, 3}).requires_grad();
  RecurrentWeights gru{draw({width, 3 * width}).requires_grad(), draw({width, 3 * width}).requires_grad(),
                       draw({4 * width}).requires_grad()};

  std::vector<Tensor> all() const { return {W, wide, bias, table, gates, filters, gru.W_x, gru.W_h, gru.bias}; }
};

/// Thrown by a program at a chosen op.
struct Stop : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One run of a random program: the steps depend on the seed, and on values where it branches. It holds matrices of the
/// example's rows, vectors and numbers, all bounded.
class Run {
 public:
  /// `stops_at`: the step at which it throws; −1: none.
  Run(const Parameters& parameters, const Tensor& x, std::uint64_t seed, int stops_at)
      : p_(parameters), random_(seed), stops_at_(stops_at), matrices_{x}, vectors_{tanh(sum(x, {0}))} {}

  Tensor result() {
    std::size_t steps = 3 + random_() % 12;
    for (std::size_t i = 0; i < steps; ++i) step(random_());
    Tensor total = sum(tanh(vectors_.back()));
    for (const Tensor& m : matrices_) total = total + mean(m);
    return total;
  }
  int steps() const { return step_; }

 private:
  void step(std::uint64_t choice) {
    if (step_++ == stops_at_) throw Stop("stopped");
    std::uint64_t kind = choice % 25;
    const Tensor m = matrix(choice >> 8), n = matrix(choice >> 16), v = vector(choice >> 24);
    switch (kind) {
      case 0: return add(tanh(matmul(m, p_.W)));
      case 1: return add(tanh(addmm(p_.bias, m, p_.W)));
      case 2: return add(sigmoid(m) * tanh(n));
      case 3: return add(tanh(m + v));
      case 4: return add(softmax(m * n));
      case 5: return add(tanh(matmul(concat({m, n}, 1), p_.wide)));
      case 6: {
        std::vector<Tensor> halves = chunk(m, 2, 1);
        return add(concat({halves[1], tanh(halves[0])}, 1));
      }
      case 7: return vectors_.push_back(tanh(sum(m, {0})));
      case 8: return vectors_.push_back(take(p_.table, argmax(v), 0));
      case 9: return vectors_.push_back(reshape(slice(m, 0, 0, 1), {width}));
      case 10: return add(tanh(matmul(matmul(m, transpose(n)), n)));
      case 11: return branch(choice, m, v);
      case 12: return loop(m);
      case 13: return add(tree_lstm_cell(matmul(m, p_.gates), {n_like(n, m)}).h);
      case 14: {
        // Rows of the result: those of several examples may be equally far apart.
        std::vector<Tensor> lines = split(tree_lstm_cell(slice(matmul(m, p_.gates), 1, 0, 3 * width)).c, 1);
        return add(lines[choice >> 16 & 1 ? 0 : lines.size() - 1] + 0 * m);
      }
      case 15: return add(layer_norm(m, {width}, p_.bias, p_.bias));
      case 16: {
        Tensor classes = argmax(stop_gradient(m), 1);
        return vectors_.push_back(v * cross_entropy(m, classes, {.reduction = LossReduction::sum}) * 0.1);
      }
      case 17: return add(tanh(cumsum(m, static_cast<int>(choice >> 16 & 1))));
      case 18: return add(sort(m, 1).values);
      case 19: return add(gather(m, 1, argsort(stop_gradient(n_like(n, m)), 1)));
      case 20: return add(gru_cell(m, n_like(n, m), p_.gru));
      case 21: return add(tanh(sum(conv1d(reshape(m, {-1, 1, width}), p_.filters, {.padding = 1}), {1})));
      case 22: return add(scaled_dot_product_attention(m, n, n));
      case 23: return vectors_.push_back(tanh(logsumexp(m, {0}) * reel::std(v)));
      default: return add(where(m > 0, m, 0.1 * n));
    }
  }
  void branch(std::uint64_t choice, const Tensor& m, const Tensor& v) {
    if (sum(v).item() > 0) return add(tanh(matmul(m, p_.W) - v));
    if (choice >> 32 & 1) return add(exp(-square(m)));
    vectors_.push_back(v * 0.5);
  }
  // n with the rows of m: its first one, repeated.
  static Tensor n_like(const Tensor& n, const Tensor& m) {
    return n.size(0) == m.size(0) ? n : slice(n, 0, 0, 1) + 0 * m;
  }
  // A different number of times for each example.
  void loop(const Tensor& m) {
    Tensor state = m;
    for (int i = 0; i < 5 && mean(square(state)).item() > 0.1; ++i) state = tanh(matmul(state, p_.W) * 0.6);
    add(state);
  }
  void add(Tensor m) { matrices_.push_back(std::move(m)); }
  const Tensor& matrix(std::uint64_t choice) const { return matrices_[choice % matrices_.size()]; }
  const Tensor& vector(std::uint64_t choice) const { return vectors_[choice % vectors_.size()]; }

  const Parameters& p_;
  std::mt19937_64 random_;
  int stops_at_, step_ = 0;
  std::vector<Tensor> matrices_, vectors_;
};

struct Program {
  std::vector<Tensor> inputs;        // of each example
  std::vector<std::uint64_t> seeds;  // of its steps; several examples have one
};

Program make_program(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Program made;
  std::size_t examples = 2 + random() % 6, kinds = 1 + random() % 2;
  std::int64_t rows = random() % 2 ? 0 : 1 + static_cast<std::int64_t>(random() % 3);  // 0: each its own
  for (std::size_t i = 0; i < examples; ++i) {
    made.inputs.push_back(draw({rows ? rows : 1 + static_cast<std::int64_t>(random() % 3), width}));
    made.seeds.push_back(seed * 10 + random() % kinds);
  }
  return made;
}

std::vector<Tensor> results(const Program& program, const Parameters& parameters, const BatchOptions& options,
                            bool second_order) {
  std::vector<Tensor> sources = parameters.all();
  sources.insert(sources.end(), program.inputs.begin(), program.inputs.end());
  std::vector<std::size_t> examples(program.inputs.size());
  for (std::size_t i = 0; i < examples.size(); ++i) examples[i] = i;
  auto values = [&] {
    return stack(batch_map(
        examples, [&](std::size_t i) { return Run(parameters, program.inputs[i], program.seeds[i], -1).result(); },
        options));
  };
  auto watch = [&](Tape& tape) {
    for (const Tensor& x : program.inputs) tape.watch(x);
  };
  Tape tape;
  watch(tape);
  if (!second_order) {
    Tensor y = values();
    std::vector<Tensor> found = tape.gradient(sum(y), sources, {.unconnected = Unconnected::zeros});
    found.push_back(y);
    return found;
  }
  std::vector<Tensor> first;
  {
    Tape inner;
    watch(inner);
    first = inner.gradient(sum(values()), sources, {.unconnected = Unconnected::zeros});
  }
  Tensor total = zeros({}, {.dtype = f64});
  for (const Tensor& source : sources) total = total + 0 * sum(source);
  for (const Tensor& gradient : first) total = total + sum(square(gradient));
  return tape.gradient(total, sources, {.unconnected = Unconnected::zeros});
}

std::uint64_t program_count() {
  const char* given = std::getenv("REEL_RANDOM_PROGRAMS");
  return given ? std::strtoull(given, nullptr, 10) : 1000;
}

}  // namespace

TEST_CASE("random programs with branches by value give in a batch what they give alone, with gradients") {
  for (std::uint64_t seed = 1; seed <= program_count(); ++seed) {
    CAPTURE(seed);
    manual_seed(seed);
    Parameters parameters;
    Program program = make_program(seed);
    bool second_order = seed % 4 == 0;
    auto in_flight = static_cast<std::int64_t>(1 + seed % 7);
    check_close(results(program, parameters, {.in_flight = in_flight}, second_order),
                results(program, parameters, {.immediate = true}, second_order), 1e-9);
  }
}

TEST_CASE("an exception at any step of a random program ends all examples and leaves no tensor behind") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    manual_seed(seed);
    Parameters parameters;
    Program program = make_program(seed);
    std::vector<std::size_t> examples(program.inputs.size());
    for (std::size_t i = 0; i < examples.size(); ++i) examples[i] = i;
    std::size_t stopped = program.inputs.size() / 2;
    Run whole(parameters, program.inputs[stopped], program.seeds[stopped], -1);
    static_cast<void>(whole.result());
    for (int at = 0; at < whole.steps(); ++at) {
      CAPTURE(seed, at);
      std::int64_t before = memory_statistics().live_tensors;
      {
        Tape tape;
        CHECK_THROWS_AS(
            batch_map(examples,
                      [&](std::size_t i) {
                        return Run(parameters, program.inputs[i], program.seeds[i], i == stopped ? at : -1).result();
                      }),
            Stop);
      }
      CHECK(memory_statistics().live_tensors == before);
    }
  }
}

}  // namespace reel_test
