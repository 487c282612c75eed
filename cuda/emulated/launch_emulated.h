#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "../device/device.h"
#include "../device/grid.h"
#include "device_access.h"
#include "phase_threads.h"
#include "stream.h"

// See launch.h. The threads of a phase run one after the other, from the first, from the last, or scattered: a program
// that depends on an order among them differs from its CPU counterpart. The thread sanitizer reports a conflict of two of
// them.

namespace reel::detail::inline REEL_TARGET {

template <class Body>
void for_each(std::int64_t count, const Body& body) {
  static_assert(std::is_trivially_copyable_v<Body> && sizeof(Body) <= 4000);
  if (count <= 0) return;
  give_to_stream(current_stream(), [count, body, grid = flat_grid(count, multiprocessors())] {
    DeviceAccess access;
    LaunchThreads threads;
    auto run = [&](std::int64_t block, std::int64_t thread) {
      run_flat({static_cast<unsigned>(block), static_cast<unsigned>(thread), grid.blocks, grid.threads}, count, body);
    };
    for (unsigned block = grid.blocks; block-- > 0;) {
      PhaseOrder order(block, static_cast<int>(grid.threads));
      for (unsigned place = 0; place < grid.threads; ++place)
        threads.run(run, block, order.thread(static_cast<int>(place)), grid.threads);
    }
  });
}

template <class T>
class PerThread {
 public:
  explicit PerThread(int size) : values_(std::make_unique<T[]>(static_cast<std::size_t>(size))) {}
  T& operator[](int thread) { return values_[static_cast<std::size_t>(thread)]; }
  const T& operator[](int thread) const { return values_[static_cast<std::size_t>(thread)]; }

 private:
  std::unique_ptr<T[]> values_;
};

class Group {
 public:
  Group(std::int64_t index, int size, std::size_t shared_bytes)
      : index_(index), size_(size), shared_(shared_bytes, static_cast<unsigned char>(0xee)) {}

  std::int64_t index() const { return index_; }
  int size() const { return size_; }

  template <class Phase>
  void each(const Phase& phase) {
    LaunchThreads::run_phase(index_, size_, PhaseOrder(phase_++, size_), phase);
  }
  template <class T>
  PerThread<T> per_thread() {
    return PerThread<T>(size_);
  }
  template <class T>
  T* shared(std::int64_t count) {
    std::size_t begin = used_;
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 15) / 16 * 16;
    if (used_ > shared_.size()) throw std::logic_error("a program asks for more shared memory than it was given");
    return reinterpret_cast<T*>(shared_.data() + begin);
  }
  template <class T, class Combine>
  T reduce(const PerThread<T>& values, const Combine& combine) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0);
    T whole{};
    for (int warp = 0; warp < size_; warp += warp_size) {
      T lanes[warp_size];
      for (int lane = 0; lane < warp_size; ++lane) lanes[lane] = values[warp + lane];
      for (int by = warp_size / 2; by > 0; by /= 2)
        for (int lane = 0; lane < by; ++lane) lanes[lane] = combine(lanes[lane], lanes[lane + by]);
      whole = warp == 0 ? lanes[0] : combine(whole, lanes[0]);
    }
    return whole;
  }
  template <class T, class Combine>
  T scan(PerThread<T>& values, const T& nothing, const Combine& combine) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0);
    T whole = nothing;
    for (int thread = 0; thread < size_; ++thread) {
      T own = values[thread];
      values[thread] = whole;
      whole = combine(whole, own);
    }
    return whole;
  }

 private:
  std::int64_t index_;
  int size_;
  std::uint32_t phase_ = 0;
  std::vector<unsigned char> shared_;
  std::size_t used_ = 0;
};

template <class Program>
void for_each_group(std::int64_t count, int threads, std::size_t shared_bytes, const Program& program) {
  static_assert(std::is_trivially_copyable_v<Program> && sizeof(Program) <= 4000);
  if (threads < warp_size || threads > most_threads || threads % warp_size != 0)
    throw std::logic_error("a group has 32 threads or a multiple of it, up to 512");
  if (shared_bytes * (threads == warp_size ? warps_per_block : 1) > 48 * 1024)
    throw std::logic_error("a block has no more than 48 KB of shared memory");
  give_to_stream(current_stream(), [=] {
    DeviceAccess access;
    LaunchThreads all;
    auto run = [&](std::int64_t index, std::int64_t) {
      Group group(index, threads, (shared_bytes + 15) / 16 * 16);
      program(group);
    };
    for (std::int64_t index = count; index-- > 0;) all.run_group(run, index);
  });
}

template <class Program>
void for_each_block(std::int64_t count, int threads, std::size_t shared_bytes, const Program& program) {
  if (threads == warp_size) throw std::logic_error("a block has more than a warp's threads");
  for_each_group(count, threads, shared_bytes, program);
}

}  // namespace reel::detail::inline REEL_TARGET
