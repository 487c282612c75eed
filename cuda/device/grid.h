#pragma once

#include <cstdint>

#include "../../lib/core/target.h"

// The division of work among threads. All of it is plain arithmetic, which tests run on the CPU.

namespace reel::detail::inline REEL_TARGET {

struct Grid {
  unsigned blocks, threads;
};

/// One thread of a grid.
struct Place {
  unsigned block, thread, blocks, threads;
};

constexpr unsigned flat_threads = 256;
/// Enough blocks to fill a device several times over; threads loop over the remainder.
constexpr unsigned blocks_per_multiprocessor = 32;

constexpr Grid flat_grid(std::int64_t count, int multiprocessors) {
  std::int64_t wanted = (count + flat_threads - 1) / flat_threads;
  std::int64_t most = std::int64_t{multiprocessors} * blocks_per_multiprocessor;
  return {static_cast<unsigned>(wanted < most ? wanted : most), flat_threads};
}

/// Runs a thread's share of body(0), …, body(count − 1).
template <class Body>
REEL_HOST_DEVICE void run_flat(const Place& place, std::int64_t count, const Body& body) {
  std::int64_t step = std::int64_t{place.blocks} * place.threads;
  for (std::int64_t i = std::int64_t{place.block} * place.threads + place.thread; i < count; i += step) body(i);
}

constexpr int warp_size = 32;
/// Groups of one warp share a block, this many in each.
constexpr int warps_per_block = 4;
constexpr int most_threads = 512;

/// The number of threads that process a row together: a warp, or a block of 128, 256 or 512.
constexpr int threads_for_row(std::int64_t length) {
  return length <= 512 ? warp_size : length <= 2048 ? 128 : length <= 8192 ? 256 : 512;
}

/// The grid for `groups` groups; `threads` of each is 32, for warps, or a multiple of it.
constexpr Grid group_grid(std::int64_t groups, int threads) {
  std::int64_t per_block = threads == warp_size ? warps_per_block : 1;
  std::int64_t wanted = (groups + per_block - 1) / per_block, most = std::int64_t{1} << 20;
  return {static_cast<unsigned>(wanted < most ? wanted : most), static_cast<unsigned>(threads * per_block)};
}

}  // namespace reel::detail::inline REEL_TARGET
