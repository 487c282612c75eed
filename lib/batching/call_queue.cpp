#include "call_queue.h"

#include <algorithm>
#include <bit>
#include <new>
#include <span>

#include "../core/storage.h"

namespace reel::detail {
CallQueue::~CallQueue() { clear(); }

[[gnu::noinline]] CallKind::Bucket& CallQueue::make_bucket(CallKind& kind, std::uint32_t depth) {
  if (depth >= kind.buckets.size()) kind.buckets.resize(std::bit_ceil(depth + 1));
  if (kind.filling != filling_) {
    kinds_.push_back(&kind);
    kind.filling = filling_;
    kind.least_depth = depth;
    kind.calls = kind.sum_of_depths = kind.depths = 0;
  }
  kind.least_depth = std::min(kind.least_depth, depth);
  kind.depths = std::max(kind.depths, depth + 1);
  return kind.buckets[depth] = {.filling = filling_};
}

[[gnu::noinline]] void CallQueue::grow(CallKind::Bucket& bucket) {
  std::uint32_t capacity = std::max<std::uint32_t>(8, 2 * bucket.capacity);
  auto** grown = static_cast<QueuedCall**>(arena_.allocate(capacity * sizeof(QueuedCall*)));
  std::copy_n(bucket.calls, bucket.count, grown);
  bucket.calls = grown;
  bucket.capacity = capacity;
}

void CallQueue::add(QueuedCall& call, CallKind& kind, std::uint32_t depth) {
  // Taking calls needs no memory then.
  if (ready_.capacity() == calls_) ready_.reserve(2 * calls_ + 64);
  bool is_there = depth < kind.buckets.size() && kind.buckets[depth].filling == filling_;
  CallKind::Bucket& bucket = is_there ? kind.buckets[depth] : make_bucket(kind, depth);
  if (bucket.count == bucket.capacity) [[unlikely]]
    grow(bucket);
  bucket.calls[bucket.count++] = &call;
  call.sequence = sequence_++;
  ++kind.calls;
  kind.sum_of_depths += depth;
  ++calls_;
}

bool CallQueue::reads(const Body& x) const {
  for (const CallKind* kind : kinds_)
    for (std::uint32_t depth = kind->least_depth; depth < kind->depths; ++depth) {
      const CallKind::Bucket& bucket = kind->buckets[depth];
      if (bucket.filling != filling_) continue;
      for (std::uint32_t k = 0; k < bucket.count; ++k)
        for (const Tensor* input : bucket.calls[k]->call.inputs)
          if (input->body().storage == x.storage) return true;
    }
  return false;
}

// The kind of the least mean depth that was not tried for this choice; null if there is none.
CallKind* CallQueue::least_deep() noexcept {
  CallKind* least = nullptr;
  for (CallKind* kind : kinds_)
    if (kind->tried_for != choice_ &&
        (!least || kind->sum_of_depths * least->calls < least->sum_of_depths * kind->calls))
      least = kind;
  if (least) least->tried_for = choice_;
  return least;
}

template <class Predicate>
void CallQueue::take(CallKind& kind, Predicate is_ready) noexcept {
  bool several_depths = false;
  for (std::uint32_t depth = kind.least_depth; depth < kind.depths; ++depth) {
    CallKind::Bucket& bucket = kind.buckets[depth];
    if (bucket.filling == filling_ && bucket.count > 0) {
      std::size_t before = ready_.size();
      std::uint32_t left = 0;
      for (QueuedCall* one : std::span(bucket.calls, bucket.count))
        if (is_ready(*one))
          ready_.push_back(one);
        else
          bucket.calls[left++] = one;
      if (ready_.size() == before) break;
      several_depths |= before > 0;
      count_taken(kind, bucket, depth, left);
    }
    if (depth == kind.least_depth && (bucket.filling != filling_ || bucket.count == 0)) ++kind.least_depth;
  }
  // By examples: parts of one tensor stay in order from op to op.
  if (several_depths) std::ranges::sort(ready_, {}, &QueuedCall::sequence);
}

CallKind* CallQueue::take_ready(std::span<QueuedCall*>& ready) noexcept {
  ready_.clear();
  std::erase_if(kinds_, [](const CallKind* kind) { return kind->calls == 0; });
  if (kinds_.empty()) return nullptr;
  auto has_operands = [](const QueuedCall& one) { return std::ranges::none_of(one.call.inputs, is_pending); };
  ++choice_;
  CallKind* chosen = nullptr;
  do {
    chosen = least_deep();
    if (chosen) take(*chosen, has_operands);
  } while (chosen && ready_.empty());
  // The operands of all calls have failed.
  if (!chosen) take(*(chosen = kinds_[0]), [](const QueuedCall&) { return true; });
  ready = ready_;
  return chosen;
}

void CallQueue::clear() noexcept {
  for (Kept* kept = std::exchange(last_kept_, nullptr); kept; kept = kept->before)
    std::destroy_n(kept->held, kept->queued.call.inputs.size() + kept->queued.call.outputs.size());
  arena_.rewind();
  ++filling_;
  kinds_.clear();
  calls_ = bytes_ = sequence_ = 0;
}

}  // namespace reel::detail
