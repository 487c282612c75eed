#include "background_task.h"

#include <signal.h>

#include <utility>

#include "../core/threads/waiting.h"

namespace reel::detail {

namespace {

constexpr std::chrono::milliseconds period(5);

}  // namespace

BackgroundTask::~BackgroundTask() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BackgroundTask::start_thread() {
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

void BackgroundTask::start(std::function<void()> function) {
  if (!thread_.joinable()) start_thread();
  function_ = std::move(function);
  // In one order with those of await_start: either this thread sees that the other sleeps, or that one sees the function.
  running_.store(true, std::memory_order_seq_cst);
  if (sleeps_.load(std::memory_order_seq_cst)) {
    {
      std::lock_guard lock(mutex_);
    }
    changed_.notify_all();
  }
}

void BackgroundTask::wait() {
  if (!is_running()) return;
  std::unique_lock lock(mutex_);
  if (!is_running()) return;
  hurries_ = true;
  changed_.notify_all();
  ObservedWait waiting("the thread that saves");
  changed_.wait(lock, [&] { return !is_running(); });
}

std::exception_ptr BackgroundTask::take_error() {
  if (!error_) return {};
  return std::exchange(error_, nullptr);
}

// False at the end.
bool BackgroundTask::await_start() {
  auto since = std::chrono::steady_clock::now();
  auto is_due = [&] { return hurries_ || ends_; };
  std::unique_lock lock(mutex_);
  while (!is_running()) {
    if (ends_) return false;
    if (std::chrono::steady_clock::now() - since < patience_.load()) {
      changed_.wait_for(lock, period, is_due);
      continue;
    }
    sleeps_.store(true, std::memory_order_seq_cst);
    changed_.wait(lock, [&] { return ends_ || running_.load(std::memory_order_seq_cst); });
    sleeps_.store(false, std::memory_order_seq_cst);
  }
  return true;
}

void BackgroundTask::run() {
  while (await_start()) {
    std::function<void()> function = std::exchange(function_, nullptr);
    try {
      function();
      error_ = nullptr;
    } catch (...) {
      error_ = std::current_exception();
    }
    function = nullptr;
    {
      std::lock_guard lock(mutex_);
      hurries_ = false;
      running_.store(false, std::memory_order_release);
    }
    changed_.notify_all();
  }
}

}  // namespace reel::detail
