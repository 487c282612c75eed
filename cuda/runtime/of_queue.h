#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "runtime.h"

namespace reel::detail::inline REEL_TARGET {

/// A library's state for the queue on which this thread works: its handles and plans, made at first use. Like queues,
/// it is never destroyed, and is adopted by the next thread when this one has ended.
template <class State>
State& of_current_queue() {
  struct All {
    std::mutex mutex;
    std::map<const Queue*, std::unique_ptr<State>> states;
  };
  static All& all = *std::make_unique<All>().release();
  static thread_local const Queue* last_queue = nullptr;
  static thread_local State* last_state = nullptr;
  const Queue* queue = &current_queue();
  if (queue == last_queue) return *last_state;
  std::lock_guard lock(all.mutex);
  std::unique_ptr<State>& state = all.states[queue];
  if (!state) state = std::make_unique<State>();
  last_queue = queue;
  last_state = state.get();
  return *state;
}

}  // namespace reel::detail::inline REEL_TARGET
