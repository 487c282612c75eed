#pragma once

#include <cstring>
#include <type_traits>

#include "device.h"
#include "grid.h"

// See launch.h.

namespace reel::detail::inline REEL_TARGET {

template <class Body>
__global__ void __launch_bounds__(flat_threads) flat_kernel(std::int64_t count, const Body body) {
  run_flat({blockIdx.x, threadIdx.x, gridDim.x, blockDim.x}, count, body);
}

template <class Body>
void for_each(std::int64_t count, const Body& body) {
  static_assert(std::is_trivially_copyable_v<Body> && sizeof(Body) <= 4000);
  if (count <= 0) return;
  Grid grid = flat_grid(count, multiprocessors());
  flat_kernel<<<grid.blocks, grid.threads, 0, current_stream()>>>(count, body);
  check_launch();
}

/// One value of each thread of a group: a register.
template <class T>
class PerThread {
 public:
  __device__ T& operator[](int) { return value_; }
  __device__ const T& operator[](int) const { return value_; }

 private:
  T value_;
};

/// Shuffles a value by words: `shuffle` moves one word between lanes.
template <class T, class Shuffle>
__device__ T shuffled(const T& value, const Shuffle& shuffle) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0);
  unsigned words[sizeof(T) / 4];
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (unsigned& word : words) word = shuffle(word);
  T result;
  memcpy(&result, words, sizeof(T));
  return result;
}

template <class T>
__device__ T shuffle_down(const T& value, int by) {
  return shuffled(value, [=](unsigned word) { return __shfl_down_sync(0xffffffffu, word, by); });
}

template <class T>
__device__ T shuffle_up(const T& value, int by) {
  return shuffled(value, [=](unsigned word) { return __shfl_up_sync(0xffffffffu, word, by); });
}

template <class T>
__device__ T shuffle_from(const T& value, int lane) {
  return shuffled(value, [=](unsigned word) { return __shfl_sync(0xffffffffu, word, lane); });
}

/// Combines the values of the first `count` lanes into lane 0.
template <class T, class Combine>
__device__ T reduce_lanes(T value, int lane, int count, const Combine& combine) {
#pragma unroll
  for (int by = warp_size / 2; by > 0; by /= 2) {
    T other = shuffle_down(value, by);
    if (lane + by < count) value = combine(value, other);
  }
  return value;
}

/// The threads of a warp, or of a block.
template <bool is_warp>
class Group {
 public:
  __device__ Group(std::int64_t index, unsigned char* shared) : index_(index), shared_(shared) {}

  __device__ std::int64_t index() const { return index_; }
  __device__ int size() const { return is_warp ? warp_size : static_cast<int>(blockDim.x); }

  template <class Phase>
  __device__ void each(const Phase& phase) {
    phase(thread());
    wait();
  }
  template <class T>
  __device__ PerThread<T> per_thread() {
    return {};
  }
  template <class T>
  __device__ T* shared(std::int64_t count) {
    T* place = reinterpret_cast<T*>(shared_);
    shared_ += (count * static_cast<std::int64_t>(sizeof(T)) + 15) / 16 * 16;
    return place;
  }
  template <class T, class Combine>
  __device__ T reduce(const PerThread<T>& values, const Combine& combine) {
    int lane = static_cast<int>(threadIdx.x) % warp_size;
    T value = reduce_lanes(values[0], lane, warp_size, combine);
    if constexpr (is_warp) {
      return shuffle_from(value, 0);
    } else {
      __shared__ alignas(16) unsigned char bytes[sizeof(T) * (most_threads / warp_size)];
      T* parts = reinterpret_cast<T*>(bytes);
      int warp = static_cast<int>(threadIdx.x) / warp_size, warps = size() / warp_size;
      if (lane == 0) parts[warp] = value;
      __syncthreads();
      if (warp == 0) {
        value = reduce_lanes(lane < warps ? parts[lane] : value, lane, warps, combine);
        if (lane == 0) parts[0] = value;
      }
      __syncthreads();
      value = parts[0];
      __syncthreads();  // before the next call writes there
      return value;
    }
  }
  template <class T, class Combine>
  __device__ T scan(PerThread<T>& values, const T& nothing, const Combine& combine) {
    int lane = static_cast<int>(threadIdx.x) % warp_size;
    T through = values[0];
#pragma unroll
    for (int by = 1; by < warp_size; by *= 2) {
      T earlier = shuffle_up(through, by);
      if (lane >= by) through = combine(earlier, through);
    }
    T before = shuffle_up(through, 1);
    if (lane == 0) before = nothing;
    if constexpr (is_warp) {
      values[0] = before;
      return shuffle_from(through, warp_size - 1);
    } else {
      __shared__ alignas(16) unsigned char bytes[sizeof(T) * (most_threads / warp_size)];
      T* parts = reinterpret_cast<T*>(bytes);
      int warp = static_cast<int>(threadIdx.x) / warp_size, warps = size() / warp_size;
      if (lane == warp_size - 1) parts[warp] = through;
      __syncthreads();
      T whole = nothing;
      for (int earlier = 0; earlier < warps; ++earlier) {
        if (earlier == warp) before = combine(whole, before);
        whole = combine(whole, parts[earlier]);
      }
      __syncthreads();  // before the next call writes there
      values[0] = before;
      return whole;
    }
  }

 private:
  __device__ int thread() const { return static_cast<int>(threadIdx.x) % (is_warp ? warp_size : most_threads); }
  __device__ void wait() {
    if constexpr (is_warp)
      __syncwarp();
    else
      __syncthreads();
  }

  std::int64_t index_;
  unsigned char* shared_;
};

template <bool is_warp, class Program>
__global__ void __launch_bounds__(is_warp ? warp_size* warps_per_block : most_threads)
    group_kernel(std::int64_t count, unsigned shared_bytes, const __grid_constant__ Program program) {
  extern __shared__ __align__(16) unsigned char shared[];
  std::int64_t per_block = is_warp ? warps_per_block : 1;
  unsigned warp = is_warp ? threadIdx.x / warp_size : 0;
  for (std::int64_t index = blockIdx.x * per_block + warp; index < count; index += gridDim.x * per_block) {
    Group<is_warp> group(index, shared + warp * shared_bytes);
    program(group);
    group.each([](int) {});  // before the next group writes to shared memory
  }
}

template <bool is_warp, class Program>
void launch_groups(std::int64_t count, int threads, std::size_t shared_bytes, const Program& program) {
  static_assert(std::is_trivially_copyable_v<Program> && sizeof(Program) <= 4000);
  if (count <= 0) return;
  Grid grid = group_grid(count, threads);
  auto each = static_cast<unsigned>((shared_bytes + 15) / 16 * 16);
  unsigned in_block = is_warp ? warps_per_block : 1;
  group_kernel<is_warp><<<grid.blocks, grid.threads, each * in_block, current_stream()>>>(count, each, program);
  check_launch();
}

template <class Program>
void for_each_block(std::int64_t count, int threads, std::size_t shared_bytes, const Program& program) {
  launch_groups<false>(count, threads, shared_bytes, program);
}

template <class Program>
void for_each_group(std::int64_t count, int threads, std::size_t shared_bytes, const Program& program) {
  if (threads == warp_size)
    launch_groups<true>(count, threads, shared_bytes, program);
  else
    launch_groups<false>(count, threads, shared_bytes, program);
}

}  // namespace reel::detail::inline REEL_TARGET
