#include <reel/reel.h>

#include <thread>
#include <vector>

#include "catch.h"

using namespace reel;
using reel_test::contains;
using reel_test::error_of;

TEST_CASE("threads differentiate through shared parameters, each on a tape of its own") {
  Tensor w = full({8, 8}, 0.01, {.dtype = f64}).requires_grad();
  constexpr int threads = 4, steps = 50;
  {
    std::vector<std::jthread> workers;
    for (int k = 0; k < threads; ++k)
      workers.emplace_back([&w, k] {
        for (int step = 0; step < steps; ++step) {
          Tape tape;
          tape.backward(sum(w * static_cast<double>(k + 1)));
        }
      });
  }
  CHECK(w.grad().to_vector<double>() == std::vector<double>(64, steps * (1 + 2 + 3 + 4)));
}

TEST_CASE("a parameter that another thread made is a leaf here, and its slot stays with its owner") {
  Tensor w = full({}, 2.0, {.dtype = f64}).requires_grad();
  Tape mine;
  Tensor here = w * w;
  double there = 0;
  std::jthread([&] {
    Tape tape;
    there = tape.gradient(w * w * w, w).item();
  }).join();
  CHECK(there == 12);
  CHECK(mine.gradient(here, w).item() == 4);
}

TEST_CASE("another thread's tensors are refused after an overwrite through a view, as one's own are") {
  Tensor w = full({2}, 2.0, {.dtype = f64}).requires_grad(), x = full({2}, 3.0, {.dtype = f64});
  std::string parameter, watched;
  std::jthread([&] {
    Tape tape;
    tape.watch(x);
    Tensor y = ones({2}, {.dtype = f64}), product = w * x * y;
    tape.watch(y);
    copy_(stop_gradient(w), y * 2);
    parameter = error_of<TapeError>([&] { w * 3; });
    fill_(stop_gradient(x), 5);
    watched = error_of<TapeError>([&] { x * 3; });
  }).join();
  CHECK_THAT(parameter, contains("into which values were written"));
  CHECK_THAT(watched, contains("is tracked by an open tape but was overwritten"));
}

TEST_CASE("tensors made by a thread outlive it") {
  Tensor made;
  std::jthread([&] { made = full({100}, 3.0) * 2.0; }).join();
  CHECK(sum(made).item() == 600);
  made.reset();
  // The next thread takes the ended one's memory over.
  std::jthread([&] { made = full({100}, 1.0); }).join();
  CHECK(sum(made).item() == 100);
}
