#pragma once

#include <atomic>
#include <exception>
#include <thread>

namespace reel_test {

/// Two calls on two threads that overlap: the one that enters first goes on when the other one has entered, which waits
/// until the first has ended.
class Overlap {
 public:
  /// Called within each of the two calls.
  void enter() {
    bool is_first = entered_++ == 0;
    while (is_first ? entered_ < 2 && !failed_ : !ended_) std::this_thread::yield();
  }
  /// Runs both; returns true if both return true.
  template <class F, class G>
  bool run(F f, G g) {
    entered_ = 0;
    ended_ = failed_ = false;
    bool of_f = false;
    std::thread other([&] { of_f = holds(f); });
    bool of_g = holds(g);
    other.join();
    return of_f && of_g;
  }

 private:
  template <class F>
  bool holds(F f) noexcept {
    bool held = false;
    try {
      held = f();
    } catch (const std::exception&) {
      failed_ = true;
    }
    ended_ = true;
    return held;
  }

  std::atomic<int> entered_ = 0;
  std::atomic<bool> ended_ = false, failed_ = false;
};

}  // namespace reel_test
