#include "memory_pool.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "queue.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// Size classes: 256-byte steps to 1 KiB, then four to each power of two.
int class_of(std::size_t bytes) {
  if (bytes <= 1024) return bytes == 0 ? 0 : static_cast<int>((bytes - 1) / 256);
  int power = std::bit_width(bytes - 1) - 1;
  return 4 + (power - 10) * 4 + static_cast<int>((bytes - 1) >> (power - 2) & 3);
}

std::size_t size_of_class(int size_class) {
  auto number = static_cast<std::size_t>(size_class);
  if (number < 4) return (number + 1) * 256;
  return (5 + number % 4) << ((number - 4) / 4 + 8);
}

// Large blocks are multiples of this, and the remainder of a split one is no smaller than `least_rest`.
constexpr std::size_t granule = std::size_t{1} << 16, least_rest = std::size_t{1} << 17;
// Sizes of allocations from the driver: a common size for requests smaller than half of it, else multiples of its
// pages.
constexpr std::size_t common_segment = std::size_t{1} << 25, page = std::size_t{1} << 21;

// The class of a block that is a driver allocation by itself.
constexpr int alone = -2;

// Returns true if every block is a driver allocation: compute-sanitizer knows the bounds of such allocations only.
bool keeps_nothing() {
  static const bool set = std::getenv("REEL_CUDA_NO_CACHE") != nullptr;
  return set;
}

constexpr std::size_t rounded(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

void DeviceAccount::take(std::size_t bytes) {
  std::size_t now = used.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::size_t most = peak.load(std::memory_order_relaxed);
  while (now > most && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
}

bool DeviceAccount::reserve(std::size_t bytes) {
  if (reserved.fetch_add(bytes, std::memory_order_relaxed) + bytes <= limit.load(std::memory_order_relaxed))
    return true;
  reserved.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

MemoryPool::MemoryPool(Queue& queue, DeviceAccount& account) : queue_(queue), account_(account) {}

MemoryPool::~MemoryPool() {
  if (large_.empty() && carved_.empty() && awaited_.empty()) return;
  if (queue_.capture) return;  // waiting would break the recording: the memory stays allocated
  try {
    notify_wait({Device::Type::cuda, static_cast<std::uint8_t>(queue_.device)},
                "a graph's memory, which is given back");
    queue_.finish();
    wait_for_users();
  } catch (...) {
    // The driver has shut down.
  }
  release(false);
}

void MemoryPool::retire(std::unique_ptr<MemoryPool> pool) noexcept {
  std::unique_lock lock(pool->mutex_);
  pool->retired_ = true;
  if (pool->in_use_ > 0) static_cast<void>(pool.release());
  lock.unlock();
}

Block* MemoryPool::take(std::size_t bytes, bool spoils) {
  static const std::size_t gap = driver_gap();
  bytes += gap;
  std::lock_guard lock(mutex_);
  if (!awaited_.empty()) put_awaited(false);
  // A graph's kernels use its memory again at each launch, when their tensors no longer exist.
  bool is_of_graph = this != &queue_.memory;
  Block* block = keeps_nothing() && !is_of_graph ? take_alone(bytes)
                 : bytes <= most_small           ? take_small(bytes)
                                                 : take_large(rounded(bytes, granule));
  if (!block) return nullptr;
  ++in_use_;
  account_.take(block->bytes);
  if (spoils) driver_spoil(block->data, block->bytes, queue_.stream);
  return block;
}

Block* MemoryPool::take_alone(std::size_t bytes) {
  bytes = std::max(bytes, std::size_t{1});
  if (!account_.reserve(bytes)) return nullptr;
  auto block = std::make_unique<Block>();
  block->data = driver_allocate(bytes);
  if (!block->data) {
    account_.reserved.fetch_sub(bytes, std::memory_order_relaxed);
    return nullptr;
  }
  block->pool = this;
  block->bytes = bytes;
  block->size_class = alone;
  return block.release();
}

void MemoryPool::put_alone(Block* block) noexcept {
  try {
    queue_.finish();
  } catch (...) {
    // The driver has shut down, as in take_back().
  }
  account_.reserved.fetch_sub(block->bytes, std::memory_order_relaxed);
  driver_free(block->data);
  std::unique_ptr<Block> freed(block);
}

Block* MemoryPool::take_small(std::size_t bytes) {
  int size_class = class_of(bytes);
  Block*& list = small_[static_cast<std::size_t>(size_class)];
  Block* block = list ? std::exchange(list, list->next) : cut(size_of_class(size_class), size_class);
  if (block) ++block->slab->in_use;
  return block;
}

Block* MemoryPool::cut(std::size_t bytes, int size_class) {
  if (!slab_ || slab_used_ + bytes > slab_bytes) {
    Block* fresh = take_large(slab_bytes);
    if (!fresh) return nullptr;
    slab_ = fresh;
    slab_used_ = 0;
  }
  auto block = std::make_unique<Block>();
  block->data = static_cast<char*>(slab_->data) + slab_used_;
  block->pool = this;
  block->bytes = bytes;
  block->slab = slab_;
  block->size_class = size_class;
  slab_used_ += bytes;
  return carved_.emplace_back(std::move(block)).get();
}

Block* MemoryPool::take_large(std::size_t bytes) {
  auto found = large_.lower_bound(bytes);
  if (found == large_.end()) {
    if (!grow(bytes)) return nullptr;
    found = large_.lower_bound(bytes);
  }
  Block* block = *found;
  large_.erase(found);
  block->is_free = false;
  if (block->bytes - bytes >= least_rest) split(block, bytes);
  return block;
}

void MemoryPool::split(Block* block, std::size_t bytes) {
  auto rest = std::make_unique<Block>();
  rest->data = static_cast<char*>(block->data) + bytes;
  rest->pool = this;
  rest->bytes = block->bytes - bytes;
  rest->before = block;
  rest->after = block->after;
  rest->is_free = true;
  large_.insert(rest.get());
  if (block->after) block->after->before = rest.get();
  block->after = rest.release();
  block->bytes = bytes;
}

bool MemoryPool::grow(std::size_t bytes) {
  std::size_t exact = rounded(bytes, page);
  return (bytes <= common_segment / 2 && grow_by(common_segment)) || grow_by(exact);
}

bool MemoryPool::grow_by(std::size_t bytes) {
  if (!account_.reserve(bytes)) return false;
  auto segment = std::make_unique<Block>();
  segment->data = driver_allocate(bytes);
  if (!segment->data) {
    account_.reserved.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  segment->pool = this;
  segment->bytes = bytes;
  segment->is_free = true;
  large_.insert(segment.get());
  static_cast<void>(segment.release());
  return true;
}

bool MemoryPool::reserve(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  return grow_by(rounded(bytes, page));
}

void MemoryPool::give(Block* block) noexcept {
  std::unique_lock lock(mutex_);
  take_back(block);
  bool ends = retired_ && in_use_ == 0;
  lock.unlock();
  if (!ends) return;
  std::unique_ptr<MemoryPool> ended(this);
}

void MemoryPool::take_back(Block* block) noexcept {
  --in_use_;
  account_.used.fetch_sub(block->bytes, std::memory_order_relaxed);
  if (!block->shared.load(std::memory_order_relaxed)) return put(block);
  try {
    await_users(block);
  } catch (...) {
    // The driver has shut down: the block will not be used again.
    put(block);
  }
}

void MemoryPool::await_users(Block* block) {
  Awaited awaited{block, {}};
  for (Queue* user : std::exchange(block->users, {}))
    if (user != &queue_) awaited.events.push_back(user->record());
  awaited_.push_back(std::move(awaited));
  block->writer = nullptr;
  block->shared.store(false, std::memory_order_relaxed);
}

void MemoryPool::put(Block* block) noexcept {
  if (block->size_class == alone) return put_alone(block);
  if (block->size_class < 0) return put_large(block);
  --block->slab->in_use;
  Block*& list = small_[static_cast<std::size_t>(block->size_class)];
  block->next = std::exchange(list, block);
}

void MemoryPool::put_large(Block* block) noexcept {
  auto absorb = [](Block* kept, Block* gone) {
    kept->bytes += gone->bytes;
    kept->after = gone->after;
    if (gone->after) gone->after->before = kept;
    std::unique_ptr<Block> freed(gone);
  };
  if (Block* after = block->after; after && after->is_free) {
    large_.erase(after);
    absorb(block, after);
  }
  if (Block* before = block->before; before && before->is_free) {
    large_.erase(before);
    absorb(before, block);
    block = before;
  }
  block->is_free = true;
  large_.insert(block);
}

void MemoryPool::put_awaited(bool waits) noexcept {
  std::erase_if(awaited_, [&](Awaited& awaited) {
    try {
      for (Event event : awaited.events) {
        if (waits)
          driver_wait(event);
        else if (!driver_is_done(event))
          return false;
      }
    } catch (...) {
      // The driver has shut down, as in give().
    }
    for (Event event : awaited.events) driver_free_event(event);
    put(awaited.block);
    return true;
  });
}

void MemoryPool::wait_for_users() {
  std::lock_guard lock(mutex_);
  put_awaited(true);
}

void MemoryPool::drop_empty_slabs() noexcept {
  std::vector<Block*> empty;
  for (Block*& list : small_)
    for (Block** place = &list; *place;)
      if ((*place)->slab->in_use == 0)
        *place = (*place)->next;
      else
        place = &(*place)->next;
  for (const auto& block : carved_)
    if (block->slab->in_use == 0) empty.push_back(block->slab);
  std::sort(empty.begin(), empty.end());
  empty.erase(std::unique(empty.begin(), empty.end()), empty.end());
  std::erase_if(carved_, [](const auto& block) { return block->slab->in_use == 0; });
  for (Block* slab : empty) {
    if (slab == slab_) slab_ = nullptr;
    put_large(slab);
  }
}

void MemoryPool::release(bool keeps_reservation) noexcept {
  std::lock_guard lock(mutex_);
  put_awaited(false);
  drop_empty_slabs();
  for (auto place = large_.begin(); place != large_.end();) {
    Block* block = *place++;
    std::size_t kept = keeps_reservation ? account_.reservation.load() : 0;
    if (block->before || block->after || account_.reserved.load() - block->bytes < kept) continue;
    account_.reserved.fetch_sub(block->bytes, std::memory_order_relaxed);
    large_.erase(block);
    std::unique_ptr<Block> freed(block);
    driver_free(block->data);
  }
}

std::vector<Queue*> MemoryPool::record_use(Block& block, Queue& user, bool writes) {
  std::lock_guard lock(mutex_);
  std::vector<Queue*> awaited;
  auto wait_for = [&](Queue* other) {
    if (other != &user && std::find(awaited.begin(), awaited.end(), other) == awaited.end()) awaited.push_back(other);
  };
  wait_for(block.writer ? block.writer : &queue_);
  if (writes) {
    wait_for(&queue_);
    for (Queue* other : block.users) wait_for(other);
    block.writer = &user;
  }
  if (&user != &queue_) {
    if (std::find(block.users.begin(), block.users.end(), &user) == block.users.end()) block.users.push_back(&user);
    block.shared.store(true, std::memory_order_release);
  }
  return awaited;
}

}  // namespace reel::detail::inline REEL_TARGET
