#include "allocation_watch.h"

#include <algorithm>

// Declared here, since the sanitizers' header is not there for every compiler; without a sanitizer it is null.
extern "C" __attribute__((weak)) int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*,
                                                                                                   std::size_t),
                                                                               void (*free_hook)(const volatile void*));

namespace reel_fuzz {

namespace {

// Without a constructor, since malloc runs before any.
thread_local bool watches = false;
thread_local std::size_t largest_block = 0;

void on_allocation(const volatile void*, std::size_t size) {
  if (watches) largest_block = std::max(largest_block, size);
}
void on_free(const volatile void*) {}

}  // namespace

AllocationWatch::AllocationWatch() {
  static const bool installed = __sanitizer_install_malloc_and_free_hooks &&
                                __sanitizer_install_malloc_and_free_hooks(on_allocation, on_free) > 0;
  watches = installed;
  largest_block = 0;
}

AllocationWatch::~AllocationWatch() { watches = false; }

std::size_t AllocationWatch::largest() const { return largest_block; }

}  // namespace reel_fuzz
