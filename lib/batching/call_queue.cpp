#include "call_queue.h"

#include <algorithm>
#include <bit>
#include <new>
#include <span>

#include "../core/storage.h"

namespace reel::detail {
CallQueue::~CallQueue() { clear(); }

[[gnu::noinline]] void CallQueue::add_kind(CallKind& kind, std::uint32_t depth) {
  kinds_.push_back(&kind);
  kind.filling = filling_;
  kind.least_depth = depth;
  kind.left = kind.added = kind.sum_of_depths = kind.depths = 0;
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
  if (kind.filling != filling_) add_kind(kind, depth);
  if (depth >= kind.buckets.size()) kind.buckets.resize(std::bit_ceil(depth + 1));
  CallKind::Bucket& bucket = kind.buckets[depth];
  if (bucket.filling != filling_) bucket = {.filling = filling_};
  if (bucket.count == bucket.capacity) [[unlikely]]
    grow(bucket);
  bucket.calls[bucket.count++] = &call;
  call.sequence = sequence_++;
  sorted_ = false;
  kind.least_depth = std::min(kind.least_depth, depth);
  kind.depths = std::max(kind.depths, depth + 1);
  ++kind.left;
  ++kind.added;
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

// Moves a kind's calls that wait for no other one to `ready_`, from the least depth to the first where there is none.
// `whole_depth`: only if all calls of the least depth are such.
void CallQueue::take(CallKind& kind, bool whole_depth) noexcept {
  auto waits = [](const Tensor* input) { return is_pending(input) && !has_failed(input); };
  auto is_ready = [=](const QueuedCall* one) { return std::ranges::none_of(one->call.inputs, waits); };
  bool several_depths = false;
  for (std::uint32_t depth = kind.least_depth; depth < kind.depths; ++depth) {
    CallKind::Bucket& bucket = kind.buckets[depth];
    if (bucket.filling == filling_ && bucket.count > 0) {
      std::size_t before = ready_.size();
      std::span<QueuedCall*> calls(bucket.calls, bucket.count);
      bool all = whole_depth && before == 0;
      if (all && !std::ranges::all_of(calls, is_ready)) return;
      std::uint32_t left = 0;
      for (QueuedCall* one : calls)
        if (all || is_ready(one))
          ready_.push_back(one);
        else
          bucket.calls[left++] = one;
      if (ready_.size() == before) break;
      several_depths |= before > 0;
      count_taken(kind, bucket, left);
    }
    if (depth == kind.least_depth && (bucket.filling != filling_ || bucket.count == 0)) ++kind.least_depth;
  }
  // By examples: parts of one tensor stay in order from op to op.
  if (several_depths) std::ranges::sort(ready_, {}, &QueuedCall::sequence);
}

CallKind* CallQueue::take_ready(std::span<QueuedCall*>& ready) noexcept {
  if (!std::exchange(sorted_, true))
    std::ranges::sort(kinds_, [](const CallKind* a, const CallKind* b) {
      std::uint64_t deep = a->sum_of_depths * b->added, other = b->sum_of_depths * a->added;
      return deep != other ? deep < other : a->number < b->number;
    });
  ready_.clear();
  // Calls that most examples make are not to run for those alone that are ahead.
  for (bool whole_depth : {true, false})
    for (auto kind = kinds_.begin(); kind != kinds_.end();) {
      CallKind* chosen = *kind;
      take(*chosen, whole_depth);
      kind = chosen->left == 0 ? (chosen->filling = 0, kinds_.erase(kind)) : kind + 1;
      if (ready_.empty()) continue;
      ready = ready_;
      return chosen;
    }
  return nullptr;
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
