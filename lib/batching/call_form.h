#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include <reel/detail/immovable.h>

#include "../core/context.h"
#include "../core/op.h"

namespace reel::detail {

struct CallBucket;

/// A kind of calls: they agree in all that they must have in common to be joined.
struct CallKind {
  std::vector<std::uint64_t> key;
  Joining joining;
  /// The calls of this kind in the queue, by depth: valid where `filling` is the queue's.
  struct AtDepth {
    std::uint64_t filling = 0;
    CallBucket* bucket = nullptr;
  };
  std::vector<AtDepth> at_depth;
};

/// Calls that are equal but for the elements of their operands, and what follows from that. Their results' sizes and their
/// attributes are kept here once for all of them.
struct CallForm {
  std::vector<std::uint64_t> words;
  Joining joining;
  bool large = false;
  std::uint32_t scope_id = 0;  // of the context
  bool recording = false;      // of the context
  std::vector<std::byte> attributes;
  std::vector<OutputSpec> specs;
  std::vector<std::int64_t> extents;  // sizes and strides of each result
  std::vector<std::int64_t> counts;   // of each result's elements
  std::size_t bytes = 0;              // of the results that the calling function keeps
  std::array<CallKind*, 2> kinds{};   // of calls whose operands no tape tracks, and of others: found when needed
};

/// The forms and kinds of calls that one scheduler has met.
class CallForms : Immovable {
 public:
  /// The form of a call, found by its line or else by its words. Throws: std::bad_alloc.
  CallForm& form_of(const Call& call, const Context& context);
  /// `tracked`: a tape tracks an operand. Throws: std::bad_alloc.
  CallKind& kind_of(const Call& call, CallForm& form, bool tracked) {
    CallKind* found = form.kinds[tracked];
    return found ? *found : find_kind(call, form, tracked);
  }

 private:
  CallForm& find_form(const Call& call, const Context& context);
  CallKind& find_kind(const Call& call, CallForm& form, bool tracked);
  template <class T>
  using ByHash = std::unordered_map<std::uint64_t, std::vector<std::unique_ptr<T>>>;

  std::array<CallForm*, 512> by_site_ = {};  // the last form at a call site
  ByHash<CallForm> forms_;
  ByHash<CallKind> kinds_;
  std::vector<std::uint64_t> words_;  // of what is looked up
};

}  // namespace reel::detail
