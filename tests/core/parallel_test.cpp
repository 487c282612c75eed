#include "core/threads/parallel.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "catch.h"
#include "thread_scope.h"

using reel::detail::parallel_for;
using reel_test::Threads;

namespace {

// Returns true if each iteration of a loop runs once, in pieces that begin at multiples of the grain.
bool takes_each_step_once(std::int64_t count, std::int64_t grain) {
  std::vector<std::atomic<int>> taken(static_cast<std::size_t>(count));
  std::atomic<bool> aligned = true;
  parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
    if (begin % grain != 0 || begin >= end) aligned = false;
    for (std::int64_t i = begin; i < end; ++i) ++taken[static_cast<std::size_t>(i)];
  });
  for (const std::atomic<int>& times : taken)
    if (times != 1) return false;
  return aligned;
}

}  // namespace

TEST_CASE("a loop over several threads takes each step once") {
  for (int threads : {1, 2, 3, 7}) {
    Threads several(threads);
    for (std::int64_t count : {0, 1, 2, 63, 64, 65, 1000, 4097})
      for (std::int64_t grain : {1, 3, 64, 5000}) {
        CAPTURE(threads, count, grain);
        CHECK(takes_each_step_once(count, grain));
      }
  }
}

TEST_CASE("a loop over several threads may start others, and others may run beside it") {
  Threads several(3);
  std::atomic<int> wrong = 0;
  auto many = [&] {
    for (int i = 0; i < 200; ++i) wrong += !takes_each_step_once(100, 1);
  };
  std::thread other(many);
  many();
  other.join();
  parallel_for(8, 1, [&](std::int64_t, std::int64_t) { wrong += !takes_each_step_once(50, 1); });
  CHECK(wrong == 0);
}

TEST_CASE("what a piece throws comes out of the loop, and the next loop runs") {
  Threads several(2);
  for (std::int64_t thrower : {0, 99}) {
    auto loop = [&] {
      parallel_for(100, 1, [&](std::int64_t begin, std::int64_t end) {
        if (begin <= thrower && thrower < end) throw std::runtime_error("piece");
      });
    };
    CHECK_THROWS_WITH(loop(), "piece");
    CHECK(takes_each_step_once(100, 1));
  }
}

TEST_CASE("a forked process runs loops without the threads of its parent") {
  Threads several(2);
  CHECK(takes_each_step_once(1000, 1));
  pid_t child = fork();
  if (child == 0) _exit(takes_each_step_once(1000, 1) ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}
