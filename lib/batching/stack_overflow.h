#pragma once

namespace reel::detail {

/// The memory below the stack of the fibre that runs on this thread. It cannot be accessed.
struct Guard {
  const char* begin = nullptr;  // null: no fibre runs
  const char* end = nullptr;
};
extern thread_local constinit Guard running_guard __attribute__((tls_model("initial-exec")));

/// Makes an access to `running_guard` on this thread print a sentence before it ends the process, unless the program
/// handles SIGSEGV itself. Throws: std::bad_alloc.
void explain_stack_overflow();

}  // namespace reel::detail
