#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <boost/context/fiber.hpp>

#include <reel/detail/immovable.h>

namespace reel::detail {

/// No function of the library has a larger frame, as lib/meson.build has the compiler check, nor Eigen a larger buffer.
constexpr std::size_t largest_frame = std::size_t{128} << 10;
/// Below each stack. A function may use the end of its frame, and of two buffers, before all that is above.
constexpr std::size_t guard_bytes = 4 * largest_frame;
/// The stack that kernels need, for two buffers and their frames: with less left, they run on the thread's own stack.
constexpr std::size_t kernel_bytes = 4 * largest_frame;
/// Where a fibre has less left, an op throws: what runs before an op is called, and the error, need some. Outside of
/// kernels lib/meson.build allows frames of 32 KB.
constexpr std::size_t reserved_bytes = std::size_t{48} << 10;

/// Stacks of one size for fibres, each above memory that cannot be accessed. Freed stacks are kept for the next fibres.
class StackPool : Immovable {
 public:
  /// Throws: std::bad_alloc.
  explicit StackPool(std::size_t bytes);
  ~StackPool();

  std::size_t bytes() const { return bytes_; }
  /// Throws: std::bad_alloc.
  boost::context::stack_context take();
  void put(const boost::context::stack_context& stack) noexcept;

 private:
  std::size_t bytes_;
  std::vector<void*> blocks_;
  std::vector<boost::context::stack_context> free_;
};

/// A function on a stack of its own, which can suspend itself anywhere in its calls.
class Fibre : Immovable {
 public:
  Fibre() = default;

  /// Starts `run(argument)`, which must not throw; returns when it suspends itself or ends. Throws: std::bad_alloc.
  void start(StackPool& pool, void (*run)(void* argument), void* argument);
  /// Continues a suspended function; returns when it suspends itself again or ends.
  void resume();
  /// Called by the function: returns to the caller of `start` or `resume`, until the next `resume`.
  void suspend();
  /// Returns true if the function has ended, or was never started.
  bool ended() const { return !inner_; }
  /// The bytes that are left on this stack; SIZE_MAX if the caller runs on another one, such as the thread's own.
  std::size_t stack_left() const {
    auto left =
        reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) - reinterpret_cast<std::uintptr_t>(bottom_);
    return left < size_ ? left : SIZE_MAX;
  }
  /// The address on this stack below which fewer bytes are left; above the stack if it has fewer.
  std::uintptr_t address_with(std::size_t left) const { return reinterpret_cast<std::uintptr_t>(bottom_) + left; }
  /// Returns true if the caller runs on this stack.
  bool runs_here() const { return stack_left() != SIZE_MAX; }

 private:
  /// The exceptions that a stack is handling: the C++ runtime keeps them per thread.
  struct Exceptions {
    void* caught = nullptr;
    unsigned uncaught = 0;
  };
  void enter();
  void swap_exceptions(void* of_thread) noexcept;

  boost::context::fiber inner_, outer_;
  char* bottom_ = nullptr;
  std::size_t size_ = 0;
  Exceptions exceptions_;
  // The sanitizers' states of the two stacks.
  void *own_shadow_ = nullptr, *outer_shadow_ = nullptr, *own_history_ = nullptr, *outer_history_ = nullptr;
  const void* outer_bottom_ = nullptr;
  std::size_t outer_size_ = 0;
};

}  // namespace reel::detail
