#include <reel/detail/fork_safe_mutex.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "catch.h"

using namespace reel;

namespace {

// Calls f in a forked process, which a signal ends if it hangs. Returns true if f returned true.
template <class F>
bool holds_in_child(F f) {
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(f() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0;
}

// Threads that call functions until the end of the scope.
class Busy {
 public:
  template <class... F>
  explicit Busy(F... functions) {
    (threads_.emplace_back([this, functions] {
      while (!ends_) functions();
    }),
     ...);
  }
  ~Busy() {
    ends_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  std::atomic<bool> ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("a forked process can lock a fork-safe mutex that another thread held") {
  detail::ForkSafeMutex mutex;
  std::atomic<bool> locked = false;
  std::thread holder([&] {
    std::lock_guard lock(mutex);
    locked = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  });
  while (!locked) std::this_thread::yield();
  CHECK(holds_in_child([&] {
    bool free = mutex.try_lock();
    if (free) mutex.unlock();
    return free;
  }));
  holder.join();
  CHECK(mutex.try_lock());
  mutex.unlock();
}

TEST_CASE("fork ends though threads lock several fork-safe mutexes in any order, and make and destroy others") {
  detail::ForkSafeMutex a, b, c;
  auto both = [](detail::ForkSafeMutex& first, detail::ForkSafeMutex& second) {
    std::lock_guard outer(first);
    std::lock_guard inner(second);
  };
  // One order for each pair, so that only fork() could wait for ever.
  Busy busy([&] { both(a, b); }, [&] { both(b, c); }, [&] { both(a, c); }, [] { detail::ForkSafeMutex made; });
  for (int i = 0; i < 30; ++i)
    CHECK(holds_in_child([&] {
      both(a, b), both(b, c);
      return true;
    }));
}

TEST_CASE("a forked process computes gradients and runs hooks, whatever other threads of its parent are doing") {
  Tensor w = ones({8, 8}).requires_grad();
  nn::Linear layer(8, 8);
  auto hook = layer.after_forward([](std::span<Tensor>) {});
  auto differentiate = [&] {
    Tape tape;
    tape.backward(sum(layer(matmul(w, w))));
  };
  Busy busy(differentiate, differentiate, [&] {
    NoRecord pause;
    layer(w);
  });
  for (int i = 0; i < 60; ++i)
    CHECK(holds_in_child([&] {
      differentiate();
      return w.grad().defined();
    }));
}
