#pragma once

#include <new>

#include <reel/dtype.h>
#include <reel/location.h>
#include <reel/shape.h>

// When the library's own allocations fail, `with_memory_error` runs at the boundary that knows the op and its caller: the
// dispatcher, the tape, the optimisers, and composite functions that allocate between ops.

namespace reel::detail {

/// Throws a MemoryError in the name of `op`; allocates no memory itself.
[[noreturn]] void fail_for_memory(const char* op, Location where);

/// Throws a MemoryError for the elements of a tensor; allocates no memory itself.
[[noreturn]] void fail_for_memory(const char* op, Location where, const Shape& shape, DType dtype);

/// Returns f(). Throws: MemoryError in the name of `op` where f runs out of memory.
template <class F>
decltype(auto) with_memory_error(const char* op, const Location& where, F f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    fail_for_memory(op, where);
  }
}

}  // namespace reel::detail
