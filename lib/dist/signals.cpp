#include "signals.h"

#include <pthread.h>

#include <csignal>

namespace reel::detail {

namespace {

bool holding = false, delivered = false;

sigset_t set_of(std::array<int, 3> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : signals) sigaddset(&set, signal);
  return set;
}

}  // namespace

std::array<int, 3> end_signals() { return {SIGINT, SIGTERM, SIGHUP}; }

void hold_signals() {
  sigset_t set = set_of(end_signals());
  holding = pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0;
}

void release_signals() {
  sigset_t set = set_of(end_signals());
  holding = false;
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

bool signal_was_delivered() { return delivered; }

std::array<bool, 3> held_signals() {
  std::array<bool, 3> held{};
  if (!holding) return held;
  sigset_t pending;
  sigpending(&pending);
  for (std::size_t i = 0; i < held.size(); ++i) held[i] = sigismember(&pending, end_signals()[i]) == 1;
  return held;
}

void deliver_held_signal(int signal) {
  if (!holding) return;
  delivered = true;
  sigset_t pending, one = set_of({signal, signal, signal});
  sigpending(&pending);
  // Handled twice, it would end the program at once.
  if (sigismember(&pending, signal) != 1) std::raise(signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  pthread_sigmask(SIG_BLOCK, &one, nullptr);
}

}  // namespace reel::detail
