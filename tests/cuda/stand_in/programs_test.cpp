#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "catch.h"
#include "core/device/device_module.h"
#include "cuda/stand_in/counted.h"
#include "cuda/stand_in/cudnn_backend.h"
#include "cuda/stand_in/record.h"
#include "cuda/stand_in/row_runs.h"

// Programs on the stand-in: whatever they do, no call breaks a rule of a GPU.

namespace reel_test {

using namespace reel;

namespace {

// Runs f; results of 0 may be refused on the CPU, such as sizes that depend on values.
void run_or_refuse(const std::function<void()>& f) {
  try {
    f();
  } catch (const InternalError&) {
    throw;
  } catch (const DeviceError&) {
    throw;
  } catch (const Error&) {
  }
}

struct Net : nn::Module {
  nn::Linear first, second;
  Net() : first(*this, "first", 3, 8), second(*this, "second", 8, 1) {}
  Tensor operator()(const Tensor& x) const { return second(dropout(tanh(first(x)), {.probability = 0.25})); }
};

}  // namespace

TEST_CASE("ops of random shapes and of strided inputs break no rule of a GPU") {
  if (lacks_device()) return;
  using Layout = Tensor (*)(const Tensor&);
  const Layout layouts[] = {
      [](const Tensor& x) { return x; },
      [](const Tensor& x) {
        Shape axes;
        for (int i = x.rank(); i-- > 0;) axes.push_back(i);
        return permute(copy(permute(x, axes)), axes);
      },
      [](const Tensor& x) {
        return x.rank() == max_rank ? x : select(stack({x, x, x}, -1), -1, 1);
      },
  };
  auto run_all = [&](const std::vector<Row>& rows, std::uint64_t seed) {
    for (const Row& plain : rows) {
      if (!runs_on_device(plain)) continue;
      Row row = on_device(plain);
      CAPTURE(row.name);
      stand_in::set_subject(row.name);
      for (Layout layout : layouts) {
        std::vector<Tensor> there = on(gpu, draw_inputs(row, row.dtypes[0], seed));
        for (Tensor& input : there) input = layout(input);
        CHECK_NOTHROW(run_or_refuse([&] { static_cast<void>(row.run(there)); }));
        if (row.differentiable && is_floating(row.dtypes[0]))
          CHECK_NOTHROW(run_or_refuse(
              [&] { static_cast<void>(gradients(of_floating_inputs(row, there), floating_inputs(row, there))); }));
      }
    }
  };
  stand_in::Counts counts = counts_of([&] {
    run_all(table(), table_seed);
    run_all(random_table(11), 11);
  });
  stand_in::set_subject("");
  CHECK(counts["launch"] > 100000);
  CHECK(stand_in::take_plans().without == std::vector<std::string>());
}

TEST_CASE(
    "recurrent nets of every kind break no rule, whole layers of one length and ragged ones, in both directions") {
  if (lacks_device()) return;
  DeviceGuard guard(gpu);
  std::int64_t steps = 7, batch = 5, width = 6;
  Tensor lengths = to(tensor(std::vector<std::int64_t>{7, 6, 6, 3, 1}), cpu);
  stand_in::Counts counts = counts_of([&] {
    for (std::int64_t size : {4, 64, 300})
      for (bool is_ragged : {false, true})
        for (bool bidirectional : {false, true})
          for (DType dtype : {f32, f64, bf16}) {
            CAPTURE(size, is_ragged, bidirectional, name_of(dtype));
            RecurrentOptions options{.bidirectional = bidirectional};
            if (is_ragged) options.lengths = lengths;
            auto weights = [&](std::int64_t gates, std::int64_t biases) {
              std::vector<RecurrentWeights> made;
              for (int i = 0; i < (bidirectional ? 2 : 1); ++i)
                made.push_back({zeros({width, gates * size}, {.dtype = dtype}),
                                zeros({size, gates * size}, {.dtype = dtype}),
                                zeros({biases * size}, {.dtype = dtype})});
              return made;
            };
            Tensor x = zeros({steps, batch, width}, {.dtype = dtype});
            auto train = [&](const std::function<Tensor()>& run) {
              Tape tape;
              tape.watch(x);
              Tensor y = run();
              static_cast<void>(tape.gradient(sum(square(y)), x));
            };
            CHECK_NOTHROW(train([&] { return lstm(x, {}, weights(4, 4), options).output; }));
            CHECK_NOTHROW(train([&] { return gru(x, {}, weights(3, 4), options).output; }));
            RNNOptions plain{.lengths = options.lengths, .bidirectional = bidirectional};
            CHECK_NOTHROW(train([&] { return rnn(x, {}, weights(1, 1), plain).output; }));
          }
  });
  CHECK(counts["cudnnRNNForward"] > 20);
  CHECK(counts["cudnnRNNBackwardData_v8"] > 20);
}

TEST_CASE("a training that is recorded as a graph breaks no rule, and each replay is one launch of it") {
  if (lacks_device()) return;
  DeviceGuard guard(gpu);
  Net net;
  optim::Adam optimiser(net.parameters(), {.learning_rate = 0.1});
  optim::MovingAverage average(net.parameters(), {.decay = 0.9});
  auto step = [&](std::span<const Tensor> given) {
    optimiser.zero_grad();
    Tape tape;
    Tensor loss = mean(square(net(given[0]) - given[1]));
    tape.backward(loss);
    optimiser.step();
    average.update();
    return loss;
  };
  Tensor x = zeros({4, 3}), y = zeros({4, 1});
  std::optional<cuda::Graph> graph(std::in_place, step, std::vector<Tensor>{x, y});
  CHECK(counts_of([&] {
          for (int i = 0; i < 3; ++i) (*graph)({x, y});
        })["cudaGraphInstantiate"] == 1);
  CHECK(graph->is_recorded());
  stand_in::Counts replays = counts_of([&] {
    for (int i = 0; i < 10; ++i) {
      if (i == 5) optimiser.set_learning_rate(0.05);
      (*graph)({x, y});
    }
  });
  CHECK(replays["cudaGraphLaunch"] == 10);
  // Copies of two inputs and of a result.
  CHECK(replays["launch"] <= 30);
  counts_of([&] { graph.reset(); });
}

TEST_CASE("memory that ends, is reserved, given back and copied in large pieces breaks no rule") {
  if (lacks_device()) return;
  counts_of([&] {
    Tensor large = zeros({3 << 22}, {.device = cpu});
    Tensor there = to(large, gpu);
    Tensor other = to(there, Device{Device::Type::cuda, 1});
    CHECK(to(other + 1.0, cpu).numel() == large.numel());
    CHECK_THROWS_AS(zeros({std::int64_t{1} << 38}, {.device = gpu}), MemoryError);
    cuda::reserve_memory(gpu, std::size_t{1} << 28);
    std::vector<Tensor> many;
    for (int i = 0; i < 300; ++i) many.push_back(ones({i * 1000 + 1}, {.device = gpu}));
    many.clear();
    cuda::release_memory_cache(gpu);
    cuda::synchronize(gpu);
  });
}

}  // namespace reel_test
