#include "per_thread.h"

#include <pthread.h>

#include <new>
#include <utility>

namespace reel::detail {
namespace {

thread_local constinit ThreadEndCallback* last_registered = nullptr;

extern "C" void run_thread_end_callbacks(void*) {
  while (ThreadEndCallback* callback = last_registered) {
    last_registered = std::exchange(callback->next, nullptr);
    callback->run(*callback);
  }
}

pthread_key_t thread_end_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    if (pthread_key_create(&made, run_thread_end_callbacks) != 0) throw std::bad_alloc();
    return made;
  }();
  return key;
}

}  // namespace

void call_at_thread_end(ThreadEndCallback& callback) {
  // Any non-null value makes the key's destructor run.
  if (pthread_setspecific(thread_end_key(), static_cast<const void*>(&last_registered)) != 0) throw std::bad_alloc();
  callback.next = last_registered;
  last_registered = &callback;
}

}  // namespace reel::detail
