#pragma once

#include <fmt/format.h>

#include <reel/c.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace reel::detail {

/// An error of an argument of the C interface.
class Refusal : public std::runtime_error {
 public:
  Refusal(reel_status status, const std::string& sentence) : std::runtime_error(sentence), status_(status) {}
  reel_status status() const { return status_; }

 private:
  reel_status status_;
};

/// Throws a Refusal with the sentence.
template <class... T>
[[noreturn]] void refuse(reel_status status, fmt::format_string<T...> sentence, T&&... values) {
  throw Refusal(status, fmt::format(sentence, std::forward<T>(values)...));
}

/// Throws a Refusal if an argument of the given name is null.
template <class T>
T* given(T* pointer, const char* name) {
  if (!pointer) refuse(REEL_ARGUMENT_ERROR, "{} is NULL", name);
  return pointer;
}

/// Keeps the exception that is handled now as this thread's last error, in the name of a C function; returns its status.
reel_status keep_error(const char* function) noexcept;

/// Runs f; no exception leaves it. Returns REEL_OK, or what has failed.
template <class F>
reel_status guarded(const char* function, F f) noexcept {
  try {
    f();
    return REEL_OK;
  } catch (...) {
    return keep_error(function);
  }
}

/// Runs f and returns its result, or `failed` where it throws.
template <class T, class F>
T guarded_value(const char* function, T failed, F f) noexcept {
  T result = failed;
  guarded(function, [&] { result = f(); });
  return result;
}

}  // namespace reel::detail
