#pragma once

#include <cstdint>

#include "../../device/launch.h"

// Scans such as cumulative sums. A law defines the states:
//
//   using State = …
//   State nothing()
//   State join(State earlier, State later)      associative

namespace reel::detail::inline REEL_TARGET {

/// Replaces each state of a line by the join of all before it: states (length, lines), a group for each line.
template <class Law>
struct JoinBefore {
  using State = typename Law::State;
  static constexpr int items = 4;
  Law law;
  State* states;
  std::int64_t length, lines;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    auto before = group.template per_thread<State>();
    State carried = law.nothing();
    auto join = [&](const State& a, const State& b) { return law.join(a, b); };
    for (std::int64_t start = 0; start < length; start += group.size() * items) {
      auto for_each_item = [&](int thread, auto f) {
        for (std::int64_t i = start + thread * items; i < start + (thread + 1) * items && i < length; ++i)
          f(states[i * lines + group.index()]);
      };
      group.each([&](int thread) {
        before[thread] = law.nothing();
        for_each_item(thread, [&](const State& state) { before[thread] = law.join(before[thread], state); });
      });
      State whole = group.scan(before, law.nothing(), join);
      group.each([&](int thread) {
        State so_far = law.join(carried, before[thread]);
        for_each_item(thread, [&](State& state) {
          State own = state;
          state = so_far;
          so_far = law.join(so_far, own);
        });
      });
      carried = law.join(carried, whole);
    }
  }
};

template <class Law>
void join_before(const Law& law, typename Law::State* states, std::int64_t length, std::int64_t lines) {
  for_each_block(lines, length <= 1024 ? 64 : 256, 0, JoinBefore<Law>{law, states, length, lines});
}

}  // namespace reel::detail::inline REEL_TARGET
