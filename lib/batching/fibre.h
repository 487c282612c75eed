#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <boost/context/fiber.hpp>

namespace reel::detail {

/// Stacks of one size for fibres, each above pages that cannot be accessed. Freed stacks are kept for the next fibres.
class StackPool {
 public:
  /// Throws: std::bad_alloc.
  explicit StackPool(std::size_t bytes);
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  std::size_t bytes() const { return bytes_; }
  /// Throws: std::bad_alloc.
  boost::context::stack_context take();
  void put(const boost::context::stack_context& stack) noexcept;

 private:
  std::size_t bytes_;
  std::size_t made_ = 0;
  std::vector<boost::context::stack_context> free_;
};

/// A function on a stack of its own, which can suspend itself anywhere in its calls.
class Fibre {
 public:
  Fibre() = default;
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;

  /// Starts `run(argument)`, which must not throw; returns when it suspends itself or ends. Throws: std::bad_alloc.
  void start(StackPool& pool, void (*run)(void* argument), void* argument);
  /// Continues a suspended function; returns when it suspends itself again or ends.
  void resume();
  /// Called by the function: returns to the caller of `start` or `resume`, until the next `resume`.
  void suspend();
  /// Returns true if the function has ended, or was never started.
  bool ended() const { return !inner_; }
  /// Called by the function: the bytes that are left on its stack.
  std::size_t stack_left() const {
    return static_cast<std::size_t>(static_cast<char*>(__builtin_frame_address(0)) - bottom_);
  }

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
  // What the sanitizers know of the two stacks.
  void *own_shadow_ = nullptr, *outer_shadow_ = nullptr, *own_history_ = nullptr, *outer_history_ = nullptr;
  const void* outer_bottom_ = nullptr;
  std::size_t outer_size_ = 0;
};

}  // namespace reel::detail
