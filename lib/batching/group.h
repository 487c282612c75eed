#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "../core/context.h"
#include "../core/op.h"
#include "joined_parts.h"

namespace reel::detail {

/// How a call can be joined with others of its kind.
Joining joining_of(const Call& call);

/// Returns true if an op cannot tell the tensors apart: they are one, or views of equal elements of one storage that no tape
/// tracks. Within a checkpoint only the first holds: its first run tracks nothing, and both runs must form equal groups.
bool is_same(const TapeList& tapes, const Tensor& a, const Tensor& b);

struct Task;

/// A call that waits for others of its kind, with the context and the task in which it was made.
struct Waiting {
  Call* call;
  Context* context;
  Task* task;
};

/// Returns true if a set of inputs, as in `Joining`, has input i.
inline bool has_input(std::uint8_t set, std::size_t i) { return i < 8 && set >> i & 1; }

/// Runs several calls with equal keys as one.
class Group {
 public:
  /// Chooses calls to run together, and moves them to the front; the first one is among them. Returns their number; 1: the
  /// first one must run alone.
  static std::size_t choose(std::span<Waiting> waiting, const Joining& joining);

  /// `calls`: as chosen. `context`: in which the op runs, and is recorded. `before`: operands of earlier groups.
  Group(Context& context, std::span<const Waiting> calls, const Joining& joining, JoinedParts& before);
  /// Runs the op and fills the outputs of all calls. Throws: what the op throws; the outputs are not filled then.
  void run();

 private:
  const Tensor& input(std::size_t call, std::size_t i) const { return *calls_[call].call->inputs[i]; }
  bool stacked() const { return joining_.by == Joining::By::stacked; }
  bool is_shared(std::size_t i) const { return has_input(joining_.shared, i); }
  bool is_single(std::size_t i) const { return !stacked() && has_input(joining_.single, i); }
  bool is_common(std::size_t i) const;
  Shape joined_shape(const Tensor& part, bool by_rows, int rank) const;
  Tensor joined_input(std::size_t i);
  Tensor gathered_input(std::size_t i, const Shape& shape);
  void record_uses();
  void fill_outputs(std::span<Tensor> joined);
  void fill_with_one(std::span<const Tensor> made);

  Context& context_;
  std::span<const Waiting> calls_;
  Joining joining_;
  JoinedParts& before_;
  Call& first_;
  std::vector<std::int64_t> starts_;    // of each call's rows, and the end
  std::vector<std::int64_t> division_;  // attributes of `batch` and `unbatch`
};

/// The key in which calls must agree to be joined: op, attributes, dtypes, shapes without the joined axis, and whether
/// they are recorded.
class GroupKey {
 public:
  /// `recorded`: a tape tracks an input of the call.
  GroupKey(const Call& call, const Joining& joining, const Context& context, bool recorded);
  /// Returns false if the call has more operands than a key holds.
  bool valid() const { return valid_; }
  std::uint64_t hash() const;
  std::span<const std::uint64_t> words() const { return {words_, count_}; }
  /// Returns true if `words` are those of this key.
  bool matches(std::span<const std::uint64_t> words) const {
    return words.size() == count_ && std::memcmp(words.data(), words_, words.size_bytes()) == 0;
  }

 private:
  static constexpr std::size_t most = 64;
  std::uint64_t words_[most];
  std::size_t count_ = 0;
  bool valid_ = true;
};

}  // namespace reel::detail
