// Measures the cost of saving in the background: the time for which a save holds up the step before it, beside one copy of
// the state, and the time of 100 steps with a save beside 100 without. One thread: a second one is for writing.
//
//     reel_checkpoint_bench [DIRECTORY]
//
// DIRECTORY, by default build, gets a folder for the snapshots, which is removed at the end.

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>
#include <reel/threads.h>
#include <reel/train/checkpoint.h>

using namespace reel;

namespace {

using Clock = std::chrono::steady_clock;

double median_of(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
  return times[times.size() / 2];
}

struct Net : nn::Module {
  explicit Net(int width) : hidden(*this, "hidden", width, width), output(*this, "output", width, 16) {}
  nn::Linear hidden, output;
  Tensor operator()(const Tensor& x) { return output(tanh(hidden(x))); }
};

// A training of a net, whose state is parameters, Adam's two averages of each, and a moving average.
class Training {
 public:
  explicit Training(int width, std::int64_t batch) : net(width), x(randn({batch, width})) {}
  void step() {
    {
      Tape tape;
      tape.backward(mean(square(net(x))));
    }
    adam.step();
    adam.zero_grad();
    average.update();
  }
  std::size_t bytes() const { return static_cast<std::size_t>(net.parameter_count()) * sizeof(float) * 4; }

  Net net;
  optim::Adam adam{net.parameters()};
  optim::MovingAverage average{net.parameters()};
  Tensor x;
};

// Processor time: of all threads by CLOCK_PROCESS_CPUTIME_ID, of the calling one by CLOCK_THREAD_CPUTIME_ID.
double processor_milliseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

double milliseconds_of(const auto& f) {
  auto begin = Clock::now();
  f();
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double thread_milliseconds_of(const auto& f) {
  double begin = processor_milliseconds(CLOCK_THREAD_CPUTIME_ID);
  f();
  return processor_milliseconds(CLOCK_THREAD_CPUTIME_ID) - begin;
}

void measure(const char* name, int width, std::int64_t batch, int rounds, const std::string& directory) {
  Training training(width, batch);
  train::Checkpoint checkpoint(directory,
                               {{"model", training.net}, {"adam", training.adam}, {"average", training.average}},
                               {.keep_last = 1, .every = 100, .asynchronous = true});
  for (int i = 0; i < 3; ++i) {
    training.step();
    checkpoint.save();
    checkpoint.wait();
  }
  std::vector<char> from(training.bytes(), 1), to(training.bytes());
  std::vector<double> copies, stalls, processor, without, with, ratios;
  for (int round = 0; round < rounds; ++round) {
    copies.push_back(milliseconds_of([&] { std::memcpy(to.data(), from.data(), to.size()); }));
    double before = processor_milliseconds(CLOCK_PROCESS_CPUTIME_ID);
    stalls.push_back(milliseconds_of([&] { checkpoint.save(); }));
    checkpoint.wait();
    processor.push_back(processor_milliseconds(CLOCK_PROCESS_CPUTIME_ID) - before);
    // A step never waits for the thread that writes, so that its own processor time tells what it costs, whatever else
    // the machine does.
    with.push_back(thread_milliseconds_of([&] {
      for (int i = 0; i < 300; ++i) {
        training.step();
        checkpoint.after_step();
      }
    }));
    checkpoint.wait();
    without.push_back(thread_milliseconds_of([&] {
      for (int i = 0; i < 300; ++i) training.step();
    }));
    ratios.push_back(with.back() / without.back());
  }
  fmt::print(
      "{:7} state {:6.1f} MB  copy {:6.3f} ms  save {:6.3f} ms, {:.2f} of a copy, {:6.2f} ms of all processors  "
      "100 steps {:7.1f} ms, with a save {:.3f} of that\n",
      name, static_cast<double>(training.bytes()) / 1e6, median_of(copies), median_of(stalls),
      median_of(stalls) / median_of(copies), median_of(processor), median_of(without) / 3, median_of(ratios));
}

}  // namespace

int main(int argc, char** argv) {
  set_thread_count(1);
  // A folder of its own, which it removes at the end.
  std::string directory = fmt::format("{}/reel_checkpoint_bench_{}", argc > 1 ? argv[1] : "build", ::getpid());
  measure("small", 64, 32, 41, directory + "/small");
  measure("medium", 512, 32, 15, directory + "/medium");
  measure("large", 2560, 32, 3, directory + "/large");
  std::filesystem::remove_all(directory);
  return 0;
}
