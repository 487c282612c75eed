#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <reel/detail/immovable.h>

namespace reel::detail {

/// A member of an object that a thread owns: called when that thread ends.
struct ThreadEndCallback {
  void (*run)(ThreadEndCallback& self) noexcept = nullptr;
  ThreadEndCallback* next = nullptr;  // the callback registered before
};

/// Calls `callback.run(callback)` when this thread ends, after the destructors of its thread_local variables; the
/// callback registered last runs first. The main thread ends with the process, which runs none.
/// Throws: std::bad_alloc.
void call_at_thread_end(ThreadEndCallback& callback);

/// The objects that a thread has made of PerThread variables, by the variables' indices.
struct ThreadObjects {
  void** objects = nullptr;  // the first one belongs to no variable and is null
  std::size_t count = 0;
};
extern thread_local constinit ThreadObjects thread_objects __attribute__((tls_model("initial-exec")));

/// The place of a variable's object in this thread's `thread_objects`. A variable with the index 0 has none yet and
/// gets one. Throws: std::bad_alloc.
void*& thread_object(std::atomic<std::uint32_t>& index);

/// A T of each thread, made at its first use: `static constinit PerThread<T> cache;`. If the constructor throws, the
/// next use tries again. A thread_local T would be treated as constructed, or be used unconstructed, after its
/// constructor has thrown, and the process would abort if there is no memory to register its destructor. It would also
/// need memory that a program which opens the library later, such as Python, has kept free for it.
template <class T>
class PerThread : Immovable {
 public:
  constexpr PerThread() = default;

  /// The thread's object; its first use constructs it from make(). Throws: std::bad_alloc, and what make() throws.
  template <class Make>
  T& get(Make make) {
    std::uint32_t index = index_.load(std::memory_order_relaxed);
    if (index < thread_objects.count) [[likely]]
      if (void* object = thread_objects.objects[index]) [[likely]]
        return static_cast<Object*>(object)->value;
    return make_object(make);
  }
  T& get() {
    return get([] { return T(); });
  }

 private:
  struct Object : ThreadEndCallback {
    template <class Make>
    explicit Object(Make& make) : ThreadEndCallback{destroy}, value(make()) {}
    T value;
    std::uint32_t index = 0;
  };

  template <class Make>
  T& make_object(Make& make) {
    auto object = std::make_unique<Object>(make);
    void*& place = thread_object(index_);  // after make(), which may move it
    object->index = index_.load(std::memory_order_relaxed);
    call_at_thread_end(*object);
    place = object.get();
    return object.release()->value;
  }

  static void destroy(ThreadEndCallback& self) noexcept {
    std::unique_ptr<Object> object(static_cast<Object*>(&self));
    thread_objects.objects[object->index] = nullptr;  // callbacks that run later may construct it again
  }

  std::atomic<std::uint32_t> index_ = 0;
};

}  // namespace reel::detail
