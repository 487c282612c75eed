#include <reel/detail/fork_safe_mutex.h>

#include <pthread.h>

#include <memory>
#include <utility>
#include <vector>

namespace reel::detail {
namespace {

struct ForkSafeMutexes {
  std::mutex mutex;
  std::vector<std::mutex*> all;

  // A thread may hold several in any order, so that none is held while another one is awaited.
  void lock() {
    mutex.lock();
    for (std::size_t held = 0; held < all.size();) {
      if (held == 0) all[0]->lock();
      if (held == 0 || all[held]->try_lock()) {
        ++held;
        continue;
      }
      std::swap(all[0], all[held]);
      for (std::size_t i = 1; i < held; ++i) all[i]->unlock();
      all[std::exchange(held, 0)]->unlock();
    }
  }
  void unlock() {
    for (std::mutex* one : all) one->unlock();
    mutex.unlock();
  }
};

ForkSafeMutexes& mutexes() {
  static auto& made = [&]() -> auto& {
    auto unlock = [] { mutexes().unlock(); };
    pthread_atfork([] { mutexes().lock(); }, unlock, unlock);
    return *std::make_unique<ForkSafeMutexes>().release();
  }();
  return made;
}

}  // namespace

ForkSafeMutex::ForkSafeMutex() {
  std::lock_guard lock(mutexes().mutex);
  mutexes().all.push_back(this);
}

ForkSafeMutex::~ForkSafeMutex() {
  std::lock_guard lock(mutexes().mutex);
  std::erase(mutexes().all, this);
}

}  // namespace reel::detail
