#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

#include <reel/detail/immovable.h>
#include <reel/threads.h>

#include "../core/context.h"
#include "../core/op.h"
#include "group_expectation.h"

namespace reel::detail {

struct QueuedCall;

/// A kind of calls: they agree in all that they must have in common to be joined.
struct CallKind {
  std::vector<std::uint64_t> key;
  Joining joining;
  std::uint32_t number = 0;    // its index among the kinds, from 1 on
  std::uint32_t scope_id = 0;  // of the calls' contexts
  bool recording = false;      // of the calls' contexts
  /// The gain from delaying calls of this kind, and those that use their results: see `gains`.
  std::int64_t balance = first_balance;
  static constexpr std::int64_t first_balance = 10'000;
  /// Calls of one depth in the queue, in the order in which they were made: valid where `filling` is the queue's.
  struct Bucket {
    std::uint64_t filling = 0;
    QueuedCall** calls = nullptr;
    std::uint32_t count = 0, capacity = 0;
  };
  std::vector<Bucket> buckets;                 // by depth
  std::uint64_t filling = 0;                   // valid as a bucket:
  std::uint32_t least_depth = 0, depths = 0;   // no bucket before the one has calls, or from the other on
  std::uint64_t left = 0;                      // calls that were not taken
  std::uint64_t added = 0, sum_of_depths = 0;  // of all calls
};

/// The form of calls that differ in the elements of their operands only: how they are joined, the sizes of their results and
/// their attributes, kept once for all of them.
struct CallForm {
  std::vector<std::uint64_t> words;
  Joining joining;
  bool large = false;    // an operand or a result is, which groups would not make faster
  bool at_once = false;  // its results cannot be pending: they are not row-major, or too large for any memory
  std::vector<std::byte> attributes;  // of no op with `own_attributes`
  std::vector<OutputSpec> specs;
  std::vector<std::int64_t> sizes;      // sizes and strides of each result
  std::vector<std::int64_t> counts;     // of each result's elements
  std::size_t bytes = 0;                // of the results that the calling function keeps
  std::array<CallKind*, 2> kinds{};     // of calls whose operands no tape tracks, and of others: found when needed
  std::array<bool, 2> pays{};           // to delay calls whose operands are all there: as `kinds`
  std::array<std::int64_t, 2> gains{};  // the instructions that a call is expected to save in a group: as `kinds`
};

inline std::uint64_t header_of(DType dtype, int rank, bool in_order, Device device) {
  return static_cast<std::uint64_t>(rank) | static_cast<std::uint64_t>(dtype) << 32 |
         static_cast<std::uint64_t>(in_order) << 40 |
         static_cast<std::uint64_t>(std::bit_cast<std::uint16_t>(device)) << 48;
}

/// The header of an operand: its rank, dtype and order are adjacent.
inline std::uint64_t header_of(const Body& x) {
  static_assert(offsetof(View, dtype) == offsetof(View, rank) + 4 &&
                offsetof(View, contiguous) == offsetof(View, rank) + 5);
  std::uint64_t header = 0;
  std::memcpy(&header, &x.rank, 6);
  return header | static_cast<std::uint64_t>(std::bit_cast<std::uint16_t>(x.device)) << 48;
}

/// Calls word(number) for each number in a range, until it returns false.
template <class Word>
[[gnu::always_inline]] inline bool each_of(const std::int64_t* numbers, int count, Word word) {
  for (int i = 0; i < count; ++i)
    if (!word(static_cast<std::uint64_t>(numbers[i]))) return false;
  return true;
}

template <class Word>
[[gnu::always_inline]] inline bool each_of_attributes(const Call& call, Word word) {
  if (call.op.own_attributes) return true;
  for (std::size_t at = 0; at < call.attribute_bytes.size(); at += 8) {
    std::uint64_t part = 0;
    std::memcpy(&part, call.attribute_bytes.data() + at, std::min<std::size_t>(8, call.attribute_bytes.size() - at));
    if (!word(part)) return false;
  }
  return true;
}

/// Calls word(number) for each number of a call's form, until it returns false. No form begins with all the words of another.
template <class Word>
[[gnu::always_inline]] inline bool each_word_of_form(const Call& call, const Context& context, std::size_t together,
                                                     Word word) {
  if (!word(reinterpret_cast<std::uintptr_t>(&call.op))) return false;
  if (!word(static_cast<std::uint64_t>(context.scope_id) << 32 | together << 2 |
            (context.flags & Context::recording) << 1 | batch_invariant()))
    return false;
  if (!word(call.attribute_bytes.size() << 40 | call.specs.size() << 20 | call.inputs.size())) return false;
  if (!each_of_attributes(call, word)) return false;
  for (const Tensor* input : call.inputs) {
    const Body& x = input->body();
    if (!word(header_of(x)) || !each_of(x.dims, x.rank, word)) return false;
    if (!x.contiguous && !each_of(x.strides, x.rank, word)) return false;
  }
  for (const OutputSpec& spec : call.specs) {
    if (!word(header_of(spec.dtype, spec.rank, !spec.order, spec.device))) return false;
    // Few results have other sizes than an operand.
    bool like_operand = !call.inputs.empty() && spec.like == &call.input(0);
    if (!word(like_operand) || (!like_operand && !each_of(spec.dims, spec.rank, word))) return false;
  }
  return true;
}

/// The forms and kinds of calls that one scheduler has met.
class CallForms : Immovable {
 public:
  /// The form of a call that has operands, found by its line or else by its words. Throws: std::bad_alloc.
  CallForm& form_of(const Call& call, const Context& context, const GroupExpectation& expected) {
    // A line may call an op with several forms.
    const Body& last = call.inputs.back()->body();
    std::uint64_t site =
        (reinterpret_cast<std::uintptr_t>(&call.op) >> 4 ^ reinterpret_cast<std::uintptr_t>(call.where.file) ^
         static_cast<std::uint64_t>(call.where.line) << 20 ^
         static_cast<std::uint64_t>(last.numel * 8 + last.rank) << 40) *
        0x9E3779B97F4A7C15u;
    CallForm*& recent = by_site_[site >> 54];
    if (!recent || !matches(*recent, call, context, expected.together())) [[unlikely]]
      recent = &find_form(call, context, expected);
    return *recent;
  }
  /// `tracked`: a tape tracks an operand. Throws: std::bad_alloc.
  CallKind& kind_of(const Call& call, const Context& context, CallForm& form, bool tracked) {
    CallKind* found = form.kinds[tracked];
    return found ? *found : find_kind(call, context, form, tracked);
  }
  /// The kind with an index. A kind without calls for 0, where an index was too large to be stored, and for an index of another
  /// scheduler, which a tensor keeps after its call has failed.
  CallKind& kind(std::uint32_t number) {
    return number == 0 || number > by_number_.size() ? none_ : *by_number_[number - 1];
  }

 private:
  static bool matches(const CallForm& form, const Call& call, const Context& context, std::size_t together) {
    const std::uint64_t* next = form.words.data();
    return each_word_of_form(call, context, together, [&next](std::uint64_t word) { return *next++ == word; });
  }
  CallForm& find_form(const Call& call, const Context& context, const GroupExpectation& expected);
  CallKind& find_kind(const Call& call, const Context& context, CallForm& form, bool tracked);
  template <class T>
  using ByHash = std::unordered_map<std::uint64_t, std::vector<std::unique_ptr<T>>>;

  std::array<CallForm*, 1024> by_site_ = {};  // the last form at a call site
  ByHash<CallForm> forms_;
  ByHash<CallKind> kinds_;
  std::vector<CallKind*> by_number_;
  CallKind none_;
  std::vector<std::uint64_t> words_;  // of what is looked up
};

}  // namespace reel::detail
