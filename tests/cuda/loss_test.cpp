#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "catch.h"
#include "cuda/close.h"
#include "cuda/gpu.h"

// Losses in sizes that the op table does not have.

namespace reel_test {

using namespace reel;

namespace {

// A batch of `steps` steps, with targets that are padded to `longest` labels.
struct Batch {
  std::int64_t steps, longest;
  std::vector<std::int64_t> input_lengths, target_lengths;
};

// The losses, and the gradient of their sum weighted by 1, 2, ….
std::vector<Tensor> ctc_of(const Batch& batch, const Tensor& x, const Tensor& targets) {
  Tensor logs = log_softmax(x);
  Tape tape;
  tape.watch(logs);
  Tensor losses = ctc_loss(logs, targets, tensor(batch.input_lengths), tensor(batch.target_lengths),
                           {.reduction = LossReduction::none, .zero_infinity = true});
  Tensor weights = to(arange(1, losses.numel() + 1), x.dtype());
  return {losses, tape.gradient(sum(losses * to(weights, x.device())), logs)};
}

}  // namespace

TEST_CASE("ctc_loss is that of the CPU, whether or not what its steps leave fits the memory that a block shares") {
  if (lacks_device()) return;
  Generator generator(9);
  for (const Batch& batch : {Batch{30, 10, {30, 7, 25}, {10, 0, 9}}, Batch{30, 700, {30, 9, 30}, {12, 9, 1}},
                             Batch{30, 900, {30, 9, 30}, {12, 9, 1}}, Batch{30, 1300, {30, 9, 30}, {12, 9, 1}},
                             Batch{320, 600, {320, 310}, {300, 150}}}) {
    CAPTURE(batch.steps, batch.longest);
    auto examples = static_cast<std::int64_t>(batch.input_lengths.size());
    Tensor targets = randint(1, 6, {examples, batch.longest}, {.generator = &generator});
    for (DType dtype : {f32, f64}) {
      Tensor x = to(randn({batch.steps, examples, 6}, {.dtype = f64, .generator = &generator}), dtype);
      std::vector<Tensor> expected = ctc_of(batch, x, targets), found = ctc_of(batch, to(x, gpu), to(targets, gpu));
      for (std::size_t i = 0; i < expected.size(); ++i) CHECK(apart(found[i], expected[i]) <= allowed(dtype));
    }
  }
}

TEST_CASE("the mean loss of classes counts no ignored target, and so do its gradients of both orders") {
  if (lacks_device()) return;
  using Loss = std::function<Tensor(const Tensor& x, const Tensor& targets)>;
  auto cross = [](const Tensor& x, const Tensor& targets) { return cross_entropy(x, targets, {.ignore_index = 2}); };
  auto nll = [](const Tensor& x, const Tensor& targets) { return nll_loss(x, targets, {.ignore_index = 2}); };
  Generator generator(10);
  for (std::int64_t examples : {1, 5, 700})
    for (DType dtype : {f32, f64})
      for (DType kind : {i32, i64})
        for (const Loss& loss : {Loss(cross), Loss(nll)}) {
          CAPTURE(examples, name_of(dtype), name_of(kind));
          Tensor x = to(randn({examples, 4}, {.dtype = f64, .generator = &generator}), dtype);
          Tensor targets = to(randint(0, 4, {examples}, {.generator = &generator}), kind);
          auto all_of = [&](const Tensor& x, const Tensor& targets) {
            Tape outer;
            outer.watch(x);
            Tensor y = loss(x, targets), dx;
            {
              Tape tape;
              tape.watch(x);
              dx = tape.gradient(loss(x, targets), x);
            }
            return std::vector<Tensor>{y, dx, outer.gradient(sum(square(dx)) + y * y, x)};
          };
          std::vector<Tensor> expected = all_of(x, targets), found = all_of(to(x, gpu), to(targets, gpu));
          for (std::size_t i = 0; i < expected.size(); ++i) CHECK(apart(found[i], expected[i]) <= allowed(dtype));
        }
  // More than one block of threads adds up.
  Tensor many = randn({66000, 2}, {.generator = &generator}),
         of_many = randint(0, 3, {66000}, {.generator = &generator});
  of_many = where(of_many == 1, 0, of_many);
  CHECK(apart(cross(to(many, gpu), to(of_many, gpu)), cross(many, of_many)) <= allowed(f32));
  Tensor none = to(tensor({2, 2}), gpu);
  CHECK(std::isnan(to(cross(ones({2, 4}, {.device = gpu}), none), cpu).item()));
  // f16 logits give a loss of f16.
  CHECK(cross(ones({3, 4}, {.dtype = f16, .device = gpu}), to(tensor({0, 1, 2}), gpu)).dtype() == f16);
}

}  // namespace reel_test
