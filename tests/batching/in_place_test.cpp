#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "batching/checks.h"

// Examples that overwrite tensors of their own, alone and through views.

namespace reel_test {

using namespace reel;

namespace {

Tensor row(int i) { return full({2, 3}, 0.1 * (i + 1), {.dtype = f64}); }

/// One way to overwrite a tensor of shape (2, 3) with what may be tracked.
struct Overwrite {
  const char* name;
  std::function<void(Tensor& x, const Tensor& y)> run;
};

const std::vector<Overwrite>& overwrites() {
  static const std::vector<Overwrite> all{
      {"add_", [](Tensor& x, const Tensor& y) { x += y; }},
      {"sub_", [](Tensor& x, const Tensor& y) { x -= y; }},
      {"mul_", [](Tensor& x, const Tensor& y) { x *= y; }},
      {"div_", [](Tensor& x, const Tensor& y) { x /= y + 3; }},
      {"copy_", [](Tensor& x, const Tensor& y) { copy_(x, y * 2); }},
      {"fill_", [](Tensor& x, const Tensor& y) { fill_(x, sum(y)); }},
      {"zero_", [](Tensor& x, const Tensor&) { zero_(x); }},
      {"clamp_", [](Tensor& x, const Tensor& y) { clamp_(x, mean(y) - 0.3, 0.4); }},
      {"masked_fill_", [](Tensor& x, const Tensor& y) { masked_fill_(x, x > 0.2, mean(y)); }},
      {"assigned row", [](Tensor& x, const Tensor& y) { x(1) = y(0) * 2; }},
      {"assigned column", [](Tensor& x, const Tensor& y) { x(slice(), 1) = y(slice(), 2) + 1; }},
      {"added to a row", [](Tensor& x, const Tensor& y) { x(0) += y(1); }},
      {"assigned by mask", [](Tensor& x, const Tensor& y) { x(x > 0.25) = mean(y); }},
  };
  return all;
}

}  // namespace

TEST_CASE("an example may overwrite results again and again, as it may alone") {
  for (const Overwrite& overwrite : overwrites())
    for (bool records : {true, false}) {
      CAPTURE(overwrite.name, records);
      Tensor W = draw({2, 3}).requires_grad();
      check_as_immediate([&](const BatchOptions& options) {
        std::optional<NoRecord> paused;
        if (!records) paused.emplace();
        auto f = [&](int i) {
          // Overwrites constants, tracked values, and tensors made by the example.
          Tensor constant = tanh(row(i)), tracked = constant + W * 2, made = zeros({2, 3}, {.dtype = f64});
          for (int k = 0; k < 3; ++k) {
            overwrite.run(constant, W * (0.5 + i));
            overwrite.run(tracked, W * (0.2 + k));
            overwrite.run(made, W + i);
            constant = constant + made * 0.1;
          }
          return constant + tracked * 2 + made + W * 0.1;
        };
        if (!records) return batch_map(numbers(5), f, options);
        Tape tape;
        std::vector<Tensor> made = batch_map(numbers(5), f, options);
        std::vector<Tensor> results{tape.gradient(sum(square(stack(made))), W)};
        results.insert(results.end(), made.begin(), made.end());
        return results;
      });
    }
}

TEST_CASE("an example's loss may be accumulated in place") {
  Tensor W = ones({4}).requires_grad();
  for (bool immediate : {true, false}) {
    Tape tape;
    std::vector<Tensor> losses = batch_map(numbers(3),
                                           [&](int i) {
                                             Tensor loss = zeros({});
                                             for (int t = 0; t < 3; ++t) loss += sum(W * double(i + t));
                                             return loss;
                                           },
                                           {.immediate = immediate});
    CHECK(sum(stack(losses)).item() == 72);
    CHECK(max(tape.gradient(sum(stack(losses)), W)).item() == 18);
  }
}

TEST_CASE("views of an example's result see what is written to it, and it sees what is written to them") {
  for (bool records : {true, false}) {
    CAPTURE(records);
    Tensor W = draw({2, 3}).requires_grad();
    // Views of shape (2, 3): views of views, strided ones, handles; `written` is the index of the one written to.
    for (int written = 0; written < 6; ++written) {
      CAPTURE(written);
      check_as_immediate([&](const BatchOptions& options) {
        Tape tape;
        std::optional<NoRecord> paused;
        if (!records) paused.emplace();
        std::vector<Tensor> made = batch_map(
            numbers(5),
            [&](int i) {
              Tensor x = tanh(row(i) * row(1)), other = x;
              Tensor first = x(0), flipped = transpose(x), flat = reshape(x, {6}), column = flipped(1),
                     last = slice(flat, 0, 4, 6);
              Tensor* all[] = {&x, &first, &flipped, &flat, &column, &last};
              Tensor before = x * 1;
              *all[written] += 2;
              *all[written] *= i + 1;
              Tensor sums = sum(other) + 10 * sum(first);
              if (written % 2 == 0) column -= 1;
              return reshape(x, {6}) + sums + flat + reshape(transpose(flipped), {6}) * sum(column) + sum(last) +
                     reshape(before, {6});
            },
            options);
        return made;
      });
    }
  }
}

TEST_CASE("a view of tracked values that were overwritten is refused in an example as it is alone") {
  Tensor W = ones({3}).requires_grad();
  for (bool immediate : {true, false}) {
    Tape tape;
    std::vector<std::string> texts = batch_map(numbers(3),
                                               [&](int i) {
                                                 Tensor x = W * double(i + 1), part = slice(x, 0, 0, 2);
                                                 x += 1;
                                                 x += W;
                                                 return error_of<TapeError>([&] { static_cast<void>(part * 2); });
                                               },
                                               {.immediate = immediate});
    for (const std::string& text : texts) CHECK_THAT(text, contains("was overwritten at "));
  }
}

TEST_CASE("values that a gradient needs and an example overwrites are refused, or are those of before") {
  Tensor W = full({3}, 0.5, {.dtype = f64}).requires_grad();
  Tape tape;
  // Each example overwrites its operand of a product; the products of the others keep theirs.
  std::vector<Tensor> made = batch_map(numbers(4), [&](int i) {
    Tensor x = tanh(row(i)), y = x * W;
    if (i == 2) x += 100;
    return sum(y);
  });
  Tensor found = tape.gradient(sum(stack(made)), W);
  Tensor expected = zeros({3}, {.dtype = f64});
  for (int i = 0; i < 4; ++i) expected = expected + sum(tanh(row(i)), {0});
  check_close({found}, {expected});
}

TEST_CASE("a result may be overwritten after its batch, with no effect on the others") {
  Tensor W = ones({3}).requires_grad();
  Tape tape;
  std::vector<Tensor> made = batch_map(numbers(4), [&](int i) { return exp(W * double(i)); });
  Tensor kept = made[1] * 1;
  made[1] += 5;
  CHECK(made[0].to_vector<float>()[0] == 1);
  CHECK(made[1].to_vector<float>()[0] == kept.to_vector<float>()[0] + 5);
  CHECK(tape.gradient(sum(made[1]) + sum(made[3]) + sum(made[0]), W).defined());
  std::vector<Tensor> constants = batch_map(numbers(4), [&](int i) { return exp(full({2}, double(i))); });
  constants[2].write<float>()[0] = 7;
  CHECK(constants[2].to_vector<float>()[0] == 7);
  CHECK(constants[1].to_vector<float>()[0] == Approx(std::exp(1.0)));
}

TEST_CASE("random in-place programs on views give in a batch what they give alone") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    manual_seed(seed);
    Tensor W = draw({2, 3}).requires_grad();
    bool records = seed % 3 != 0;
    auto run = [&](const BatchOptions& options, Tensor& gradient) {
      Tape tape;
      std::optional<NoRecord> paused;
      if (!records) paused.emplace();
      auto f = [&](int i) {
        std::mt19937_64 random(seed * 7 + i % 2);
        std::vector<Tensor> live{tanh(row(i)), zeros({2, 3}, {.dtype = f64})};
        if (records) live.push_back(sigmoid(W * 0.1 * (i + 1)));
        Tensor total = zeros({}, {.dtype = f64});
        int refused = 0;
        for (int k = 0; k < 25; ++k) try {
            std::uint64_t choice = random();
            Tensor& x = live[(choice >> 8) % live.size()];
            switch (choice % 8) {
              case 0: live.push_back(transpose(x)); break;
              case 1: live.push_back(slice(x, 0, 0, 1)); break;
              case 2: live.push_back(tanh(x)); break;
              case 3: live.push_back(reshape(x, {-1, 1})); break;
              case 4: x += 0.3; break;
              case 5: x *= sum(live[(choice >> 16) % live.size()]) * 0.1; break;
              case 6: x(0) = mean(live[(choice >> 16) % live.size()]); break;
              default: total += sum(x) * 0.1; break;
            }
          } catch (const TapeError&) {
            ++refused;
          } catch (const ShapeError&) {
            ++refused;
          }
        for (const Tensor& x : live) try {
            total += sum(x) * 0.01;
          } catch (const TapeError&) {
            ++refused;
          }
        return total + refused;
      };
      std::vector<Tensor> made = batch_map(numbers(5), f, options);
      try {
        gradient = records ? tape.gradient(sum(stack(made)), W, {.unconnected = Unconnected::zeros}) : Tensor();
      } catch (const TapeError&) {
      }
      return made;
    };
    Tensor found, expected;
    check_close(run({.in_flight = static_cast<std::int64_t>(2 + seed % 5)}, found), run({.immediate = true}, expected),
                1e-9);
    // Values that were overwritten after a gradient's op had read them are kept, at times, where an op has joined them.
    if (expected.defined()) check_close({found}, {expected}, 1e-9);
  }
}

}  // namespace reel_test
