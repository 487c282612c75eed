#include <reel/batching.h>
#include <reel/reel.h>

#include <algorithm>
#include <vector>

#include "batching/joined_parts.h"
#include "catch.h"
#include "checks.h"
#include "core/context.h"

// Operands that groups join again and again: the states that an attention reads at each of its steps.

using namespace reel;
using detail::JoinedParts;
using namespace reel_test;

namespace {

std::vector<const Tensor*> pointers(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> made;
  for (const Tensor& one : tensors) made.push_back(&one);
  return made;
}

// Two tensors of 2048 elements, joined.
struct Pair {
  JoinedParts before;
  std::vector<Tensor> parts{draw({8, 256}), draw({8, 256})};
  Tensor whole = stack(parts);

  void add() { before.add(detail::context(), pointers(parts), whole); }
  bool is_found() const {
    Tensor found = before.find(detail::context(), pointers(parts), {2, 8, 256});
    return found.defined() && found.is(whole);
  }
};

}  // namespace

TEST_CASE("parts that were joined are found while they are what they were") {
  manual_seed(5);
  Pair pair;
  CHECK(!pair.is_found());
  pair.add();
  CHECK(pair.is_found());
  detail::Context& context = detail::context();
  CHECK(!pair.before.find(context, pointers(pair.parts), {16, 256}).defined());
  CHECK(!pair.before.find(context, pointers({pair.parts[1], pair.parts[0]}), {2, 8, 256}).defined());
  CHECK(!pair.before.find(context, pointers({pair.parts[0], pair.parts[1], pair.parts[1]}), {3, 8, 256}).defined());
}

TEST_CASE("parts that were joined while nothing was recorded are joined anew where something is") {
  manual_seed(5);
  Pair pair;
  pair.add();
  Tape tape;
  CHECK(!pair.is_found());
  pair.add();
  CHECK(pair.is_found());
  {
    NoRecord paused;
    CHECK(!pair.is_found());
    pair.add();
    CHECK(pair.is_found());
  }
  CHECK(pair.is_found());
}

TEST_CASE("parts that were overwritten are joined anew") {
  manual_seed(5);
  Pair pair;
  pair.add();
  fill_(pair.parts[1], 3);
  CHECK(!pair.is_found());
}

TEST_CASE("parts that a tape tracks since they were joined are joined anew") {
  manual_seed(5);
  Pair pair;
  pair.add();
  Tape tape;
  tape.watch(pair.parts[0]);
  CHECK(!pair.is_found());
}

TEST_CASE("parts that were joined before the tape dropped its entries are joined anew") {
  manual_seed(5);
  Pair pair;
  pair.parts[0].requires_grad();
  Tape tape;
  Tensor y = sum(square(pair.parts[0]));
  pair.whole = stack(pair.parts);
  pair.add();
  CHECK(pair.is_found());
  tape.backward(y);
  Tensor next = sum(square(pair.parts[0]));
  CHECK(!pair.is_found());
}

TEST_CASE("small parts are not kept, and large ones only until others have followed") {
  manual_seed(5);
  JoinedParts before;
  std::vector<Tensor> small{draw({4}), draw({4})};
  before.add(detail::context(), pointers(small), stack(small));
  CHECK(!before.find(detail::context(), pointers(small), {2, 4}).defined());
  Pair first;
  before.add(detail::context(), pointers(first.parts), first.whole);
  for (int i = 0; i < 8; ++i) {
    CHECK(before.find(detail::context(), pointers(first.parts), {2, 8, 256}).defined());
    Pair next;
    before.add(detail::context(), pointers(next.parts), next.whole);
  }
  CHECK(!before.find(detail::context(), pointers(first.parts), {2, 8, 256}).defined());
}

TEST_CASE("states that are read again, and changed between, have the values and gradients of single examples") {
  manual_seed(5);
  Tensor W = (draw({256, 256}) * 0.06).requires_grad();
  std::vector<Tensor> inputs;
  for (std::int64_t length : {6, 6, 9, 6, 9, 6}) inputs.push_back(draw({length, 256}));
  auto loss = [&](const Tensor& x) {
    Tensor states = tanh(matmul(x, W)), h = ones({1, 256}, {.dtype = f64}), total = zeros({1, 256}, {.dtype = f64});
    for (int step = 0; step < 6; ++step) {
      h = matmul(softmax(matmul(h, transpose(states))), states);
      total = total + h;
      if (step == 2) states = states * 0.5;
      if (step == 4) {
        states = copy(states);
        mul_(states, 0.5);
      }
    }
    return sum(square(total)) * 1e-3;
  };
  check_as_immediate([&](const BatchOptions& options) {
    Tape tape;
    std::vector<Tensor> results = batch_map(inputs, loss, options);
    std::vector<Tensor> gradients = tape.gradient(sum(stack(results)), std::vector<Tensor>{W});
    results.insert(results.end(), gradients.begin(), gradients.end());
    return results;
  });
}

TEST_CASE("ops whose shapes differ from example to example run first, so that the others run for all of them") {
  manual_seed(5);
  Tensor W = (draw({8, 8}) * 0.3).requires_grad();
  constexpr int count = 12, steps = 5;
  std::vector<Tensor> inputs;
  for (int i : numbers(count)) inputs.push_back(draw({2 + i, 8}));
  BatchReport report;
  int line = 0;
  Tape tape;
  auto state_of = [&](const Tensor& read) {
    Tensor h = ones({1, 8}, {.dtype = f64});
    for (int step = 0; step < steps; ++step) {
      Tensor seen = matmul(softmax(matmul(h, transpose(read))), read);
      line = __LINE__ + 1;
      h = tanh(addmm(seen, h, W));
    }
    return h;
  };
  batch_map(inputs, state_of, {.report = &report});
  auto product = std::ranges::find_if(
      report.lines, [&](const BatchedLine& one) { return one.op == "addmm" && one.where.line == line; });
  REQUIRE(product != report.lines.end());
  CHECK(product->groups == steps);
  CHECK(product->grouped == count * steps);
}
