#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace reel::detail {

/// Runs one function at a time on a thread of its own, which starts with the first one.
class BackgroundTask {
 public:
  BackgroundTask() = default;
  /// Waits until the function has returned.
  ~BackgroundTask();
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  /// Starts a function; none may run.
  void start(std::function<void()> function);
  /// True while a function runs.
  bool is_running() const;
  /// Waits until the function has returned.
  void wait();
  /// The exception of the last function, once; null if there was none.
  std::exception_ptr take_error();

 private:
  void run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> function_;
  bool running_ = false, ends_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace reel::detail
