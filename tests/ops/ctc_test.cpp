#include <reel/reel.h>

#include <cmath>

#include "catch.h"
#include "ops/bad_input.h"
#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

// Inputs (T, N, C) without padding.
struct Example {
  Tensor logs, targets, input_lengths, target_lengths;
};

Example example() {
  manual_seed(11);
  return {log_softmax(randn({6, 2, 4}, {.dtype = f64})), tensor({{1, 1, 3}, {2, 0, 0}}), tensor({6, 5}),
          tensor({3, 1})};
}

Tensor loss_of(const Example& e, const Tensor& logs, CtcOptions options = {}) {
  return ctc_loss(logs, e.targets, e.input_lengths, e.target_lengths, options);
}

Tensor first_order(const Example& e, const Tensor& logs) {
  Tape tape;
  tape.watch(logs);
  Tensor losses = loss_of(e, logs, {.reduction = LossReduction::none});
  return tape.gradient(losses, logs, {.seed = tensor({0.5, -1.25})});
}

}  // namespace

TEST_CASE("the fused gradient of ctc_loss equals the composed one") {
  Example e = example();
  Tensor fused = first_order(e, e.logs);
  Tape outer;
  outer.watch(e.logs);
  Tensor composed = first_order(e, e.logs);
  CHECK(max(abs(fused - composed)).item() < 1e-13);
  // At each step of an example some symbol has been drawn.
  CHECK(max(abs(sum(slice(fused, 0, 0, 5), -1) + tensor({0.5, -1.25}))).item() < 1e-13);
  CHECK(array_of(select(select(fused, 0, 5), 0, 1)).values == std::vector<double>(4, 0.0));
}

TEST_CASE("ctc_loss sums over all alignments") {
  Tensor even = log(full({3, 1, 2}, 0.5, {.dtype = f64}));
  // Six of eight sequences of three symbols, a or blank, become "a": not "a-a" and not "---".
  CHECK(ctc_loss(even, tensor({{1}}), tensor({3}), tensor({1})).item() == Approx(-std::log(6.0 / 8)));
  CHECK(ctc_loss(even, tensor({{1, 1}}), tensor({3}), tensor({2}), {.reduction = LossReduction::sum}).item() ==
        Approx(-std::log(1.0 / 8)));
}

TEST_CASE("ctc_loss without an alignment is infinite and its gradient zero") {
  Tensor logs = log_softmax(ones({2, 1, 3}, {.dtype = f64}));
  Tensor targets = tensor({{1, 1}}), two = tensor({2});
  CHECK(ctc_loss(logs, targets, two, two).item() == INFINITY);
  CHECK(ctc_loss(logs, targets, two, two, {.zero_infinity = true}).item() == 0);
  for (bool recorded : {false, true})
    for (bool zero_infinity : {false, true}) {
      Tape outer;
      if (recorded) outer.watch(logs);
      Tape tape;
      tape.watch(logs);
      Tensor loss = ctc_loss(logs, targets, two, two, {.zero_infinity = zero_infinity});
      CHECK(array_of(tape.gradient(loss, logs)).values == std::vector<double>(6, 0.0));
    }
}

TEST_CASE("classes of probability zero do not spoil the gradients of ctc_loss") {
  Tensor logs = log(tensor({{{0.5, 0.5, 0.0}}, {{0.25, 0.75, 0.0}}}));
  Example e{logs, tensor({{1}}), tensor({2}), tensor({1})};
  auto gradient = [&] {
    Tape tape;
    tape.watch(logs);
    return tape.gradient(loss_of(e, logs), logs);
  };
  Tensor fused = gradient();
  CHECK(sum(fused).item() == Approx(-2));
  Tape outer;
  outer.watch(logs);
  Tensor composed = gradient();
  CHECK(max(abs(fused - composed)).item() < 1e-14);
  CHECK(all(isfinite(outer.gradient(sum(square(composed)), logs))).item() == 1);
}

TEST_CASE("ctc_loss refuses what does not fit") {
  Tensor u, logs = zeros({4, 2, 3}), targets = tensor({{1, 2}, {2, 1}}), inputs = tensor({4, 3}),
            lengths = tensor({2, 1});
  all_fail<Error>({
      Bad("ctc_loss: an operand is an undefined tensor", [&] { ctc_loss(u, targets, inputs, lengths); }),
      Bad("ctc_loss: an operand is an undefined tensor", [&] { ctc_loss(logs, u, inputs, lengths); }),
      Bad("ctc_loss: an operand is an undefined tensor", [&] { ctc_loss(logs, targets, u, lengths); }),
      Bad("ctc_loss: an operand is an undefined tensor", [&] { ctc_loss(logs, targets, inputs, u); }),
  });
  all_fail<ShapeError>({
      Bad("ctc_loss: the log-probabilities are (T, N, C), not (4, 3) f32",
          [&] {
            ctc_loss(zeros({4, 3}), targets, inputs, lengths);
          }),
      Bad("ctc_loss: input lengths (3,) are not one for each of the 2 examples of (4, 2, 3) f32",
          [&] { ctc_loss(logs, targets, arange(3), lengths); }),
      Bad("ctc_loss: target lengths () are not one for each of the 2 examples",
          [&] { ctc_loss(logs, targets, inputs, zeros({}, {.dtype = i64})); }),
      Bad("ctc_loss: targets (3, 2) i64 are neither (2, S) nor all labels in a row",
          [&] {
            ctc_loss(logs, zeros({3, 2}, {.dtype = i64}), inputs, lengths);
          }),
      Bad("ctc_loss: the target lengths do not add up to the 4 labels",
          [&] { ctc_loss(logs, ones({4}, {.dtype = i64}), inputs, lengths); }),
      Bad("ctc_loss: the target lengths do not add up to the 1 labels",
          [&] {
            ctc_loss(logs, ones({1}, {.dtype = i64}), inputs, tensor({2, -1}));
          }),
  });
  all_fail<DTypeError>({
      Bad("ctc_loss: takes a floating tensor, not (2, 2) i32", [&] { ctc_loss(targets, targets, inputs, lengths); }),
      Bad("ctc_loss: targets are class numbers of i32 or i64, not (4, 2, 3) f32",
          [&] { ctc_loss(logs, logs, inputs, lengths); }),
      Bad("ctc_loss: input lengths are i32 or i64, not (2,) f32",
          [&] { ctc_loss(logs, targets, zeros({2}), lengths); }),
      Bad("ctc_loss: target lengths are i32 or i64, not (2,) bool",
          [&] { ctc_loss(logs, targets, inputs, zeros({2}, {.dtype = boolean})); }),
  });
  all_fail<IndexError>({
      Bad("ctc_loss: the input length 5 of example 1 is not one that (4, 2, 3) f32 can have",
          [&] {
            ctc_loss(logs, targets, tensor({4, 5}), lengths);
          }),
      Bad("ctc_loss: the input length -1 of example 0",
          [&] {
            ctc_loss(logs, targets, tensor({-1, 5}), lengths);
          }),
      Bad("ctc_loss: the target length 3 of example 0 is not one that targets (2, 2) i64 can have",
          [&] {
            ctc_loss(logs, targets, inputs, tensor({3, 1}));
          }),
      Bad("ctc_loss: label 3 of example 1 is no class of (4, 2, 3) f32, or is the blank",
          [&] {
            ctc_loss(logs, tensor({{1, 2}, {3, 1}}), inputs, lengths);
          }),
      Bad("ctc_loss: label 0 of example 0 is no class",
          [&] {
            ctc_loss(logs, tensor({{1, 0}, {2, 1}}), inputs, lengths);
          }),
      Bad("ctc_loss: the blank 3 is no class of (4, 2, 3) f32",
          [&] { ctc_loss(logs, targets, inputs, lengths, {.blank = 3}); }),
      Bad("ctc_loss: the blank -1 is no class", [&] { ctc_loss(logs, targets, inputs, lengths, {.blank = -1}); }),
  });
}

}  // namespace reel_test
