#include "background_task.h"

#include <signal.h>

#include <utility>

namespace reel::detail {

BackgroundTask::~BackgroundTask() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BackgroundTask::start(std::function<void()> function) {
  std::lock_guard lock(mutex_);
  function_ = std::move(function);
  if (!thread_.joinable()) {
    // Signals are for the threads of the program.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { run(); });
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  running_ = true;
  changed_.notify_all();
}

bool BackgroundTask::is_running() const {
  std::lock_guard lock(mutex_);
  return running_;
}

void BackgroundTask::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !running_; });
}

std::exception_ptr BackgroundTask::take_error() {
  std::lock_guard lock(mutex_);
  return std::exchange(error_, nullptr);
}

void BackgroundTask::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return running_ || ends_; });
    if (!running_) return;
    std::function<void()> function = std::move(function_);
    lock.unlock();
    std::exception_ptr error;
    try {
      function();
    } catch (...) {
      error = std::current_exception();
    }
    function = nullptr;
    lock.lock();
    error_ = error;
    running_ = false;
    changed_.notify_all();
  }
}

}  // namespace reel::detail
