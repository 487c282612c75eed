#include "shared_mapping.h"

#include <sys/mman.h>

#include <csignal>

namespace reel::debug {

// Testing the size of the file before each access would cost a system call, and not be safe.
struct SharedMapping::Handler {
  static thread_local constinit SharedMapping* newest __attribute__((tls_model("initial-exec")));
  static inline struct sigaction before = {};

  static void install() {
    [[maybe_unused]] static const int installed = [] {
      struct sigaction action = {};
      action.sa_sigaction = handle;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      sigemptyset(&action.sa_mask);
      return sigaction(SIGBUS, &action, &before);
    }();
  }

  // May only call what is safe in a signal handler.
  static void handle(int signal, siginfo_t* info, void*) {
    const auto* address = static_cast<const char*>(info->si_addr);
    for (SharedMapping* one = newest; one && info->si_code > 0; one = one->older_) {
      if (address < one->data_ || address >= one->data_ + one->bytes_) continue;
      one->is_truncated_.store(true, std::memory_order_relaxed);
      constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
      if (mmap(one->data_, one->bytes_, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED) return;
    }
    // On return the access is repeated, with what the program had for it. A signal that was sent is sent again.
    sigaction(signal, &before, nullptr);
    if (info->si_code <= 0) std::raise(signal);
  }
};

thread_local constinit SharedMapping* SharedMapping::Handler::newest = nullptr;

SharedMapping::SharedMapping(int file, std::size_t offset, std::size_t bytes) noexcept : bytes_(bytes) {
  Handler::install();
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) return;
  data_ = static_cast<char*>(mapped);
  older_ = Handler::newest;
  Handler::newest = this;
}

SharedMapping::~SharedMapping() {
  if (!data_) return;
  SharedMapping** link = &Handler::newest;
  while (*link && *link != this) link = &(*link)->older_;
  if (*link) *link = older_;
  munmap(data_, bytes_);
}

}  // namespace reel::debug
