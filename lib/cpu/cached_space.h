#pragma once

#include <cstddef>
#include <cstdint>

#include "../core/context.h"

namespace reel::detail {

/// Uninitialised memory for `count` elements, null for none, from the thread's cache of freed blocks: fresh pages would cost
/// more than what is computed in them.
template <class T>
class CachedSpace : Immovable {
 public:
  /// Throws: std::bad_alloc.
  explicit CachedSpace(std::int64_t count) {
    if (count == 0) return;
    first_ = static_cast<T*>(context().heap->allocate(static_cast<std::size_t>(count) * sizeof(T), Heap::Use::storage));
  }
  ~CachedSpace() {
    if (first_) Heap::free(first_, context().heap);
  }
  T* get() const { return first_; }

 private:
  T* first_ = nullptr;
};

}  // namespace reel::detail
