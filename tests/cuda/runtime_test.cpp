#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <thread>

#include "catch.h"
#include "cuda/gpu.h"

namespace reel_test {

using namespace reel;

namespace {

// Destroyed when the program ends, after everything else.
Tensor outlives_all;

}  // namespace

TEST_CASE("devices are asked for by name") {
  CHECK(parse_device("cpu") == cpu);
  CHECK_THROWS_WITH(parse_device("gpu"), contains("'gpu' is no device"));
  CHECK_THROWS_AS(parse_device("cuda:x"), DeviceError);
  CHECK_THROWS_AS(parse_device("cuda:-1"), DeviceError);
  if (lacks_device()) {
    CHECK(!cuda::is_available());
    CHECK(!cuda::why_not().empty());
    CHECK(cuda::device_count() == 0);
    CHECK_THROWS_AS(cuda::synchronize(gpu), DeviceError);
    return;
  }
  CHECK(cuda::is_available());
  CHECK(cuda::why_not().empty());
  CHECK(parse_device("cuda") == gpu);
  CHECK(parse_device("cuda:0") == gpu);
  CHECK(parse_device("cuda:auto").type == Device::Type::cuda);
  CHECK_THROWS_WITH(parse_device("cuda:200"), contains("there is no cuda:200"));
  CHECK_THROWS_AS(cuda::properties(cpu), DeviceError);
  cuda::Properties found = cuda::properties(gpu);
  CHECK(!found.name.empty());
  CHECK(found.memory > 0);
  CHECK(found.multiprocessors > 0);
}

TEST_CASE("statistics follow what tensors use, and freed memory is reused without the driver") {
  if (lacks_device()) return;
  cuda::release_memory_cache(gpu);
  cuda::reset_peak_memory(gpu);
  cuda::MemoryStatistics before = cuda::memory_statistics(gpu);
  constexpr std::size_t bytes = 4 << 20;
  {
    Tensor x = zeros({1 << 20}, {.device = gpu});
    cuda::MemoryStatistics now = cuda::memory_statistics(gpu);
    CHECK(now.used >= before.used + bytes);
    CHECK(now.reserved >= now.used);
  }
  cuda::MemoryStatistics after = cuda::memory_statistics(gpu);
  CHECK(after.used == before.used);
  CHECK(after.peak >= before.used + bytes);
  for (int i = 0; i < 10; ++i) Tensor again = zeros({1 << 20}, {.device = gpu});
  CHECK(cuda::memory_statistics(gpu).reserved == after.reserved);
  cuda::release_memory_cache(gpu);
  CHECK(cuda::memory_statistics(gpu).reserved <= before.reserved);
}

TEST_CASE("where memory ends, the error names the op, the bytes and who has the rest") {
  if (lacks_device()) return;
  Tensor large = zeros({3 << 20}, {.device = gpu});
  cuda::set_memory_limit(gpu, cuda::memory_statistics(gpu).reserved + (1 << 20));
  std::string text = error_of<MemoryError>([&] { Tensor x = ones({100, 1 << 20}, {.device = gpu}); });
  cuda::set_memory_limit(gpu, cuda::no_limit);
  CHECK_THAT(text, contains("ones: ") || contains("full: "));
  CHECK_THAT(text, contains("419.4 MB") && contains("are reserved") && contains("set_memory_limit allows"));
  CHECK_THAT(text, contains("12.6 MB at") && contains("runtime_test.cpp:"));
  CHECK((large + 1).device() == gpu);
}

TEST_CASE("what is kept for reuse is given back before memory ends") {
  if (lacks_device()) return;
  { Tensor freed = zeros({8 << 20}, {.device = gpu}); }
  std::thread other([] { Tensor freed = zeros({8 << 20}, {.device = gpu}); });
  other.join();
  cuda::set_memory_limit(gpu, cuda::memory_statistics(gpu).reserved + (1 << 20));
  CHECK_NOTHROW(zeros({12 << 20}, {.device = gpu}));
  cuda::set_memory_limit(gpu, cuda::no_limit);
}

TEST_CASE("memory that is reserved stays") {
  if (lacks_device()) return;
  std::size_t wanted = cuda::memory_statistics(gpu).reserved + (64 << 20);
  cuda::reserve_memory(gpu, wanted);
  cuda::release_memory_cache(gpu);
  CHECK(cuda::memory_statistics(gpu).reserved >= wanted);
  cuda::reserve_memory(gpu, 0);
  cuda::release_memory_cache(gpu);
  CHECK(cuda::memory_statistics(gpu).reserved < wanted);
}

TEST_CASE("tensors go from thread to thread, and outlive those that made them") {
  if (lacks_device()) return;
  Tensor made, x = ones({1000}, {.device = gpu}).requires_grad();
  std::thread maker([&] { made = full({1000}, 3, {.device = gpu}); });
  maker.join();
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i)
    workers.emplace_back([&] {
      for (int step = 0; step < 20; ++step) {
        Tape tape;
        tape.backward(sum(x * made));
        Tensor freed = made + x;
      }
    });
  for (std::thread& worker : workers) worker.join();
  CHECK(x.grad().to_vector<float>() == std::vector<float>(1000, 240));
  outlives_all = made;
}

TEST_CASE("clip_grad_norm finds the norm of f32 gradients on a device whose squares f32 cannot hold") {
  if (lacks_device()) return;
  std::vector<Tensor> parameters{zeros({3}, {.device = gpu}).requires_grad(),
                                 zeros({2, 2}, {.device = gpu}).requires_grad()};
  for (double size : {1e25, 1e-25}) {
    CAPTURE(size);
    parameters[0].set_grad(full({3}, 2 * size, {.device = gpu}));
    parameters[1].set_grad(full({2, 2}, size, {.device = gpu}));
    CHECK(optim::clip_grad_norm(parameters, 1) == Approx(4 * size));
    // A norm below the largest one changes nothing.
    CHECK(to(parameters[0].grad(), cpu).to_vector<float>()[0] == Approx(size > 1 ? 0.5 : 2 * size));
  }
}

TEST_CASE("optimisers, clipping and averages do on a device what they do on the CPU") {
  if (lacks_device()) return;
  auto trained = [](Device device) {
    manual_seed(1);
    nn::Linear linear(4, 3);
    linear.to(device);
    std::vector<Tensor> parameters = linear.parameters();
    optim::Adam adam(parameters, {.learning_rate = 0.1, .weight_decay = 0.01});
    optim::MovingAverage average(parameters, {.decay = 0.5});
    std::vector<float> seen;
    for (int i = 0; i < 4; ++i) {
      Generator generator(static_cast<std::uint64_t>(i));
      Tensor x = to(randn({5, 4}, {.generator = &generator}), device);
      adam.zero_grad();
      {
        Tape tape;
        tape.backward(sum(square(linear(x))));
      }
      seen.push_back(static_cast<float>(optim::clip_grad_norm(parameters, 1.5)));
      optim::clip_grad_value(parameters, 0.3);
      optim::scale_grad(parameters, 0.5);
      adam.step();
      average.update();
    }
    auto add = [&](const Tensor& x) {
      CHECK(x.device() == device);
      for (float value : x.to_vector<float>()) seen.push_back(value);
    };
    for (const Tensor& parameter : parameters) add(parameter);
    {
      auto scope = average.in_place();
      for (const Tensor& parameter : parameters) add(parameter);
    }
    for (const Tensor& parameter : parameters) add(parameter);
    optim::Adam other(parameters);
    other.load_state(adam.state());
    for (const NamedTensor& named : other.state())
      if (named.tensor.dtype() == f32) add(named.tensor);
    return seen;
  };
  std::vector<float> here = trained(cpu), there = trained(gpu);
  REQUIRE(here.size() == there.size());
  for (std::size_t i = 0; i < here.size(); ++i) CHECK(there[i] == Approx(here[i]).epsilon(1e-4).margin(1e-6));
}

TEST_CASE("scaling on a device leaves what is held elsewhere alone, and scales what is listed twice twice") {
  if (lacks_device()) return;
  Tensor wide = zeros({2}, {.dtype = f64, .device = gpu}).requires_grad(),
         held = zeros({3}, {.device = gpu}).requires_grad(), plain = zeros({5}, {.device = gpu}).requires_grad(),
         here = zeros({1}).requires_grad(), table = zeros({4, 2}, {.device = gpu}).requires_grad();
  {
    Tape tape;
    Tensor rows = embedding(table, to(tensor({2}), gpu), {.row_gradient = true});
    tape.backward(sum(wide * 8.0) + to(sum(held * 8.0) + sum(plain * 8.0) + sum(rows * 8.0), f64));
  }
  {
    Tape tape;
    tape.backward(sum(here * 8.0));
  }
  Tensor holder = held.grad();
  optim::scale_grad({wide, held, here, plain, wide, table, zeros({2}, {.device = gpu}).requires_grad()}, 0.5);
  CHECK(wide.grad().to_vector<double>() == std::vector<double>(2, 2));
  CHECK(held.grad().to_vector<float>() == std::vector<float>(3, 4));
  CHECK(holder.to_vector<float>() == std::vector<float>(3, 8));
  CHECK(plain.grad().to_vector<float>() == std::vector<float>(5, 4));
  CHECK(here.grad().to_vector<float>() == std::vector<float>(1, 4));
  CHECK(table.row_grad().values.to_vector<float>() == std::vector<float>(2, 4));
  optim::clip_grad_value({wide, plain}, 3);
  CHECK(wide.grad().to_vector<double>() == std::vector<double>(2, 2));
  CHECK(plain.grad().to_vector<float>() == std::vector<float>(5, 3));
}

TEST_CASE("a loss scaler on a device skips the step of a gradient that is not finite") {
  if (lacks_device()) return;
  for (DType dtype : {f32, f64})
    for (double value : {1.0, 3e38, HUGE_VAL, std::nan("")}) {
      CAPTURE(name_of(dtype), value);
      Tensor w = ones({3}, {.dtype = dtype, .device = gpu}).requires_grad(),
             other = ones({2}, {.device = gpu}).requires_grad();
      optim::SGD sgd({w, other}, {.learning_rate = 0});
      w.set_grad(full({3}, value, {.dtype = dtype, .device = gpu}));
      other.set_grad(ones({2}, {.device = gpu}));
      optim::LossScaler scaler({.scale = 2});
      CHECK(scaler.step(sgd) == std::isfinite(value));
    }
}

TEST_CASE("a step of rows changes those alone") {
  if (lacks_device()) return;
  auto trained = [](Device device) {
    Tensor table = to(reshape(arange(12, {.dtype = f32}), {6, 2}), device).requires_grad();
    optim::Adagrad adagrad({table}, {.learning_rate = 0.5});
    for (int i = 0; i < 3; ++i) {
      adagrad.zero_grad();
      Tape tape;
      Tensor rows = embedding(table, to(tensor({1, 4, 1}), device), {.row_gradient = true});
      tape.backward(sum(square(rows)));
      adagrad.step();
    }
    return table.to_vector<float>();
  };
  std::vector<float> here = trained(cpu), there = trained(gpu);
  for (std::size_t i = 0; i < here.size(); ++i) CHECK(there[i] == Approx(here[i]).epsilon(1e-5));
}

TEST_CASE("weights are saved from a device and loaded to one") {
  if (lacks_device()) return;
  std::string path =
      std::filesystem::temp_directory_path() / ("reel_cuda_" + std::to_string(getpid()) + ".safetensors");
  nn::Linear there(4, 3), again(4, 3), here(4, 3);
  there.to(gpu);
  again.to(gpu);
  io::save(path, there);
  io::load_into(again, path);
  io::load_into(here, path);
  std::filesystem::remove(path);
  CHECK(again.weight.device() == gpu);
  CHECK(again.weight.to_vector<float>() == there.weight.to_vector<float>());
  CHECK(here.weight.to_vector<float>() == there.weight.to_vector<float>());
}

TEST_CASE("L-BFGS and a loss scaler work on a device") {
  if (lacks_device()) return;
  Tensor x = to(tensor({3.0f, -2.0f}), gpu).requires_grad();
  optim::LBFGS lbfgs({x}, {.max_iterations = 20});
  lbfgs.step([&] {
    Tape tape;
    Tensor loss = sum(square(x - 1));
    tape.backward(loss);
    return loss.item();
  });
  for (float value : x.to_vector<float>()) CHECK(value == Approx(1).epsilon(1e-4));
  optim::SGD sgd({x}, {.learning_rate = 0.5});
  optim::LossScaler scaler({.scale = 1024});
  x.set_grad(full({2}, 1024, {.device = gpu}));
  CHECK(scaler.step(sgd));
  for (float value : x.to_vector<float>()) CHECK(value == Approx(0.5).epsilon(1e-4));
}

TEST_CASE("gradients can be checked, and numbers counted, on a device") {
  if (lacks_device()) return;
  auto f = [](std::span<const Tensor> x) { return tanh(x[0]) * x[0]; };
  auto report = debug::gradcheck(f, {to(tensor({0.3, -1.2, 2.0}), gpu)});
  INFO(report.text);
  CHECK(report);
  CHECK(debug::statistics(to(tensor({1.0f, 0.0f, -3.0f}), gpu)).min == -3);
}

TEST_CASE("checkpoints run again on a device") {
  if (lacks_device()) return;
  Tensor x = to(tensor({1.0f, 2.0f}), gpu).requires_grad();
  Tape tape;
  Tensor y = checkpoint([](const Tensor& x) { return square(dropout(x, {.probability = 0.5})); }, x);
  tape.backward(sum(y));
  CHECK(x.grad().device() == gpu);
}

TEST_CASE("each op is logged with its device") {
  if (lacks_device()) return;
  std::vector<std::string> lines;
  {
    auto scope = debug::log_placement([&](const std::string& line) { lines.push_back(line); });
    Tensor x = ones({2, 3}, {.device = gpu});
    Tensor y = to(x + x, cpu) * 2;
  }
  REQUIRE(lines.size() >= 4);
  CHECK_THAT(lines[1],
             contains("cuda:0  add (2, 3) f32, (2, 3) f32 → (2, 3) f32; at ") && contains("runtime_test.cpp"));
  CHECK_THAT(lines.back(), contains("cpu  "));
}

TEST_CASE("a recording has the statistics, values and fingerprints of a device's tensors") {
  if (lacks_device()) return;
  std::string folder = (std::filesystem::temp_directory_path() / "reel_recording_XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  auto recorded = [&](Device device) {
    std::string file = folder + "/run.reel";
    Tensor w = to(tensor({1.0f, -2.0f, 4.0f}), device).requires_grad();
    {
      debug::Recording recording(file);
      Tape tape;
      tape.backward(sum(w + w));
    }
    return debug::RecordedRun::read(file);
  };
  debug::RecordedRun on_gpu = recorded(gpu), on_cpu = recorded(cpu);
  std::filesystem::remove_all(folder);
  auto sums = [](const debug::RecordedRun& run) -> const debug::RecordedTensor& {
    for (const debug::RecordedOp& op : run.ops())
      if (op.op == "add" && op.kind == debug::OpKind::forward) return op.outputs[0];
    FAIL("no addition was recorded");
    return run.ops().front().outputs[0];
  };
  CHECK(sums(on_gpu).device == gpu);
  CHECK(sums(on_gpu).statistics.max == 8);
  CHECK(to_string(sums(on_gpu).values) == to_string(sums(on_cpu).values));
  CHECK(sums(on_gpu).fingerprint == sums(on_cpu).fingerprint);
  CHECK(on_gpu.gradient_of(on_gpu.ops().back().forward) != nullptr);
  debug::RunDifference found = debug::diff(on_gpu, on_cpu, {.tolerance = 1e-6});
  INFO(to_string(found));
  CHECK(found.equal());
  CHECK(found.compared >= 4);
}

TEST_CASE("waits are told of, with the reason and the line, and nothing else waits") {
  if (lacks_device()) return;
  std::vector<std::string> lines;
  auto scope = debug::warn_sync([&](const std::string& line) { lines.push_back(line); });
  Tensor x = to(tensor({1.0f, 0.0f, 2.0f}), gpu).requires_grad();
  optim::Adam adam({x});
  for (int i = 0; i < 3; ++i) {
    adam.zero_grad();
    Tape tape;
    tape.backward(mean(square(x)));
    adam.step();
  }
  CHECK(lines.empty());
  int line = __LINE__ + 1;
  x.to_vector<float>();
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], contains("waits for cuda:0: the values of a tensor") &&
                           contains("runtime_test.cpp:" + std::to_string(line)));
  nonzero(x);
  CHECK(lines.size() == 2);
}

TEST_CASE("long copies pass through the staging chunks unharmed") {
  if (lacks_device()) return;
  std::vector<std::int64_t> numbers(5'000'000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i * i);
  Tensor small = to(tensor({1, 2, 3}), gpu), x = to(tensor(numbers), gpu), after = to(tensor({4, 5, 6}), gpu);
  CHECK(x.to_vector<std::int64_t>() == numbers);
  CHECK(small.to_vector<int>() == std::vector<int>{1, 2, 3});
  CHECK(after.to_vector<int>() == std::vector<int>{4, 5, 6});
}

TEST_CASE("tensors go from GPU to GPU") {
  if (lacks_device() || cuda::device_count() < 2) return;
  Device second = cuda::device(1);
  Tensor x = arange(1000, {.dtype = f32, .device = gpu});
  Tensor there = to(x + 1, second);
  x.reset();
  CHECK((there * 2).device() == second);
  CHECK((there * 2).to_vector<float>()[999] == 2000);
  CHECK(to(there, gpu).to_vector<float>()[10] == 11);
  CHECK_THROWS_AS(there + ones({1000}, {.device = gpu}), DeviceError);
}

TEST_CASE("a profile ends each range that it begins, also for ops that throw, and measures waiting for the device") {
  if (lacks_device()) return;
  detail::DeviceModule& module = detail::device_module();
  auto ranges_around = [&] {
    int count = module.begin_range("a range of the test");
    module.end_range();
    return count;
  };
  const int before = ranges_around();
  Tensor x = ones({2}, {.device = gpu}).requires_grad();
  std::vector<int> within;
  {
    debug::Profile profile({.nvtx = true});
    debug::Listen listen([&](const debug::OpEvent&) { within.push_back(ranges_around()); });
    Tape tape;
    Tensor y = sum(exp(x));
    CHECK_THROWS_AS(matmul(x, ones({3}, {.device = gpu})), ShapeError);
    tape.backward(y);
    CHECK(y.item() > 5);
    profile.stop();
    REQUIRE(profile.waits().size() == 1);
    CHECK(profile.waits()[0].reason == "a GPU");
  }
  CHECK(within.size() >= 3);
  CHECK(ranges_around() == before);
}

}  // namespace reel_test
