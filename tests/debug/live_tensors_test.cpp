#include <reel/reel.h>

#include <atomic>
#include <cmath>
#include <optional>
#include <thread>

#include "catch.h"
#include "core/device/largest_tensors.h"

using namespace reel;
using debug::live_tensors;
using debug::LiveTensors;

namespace {

// The live tensors that a line of this file has made; empty if there are none.
std::optional<LiveTensors> made_by(int line) {
  for (const LiveTensors& found : live_tensors())
    if (found.made_at.line == line && std::string_view(found.made_at.file).ends_with("live_tensors_test.cpp"))
      return found;
  return {};
}

std::int64_t total_count() {
  std::int64_t count = 0;
  for (const LiveTensors& line : live_tensors()) count += line.count;
  return count;
}

std::size_t total_bytes() {
  std::size_t bytes = 0;
  for (const LiveTensors& line : live_tensors()) bytes += line.bytes;
  return bytes;
}

}  // namespace

TEST_CASE("living tensors are listed by the line that made them, most bytes first") {
  std::vector<Tensor> small, large;
  int first = __LINE__ + 1;
  for (int i = 0; i < 10; ++i) small.push_back(ones({i + 1, 5}));
  for (int i = 0; i < 3; ++i) large.push_back(zeros({100, 100}, {.dtype = f64}));
  small.erase(small.begin(), small.begin() + 4);

  LiveTensors found = *made_by(first);
  CHECK(found.count == 6);
  CHECK(found.bytes == (5 + 6 + 7 + 8 + 9 + 10) * 5 * 4);
  CHECK(found.saved_bytes == 0);
  CHECK(found.largest_shape == Shape{10, 5});
  CHECK(found.largest_dtype == f32);
  LiveTensors other = *made_by(first + 1);
  CHECK(other.count == 3);
  CHECK(other.bytes == 3 * 80'000);
  CHECK(other.largest_dtype == f64);

  std::vector<LiveTensors> all = live_tensors();
  for (std::size_t i = 1; i < all.size(); ++i) CHECK(all[i - 1].bytes >= all[i].bytes);
  CHECK(total_count() == memory_statistics().live_tensors);
  small.clear();
  CHECK_FALSE(made_by(first));
}

TEST_CASE("what has been freed and is kept for reuse is not listed") {
  std::int64_t before = total_count();
  for (int i = 0; i < 1000; ++i) Tensor gone = ones({i % 7 + 1, 2, 3});
  CHECK(total_count() == before);
  release_memory_cache();
  CHECK(total_count() == before);
}

TEST_CASE("views count as tensors, and the elements they share once, where they were made") {
  int line = __LINE__ + 1;
  Tensor base = ones({4, 6});
  Tensor row = base(1), transposed = transpose(base, 0, 1);
  CHECK(made_by(line)->bytes == 96);
  CHECK(made_by(line)->count == 1);
  CHECK(made_by(line + 1)->count == 2);
  CHECK(made_by(line + 1)->bytes == 0);
  // The remaining view keeps only the elements alive.
  base.reset();
  transposed.reset();
  CHECK_FALSE(made_by(line));
  CHECK(made_by(line + 1)->bytes == 96);
  CHECK(made_by(line + 1)->largest_shape == Shape{6});
}

TEST_CASE("parameters, their gradients and what an open tape keeps are listed, and how much that is") {
  int line = __LINE__ + 1;
  Tensor w = ones({50, 10}).requires_grad();
  std::size_t before = total_bytes();
  {
    Tape tape;
    Tensor loss;
    {
      Tensor y = tanh(w);
      loss = sum(y);
    }
    // The tape saves the result of tanh; the parameter is alive in any case.
    LiveTensors saved = *made_by(line + 6);
    CHECK(saved.count == 1);
    CHECK(saved.bytes == 2000);
    CHECK(saved.saved_bytes == 2000);
    CHECK(made_by(line)->saved_bytes == 0);
    tape.backward(loss);
    // Now that line's live tensor is the gradient.
    CHECK(made_by(line + 6)->count == 1);
    CHECK(made_by(line + 6)->saved_bytes == 0);
  }
  CHECK(made_by(line)->count == 1);
  CHECK(made_by(line)->bytes == 2000);
  CHECK(total_bytes() == before + 2000);
  w.set_grad({});
  CHECK(total_bytes() == before);
}

TEST_CASE("what a tape keeps is listed inside a checkpoint, too") {
  Tape tape;
  Tensor x = ones({10});
  tape.watch(x);
  int line = __LINE__ + 1;
  Tensor y = tanh(x);
  checkpoint(
      [&](const Tensor& x) {
        CHECK(made_by(line)->saved_bytes == 40);
        return x * x;
      },
      x);
}

TEST_CASE("a tensor that another thread frees is listed as long as it lives") {
  int line = __LINE__ + 1;
  std::vector<Tensor> handed(64, Tensor{}), large{ones({1 << 16}), ones({1 << 16})};
  for (Tensor& tensor : handed) tensor = ones({3});
  CHECK(made_by(line + 1)->count == 64);
  std::thread([mine = std::move(handed)]() mutable {
    mine.resize(10);
    mine.clear();
  }).join();
  CHECK_FALSE(made_by(line + 1));
  CHECK(made_by(line)->count == 2);
  std::thread([mine = std::move(large)]() mutable {
    mine.pop_back();
    mine.clear();
  }).join();
  CHECK_FALSE(made_by(line));
}

TEST_CASE("each thread lists what it has made, and a new one what an ended one has left") {
  Tensor left;
  int line = 0;
  std::thread([&] {
    line = __LINE__ + 1;
    left = ones({7});
    CHECK(made_by(line));
    CHECK(total_count() == memory_statistics().live_tensors);
  }).join();
  CHECK_FALSE(made_by(line));
  std::thread([&] {
    // This thread uses the heap of the ended thread.
    CHECK(made_by(line)->bytes == 28);
    Tensor own = ones({2});
    left.reset();
    CHECK_FALSE(made_by(line));
    CHECK(made_by(__LINE__ - 3));
  }).join();
}

TEST_CASE("a list can be had while other threads free tensors of this one") {
  int line = __LINE__ + 1;
  auto make = [](std::int64_t size) { return ones({size}); };
  std::int64_t before = total_count();
  std::vector<std::vector<Tensor>> shares(2);
  for (int i = 0; i < 20'000; ++i) shares[i % 2].push_back(make(i % 100 == 0 ? 20'000 : i % 9));
  std::atomic<int> ready = 0;
  std::vector<std::thread> threads;
  for (std::vector<Tensor>& share : shares)
    threads.emplace_back([&ready, mine = std::move(share)]() mutable {
      ++ready;
      for (Tensor& tensor : mine) tensor.reset();
    });
  while (ready < 2) std::this_thread::yield();
  std::int64_t last = 20'000;
  for (int i = 0; i < 20; ++i) {
    std::optional<LiveTensors> found = made_by(line);
    std::int64_t count = found ? found->count : 0;
    CHECK(count <= last);
    last = count;
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(made_by(line));
  CHECK(total_count() == before);
}

TEST_CASE("a tensor for which there was no memory leaves nothing behind") {
  std::int64_t before = total_count();
  CHECK_THROWS_AS(ones({std::int64_t{1} << 43}), MemoryError);
  CHECK_THROWS_AS(ones({std::int64_t{1} << 40, 1 << 20}), ShapeError);
  CHECK(total_count() == before);
}

TEST_CASE("an empty and an undefined tensor are no harm") {
  Tensor undefined;
  int line = __LINE__ + 1;
  Tensor empty = zeros({0, 3}), scalar = ones({});
  CHECK(made_by(line)->count == 2);
  CHECK(made_by(line)->bytes == 4);
}

TEST_CASE("the five lines whose tensors on a device are largest are named with their bytes, the largest first") {
  std::vector<Tensor> kept;
  std::vector<std::string> expected;
  auto keep = [&](Tensor x) { kept.push_back(std::move(x)); };
  std::string before = detail::largest_tensors(cpu);
  CHECK(before.find("live_tensors_test.cpp") == before.npos);
  keep(zeros({70, 100'000})), keep(zeros({60, 100'000})), keep(zeros({50, 100'000}, {.dtype = f64}));
  keep(zeros({40, 100'000}));
  int last = __LINE__ - 1;
  for (int i = 0; i < 2; ++i) keep(zeros({30, 100'000}));
  keep(zeros({10, 100'000}));
  keep(zeros({1, 100'000}));
  std::string text = detail::largest_tensors(cpu), file = "tests/debug/live_tensors_test.cpp:";
  CHECK(text == "92.0 MB at " + file + std::to_string(last - 1) +
                    " (3 tensors, the largest (50, 100000) f64), 24.0 MB at " + file + std::to_string(last + 2) +
                    " (2 tensors, the largest (30, 100000) f32), 16.0 MB at " + file + std::to_string(last) +
                    " (1 tensor, the largest (40, 100000) f32), 4.0 MB at " + file + std::to_string(last + 3) +
                    " (1 tensor, the largest (10, 100000) f32), 0.4 MB at " + file + std::to_string(last + 4) +
                    " (1 tensor, the largest (1, 100000) f32)");
  keep(zeros({80, 100'000}));
  text = detail::largest_tensors(cpu);
  CHECK(std::ranges::count(text, ')') == 10);
  CHECK(text.find("0.4 MB") == text.npos);
  CHECK(detail::largest_tensors(Device{.type = Device::Type::cuda}).empty());
}

TEST_CASE("the table of living tensors reads well") {
  std::vector<LiveTensors> lines = {
      {.made_at = {"../model.cpp", 12},
       .count = 250,
       .bytes = 12'000'000,
       .saved_bytes = 4'000'000,
       .largest_shape = {1000, 3},
       .largest_dtype = f32},
      {.made_at = {}, .count = 3, .bytes = 960, .largest_shape = {8}, .largest_dtype = bf16}};
  CHECK(to_string(lines) ==
        "        MB    on tape   tensors  largest        made at\n"
        "    12.000      4.000       250  (1000, 3) f32  model.cpp:12\n"
        "     0.001      0.000         3  (8,) bf16      unknown place\n"
        "    12.001      4.000       253                 in all\n");
  CHECK(to_string(std::vector<LiveTensors>{}) ==
        "        MB    on tape   tensors  largest  made at\n"
        "     0.000      0.000         0           in all\n");
}
