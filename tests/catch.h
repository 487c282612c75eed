#pragma once

// Includes Catch2 2.13 or 3.x; no other file depends on the version.

#ifdef REEL_CATCH2_V2
#include <catch2/catch.hpp>
namespace reel_test {
inline auto contains(const std::string& text) { return Catch::Matchers::Contains(text); }
}  // namespace reel_test
#else
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
namespace reel_test {
inline auto contains(const std::string& text) { return Catch::Matchers::ContainsSubstring(text); }
}  // namespace reel_test
using Catch::Approx;
#endif

#include <iostream>
#include <string>

namespace reel_test {

/// Marks the running test as skipped, for `tools/test` to count; the test then returns.
inline void skip(const std::string& reason) { std::cout << "REEL-SKIP: " << reason << std::endl; }

/// The message of the exception that f throws; empty if f throws nothing.
template <class E, class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

}  // namespace reel_test
