#include "stack_overflow.h"

#include <csignal>
#include <cstddef>
#include <memory>
#include <string_view>

#include <unistd.h>

#include "../core/per_thread.h"

namespace reel::detail {

thread_local constinit Guard running_guard;

namespace {

// Where this thread handles signals: the stack at fault has no room. One of the program's own is left in place.
class SignalStack : Immovable {
 public:
  SignalStack() {
    stack_t now{};
    if (sigaltstack(nullptr, &now) != 0 || !(now.ss_flags & SS_DISABLE)) return;
    memory_ = std::make_unique<std::byte[]>(bytes);
    stack_t own{.ss_sp = memory_.get(), .ss_flags = 0, .ss_size = bytes};
    sigaltstack(&own, nullptr);
  }
  ~SignalStack() {
    stack_t now{}, none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
    if (memory_ && sigaltstack(nullptr, &now) == 0 && now.ss_sp == memory_.get()) sigaltstack(&none, nullptr);
  }

 private:
  static constexpr std::size_t bytes = 64 << 10;
  std::unique_ptr<std::byte[]> memory_;
};

// May only call what is safe in a signal handler.
void explain(int signal, siginfo_t* info, void*) {
  const auto* address = static_cast<const char*>(info->si_addr);
  if (info->si_code > 0 && address >= running_guard.begin && address < running_guard.end) {
    constexpr std::string_view text =
        "batch_map: an example's recursion has overflowed its stack; give batch_map a larger stack_bytes.\n";
    [[maybe_unused]] auto written = write(STDERR_FILENO, text.data(), text.size());
  }
  // On return the access is repeated, and ends the process. A signal that was sent is sent again.
  std::signal(signal, SIG_DFL);
  if (info->si_code <= 0) std::raise(signal);
}

// Returns false if the program handles the signal itself.
bool install() {
  struct sigaction before {};
  if (sigaction(SIGSEGV, nullptr, &before) != 0) return false;
  if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction == explain;
  if (before.sa_handler != SIG_DFL) return false;
  struct sigaction handler {};
  handler.sa_sigaction = explain;
  handler.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&handler.sa_mask);
  return sigaction(SIGSEGV, &handler, nullptr) == 0;
}

}  // namespace

void explain_stack_overflow() {
  static constinit PerThread<SignalStack> stack;
  if (install()) stack.get();
}

}  // namespace reel::detail
