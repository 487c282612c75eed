#pragma once

#include <span>
#include <string>

#include <reel/error.h>
#include <reel/tensor.h>

namespace reel {

/// An error: the condition of a `debug::check` is false. `what()` is a sentence with the caller's line, followed by one
/// line for each tensor.
class CheckError : public Error {
 public:
  /// An error of one sentence with the caller's location, followed by more lines.
  CheckError(const std::string& sentence, Location where, const std::string& lines) : Error(sentence, where, lines) {}
};

namespace debug {

/// Checks that every element of `condition` is true, as in `debug::check(h > -1, h)`. If not, throws CheckError with the
/// first index where it is false, the number of such elements, the active notes, and the statistics of the tensors, each
/// with its element at that index if its shape is the condition's. Reads `condition` at once, which waits for a GPU.
/// Throws: CheckError if the check fails; Error if a tensor is undefined.
template <class... T>
void check(const Arg& condition, const T&... tensors);

/// `check` with a list of tensors. Throws: CheckError if the check fails; Error if a tensor is undefined.
void check_all(const Arg& condition, std::span<const Tensor* const> tensors);

template <class... T>
void check(const Arg& condition, const T&... tensors) {
  const Tensor* all[] = {&tensors..., nullptr};
  check_all(condition, {all, sizeof...(tensors)});
}

}  // namespace debug
}  // namespace reel
