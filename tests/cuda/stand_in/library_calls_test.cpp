#include <cstdlib>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "core/device/device_module.h"
#include "cuda/gpu.h"
#include "cuda/stand_in/counted.h"
#include "cuda/stand_in/cudnn_backend.h"
#include "cuda/stand_in/cudnn_recurrent.h"
#include "cuda/stand_in/record.h"
#include "cuda/stand_in/streams.h"

// Tests the calls of CUDA and its libraries that single ops make, on the stand-in.

namespace reel_test {

using namespace reel;

namespace {

// Matrices (count, 4, 4) of zeros.
Tensor matrices(std::int64_t count, DType dtype = f32) { return zeros({count, 4, 4}, {.dtype = dtype, .device = gpu}); }

}  // namespace

TEST_CASE("batches above 65,535 matrices are processed in series") {
  if (lacks_device()) return;
  constexpr std::int64_t count = 2 * 65535 + 3;
  for (DType dtype : {f32, f64}) {
    Tensor a = matrices(count, dtype), b = matrices(count, dtype);
    CHECK(counts_of([&] { matmul(a, b); })["cublasLtMatmul"] == 3);
    CHECK(counts_of([&] { cholesky(a); })["cusolverDn<t>potrfBatched"] == 3);
    CHECK(counts_of([&] { det(a); })["cublas<t>getrfBatched"] == 3);
    CHECK(counts_of([&] { solve(a, b); })["cublas<t>getrsBatched"] == 3);
    CHECK(counts_of([&] { triangular_solve(a, b); })["cublas<t>trsmBatched"] == 3);
  }
  // A whole number of parts, and one matrix for all of them.
  CHECK(counts_of([&] { matmul(matrices(2 * 65535), zeros({4, 4}, {.device = gpu})); })["cublasLtMatmul"] >= 1);
  CHECK(counts_of([&] { matmul(matrices(65535), matrices(65535)); })["cublasLtMatmul"] == 1);
}

TEST_CASE("decompositions and solutions of batches copy nothing from the CPU, so that a graph can record them") {
  if (lacks_device()) return;
  Tensor a = matrices(3), b = matrices(3);
  std::vector<std::pair<std::string, std::function<Tensor()>>> ops{
      {"cholesky", [&] { return cholesky(a); }},
      {"solve", [&] { return solve(a, b); }},
      {"det", [&] { return det(a); }},
      {"triangular_solve", [&] { return triangular_solve(a, b); }},
  };
  for (const auto& [name, run] : ops) {
    CAPTURE(name);
    for (int i = 0; i < 2; ++i) run();
    CHECK(counts_of([&] { run(); })["cudaMemcpyAsync from the CPU"] == 0);
    cuda::Graph graph([&](std::span<const Tensor> given) { return run() + sum(given[0]); }, {b});
    for (int i = 0; i < 3; ++i) CHECK_NOTHROW(graph({b}));
    CHECK(graph.is_recorded());
  }
  CHECK(stand_in::take_violations() == std::vector<std::string>());
}

TEST_CASE("a thread that waits for the device breaks no graph that another begins to record meanwhile") {
  if (lacks_device()) return;
  static_cast<void>(stand_in::take_violations());
  detail::DeviceModule& module = detail::device_module();
  std::promise<void> ready, begin, recording, end;
  std::string thrown;
  std::thread recorder([&] {
    Tensor x = zeros({4}, {.device = gpu});
    ready.set_value();
    begin.get_future().wait();
    try {
      Generator generator(1);
      auto graph = module.record(0, generator);
      recording.set_value();
      end.get_future().wait();
      graph->finish();
    } catch (const std::exception& error) {
      thrown = error.what();
    }
  });
  ready.get_future().wait();
  static_cast<void>(zeros({4}, {.device = gpu}));
  // The first wait is for the thread's own stream; the recording begins before the second one, for the other's.
  stand_in::before_next_wait([&] {
    stand_in::before_next_wait([&] {
      begin.set_value();
      recording.get_future().wait();
    });
  });
  CHECK_NOTHROW(module.synchronise(0));
  end.set_value();
  recorder.join();
  CHECK(thrown == "");
  CHECK(stand_in::take_violations() == std::vector<std::string>());
}

TEST_CASE("a persistent recurrent layer that cuDNN refuses runs by its standard kernels, forwards and backwards") {
  if (lacks_device()) return;
  DeviceGuard guard(gpu);
  for (bool forward : {false, true}) {
    CAPTURE(forward);
    nn::LSTM layer(8, 32);
    Tensor x = zeros({6, 4, 8});
    auto gradients = [&] {
      Tape tape;
      tape.backward(sum(layer(x).output));
    };
    stand_in::refuse_persistent(forward, true);
    stand_in::Counts counts;
    CHECK_NOTHROW(counts = counts_of(gradients));
    CHECK_NOTHROW(counts = counts_of(gradients));
    stand_in::refuse_persistent(false, false);
    // From then on nothing is tried that was refused.
    CHECK(counts["cudnnRNNForward"] == 1);
    CHECK(counts["cudnnRNNBackwardData_v8"] == 1);
    CHECK(counts["cudnnRNNBackwardWeights_v8"] == 1);
  }
}

TEST_CASE("weights of a recurrent layer are packed once for each of their versions, and at each replay of a graph") {
  if (lacks_device()) return;
  DeviceGuard guard(gpu);
  nn::LSTM layer(8, 32);
  Tensor x = zeros({6, 4, 8});
  auto launches = [&](const std::function<void()>& f) { return counts_of(f)["launch"]; };
  auto run = [&] { static_cast<void>(layer(x).output); };
  run();
  std::int64_t packed = launches(run);
  CHECK(launches(run) == packed);
  std::vector<Tensor> parameters = layer.parameters();
  for (Tensor& parameter : parameters) {
    {
      NoRecord pause;
      mul_(parameter, 1.0);
    }
    CHECK(launches(run) == packed + 1);
    CHECK(launches(run) == packed);
  }
  nn::LSTM other(8, 32);
  CHECK(launches([&] { static_cast<void>(other(x).output); }) == packed + 1);
  CHECK(launches(run) == packed);
  std::thread([&] {
    DeviceGuard own(gpu);
    run();
    CHECK(launches(run) == packed);
  }).join();
  // Weights that are no parameters may change unseen.
  std::vector<RecurrentWeights> plain{{zeros({8, 128}), zeros({32, 128}), zeros({128})}};
  Tensor state = zeros({1, 4, 32});
  auto run_plain = [&] { static_cast<void>(lstm(x, {state, state}, plain)); };
  run_plain();
  CHECK(launches(run_plain) == launches(run_plain));
  cuda::Graph graph([&](std::span<const Tensor> given) { return layer(given[0]).output; }, {x});
  for (int i = 0; i < 3; ++i) graph({x});
  CHECK(graph.is_recorded());
  CHECK(launches(run) == packed);
}

TEST_CASE("the reserve of a recurrent layer is copied only for a tape that may read it again") {
  if (lacks_device()) return;
  DeviceGuard guard(gpu);
  nn::GRU layer(8, 32);
  Tensor x = zeros({6, 4, 8});
  auto gradients = [&](bool persistent) {
    Tape tape({.persistent = persistent});
    tape.backward(sum(layer(x).output));
  };
  for (int i = 0; i < 2; ++i) gradients(false);
  auto copies = [&](const std::function<void()>& f) {
    std::int64_t sum = 0;
    for (const auto& [call, number] : counts_of(f))
      if (call.starts_with("cudaMemcpyAsync")) sum += number;
    return sum;
  };
  std::int64_t consumed = copies([&] { gradients(false); });
  CHECK(copies([&] { gradients(true); }) == consumed + 1);
}

TEST_CASE("cuDNN is asked once for the plan of a convolution of a new size, and adds its bias where it can") {
  if (lacks_device()) return;
  DeviceGuard guard(gpu);
  for (DType dtype : {f16, bf16}) {
    static_cast<void>(stand_in::take_plans());
    Tensor x = zeros({3, 16, 11, 11}, {.dtype = dtype}), b = zeros({16}, {.dtype = dtype}),
           w = zeros({16, 16, 3, 3}, {.dtype = dtype});
    CHECK(counts_of([&] { conv2d(x, w, b); })["launch"] == 0);
    stand_in::Plans plans = stand_in::take_plans();
    CHECK(plans.asked == 1);
    CHECK(plans.without_fusion.empty());
    CHECK(counts_of([&] { conv_transposed2d(x, w, b); })["launch"] == 1);
    plans = stand_in::take_plans();
    CHECK(plans.asked == 1);
    CHECK(plans.without.empty());
  }
}

TEST_CASE("cuBLAS has a workspace of its own for each stream, so that cuDNN's recurrent layers repeat their results") {
  if (lacks_device()) return;
  static_cast<void>(zeros({4}, {.device = gpu}));
  const char* configuration = std::getenv("CUBLAS_WORKSPACE_CONFIG");
  REQUIRE(configuration);
  CHECK(std::string(configuration) == ":4096:8");
}

}  // namespace reel_test
