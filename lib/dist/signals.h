#pragma once

#include <array>

namespace reel::detail {

/// The signals that ask a training to end.
std::array<int, 3> end_signals();

/// Makes the signals that ask a training to end wait, in this thread and those that it starts. To be called before other
/// threads are started.
void hold_signals();

/// Ends what `hold_signals` began; those that wait are handled.
void release_signals();

/// True for each of `end_signals` that has arrived and waits.
std::array<bool, 3> held_signals();

/// Has this process handle one of `end_signals`, whether or not it has arrived here.
void deliver_held_signal(int signal);

/// True once `deliver_held_signal` was called: all ranks end together.
bool signal_was_delivered();

}  // namespace reel::detail
