#pragma once

#include <reel/threads.h>

namespace reel_test {

/// Sets the number of threads during its lifetime.
class Threads {
 public:
  explicit Threads(int count) : before_(reel::thread_count()) { reel::set_thread_count(count); }
  ~Threads() { reel::set_thread_count(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace reel_test
