#include <reel/reel.h>

#include <thread>
#include <vector>

#include "catch.h"

using namespace reel;
using namespace reel_test;

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
    Tensor y = ones({2}, {.dtype = f64}), product = w * x;
    tape.watch(y);
    copy_(stop_gradient(w), y * 2);
    parameter = error_of<TapeError>([&] { w * 3; });
    fill_(stop_gradient(x), 5);
    watched = error_of<TapeError>([&] { x * 3; });
  }).join();
  CHECK_THAT(parameter, contains("into which values were written"));
  CHECK_THAT(watched, contains("is tracked by an open tape but was overwritten"));
}

TEST_CASE("a tape is used by the thread that opened it") {
  Tensor w = full({}, 2.0).requires_grad();
  Tape tape;
  Tensor y = w * w;
  std::string text;
  std::jthread([&] { text = error_of<TapeError>([&] { tape.backward(y); }); }).join();
  CHECK_THAT(text, contains("backward: this tape was opened by another thread"));
  tape.backward(y);
  CHECK(w.grad().item() == 4);
}

TEST_CASE("handles of one tensor are one parameter, with one gradient") {
  Tensor a = full({2}, 3.0, {.dtype = f64}).requires_grad();
  Tensor b = a;
  Tape tape({.persistent = true});
  Tensor y = sum(a * b * b);
  auto [ga, gb] = tape.gradient(y, a, b);
  CHECK(ga.to_vector<double>() == std::vector<double>{27, 27});
  CHECK(gb.to_vector<double>() == std::vector<double>{27, 27});
  int calls = 0;
  tape.hook(b, [&](const Tensor&) { ++calls; });
  tape.backward(y);
  CHECK(calls == 1);
  CHECK(a.grad().is(b.grad()));
  CHECK(a.grad().to_vector<double>() == std::vector<double>{27, 27});
}

TEST_CASE("a parameter under several names is trained once, by every thread that uses it") {
  struct Part : nn::Module {
    Part(nn::Module& parent, const char* name, const Tensor& shared)
        : Module(parent, name), weight(*this, "weight", shared) {}
    nn::Parameter weight;
  };
  struct Tied : nn::Module {
    nn::Parameter table{*this, "table", full({2}, 1.0, {.dtype = f64})};
    nn::Parameter again{*this, "again", table};
    Part first{*this, "first", table};
    Part second{*this, "second", again};
  };
  Tied model;
  std::vector<NamedTensor> named = model.named_parameters();
  REQUIRE(named.size() == 1);
  CHECK(named[0].name == "table");
  optim::SGD optimiser(model.parameters(), {.learning_rate = 0.5});
  constexpr int threads = 3;
  {
    std::vector<std::jthread> workers;
    for (int k = 0; k < threads; ++k)
      workers.emplace_back([&model] {
        Tape tape;
        tape.backward(sum(model.first.weight * 2 + model.second.weight + model.again * 0));
      });
  }
  CHECK(model.table.grad().to_vector<double>() == std::vector<double>(2, 3.0 * threads));
  CHECK(model.second.weight.grad().is(model.table.grad()));
  optimiser.step();
  CHECK(model.second.weight.to_vector<double>() == std::vector<double>(2, 1 - 0.5 * 3 * threads));
}

TEST_CASE("tensors made by a thread outlive it") {
  Tensor made;
  std::jthread([&] { made = full({100}, 3.0) * 2.0; }).join();
  CHECK(sum(made).item() == 600);
  made.reset();
  // The next thread adopts the ended one's heap.
  std::jthread([&] { made = full({100}, 1.0); }).join();
  CHECK(sum(made).item() == 100);
}
