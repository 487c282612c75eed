#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "catch.h"
#include "cuda/gpu.h"
#include "cuda/stand_in/record.h"
#include "dispatch/listener_scope.h"

// Threads that share tensors, on one and on two devices: the stand-in sees a stream that does not wait for what another
// computes.

namespace reel_test {

using namespace reel;

namespace {

constexpr Device second{Device::Type::cuda, 1};

[[gnu::noinline]] void clear_stack() {
  volatile char below[1 << 16];
  std::memset(const_cast<char*>(below), 0, sizeof below);
}

// Clears the thread's stack before each op. Members of kernels that have no value would otherwise hold addresses that earlier
// ops have left there, which the stand-in takes for arguments.
class ClearStack final : public detail::ListenerScope {
 public:
  ClearStack() : ListenerScope(detail::context()) {}
  void starting(const detail::Call& call, Location where) override {
    clear_stack();
    ListenerScope::starting(call, where);
  }
  void updating(std::span<const Tensor> parameters) override {
    clear_stack();
    ListenerScope::updating(parameters);
  }
};

struct Net : nn::Module {
  nn::Linear first, last;
  Net() : first(*this, "first", 6, 8), last(*this, "last", 8, 1) {}
  Tensor operator()(const Tensor& x) const { return last(tanh(first(x))); }
};

void run_threads(int count, const std::function<void(int)>& f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(f, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("threads that train one net on a device, and copy between two, wait for what others write") {
  if (lacks_device()) return;
  static_cast<void>(stand_in::take_violations());
  ClearStack clear;
  for (int round = 0; round < 5; ++round) {
    DeviceGuard guard(gpu);
    Net net;
    Tensor shared = randn({4, 6}, {.device = gpu}) * 2.0;
    std::vector<Tensor> results(4);
    run_threads(4, [&](int i) {
      Device device = i % 2 == 0 ? gpu : second;
      DeviceGuard own(device);
      ClearStack clear;
      Tensor x = to(shared, device);
      if (device == gpu) {
        Tape tape;
        tape.backward(mean(square(net(x))));
      }
      results[static_cast<std::size_t>(i)] = sum(x * static_cast<double>(i));
    });
    Tensor total = zeros({}, {.device = gpu});
    for (const Tensor& result : results) total = total + to(result, gpu);
    optim::SGD(net.parameters(), {.learning_rate = 0.1}).step();
    static_cast<void>(total.item());
  }
  CHECK(stand_in::take_violations() == std::vector<std::string>());
}

}  // namespace reel_test
