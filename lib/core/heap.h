#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include <reel/device.h>

namespace reel::detail {

/// A thread's cache of freed blocks, by size class. Blocks freed by another thread come back through `remote_`. The
/// elements of a small tensor follow its body in the same block. Heaps are never destroyed, because static tensors
/// outlive thread-locals; a heap whose thread has ended, and that has returned its cache to the system, is adopted by
/// the next thread that starts.
class Heap {
 public:
  enum class Use : std::uint8_t { body, storage };

  /// Uninitialised memory, aligned to 64 bytes. Throws: std::bad_alloc.
  void* allocate(std::size_t bytes, Use use) {
    std::uint32_t size_class = class_of(bytes), list = size_class + (use == Use::storage ? class_count : 0);
    FreeBlock* free = free_[list];
    void* block = free ? taken(free, list, header_of(free)->bytes()) : allocate_slowly(list);
    apart_ += use == Use::body;
    return block;
  }
  /// Uninitialised memory for a body followed by its elements, of at most `most_joint` bytes. Throws: std::bad_alloc.
  void* allocate_joint(std::size_t bytes) {
    if (void* block = take_joint(bytes)) [[likely]]
      return block;
    return allocate_slowly(static_cast<std::uint32_t>((bytes + 63) / 64 - 1));
  }
  /// A cached block for a body followed by its elements; null if there is none.
  void* take_joint(std::size_t bytes) noexcept {
    std::size_t steps = (bytes + 63) / 64;
    FreeBlock* block = free_[steps - 1];
    if (!block) [[unlikely]]
      return nullptr;
    return taken(block, static_cast<std::uint32_t>(steps - 1), steps * 64);
  }
  static constexpr std::size_t most_joint = 1024;
  /// Frees a block of any heap. `mine`: the calling thread's heap; null if it has none.
  static void free(void* block, Heap* mine) noexcept {
    Header* header = header_of(block);
    if (header->owner == mine) [[likely]]
      mine->put(block, header);
    else
      header->owner->put_remote(block, header);
  }
  /// Frees a block of this heap, on the heap's own thread.
  void free_own(void* block) noexcept { put(block, header_of(block)); }
  /// Frees a body without elements behind it, of any heap. `mine`: the calling thread's heap; null if it has none.
  static void free_apart(void* block, Heap* mine) noexcept {
    Heap* owner = owner_of(block);
    if (owner == mine) [[likely]]
      --mine->apart_;
    else
      owner->freed_apart_.fetch_add(1, std::memory_order_relaxed);
    free(block, mine);
  }
  /// Counts a body destroyed before the elements that follow it in its block (`change` 1), or that these are freed too
  /// (−1).
  static void count_widow(const void* block, int change) noexcept {
    owner_of(block)->widows_.fetch_add(change, std::memory_order_relaxed);
  }
  /// The heap a block came from.
  static Heap* owner_of(const void* block) noexcept { return header_of(block)->owner; }

  MemoryStatistics statistics();
  void set_cache_limit(std::size_t bytes);
  void release_cache() noexcept { trim(0); }
  /// Records that a step has used this many bytes. After steps that have used the cache many times over, blocks that none
  /// of them has used are returned to the system.
  void count_used_bytes(std::size_t bytes) noexcept {
    used_bytes_ += bytes;
    if (used_bytes_ / 64 > cached_bytes_ + large) [[unlikely]]
      give_back_unused();
  }

  /// Held while a thread frees a body of another thread's heap, from before its storage is released.
  class Visit : Immovable {
   public:
    explicit Visit(Heap& heap) noexcept;
    ~Visit() { heap_.visitors_.fetch_sub(1, std::memory_order_release); }

   private:
    Heap& heap_;
  };
  /// Lists all bodies in use, on the heap's own thread. While it lives, visitors wait.
  class Inspection : Immovable {
   public:
    explicit Inspection(Heap& heap);
    ~Inspection();
    const std::vector<void*>& bodies() const { return bodies_; }

   private:
    Heap& heap_;
    std::vector<void*> bodies_;
  };

 private:
  // Precedes each block.
  struct Header {
    Heap* owner;
    std::uint32_t steps;  // the block's size in units of 64 bytes
    std::uint16_t list;
    std::uint16_t front;  // bytes from the start of the system's block to the heap's block
    std::size_t bytes() const { return steps * std::size_t{64}; }
  };
  static_assert(sizeof(Header) == 16);
  struct FreeBlock {
    FreeBlock* next;
  };
  // Null, or a pointer that leak checkers do not recognise: the list of bodies must not keep a leaked one reachable.
  struct BodyLink;
  class HiddenPointer {
   public:
    BodyLink* get() const { return reinterpret_cast<BodyLink*>(~bits_); }
    void set(BodyLink* link) { bits_ = ~reinterpret_cast<std::uintptr_t>(link); }

   private:
    std::uintptr_t bits_ = ~std::uintptr_t{0};
  };
  // Precedes the header of each body's block: a list of all bodies, in use or cached.
  struct BodyLink {
    HiddenPointer previous, next;
  };
  static_assert(sizeof(BodyLink) == 16);

// Sanitizers find use after free only if freed memory goes back to their allocator. The build defines REEL_SANITIZED
// for files that it compiles without sanitizers: all files must agree.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(REEL_SANITIZED)
  static constexpr bool caching = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
  static constexpr bool caching = false;
#else
  static constexpr bool caching = true;
#endif
#else
  static constexpr bool caching = true;
#endif

  static Header* header_of(const void* block) noexcept {
    return const_cast<Header*>(static_cast<const Header*>(block) - 1);
  }
  static BodyLink* link_of(const void* body) noexcept { return reinterpret_cast<BodyLink*>(header_of(body)) - 1; }

  // 64-byte steps to 1 KiB, then four classes to each power of two.
  static constexpr std::uint32_t class_count = 16 + 4 * 27;
  static std::uint32_t class_of(std::size_t bytes) {
    if (bytes <= 1024) [[likely]]
      return bytes == 0 ? 0 : static_cast<std::uint32_t>((bytes - 1) / 64);
    int power = std::bit_width(bytes - 1) - 1;  // 2^power <= bytes - 1
    auto quarter = static_cast<std::uint32_t>((bytes - 1) >> (power - 2)) & 3;
    std::uint32_t size_class = 16 + static_cast<std::uint32_t>(power - 10) * 4 + quarter;
    if (size_class >= class_count) throw std::bad_alloc();
    return size_class;
  }
  static std::size_t size_of_class(std::uint32_t size_class) {
    if (size_class < 16) [[likely]]
      return (size_class + 1) * std::size_t{64};
    std::uint32_t power = (size_class - 16) / 4 + 10;
    return (std::size_t{5} + (size_class - 16) % 4) << (power - 2);
  }

  void put(void* block, const Header* header) noexcept {
    std::size_t cached = cached_bytes_ + header->bytes();
    if (!caching || cached > cache_limit_) [[unlikely]]
      return give_back(block);
    cached_bytes_ = cached;
    FreeBlock*& list = free_[header->list];
    list = new (block) FreeBlock{list};
  }
  void put_remote(void* block, const Header* header) noexcept;
  void* allocate_slowly(std::uint32_t list);
  void give_back(void* block) noexcept;
  void drain_remote() noexcept;
  void trim(std::size_t limit) noexcept;
  void give_back_unused() noexcept;
  // The first block of a list that is not empty.
  void* taken(FreeBlock* block, std::uint32_t list, std::size_t bytes) noexcept {
    free_[list] = block->next;
    // With millions of live tensors the list's next block is likely not in the caches.
    __builtin_prefetch(block->next, 1);
    cached_bytes_ -= bytes;
    return block;
  }
  FreeBlock* take(FreeBlock*& list) noexcept {
    FreeBlock* block = list;
    list = block->next;
    cached_bytes_ -= header_of(block)->bytes();
    return block;
  }

  FreeBlock* free_[2 * class_count] = {};
  std::size_t cached_bytes_ = 0;
  std::size_t cache_limit_ = std::size_t{1} << 30;
  std::size_t system_bytes_ = 0;  // allocated from the system: in use or cached
  std::size_t peak_bytes_ = 0;
  std::int64_t blocks_[2] = {};  // [0]: bodies, with elements or without; [1]: other storages; in use or cached
  std::int64_t apart_ = 0;       // bodies allocated without elements behind them, less those that this thread has freed
  // bodies that other threads have freed; bodies destroyed before their elements
  std::atomic<std::int64_t> freed_apart_ = 0, widows_ = 0;
  HiddenPointer bodies_;
  // Freed by other threads: small blocks wait here for the owner; large ones are returned to the system at once and
  // only counted, because an idle owner would keep them for ever.
  static constexpr std::size_t large = std::size_t{1} << 16;
  std::atomic<FreeBlock*> remote_ = nullptr;
  std::atomic<std::size_t> remote_bytes_ = 0;
  std::atomic<std::int64_t> remote_storages_ = 0;
  static constexpr std::uint32_t inspected = std::uint32_t{1} << 31;
  std::atomic<std::uint32_t> visitors_ = 0;  // other threads in a Visit, plus a flag while an Inspection excludes them
  FreeBlock* unused_[2 * class_count] = {};  // cached since before the last call of give_back_unused
  std::size_t used_bytes_ = 0;               // since the last call of give_back_unused
};

}  // namespace reel::detail
