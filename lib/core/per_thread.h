#pragma once

#include <cstddef>
#include <memory>
#include <new>

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

/// A T of each thread, made at its first use: `static thread_local constinit PerThread<T> cache;`. If the constructor
/// throws, the next use tries again. A thread_local T would be treated as constructed, or be used unconstructed, after
/// its constructor has thrown, and the process would abort if there is no memory to register its destructor.
template <class T>
class PerThread : private ThreadEndCallback {
 public:
  constexpr PerThread() = default;
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  /// The thread's object; its first use constructs it from make(). Throws: std::bad_alloc, and what make() throws.
  template <class Make>
  T& get(Make make) {
    if (!made_) [[unlikely]] {
      if (!run) call_at_thread_end(*this);
      run = destroy;
      ::new (static_cast<void*>(memory_)) T(make());
      made_ = true;
    }
    return *std::launder(reinterpret_cast<T*>(memory_));
  }
  T& get() {
    return get([] { return T(); });
  }

 private:
  static void destroy(ThreadEndCallback& self) noexcept {
    auto& mine = static_cast<PerThread&>(self);
    mine.run = nullptr;  // it may be constructed again by callbacks that run later
    if (!mine.made_) return;
    mine.made_ = false;
    std::destroy_at(std::launder(reinterpret_cast<T*>(mine.memory_)));
  }

  bool made_ = false;
  alignas(T) std::byte memory_[sizeof(T)] = {};
};

}  // namespace reel::detail
