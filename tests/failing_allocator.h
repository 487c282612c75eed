#pragma once

// The program that contains failing_allocator.cpp has malloc and its relatives, and operator new, replaced by ones that
// fail on demand, in every library and thread of the process, but not in the program itself.

namespace reel_test {

enum class Fault {
  once,          ///< one allocation fails, as of one tensor that is too large
  from_then_on,  ///< and all that follow it, as where nothing is left
};

/// From now on allocations are counted from 0, and number `index` fails.
void fail_allocation(long index, Fault fault);
/// From now on nothing fails. Returns how many allocations were counted, those that failed among them.
long stop_failing();
/// Whether the chosen allocation was reached, and failed.
bool has_failed();

/// While it lives, nothing that the calling thread allocates is counted: for what a test does between the library's calls.
class Uncounted {
 public:
  Uncounted();
  ~Uncounted();
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;
};

}  // namespace reel_test
