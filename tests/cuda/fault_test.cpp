#include <thread>

#include "catch.h"
#include "cuda/gpu.h"

namespace reel_test {

using namespace reel;

namespace {

int fault_line = 0;

Tensor bad_gather() {
  Tensor x = zeros({3}, {.device = gpu}), index = to(tensor(std::vector<std::int64_t>{5}), gpu);
  fault_line = __LINE__ + 1;
  return gather(x, 0, index);
}

std::string place() { return "fault_test.cpp:" + std::to_string(fault_line); }

}  // namespace

TEST_CASE("a bad index is thrown at the next op, in the name and with the line of the op at fault") {
  if (lacks_device()) return;
  Tensor x = zeros({3}, {.device = gpu}), kept = bad_gather();
  cuda::Graph none([](std::span<const Tensor> x) { return x[0]; }, {});
  std::string text = error_of<IndexError>([&] { cuda::synchronize(gpu); });
  CHECK_THAT(text, contains("gather: ") && contains("5") && contains("3") && contains(place()));
  // The error is thrown once.
  cuda::synchronize(gpu);
  CHECK((x + 1).to_vector<float>() == std::vector<float>(3, 1));
}

TEST_CASE("a bad index is thrown where values are read") {
  if (lacks_device()) return;
  CHECK_THROWS_AS(bad_gather().to_vector<float>(), IndexError);
  CHECK(ones({1}, {.device = gpu}).item() == 1);
}

TEST_CASE("each thread is told of its own faults") {
  if (lacks_device()) return;
  Tensor kept = bad_gather();
  std::thread other([] {
    Tensor x = ones({2}, {.device = gpu});
    CHECK((x + x).to_vector<float>() == std::vector<float>(2, 2));
    cuda::synchronize(gpu);
    Tensor unseen = bad_gather();
  });
  other.join();
  CHECK_THROWS_AS(cuda::synchronize(gpu), IndexError);
  // A fault of an ended thread is not reported to another thread.
  std::thread third([] { CHECK(ones({2}, {.device = gpu}).to_vector<float>() == std::vector<float>(2, 1)); });
  third.join();
}

TEST_CASE("a fault of a replayed graph names the op that was recorded") {
  if (lacks_device()) return;
  Tensor x = arange(4, {.dtype = f32, .device = gpu}), good = to(tensor(std::vector<std::int64_t>{1}), gpu),
         bad = to(tensor(std::vector<std::int64_t>{7}), gpu);
  cuda::Graph graph([x](std::span<const Tensor> index) { return gather(x, 0, index[0]); }, {good});
  for (int i = 0; i < 3; ++i) CHECK(graph({good}).item() == 1);
  CHECK_THAT(error_of<IndexError>([&] { graph({bad}).item(); }), contains("gather: ") && contains("7"));
  CHECK(graph({good}).item() == 1);
}

}  // namespace reel_test
