#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "../core/context.h"
#include "../core/op.h"
#include "joined_parts.h"
#include "queued_call.h"

namespace reel::detail {

/// How a call can be joined with others of its kind.
Joining joining_of(const Call& call);

/// Returns true if an op cannot tell the tensors apart: they are one, or views of equal elements of one storage that no tape
/// tracks, or that have one slot. Within a checkpoint only the first holds: its first run tracks nothing, and both runs must form equal groups.
bool is_same(const TapeList& tapes, const Tensor& a, const Tensor& b);

/// Gives a pending tensor the elements of another one of its form, and its slot.
void fill_pending(Body& pending, const Body& made);

/// Runs several calls of one kind as one.
class Group {
 public:
  /// Chooses calls to run together, and moves them to the front; the first one is among them. Returns their number; 1: the
  /// first one must run alone.
  static std::size_t choose(const TapeList& tapes, std::span<QueuedCall*> calls, const Joining& joining);

  /// `calls`: as chosen. `context`: in which the op runs, and is recorded. `before`: operands of earlier groups.
  Group(Context& context, std::span<QueuedCall* const> calls, const Joining& joining, JoinedParts& before);
  /// Runs the op and fills the outputs of all calls, also pending ones. Throws: what the op throws; no output is filled then.
  void run();

 private:
  const Tensor& input(std::size_t call, std::size_t i) const { return *calls_[call]->call.inputs[i]; }
  bool stacked() const { return joining_.by == Joining::By::stacked; }
  bool is_shared(std::size_t i) const { return has_input(joining_.shared, i); }
  bool is_single(std::size_t i) const { return !stacked() && has_input(joining_.single, i); }
  bool is_common(std::size_t i) const;
  // The first row of each call and the end of the last one, and the attributes of `batch` and `unbatch` that divide rows there.
  struct Rows {
    std::vector<std::int64_t> starts, division;
  };
  template <class RowsOf>
  Rows rows_by(RowsOf rows_of) const;
  Rows rows_of_inputs(std::size_t i) const;
  Shape joined_shape(const Tensor& part, const Rows& rows, bool by_rows, int rank) const;
  Tensor joined_input(std::size_t i);
  /// Input i of every call.
  std::vector<const Tensor*> operands(std::size_t i) const;
  Tensor gathered_input(std::size_t i, const Shape& shape, const Rows& rows);
  void record_joined(std::size_t i, Tensor& whole, const Rows& rows);
  void record_uses();
  void fill_outputs(std::span<Tensor> joined);
  void fill_with_one(std::span<const Tensor> made);

  Context& context_;
  std::span<QueuedCall* const> calls_;
  Joining joining_;
  JoinedParts& before_;
  Call& first_;
  Rows rows_;  // of the results, and of all operands that have no rows of their own number
};

}  // namespace reel::detail
