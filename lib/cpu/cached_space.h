#pragma once

#include <cstddef>
#include <cstdint>

#include "../core/context.h"

namespace reel::detail {

/// Uninitialised memory for `count` elements from the thread's cache of freed blocks: fresh pages would cost more than what
/// is computed in them.
template <class T>
class CachedSpace : Immovable {
 public:
  /// Throws: std::bad_alloc.
  explicit CachedSpace(std::int64_t count)
      : first_(static_cast<T*>(context().heap->allocate(static_cast<std::size_t>(count + (count == 0)) * sizeof(T),
                                                        Heap::Use::storage))) {}
  ~CachedSpace() { Heap::free(first_, context().heap); }
  T* get() const { return first_; }

 private:
  T* first_;
};

}  // namespace reel::detail
