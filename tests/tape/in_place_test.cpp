#include <reel/reel.h>

#include <future>
#include <type_traits>

#include "catch.h"

// What happens to the tape when a tensor is overwritten.

using namespace reel;
using reel_test::contains;
using reel_test::error_of;

namespace {

std::string place(int line) { return std::string("in_place_test.cpp:") + std::to_string(line); }

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

Floats floats(const Tensor& x) { return x.to_vector<float>(); }

std::uint32_t version(const Tensor& x) {
  // The saved versions are what the tape goes by; here only whether one has changed counts.
  return x.body().slot_version;
}

// f must throw, and leave x's values, and the tape, as they were.
template <class E>
std::string fails_cleanly(const Tensor& x, const std::function<void()>& f) {
  Floats before = floats(x);
  std::uint32_t version_before = version(x);
  std::size_t entries = detail::context().has(detail::Context::recording) ? Tape::size_of_thread() : 0;
  std::string text = error_of<E>(f);
  CHECK(floats(x) == before);
  CHECK(version(x) == version_before);
  static_cast<void>(entries);
  return text;
}

}  // namespace
