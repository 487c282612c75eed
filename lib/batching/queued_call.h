#pragma once

#include <cstdint>

#include "../core/context.h"
#include "../core/op.h"
#include "report.h"

namespace reel::detail {

struct Task;

/// A call that is to run with others of its kind: its example waits for it, or its results are pending.
struct QueuedCall {
  Call call;                        // called at the call site
  Context* context = nullptr;       // of the example that waits; null if the results are pending
  Task* task = nullptr;             // made the call
  Task* root = nullptr;             // runs the function of the example
  std::uint64_t root_start = 0;     // distinguishes the root from later tasks of its object
  ReportBuilder* report = nullptr;  // that counts it
  std::uint32_t example = 0;        // of the outermost batch_map
  std::uint32_t sequence = 0;       // its place among the calls of the queue

  bool is_pending() const { return !context; }
};

/// The mark that a pending tensor stores in its `slot_version`: the depth of the call that computes it, and the index of the
/// kind of call that began its chain, 0 if the index is too large. Marks are ordered by depth.
struct PendingMark {
  static constexpr int kind_bits = 19;
  std::uint32_t bits = 0;

  PendingMark() = default;
  explicit PendingMark(const Body& pending) : bits(pending.slot_version) {}
  PendingMark(std::uint32_t depth, std::uint32_t kind) : bits(depth << kind_bits | (kind >> kind_bits ? 0 : kind)) {}
  std::uint32_t depth() const { return bits >> kind_bits; }
  std::uint32_t kind() const { return bits & ((1u << kind_bits) - 1); }
  auto operator<=>(const PendingMark&) const = default;
};

/// Returns true if the elements of an operand are computed later.
inline bool is_pending(const Tensor* x) { return (x->body().marks & Body::pending) != 0; }

/// Returns true if the elements of an operand are never computed, because its call has failed.
inline bool has_failed(const Tensor* x) { return is_pending(x) && x->body().slot_version == 0; }

/// The size of a tensor's elements in bytes.
inline std::int64_t element_bytes(const Body& x) { return x.numel * static_cast<std::int64_t>(size_of(x.dtype)); }

/// Returns true if a set of inputs, as in `Joining`, has input i.
inline bool has_input(std::uint8_t set, std::size_t i) { return i < 8 && set >> i & 1; }

}  // namespace reel::detail
