#pragma once

#include <functional>
#include <future>
#include <vector>

#include <reel/reel.h>

namespace reel_test {

/// One misuse of the library.
struct Misuse {
  const char* code;           ///< what the user does
  const char* expected;       ///< what is thrown, as "TapeError: sentence" without the place; … stands for anything
  std::function<void()> act;  ///< does it; empty where it does not compile
};

struct MisuseGroup {
  const char* title;
  std::vector<Misuse> rows;
};

// One group a source file.
MisuseGroup anomaly_misuse();
MisuseGroup custom_misuse();
MisuseGroup derivative_misuse();
MisuseGroup gradient_misuse();
MisuseGroup hook_misuse();
MisuseGroup overwrite_misuse();
MisuseGroup tensor_misuse();
MisuseGroup thread_misuse();

/// Calls f on a new thread, and rethrows its exception.
inline void on_thread(const std::function<void()>& f) { std::async(std::launch::async, f).get(); }

}  // namespace reel_test
