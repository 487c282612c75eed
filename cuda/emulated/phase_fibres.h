#pragma once

#include <cstddef>
#include <cstdint>

#include "../../lib/core/target.h"

namespace reel::detail::inline REEL_TARGET {

/// How many fibres there are for the threads of a kernel; threads whose numbers differ by a multiple share one.
constexpr std::size_t fibre_count = 61;

/// Makes the fibres of this CPU thread, unless they are there.
void make_fibres();
/// A call of `run` with the other members.
struct FibreTask {
  void (*run)(const void* f, void* ends, std::int64_t first, std::int64_t second);
  const void* f;
  void* ends;
  std::int64_t first, second;
};

/// Runs a task on a fibre with a stack of its own, which the thread sanitizer sees as a thread; for the sanitizer nothing
/// that the caller did precedes it. Groups of an even and of an odd index use two sets. Throws: what the task throws.
void run_on_fibre(std::int64_t group, std::size_t number, const FibreTask& task);

}  // namespace reel::detail::inline REEL_TARGET
