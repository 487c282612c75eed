#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <reel/detail/immovable.h>

#include "../record/arena.h"
#include "call_form.h"
#include "queued_call.h"

namespace reel::detail {

/// The calls that wait to run, by kind and depth. A call's depth is above that of the calls which compute its operands.
class CallQueue : Immovable {
 public:
  CallQueue() = default;
  ~CallQueue();

  /// Adds a call, which stays where it is until it is taken. Throws: std::bad_alloc.
  void add(QueuedCall& call, CallKind& kind, std::uint32_t depth);
  /// A call at a call site, which owns copies of its operands and outputs until `clear`. Throws: std::bad_alloc.
  QueuedCall& keep(const Call& call, const CallForm& form, const Location& call_site) {
    std::size_t inputs = call.inputs.size(), outputs = call.outputs.size();
    std::span<const std::byte> attributes = call.op.own_attributes ? call.attribute_bytes : form.attributes;
    std::size_t own_bytes = call.op.own_attributes ? attributes.size() : 0;
    std::size_t bytes = sizeof(Kept) + (inputs + outputs) * sizeof(Tensor) + inputs * sizeof(const Tensor*) + own_bytes;
    auto* place = static_cast<Kept*>(arena_.allocate(bytes));
    auto* held = reinterpret_cast<Tensor*>(place + 1);
    auto* pointers = reinterpret_cast<const Tensor**>(held + inputs + outputs);
    for (std::size_t i = 0; i < inputs; ++i) pointers[i] = new (held + i) Tensor(*call.inputs[i]);
    for (std::size_t j = 0; j < outputs; ++j) new (held + inputs + j) Tensor(call.outputs[j]);
    if (own_bytes > 0) {
      auto* own = reinterpret_cast<std::byte*>(pointers + inputs);
      std::copy_n(attributes.data(), own_bytes, own);
      attributes = {own, own_bytes};
    }
    new (place) Kept{
        {{call.op, {pointers, inputs}, attributes, form.specs, {held + inputs, outputs}, call_site}}, last_kept_, held};
    last_kept_ = place;
    return place->queued;
  }

  bool is_empty() const { return calls_ == 0; }
  /// A number for what the queue holds until `clear`.
  std::uint64_t filling() const { return filling_; }
  std::size_t size() const { return calls_; }
  /// Bytes of pending results.
  std::size_t bytes() const { return bytes_; }
  void count_bytes(std::size_t more) { bytes_ += more; }
  /// Returns true if a call reads elements of x's storage.
  bool reads(const Body& x) const;
  /// Removes calls of one kind that wait for no other one, and gives them as `ready` until the next ones are taken: those of
  /// the kind that has such calls and whose calls are of the least mean depth. The operands of some may have failed. Null: the
  /// queue is empty.
  /// Source: Neubig, Goldberg and Dyer, On-the-fly operation batching in dynamic computation graphs (2017).
  CallKind* take_ready(std::span<QueuedCall*>& ready) noexcept;
  /// Removes calls for which `is_removed` holds.
  template <class Predicate>
  void remove_if(Predicate is_removed) noexcept {
    for (CallKind* kind : kinds_)
      for (std::uint32_t depth = kind->least_depth; depth < kind->depths; ++depth)
        if (CallKind::Bucket& bucket = kind->buckets[depth]; bucket.filling == filling_) {
          auto* end = std::remove_if(bucket.calls, bucket.calls + bucket.count,
                                     [&](const QueuedCall* one) { return is_removed(*one); });
          count_taken(*kind, bucket, static_cast<std::uint32_t>(end - bucket.calls));
        }
  }
  /// Releases what calls own. All calls must have been taken.
  void clear() noexcept;

 private:
  struct Kept {
    QueuedCall queued;
    Kept* before;
    Tensor* held;  // operands and outputs
  };
  void add_kind(CallKind& kind, std::uint32_t depth);
  void grow(CallKind::Bucket& bucket);
  /// Counts a bucket's calls from `left` on as taken.
  void count_taken(CallKind& kind, CallKind::Bucket& bucket, std::uint32_t left) noexcept {
    std::uint32_t taken = bucket.count - left;
    bucket.count = left;
    calls_ -= taken;
    kind.left -= taken;
  }
  void take(CallKind& kind, bool whole_depth) noexcept;

  Arena arena_;
  Kept* last_kept_ = nullptr;
  std::vector<CallKind*> kinds_;    // that have calls
  bool sorted_ = false;             // `kinds_`, by the mean depth of their calls
  std::vector<QueuedCall*> ready_;  // has room for all calls
  std::size_t calls_ = 0, bytes_ = 0;
  std::uint32_t sequence_ = 0;
  std::uint64_t filling_ = 1;
};

}  // namespace reel::detail
