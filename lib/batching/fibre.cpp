#include "fibre.h"

#include <cxxabi.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include "stack_overflow.h"

#if defined(__SANITIZE_ADDRESS__)
#define REEL_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REEL_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define REEL_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define REEL_THREAD_SANITIZER 1
#endif
#endif
#ifdef REEL_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef REEL_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace reel::detail {
namespace {

// Sanitizers must be told before a thread goes on on another stack. Without them these functions do nothing.

void begin_switch([[maybe_unused]] void** shadow, [[maybe_unused]] const void* bottom,
                  [[maybe_unused]] std::size_t size) {
#ifdef REEL_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(shadow, bottom, size);
#endif
}

void end_switch([[maybe_unused]] void* shadow, [[maybe_unused]] const void** bottom_before,
                [[maybe_unused]] std::size_t* size_before) {
#ifdef REEL_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(shadow, bottom_before, size_before);
#endif
}

// Clears the address sanitizer's marks of frames that an exception left, or of an earlier mapping at these addresses:
// they would be reported as faults of functions that are compiled without all of its checks.
void forget_frames([[maybe_unused]] const boost::context::stack_context& stack) {
#ifdef REEL_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(static_cast<char*>(stack.sp) - stack.size, stack.size);
#endif
}

// The thread sanitizer's state of the running stack.
void* current_history() {
#ifdef REEL_THREAD_SANITIZER
  return __tsan_get_current_fiber();
#else
  return nullptr;
#endif
}

void switch_history([[maybe_unused]] void* history) {
#ifdef REEL_THREAD_SANITIZER
  __tsan_switch_to_fiber(history, 0);
#endif
}

void* new_history() {
#ifdef REEL_THREAD_SANITIZER
  return __tsan_create_fiber(0);
#else
  return nullptr;
#endif
}

void end_history([[maybe_unused]] void* history) {
#ifdef REEL_THREAD_SANITIZER
  __tsan_destroy_fiber(history);
#endif
}

// The tops of stacks at equal offsets within a page map to one set of the caches, and evict each other.
constexpr std::size_t most_offset = std::size_t{64} << 10;
std::size_t offset_of(std::size_t stack) { return stack % 61 * 832 & ~std::size_t{63}; }

std::size_t block_bytes(std::size_t stack_bytes) { return guard_bytes + stack_bytes + most_offset; }

}  // namespace

StackPool::StackPool(std::size_t bytes) : bytes_(bytes) { explain_stack_overflow(); }

StackPool::~StackPool() {
  for (void* block : blocks_) munmap(block, block_bytes(bytes_));
}

boost::context::stack_context StackPool::take() {
  if (!free_.empty()) {
    boost::context::stack_context stack = free_.back();
    free_.pop_back();
    forget_frames(stack);
    return stack;
  }
  blocks_.reserve(blocks_.size() + 1);
  free_.reserve(blocks_.size() + 1);  // so that `put` needs no memory
  std::size_t whole = block_bytes(bytes_);
  void* block =
      mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (block == MAP_FAILED) throw std::bad_alloc();
  if (mprotect(block, guard_bytes, PROT_NONE) != 0) {
    munmap(block, whole);
    throw std::bad_alloc();
  }
  boost::context::stack_context stack;
  stack.sp = static_cast<char*>(block) + whole - offset_of(blocks_.size());
  stack.size = bytes_ + most_offset - offset_of(blocks_.size());
  blocks_.push_back(block);
  forget_frames(stack);
  return stack;
}

void StackPool::put(const boost::context::stack_context& stack) noexcept { free_.push_back(stack); }

void Fibre::swap_exceptions(void* of_thread) noexcept {
  // The layout is fixed by the C++ ABI: the handled exceptions, then the number of those in flight.
  constexpr std::size_t size = offsetof(Exceptions, uncaught) + sizeof(Exceptions::uncaught);
  Exceptions now;
  std::memcpy(static_cast<void*>(&now), of_thread, size);
  std::memcpy(of_thread, static_cast<const void*>(&exceptions_), size);
  exceptions_ = now;
}

// Runs on the caller's stack; afterwards the fibre is suspended or has ended.
void Fibre::enter() {
  auto* of_thread = static_cast<void*>(abi::__cxa_get_globals());
  swap_exceptions(of_thread);
  begin_switch(&outer_shadow_, bottom_, size_);
  outer_history_ = current_history();
  switch_history(own_history_);
  Guard guard = std::exchange(running_guard, {bottom_ - guard_bytes, bottom_});
  inner_ = std::move(inner_).resume();
  running_guard = guard;
  end_switch(outer_shadow_, nullptr, nullptr);
  swap_exceptions(of_thread);
  if (!inner_) end_history(own_history_);
}

void Fibre::start(StackPool& pool, void (*run)(void* argument), void* argument) {
  struct Pooled {
    StackPool* pool;
    boost::context::stack_context stack;
    boost::context::stack_context allocate() const { return stack; }
    void deallocate(boost::context::stack_context& freed) const noexcept { pool->put(freed); }
  };
  Pooled allocator{&pool, pool.take()};
  size_ = allocator.stack.size;
  bottom_ = static_cast<char*>(allocator.stack.sp) - size_;
  exceptions_ = {};
  own_history_ = new_history();
  inner_ = boost::context::fiber(std::allocator_arg, allocator, [this, run, argument](boost::context::fiber&& outer) {
    end_switch(nullptr, &outer_bottom_, &outer_size_);
    outer_ = std::move(outer);
    run(argument);
    // No shadow is kept: the stack is freed.
    begin_switch(nullptr, outer_bottom_, outer_size_);
    switch_history(outer_history_);
    return std::move(outer_);
  });
  enter();
}

void Fibre::resume() { enter(); }

void Fibre::suspend() {
  begin_switch(&own_shadow_, outer_bottom_, outer_size_);
  switch_history(outer_history_);
  outer_ = std::move(outer_).resume();
  end_switch(own_shadow_, &outer_bottom_, &outer_size_);
}

}  // namespace reel::detail
