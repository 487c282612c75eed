#include "train/background_task.h"

#include <time.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "catch.h"

using reel::detail::BackgroundTask;
using namespace std::chrono_literals;

TEST_CASE("functions run one after another in the background, whether their thread looks for them or sleeps") {
  for (std::chrono::milliseconds patience : {60000ms, 0ms, 8ms}) {
    CAPTURE(patience.count());
    BackgroundTask task;
    task.set_patience(patience);
    int count = 0;  // only used by one thread at a time
    for (int i = 1; i <= 300; ++i) {
      task.start([&] { ++count; });
      // Sometimes without waiting, and sometimes after the thread's patience has ended.
      if (i % 3 == 0)
        while (task.is_running()) std::this_thread::yield();
      else
        task.wait();
      CHECK_FALSE(task.is_running());
      REQUIRE(count == i);
      if (i % 100 == 0) std::this_thread::sleep_for(15ms);
    }
  }
}

TEST_CASE("a function of the background starts within some milliseconds though nobody waits for it") {
  BackgroundTask task;
  std::atomic<bool> ran = false;
  task.start([&] { ran = true; });
  auto begin = std::chrono::steady_clock::now();
  while (!ran && std::chrono::steady_clock::now() - begin < 60s) std::this_thread::sleep_for(1ms);
  CHECK(ran);
}

TEST_CASE("the end of a background task waits for its function, and its error is given once") {
  std::atomic<bool> ended = false;
  {
    BackgroundTask task;
    CHECK_FALSE(task.take_error());
    task.start([] { throw std::runtime_error("full"); });
    task.wait();
    std::exception_ptr error = task.take_error();
    REQUIRE(error);
    CHECK_THROWS_WITH(std::rethrow_exception(error), "full");
    CHECK_FALSE(task.take_error());
    task.start([] {});
    task.wait();
    CHECK_FALSE(task.take_error());
    task.start([&] {
      std::this_thread::sleep_for(20ms);
      ended = true;
    });
  }
  CHECK(ended);
}

TEST_CASE("a thread that waits does not make the next wait of the background busy") {
  BackgroundTask task;
  for (int i = 0; i < 3; ++i) {
    task.start([] {});
    task.wait();
    task.wait();
  }
  timespec before{}, after{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  std::this_thread::sleep_for(200ms);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  double seconds =
      static_cast<double>(after.tv_sec - before.tv_sec) + 1e-9 * static_cast<double>(after.tv_nsec - before.tv_nsec);
  CHECK(seconds < 0.05);
}
