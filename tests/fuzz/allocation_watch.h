#pragma once

#include <cstddef>

namespace reel_fuzz {

/// Measures the largest block that this thread asks `malloc` for during its lifetime. Works in programs with the address
/// sanitizer, whose hooks it uses; in others it measures nothing.
class AllocationWatch {
 public:
  AllocationWatch();
  ~AllocationWatch();
  AllocationWatch(const AllocationWatch&) = delete;
  AllocationWatch& operator=(const AllocationWatch&) = delete;

  /// The size of the largest block so far, in bytes.
  std::size_t largest() const;
};

}  // namespace reel_fuzz
