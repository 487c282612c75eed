#include "core/per_thread.h"

#include <stdexcept>
#include <thread>
#include <vector>

#include "catch.h"

using namespace reel::detail;

namespace {

// The log of the objects below, in order. One thread at a time writes.
std::vector<int> ended;
constinit int made = 0;

struct Counted {
  explicit Counted(int number) : number(number) { ++made; }
  ~Counted() { ended.push_back(number); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  int number;
};

constinit PerThread<Counted> first, second;
constinit PerThread<int> numbers[200];

struct UsesFirst {
  UsesFirst() = default;
  ~UsesFirst() {
    first.get([] { return Counted(7); });
  }
  UsesFirst(const UsesFirst&) = delete;
  UsesFirst& operator=(const UsesFirst&) = delete;
};
constinit PerThread<UsesFirst> late;

template <class F>
void run_in_thread(F f) {
  std::thread(f).join();
}

}  // namespace

TEST_CASE("each thread has an object of its own, made once and destroyed with the thread, the last one first") {
  ended.clear();
  made = 0;
  run_in_thread([] {
    Counted& one = first.get([] { return Counted(1); });
    second.get([] { return Counted(2); });
    if (&first.get([] { return Counted(3); }) != &one) throw std::logic_error("it was made again");
  });
  CHECK(made == 2);
  CHECK(ended == std::vector{2, 1});
  run_in_thread([] { first.get([] { return Counted(4); }); });
  CHECK(ended == std::vector{2, 1, 4});
}

TEST_CASE("an object whose constructor throws is made at the next use") {
  ended.clear();
  bool threw = false;
  run_in_thread([&] {
    try {
      first.get([]() -> Counted { throw std::runtime_error("refused"); });
    } catch (const std::runtime_error&) {
      threw = true;
    }
    first.get([] { return Counted(5); });
  });
  CHECK(threw);
  CHECK(ended == std::vector{5});
}

TEST_CASE("an object that a destructor at the end of its thread makes again is destroyed, too") {
  ended.clear();
  run_in_thread([] {
    late.get();
    first.get([] { return Counted(6); });
  });
  CHECK(ended == std::vector{6, 7});
}

TEST_CASE(
    "objects of many variables keep their addresses and values while others are made, on several threads at once") {
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([thread, &wrong] {
      std::vector<int*> found;
      for (int i = 0; i < 200; ++i) {
        int* object = &numbers[(i * 7 + thread) % 200].get([&] { return 1000 * thread + i; });
        found.push_back(object);
      }
      for (int i = 0; i < 200; ++i)
        wrong[thread] += *found[i] != 1000 * thread + i || found[i] != &numbers[(i * 7 + thread) % 200].get();
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4));
}
