#include <reel/train/interruption.h>

#include <signal.h>

#include <array>
#include <atomic>
#include <string>

#include "../core/threads/waiting.h"
#include "interruption_handler.h"

namespace reel::train {

namespace {

// Global, because a signal handler has no other access.
std::atomic<bool> lives = false;
std::atomic<int> arrived = 0;
std::atomic<bool> reported = false;
static_assert(std::atomic<int>::is_always_lock_free, "only such may be used by a signal's handler");

struct Handled {
  int number;
  const char* name;
};
constexpr std::array handled{Handled{SIGINT, "SIGINT"}, Handled{SIGTERM, "SIGTERM"}, Handled{SIGHUP, "SIGHUP"}};
// The former actions of the signals.
std::array<struct sigaction, handled.size()> before;

void on_signal(int signal) {
  int none = 0;
  if (arrived.compare_exchange_strong(none, signal)) return;
  // A terminal that closes sends SIGHUP, and so does the shell in it: that is one wish, and not two.
  if (signal == SIGHUP) return;
  // Delivered when this handler returns.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  raise(signal);
}

std::string name_of(int signal) {
  for (const Handled& one : handled)
    if (one.number == signal) return one.name;
  return "signal " + std::to_string(signal);
}

}  // namespace

Interrupted::Interrupted(int signal) : std::runtime_error("interrupted by " + name_of(signal)), signal_(signal) {}

Interruption::Interruption() {
  if (lives.exchange(true)) throw std::logic_error("reel::train::Interruption: another one lives in this program");
  detail::throw_if_interrupted = check_interruption;
  for (std::size_t i = 0; i < handled.size(); ++i) {
    sigaction(handled[i].number, nullptr, &before[i]);
    if (before[i].sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(handled[i].number, &action, nullptr);
  }
}

Interruption::~Interruption() {
  for (std::size_t i = 0; i < handled.size(); ++i) sigaction(handled[i].number, &before[i], nullptr);
  int signal = arrived.exchange(0);
  bool is_reported = reported.exchange(false);
  detail::throw_if_interrupted = nullptr;
  lives = false;
  if (signal != 0 && !is_reported) raise(signal);
}

void check_interruption() {
  int signal = arrived.load(std::memory_order_relaxed);
  if (signal == 0) return;
  reported = true;
  throw Interrupted(signal);
}

}  // namespace reel::train

namespace reel::detail {

bool interruption_lives() { return train::lives; }

}  // namespace reel::detail
