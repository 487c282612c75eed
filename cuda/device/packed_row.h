#pragma once

#include <cstdint>
#include <iterator>
#include <type_traits>

#include "element.h"
#include "grid.h"
#include "pack.h"

// Rows that a group's threads process in chunks, of a few packs for each thread. The packs of a chunk are all loaded before
// the first is used, and remain in registers: passes go back and forth, so that each begins with the chunk that is there. A
// row of one chunk is read once, a longer one once a pass.
//
// A chunk has 4 packs of 16 bytes for each thread, which are 16 registers an operand. Packs of halves are 2, because nvcc
// keeps them widened to f32, in 16 registers too; those of f64 are 2, because its functions need more registers. Rows that
// cannot be divided into packs of 16 bytes have packs of one element, 8 for each thread. The choice depends on shapes and
// strides only, and so does the order of all sums: operands at other addresses are copied (AlignedView).

namespace reel::detail::inline REEL_TARGET {

constexpr int packs_at_once(int lanes) { return lanes == 1 ? 8 : lanes == 4 ? 4 : 2; }

/// A thread's packs of a chunk.
template <class T, int lanes>
struct KeptPacks {
  Pack<T, lanes> of[packs_at_once(lanes)];
};

/// True if rows of `length` elements of T are divided into packs of 16 bytes: if these occupy a whole warp.
template <class T>
constexpr bool has_full_packs(std::int64_t length) {
  return length % full_lanes<T> == 0 && length >= warp_size * full_lanes<T>;
}

/// Calls f(std::integral_constant<int, lanes>()) with the size of the packs of T into which rows of `length` elements are
/// divided.
template <class T, class F>
void with_lanes(std::int64_t length, F f) {
  if (has_full_packs<T>(length)) return f(std::integral_constant<int, full_lanes<T>>());
  f(std::integral_constant<int, 1>());
}

/// The fewest threads, of those that a group may have, whose first chunk is the whole row.
constexpr int threads_for_packs(std::int64_t packs, int lanes) {
  for (int threads : {warp_size, 128, 256})
    if (packs <= threads * packs_at_once(lanes)) return threads;
  return most_threads;
}

/// The packs [begin, end) of a row in chunks.
template <int lanes>
class PackLoop {
 public:
  REEL_DEVICE PackLoop(std::int64_t begin, std::int64_t end, int threads)
      : begin_(begin), end_(end), threads_(threads), chunk_(packs_at_once(lanes) * threads) {
    last_ = (end - begin - 1) & -std::int64_t{chunk_};  // numbers of threads are powers of two
  }

  /// Calls load(k, p) for pack p, a thread's k-th of a chunk, unless an earlier pass has left it there, and use(k, p);
  /// after_chunk() after each chunk. Passes are numbered 0, 1, ….
  template <class Load, class Use, class AfterChunk>
  REEL_DEVICE void run(int pass, int thread, const Load& load, const Use& use, const AfterChunk& after_chunk) const {
    for (std::int64_t done = 0; done <= last_; done += chunk_) {
      std::int64_t first = begin_ + thread + (pass % 2 == 0 ? done : last_ - done);
      if (pass == 0 || done > 0) each(first, load);
      each(first, use);
      after_chunk();
    }
  }
  template <class Load, class Use>
  REEL_DEVICE void run(int pass, int thread, const Load& load, const Use& use) const {
    run(pass, thread, load, use, [] {});
  }

 private:
  template <class F>
  REEL_DEVICE void each(std::int64_t first, const F& f) const {
    int here = static_cast<int>(end_ - first < chunk_ ? end_ - first : chunk_);
#pragma unroll
    for (int k = 0; k < packs_at_once(lanes); ++k)
      if (k * threads_ < here) f(k, first + k * threads_);
  }

  std::int64_t begin_, end_;
  int threads_, chunk_;
  std::int64_t last_;
};

/// Loads pack p of contiguous elements.
template <int lanes, class T>
REEL_DEVICE Pack<T, lanes> load_pack(const T* first, std::int64_t p) {
  const Pack<T, lanes>* from = reinterpret_cast<const Pack<T, lanes>*>(first) + p;
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(Pack<T, lanes>) % 16 == 0) {
    // Where it optimises less, nvcc divides loads of structs, but not those of its vectors.
    uint4 words[sizeof(Pack<T, lanes>) / 16];
#pragma unroll
    for (int k = 0; k < static_cast<int>(std::size(words)); ++k) words[k] = reinterpret_cast<const uint4*>(from)[k];
    Pack<T, lanes> pack;
    memcpy(static_cast<void*>(&pack), words, sizeof pack);
    return pack;
  }
#endif
  return *from;
}

/// Stores pack p of contiguous elements.
template <int lanes, class T>
REEL_DEVICE void store_pack(T* first, std::int64_t p, const Pack<T, lanes>& pack) {
  Pack<T, lanes>* to = reinterpret_cast<Pack<T, lanes>*>(first) + p;
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(Pack<T, lanes>) == 16) {
    // Where stores are conditional, nvcc divides some into single elements whatever their type.
    unsigned words[4];
    memcpy(words, &pack, sizeof words);
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
    return;
  }
#endif
  *to = pack;
}

}  // namespace reel::detail::inline REEL_TARGET
