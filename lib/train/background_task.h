#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include <reel/detail/immovable.h>

namespace reel::detail {

/// Runs one function at a time on a thread of its own, which starts with the first one. The thread looks for the next
/// function every few milliseconds, so that starting one costs the caller no system call; after a minute without one it
/// sleeps until it is woken.
class BackgroundTask : Immovable {
 public:
  BackgroundTask() = default;
  /// Waits until the function has returned.
  ~BackgroundTask();

  /// Starts a function within some milliseconds, or at once if `wait` is called; none may run.
  void start(std::function<void()> function);
  /// True from the start of a function until it has returned.
  bool is_running() const { return running_.load(std::memory_order_acquire); }
  /// Waits until the function has returned.
  void wait();
  /// The exception of the last function, once; null if there was none. No function may run.
  std::exception_ptr take_error();

  /// For how long after a function the thread looks for the next one before it sleeps. Default: a minute.
  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }

 private:
  void start_thread();
  bool await_start();
  void run();

  // Used by the thread that starts functions while running_ is false, else by the one that runs them.
  std::function<void()> function_;
  std::exception_ptr error_;
  std::atomic<bool> running_ = false;

  std::atomic<std::chrono::milliseconds> patience_ = std::chrono::milliseconds(60000);
  std::atomic<bool> sleeps_ = false;  // until it is woken
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hurries_ = false, ends_ = false;  // with mutex_
  std::thread thread_;
};

}  // namespace reel::detail
