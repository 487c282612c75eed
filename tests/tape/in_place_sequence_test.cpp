#include <reel/reel.h>

#include <limits>
#include <random>

#include "catch.h"

// Tests in-place writes whose tape has finished when another one follows.

using namespace reel;
using namespace reel_test;

namespace {

using Doubles = std::vector<double>;

std::string location(int line) { return std::string("in_place_sequence_test.cpp:") + std::to_string(line); }

Tensor vector(std::initializer_list<double> values) { return tensor(values); }
Doubles values(const Tensor& x) { return x.to_vector<double>(); }

}  // namespace

TEST_CASE("when the tape has finished, what it wrote can be used through no tensor but as a plain value") {
  Tensor h = vector({1, 2}).requires_grad(), out = zeros({2}, {.dtype = f64}), part = slice(out, 0, 0, 2);
  int made_line = __LINE__ - 1, write_line = 0;
  {
    Tape tape;
    write_line = __LINE__ + 1;
    copy_(part, h);
    CHECK_THROWS_AS(out * h, TapeError);
  }
  CHECK(values(out * h) == Doubles{1, 4});
  Tape tape;
  int use_line = 0;
  std::string text = error_of<TapeError>([&] {
    use_line = __LINE__ + 1;
    out* h;
  });
  CHECK_THAT(text, contains("mul: operand (2,) f64, made at"));
  CHECK_THAT(text, contains("shares its elements with a tensor of a tape that has finished"));
  for (int line : {made_line, write_line, use_line}) CHECK_THAT(text, contains(location(line)));
  CHECK_THROWS_AS(out(0) = 1.0, TapeError);
  CHECK_THROWS_AS(slice(out, 0, 0, 1), TapeError);
  CHECK_THAT(error_of<TapeError>([&] { part* h; }), contains("has finished"));
  CHECK_THAT(error_of<TapeError>([&] { add_(part, h); }), contains("has finished"));
  // Cut off it carries the values on; watched it begins anew.
  CHECK(values(tape.gradient(sum(stop_gradient(out) * h), h)) == Doubles{1, 2});
  tape.watch(out);
  CHECK(values(tape.gradient(sum(out * h), out)) == Doubles{1, 2});
  // A whole overwrite needs nothing of the finished tape.
  copy_(part, h * 3);
  CHECK(values(tape.gradient(sum(part), h)) == Doubles{3, 3});
}

TEST_CASE("a tensor that is overwritten as a whole between two tapes is a constant under the second") {
  Tensor h = vector({1, 2}).requires_grad(), out = zeros({2}, {.dtype = f64}), part = slice(out, 0, 0, 2);
  for (int step = 0; step < 2; ++step) {
    {
      Tape tape;
      copy_(part, h * 2);
    }
    if (step == 0)
      zero_(out);
    else
      copy_(out, vector({0, 0}));
    Tape tape;
    CHECK(values(tape.gradient(sum((out + 1) * h), h)) == Doubles{1, 1});
    CHECK_THROWS_AS(part * h, TapeError);
  }
}

TEST_CASE("random programs that write through views give right gradients on two tapes in sequence, or an error") {
  constexpr int programs = 400, steps = 14, size = 4;
  std::mt19937 choose(5);
  auto pick = [&](std::size_t count) { return choose() % count; };
  // The elements of two storages, and d value / d w, computed by hand.
  struct Dual {
    Doubles value, slope;
  };
  int refused = 0, right = 0;
  for (int program = 0; program < programs; ++program) {
    Tensor w = vector({0.5, -1, 2, 3}).requires_grad();
    const Doubles weight = values(w);
    std::vector<Tensor> handles{vector({1, 2, 3, 4}), vector({5, 6, 7, 8})};
    const void* first = handles[0].body().storage;
    Dual memory[2] = {{values(handles[0]), Doubles(size)}, {values(handles[1]), Doubles(size)}};
    auto held_by = [&](const Tensor& x) -> Dual& { return memory[x.body().storage == first ? 0 : 1]; };
    for (int i = 0; i < 3; ++i) handles.push_back(reshape(handles[pick(handles.size())], {size}));
    for (int number = 0; number < 2; ++number) {
      // Values tracked by the previous tape have no known derivative, so their use must be refused.
      for (Dual& dual : memory)
        for (double& slope : dual.slope)
          if (slope != 0) slope = std::numeric_limits<double>::quiet_NaN();
      Tape tape({.persistent = true});
      for (int step = 0; step < steps; ++step) {
        Tensor& x = handles[pick(handles.size())];
        const Tensor& y = handles[pick(handles.size())];
        Dual& to = held_by(x);
        const Dual from = held_by(y);
        std::size_t kind = pick(6);
        try {
          switch (kind) {
            case 0: zero_(x); break;
            case 1: copy_(x, w); break;
            case 2: add_(x, y); break;
            case 3: copy_(x, y * w); break;
            case 4: mul_(x, 2); break;
            default: x = reshape(y, {size}); break;
          }
        } catch (const TapeError&) {
          ++refused;
          continue;
        }
        for (int i = 0; i < size; ++i) {
          double &value = to.value[i], &slope = to.slope[i];
          switch (kind) {
            case 0: value = slope = 0; break;
            case 1: value = weight[i], slope = 1; break;
            case 2: value += from.value[i], slope += from.slope[i]; break;
            case 3: value = from.value[i] * weight[i], slope = from.slope[i] * weight[i] + from.value[i]; break;
            case 4: value *= 2, slope *= 2; break;
            default: break;
          }
        }
      }
      for (const Tensor& handle : handles) {
        CHECK(values(handle) == held_by(handle).value);
        try {
          Tensor gradient = tape.gradient(sum(handle * 1 + w * 0), w);
          CHECK(values(gradient) == held_by(handle).slope);
          ++right;
        } catch (const TapeError&) {
          ++refused;
        }
      }
    }
  }
  CHECK(right > programs);
  CHECK(refused > programs);
}

TEST_CASE("a buffer serves one step after another once it is cut off or overwritten") {
  Tensor w = vector({2}).requires_grad(), out = zeros({3}, {.dtype = f64});
  Tape tape;
  for (int step = 0; step < 3; ++step) {
    zero_(out);
    for (int t = 0; t < 3; ++t) out(slice(t, t + 1)) = w * t;
    w.set_grad({});
    tape.backward(sum(out));
    CHECK(w.grad().item() == 3);
  }
  CHECK_THAT(error_of<TapeError>([&] { out(0) = 1.0; }), contains("has finished"));
}
