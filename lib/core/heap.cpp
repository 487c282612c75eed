#include "heap.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>

namespace reel::detail {

namespace {

// Large blocks use pages of 2 MiB if the system has them: passes over tensors that exceed the caches then miss the TLB
// less often, and there are fewer page faults: see "Huge pages" in tools/benchmark/README.md.
void prefer_huge_pages(std::uintptr_t start, std::size_t bytes) {
  constexpr std::uintptr_t page = std::uintptr_t{2} << 20;
  std::uintptr_t begin = (start + page - 1) & ~(page - 1), end = (start + bytes) & ~(page - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace

void* Heap::allocate_slowly(std::uint32_t list) {
  if (remote_.load(std::memory_order_relaxed)) drain_remote();
  if (free_[list]) return take(free_[list]);
  if (unused_[list]) return take(unused_[list]);
  bool storage = list >= class_count;
  std::size_t size = size_of_class(storage ? list - class_count : list);
  // A cached block of up to twice the size is reused. Otherwise each class would eventually hold the most that any step
  // of a ragged net has needed of it.
  std::uint32_t first = storage ? class_count : 0;
  for (std::uint32_t larger = list + 1; larger < first + class_count; ++larger) {
    if (size_of_class(larger - first) > 2 * size) break;
    if (free_[larger]) return take(free_[larger]);
    if (unused_[larger]) return take(unused_[larger]);
  }
  constexpr std::size_t alignment = 64;
  std::size_t before = sizeof(Header) + (storage ? 0 : sizeof(BodyLink));
  void* raw = std::malloc(size + before + alignment - 16);
  if (!raw) throw std::bad_alloc();
  auto start = reinterpret_cast<std::uintptr_t>(raw);
  prefer_huge_pages(start, size);
  std::uintptr_t block = (start + before + alignment - 1) & ~(alignment - 1);
  if (!storage) {
    auto* link = new (link_of(reinterpret_cast<void*>(block))) BodyLink{{}, bodies_};
    if (BodyLink* next = bodies_.get()) next->previous.set(link);
    bodies_.set(link);
  }
  *header_of(reinterpret_cast<void*>(block)) = {this, static_cast<std::uint32_t>(size / 64),
                                                static_cast<std::uint16_t>(list),
                                                static_cast<std::uint16_t>(block - start)};
  ++blocks_[storage];
  system_bytes_ += size;
  peak_bytes_ = std::max(peak_bytes_, system_bytes_);
  return reinterpret_cast<void*>(block);
}

void Heap::give_back(void* block) noexcept {
  const Header* header = header_of(block);
  bool storage = header->list >= class_count;
  if (!storage) {
    BodyLink *previous = link_of(block)->previous.get(), *next = link_of(block)->next.get();
    (previous ? previous->next : bodies_).set(next);
    if (next) next->previous.set(previous);
  }
  --blocks_[storage];
  system_bytes_ -= header->bytes();
  std::free(static_cast<char*>(block) - header->front);
}

void Heap::put_remote(void* block, const Header* header) noexcept {
  if (header->bytes() >= large) {  // no body is that large
    remote_bytes_.fetch_add(header->bytes(), std::memory_order_relaxed);
    remote_storages_.fetch_add(1, std::memory_order_relaxed);
    std::free(static_cast<char*>(block) - header->front);
    return;
  }
  auto* freed = new (block) FreeBlock{remote_.load(std::memory_order_relaxed)};
  while (!remote_.compare_exchange_weak(freed->next, freed, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

void Heap::drain_remote() noexcept {
  system_bytes_ -= remote_bytes_.exchange(0, std::memory_order_relaxed);
  blocks_[1] -= remote_storages_.exchange(0, std::memory_order_relaxed);
  FreeBlock* block = remote_.exchange(nullptr, std::memory_order_acquire);
  while (block) {
    FreeBlock* next = block->next;
    put(block, header_of(block));
    block = next;
  }
}

void Heap::trim(std::size_t limit) noexcept {
  drain_remote();
  for (std::uint32_t list = 2 * class_count; list-- > 0;)
    for (FreeBlock** blocks : {&unused_[list], &free_[list]})
      while (*blocks && cached_bytes_ > limit) give_back(take(*blocks));
}

void Heap::give_back_unused() noexcept {
  drain_remote();
  for (std::uint32_t list = 0; list < 2 * class_count; ++list) {
    while (unused_[list]) give_back(take(unused_[list]));
    unused_[list] = std::exchange(free_[list], nullptr);
  }
  used_bytes_ = 0;
}

Heap::Visit::Visit(Heap& heap) noexcept : heap_(heap) {
  while (heap.visitors_.fetch_add(1, std::memory_order_acquire) & inspected) {
    heap.visitors_.fetch_sub(1, std::memory_order_relaxed);
    while (heap.visitors_.load(std::memory_order_relaxed) & inspected) std::this_thread::yield();
  }
}

Heap::Inspection::Inspection(Heap& heap) : heap_(heap) {
  std::vector<const void*> cached;
  cached.reserve(static_cast<std::size_t>(heap.blocks_[0]));
  bodies_.reserve(cached.capacity());
  // Nothing throws from here on.
  heap.visitors_.fetch_or(inspected, std::memory_order_acquire);
  while (heap.visitors_.load(std::memory_order_acquire) != inspected) std::this_thread::yield();
  heap.drain_remote();
  for (std::uint32_t list = 0; list < class_count; ++list)
    for (const FreeBlock* block : {heap.free_[list], heap.unused_[list]})
      for (; block; block = block->next) cached.push_back(block);
  std::sort(cached.begin(), cached.end());
  for (BodyLink* link = heap.bodies_.get(); link; link = link->next.get()) {
    void* body = reinterpret_cast<Header*>(link + 1) + 1;
    if (!std::binary_search(cached.begin(), cached.end(), body)) bodies_.push_back(body);
  }
}

Heap::Inspection::~Inspection() { heap_.visitors_.fetch_and(~inspected, std::memory_order_release); }

MemoryStatistics Heap::statistics() {
  drain_remote();
  std::int64_t cached[2] = {};
  for (std::uint32_t list = 0; list < 2 * class_count; ++list)
    for (const FreeBlock* block : {free_[list], unused_[list]})
      for (; block; block = block->next) ++cached[list >= class_count];
  std::int64_t bodies = blocks_[0] - cached[0], apart = apart_ - freed_apart_.load(std::memory_order_relaxed);
  return {.live_tensors = bodies - widows_.load(std::memory_order_relaxed),
          .live_storages = blocks_[1] - cached[1] + bodies - apart,
          .live_bytes = system_bytes_ - cached_bytes_,
          .peak_bytes = peak_bytes_,
          .cached_bytes = cached_bytes_};
}

void Heap::set_cache_limit(std::size_t bytes) {
  cache_limit_ = bytes;
  trim(bytes);
}

}  // namespace reel::detail
