#include <reel/reel.h>

#include <thread>

#include "catch.h"

using namespace reel;

namespace {

// Sanitizer builds return every block to the system at once.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool caches = false;
#else
constexpr bool caches = true;
#endif

// Freed after main, when thread-locals are destroyed.
Tensor outlives_main = full({100}, 3);

struct Live {
  std::int64_t tensors, storages;
  std::size_t bytes;
  friend bool operator==(const Live&, const Live&) = default;
};
Live live() {
  MemoryStatistics now = memory_statistics();
  return {now.live_tensors, now.live_storages, now.live_bytes};
}

}  // namespace

TEST_CASE("nothing is left when the scopes of tensors end") {
  Live before = live();
  {
    Tensor x = zeros({100, 100}), y = transpose(x), z = x + 1;
    Live within = live();
    CHECK(within.tensors == before.tensors + 3);
    CHECK(within.storages == before.storages + 2);
    CHECK(within.bytes >= before.bytes + 2 * 40'000);
    CHECK_THROWS(x + zeros({3}));
    CHECK(live() == within);
  }
  CHECK(live() == before);
}

TEST_CASE("a view keeps the elements of a tensor that is gone, whatever its size") {
  for (std::int64_t size : {3, 64, 1000, 100'000}) {
    INFO("size := " << size);
    Live before = live();
    Tensor view;
    {
      Tensor x = arange(size, {.dtype = f32});
      view = slice(x, 0, 1, 3);
      CHECK(live().tensors == before.tensors + 2);
    }
    CHECK(live().tensors == before.tensors + 1);
    CHECK(live().storages == before.storages + 1);
    // Tensors that are made meanwhile must not reuse its memory.
    Tensor others[] = {full({size}, 7), full({size}, 8)};
    CHECK(view.to_vector<float>() == std::vector<float>{1, 2});
    for (Tensor& other : others) other.reset();
    Tensor of_view = unsqueeze(view, 0);
    view.reset();
    CHECK(of_view.to_vector<float>() == std::vector<float>{1, 2});
    of_view.reset();
    CHECK(live() == before);
  }
}

TEST_CASE("a tensor and its view may be freed by different threads in any order") {
  for (bool view_first : {true, false})
    for (std::int64_t size : {3, 100'000}) {
      Live before = live();
      for (int round = 0; round < 100; ++round) {
        Tensor x = full({size}, 5), view = slice(x, 0, 0, 2);
        Tensor& freed = view_first ? view : x;
        std::thread other([&freed] { freed.reset(); });
        if (round % 2 == 0) other.join();
        Tensor& kept = view_first ? x : view;
        CHECK(kept.data<float>()[0] == 5);
        kept.reset();
        if (round % 2 != 0) other.join();
      }
      CHECK(live() == before);
    }
}

TEST_CASE("nothing is left of a tape, its parameters and its gradients") {
  Live before = live();
  {
    Tensor w = randn({8, 4}).requires_grad(), x = randn({3, 8});
    for (int step = 0; step < 3; ++step) {
      Tape tape;
      tape.backward(mean(square(tanh(matmul(x, w)))));
    }
    CHECK(w.grad().defined());
  }
  CHECK(live() == before);
}

TEST_CASE("a freed block serves the next tensor of its size") {
  for (std::int64_t size : {1, 64, 1000, 1 << 20}) {
    CAPTURE(size);
    const float* block;
    {
      Tensor x = zeros({size});
      block = x.data<float>();
    }
    Tensor y = zeros({size});
    if (caches) CHECK(y.data<float>() == block);
  }
}

TEST_CASE("a freed block of up to twice the size serves a tensor for which there is none") {
  if (!caches) return;
  auto held = [] { return memory_statistics().live_bytes + memory_statistics().cached_bytes; };
  for (std::int64_t size : {100, 10'000, 1'000'000}) {
    CAPTURE(size);
    release_memory_cache();
    { Tensor larger = zeros({size + size * 3 / 4}); }
    std::size_t before = held();
    {
      Tensor x = zeros({size});
      CHECK(held() == before);
      Tensor y = zeros({size});  // now the only tensor
      CHECK(held() > before);
    }
    release_memory_cache();
    { Tensor much_larger = zeros({size * 3}); }
    before = held();
    Tensor x = zeros({size});
    CHECK(held() > before);
  }
}

TEST_CASE("what many steps of a tape have not touched goes back to the system") {
  if (!caches) return;
  release_memory_cache();
  Tensor w = ones({10'000}).requires_grad();
  auto step = [&] {
    Tape tape;
    Tensor h = w;
    for (int i = 0; i < 20; ++i) h = tanh(h);
    tape.backward(sum(h));
  };
  step();
  std::size_t before = memory_statistics().cached_bytes;
  { Tensor once = zeros({1'000'000}); }
  CHECK(memory_statistics().cached_bytes >= before + 4'000'000);
  for (int i = 0; i < 50; ++i) step();
  CHECK(memory_statistics().cached_bytes >= before + 4'000'000);
  for (int i = 0; i < 1000; ++i) step();
  CHECK(memory_statistics().cached_bytes < before + 1'000'000);
  // The blocks that the steps use are still cached.
  std::size_t peak = memory_statistics().peak_bytes;
  for (int i = 0; i < 500; ++i) step();
  CHECK(memory_statistics().cached_bytes > before / 2);
  CHECK(memory_statistics().peak_bytes == peak);
}

TEST_CASE("elements are aligned to 64 bytes") {
  for (std::int64_t size : {1, 3, 100, 5000, 1 << 18})
    CHECK(reinterpret_cast<std::uintptr_t>(zeros({size}).data<float>()) % 64 == 0);
}

TEST_CASE("what is kept for reuse stays under the limit") {
  constexpr std::size_t usual = std::size_t{1} << 30;
  release_memory_cache();
  CHECK(memory_statistics().cached_bytes == 0);
  set_memory_cache_limit(1 << 20);
  { Tensor x = zeros({1 << 20}); }
  CHECK(memory_statistics().cached_bytes <= 1 << 20);
  {
    std::vector<Tensor> many;
    for (int i = 0; i < 100; ++i) many.push_back(zeros({10'000}));
  }
  CHECK(memory_statistics().cached_bytes <= 1 << 20);
  if (caches) CHECK(memory_statistics().cached_bytes > 1 << 19);
  set_memory_cache_limit(0);
  CHECK(memory_statistics().cached_bytes == 0);
  set_memory_cache_limit(usual);
  { Tensor x = zeros({1 << 20}); }
  if (caches) CHECK(memory_statistics().cached_bytes >= 4 << 20);
}

TEST_CASE("the peak is the most that was in use") {
  std::size_t before = memory_statistics().live_bytes;
  { Tensor x = zeros({std::int64_t{1} << 22}); }
  CHECK(memory_statistics().peak_bytes >= before + (std::size_t{1} << 24));
  CHECK(memory_statistics().live_bytes == before);
}

TEST_CASE("tensors freed by another thread come back to the thread that made them") {
  Live before = live();
  std::vector<Tensor> made;
  for (int i = 0; i < 100; ++i) made.push_back(zeros({50}));
  std::thread([handed = std::move(made)]() mutable { handed.clear(); }).join();
  CHECK(live() == before);
}

TEST_CASE("frees by many threads at once lose no block") {
  Live before = live();
  for (int round = 0; round < 20; ++round) {
    std::vector<Tensor> shared;
    for (int i = 0; i < 64; ++i) shared.push_back(zeros({32}));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([copies = shared]() mutable {
        for (Tensor& tensor : copies) {
          Tensor sum = tensor + 1;
          tensor.reset();
        }
      });
    shared.clear();
    for (std::thread& thread : threads) thread.join();
  }
  CHECK(live() == before);
}

TEST_CASE("tensors outlive the thread that made them") {
  Tensor kept;
  std::thread([&] { kept = full({10}, 2); }).join();
  CHECK(kept.to_vector<float>() == std::vector<float>(10, 2.f));
  Tensor sum = kept + kept;
  CHECK(sum.to_vector<float>() == std::vector<float>(10, 4.f));
  kept.reset();
}

TEST_CASE("what a thread kept for reuse goes back to the system when it ends") {
  std::size_t kept = 0, taken_over = 1;
  std::thread([&] {
    static_cast<void>(zeros({777}));
    kept = memory_statistics().cached_bytes;
  }).join();
  std::thread([&] { taken_over = memory_statistics().cached_bytes; }).join();
  if (caches) CHECK(kept > 0);
  CHECK(taken_over == 0);
}

TEST_CASE("large storages that another thread frees do not wait for their owner") {
  std::int64_t before = memory_statistics().live_storages;
  std::size_t bytes = memory_statistics().live_bytes;
  Tensor large = zeros({1 << 16});
  std::thread([&] { large.reset(); }).join();
  CHECK(memory_statistics().live_storages == before);
  CHECK(memory_statistics().live_bytes == bytes);
}

TEST_CASE("every thread draws from a stream of its own") {
  auto drawn_by_a_thread = [] {
    std::vector<float> drawn;
    std::thread([&] { drawn = rand({8}).to_vector<float>(); }).join();
    return drawn;
  };
  std::vector<float> first = drawn_by_a_thread();
  std::thread([] { manual_seed(99); }).join();
  std::vector<float> second = drawn_by_a_thread();
  manual_seed(99);
  CHECK(first != second);
  CHECK(second != rand({8}).to_vector<float>());
}

TEST_CASE("a tensor at file scope and one of a thread-local live as long as they must") {
  CHECK(outlives_main.to_vector<float>()[99] == 3);
  std::thread([] {
    static thread_local Tensor late;
    late = zeros({10});
  }).join();
}
