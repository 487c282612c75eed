#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

// The stand-in's record: how often each call was made, and which calls a GPU would have refused.

namespace reel_test::stand_in {

/// The name of a call and how often it was made; "launch" are kernels of the project.
using Counts = std::map<std::string, std::int64_t>;

/// Everything in this folder that has a state is guarded by this mutex.
std::recursive_mutex& mutex();

/// Counts a call.
void count(const char* call);
void record_violation(std::string sentence);
/// Records what a GPU would have refused, or what would have been wrong on it.
template <class... T>
void violation(fmt::format_string<T...> text, T&&... values) {
  record_violation(fmt::format(text, std::forward<T>(values)...));
}

#pragma GCC visibility push(default)
/// The calls made since the last `forget_counts`, in all threads.
Counts counts();
void forget_counts();
/// The violations since the last call of this function; a sentence that repeats is listed once, with its number.
std::vector<std::string> take_violations();
/// Named in violations from now on, such as a row of the op table.
void set_subject(std::string subject);
#pragma GCC visibility pop

}  // namespace reel_test::stand_in
