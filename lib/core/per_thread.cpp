#include "per_thread.h"

#include <pthread.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

namespace reel::detail {

thread_local constinit ThreadObjects thread_objects;

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

// Owns the memory of a thread's `thread_objects`. It is registered before the objects, so it ends after them.
struct ObjectTable : ThreadEndCallback {
  ObjectTable() : ThreadEndCallback{remove} {}
  static void remove(ThreadEndCallback& self) noexcept;

  std::unique_ptr<void*[]> objects;
};
thread_local constinit ObjectTable* table = nullptr;

void ObjectTable::remove(ThreadEndCallback& self) noexcept {
  thread_objects = {};
  table = nullptr;
  std::unique_ptr<ObjectTable> removed(static_cast<ObjectTable*>(&self));
}

void grow_table(std::size_t count) {
  auto objects = std::make_unique<void*[]>(count);
  if (!table) {
    auto made = std::make_unique<ObjectTable>();
    call_at_thread_end(*made);
    table = made.release();
  }
  std::copy_n(thread_objects.objects, thread_objects.count, objects.get());
  table->objects = std::move(objects);
  thread_objects = {table->objects.get(), count};
}

}  // namespace

void call_at_thread_end(ThreadEndCallback& callback) {
  // Any non-null value makes the key's destructor run.
  if (pthread_setspecific(thread_end_key(), static_cast<const void*>(&last_registered)) != 0) throw std::bad_alloc();
  callback.next = last_registered;
  last_registered = &callback;
}

void*& thread_object(std::atomic<std::uint32_t>& index) {
  static std::atomic<std::uint32_t> last_index = 0;
  std::uint32_t own = index.load(std::memory_order_relaxed);
  if (own == 0) {
    std::uint32_t next = last_index.fetch_add(1, std::memory_order_relaxed) + 1;
    if (index.compare_exchange_strong(own, next, std::memory_order_relaxed)) own = next;
  }
  // More than one at a time, as a thread that computes uses several.
  if (own >= thread_objects.count) grow_table(own + 16);
  return thread_objects.objects[own];
}

}  // namespace reel::detail
