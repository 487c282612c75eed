#include "call_queue.h"

#include <algorithm>
#include <bit>
#include <new>

#include "../core/storage.h"

namespace reel::detail {
CallQueue::~CallQueue() { clear(); }

[[gnu::noinline]] CallBucket& CallQueue::make_bucket(CallKind& kind, std::uint32_t depth) {
  if (depth >= kind.at_depth.size()) kind.at_depth.resize(std::bit_ceil(depth + 1));
  if (depth >= levels_.size()) levels_.resize(std::bit_ceil(depth + 1));
  auto* bucket = new (arena_.allocate(sizeof(CallBucket))) CallBucket{.kind = &kind};
  // In the order of their first calls.
  Level& level = levels_[depth];
  (level.first ? level.last->next : level.first) = bucket;
  level.last = bucket;
  kind.at_depth[depth] = {filling_, bucket};
  return *bucket;
}

[[gnu::noinline]] void CallQueue::grow(CallBucket& bucket) {
  std::uint32_t capacity = std::max<std::uint32_t>(8, 2 * bucket.capacity);
  auto** grown = static_cast<QueuedCall**>(arena_.allocate(capacity * sizeof(QueuedCall*)));
  std::copy_n(bucket.calls, bucket.count, grown);
  bucket.calls = grown;
  bucket.capacity = capacity;
}

void CallQueue::add(QueuedCall& call, CallKind& kind, std::uint32_t depth) {
  bool is_there = depth < kind.at_depth.size() && kind.at_depth[depth].filling == filling_;
  CallBucket& bucket = is_there ? *kind.at_depth[depth].bucket : make_bucket(kind, depth);
  if (bucket.count == bucket.capacity) [[unlikely]]
    grow(bucket);
  bucket.calls[bucket.count++] = &call;
  ++calls_;
}

bool CallQueue::reads(const Body& x) const {
  for (const Level& level : levels_)
    for (const CallBucket* bucket = level.first; bucket; bucket = bucket->next)
      for (std::uint32_t k = 0; k < bucket->count; ++k)
        for (const Tensor* input : bucket->calls[k]->call.inputs)
          if (input->body().storage == x.storage) return true;
  return false;
}

CallBucket* CallQueue::take_level() {
  for (; level_ < levels_.size(); ++level_)
    if (CallBucket* first = std::exchange(levels_[level_], {}).first) {
      for (const CallBucket* bucket = first; bucket; bucket = bucket->next) calls_ -= bucket->count;
      return first;
    }
  return nullptr;
}

void CallQueue::clear() noexcept {
  for (Kept* kept = std::exchange(last_kept_, nullptr); kept; kept = kept->before)
    std::destroy_n(kept->held, kept->queued.call.inputs.size() + kept->queued.call.outputs.size());
  arena_.rewind();
  ++filling_;
  level_ = calls_ = bytes_ = 0;
}

}  // namespace reel::detail
