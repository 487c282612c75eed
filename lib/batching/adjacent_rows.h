#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <reel/ops/shape.h>

#include "../core/storage.h"
#include "../ops/shape/batch.h"
#include "../record/entry.h"
#include "../record/origin.h"
#include "../record/row_division.h"
#include "../record/tape_list.h"

namespace reel::detail {

/// How often the elements were overwritten.
inline std::uint32_t overwrites_of(const Body& x) { return x.storage->version.load(std::memory_order_relaxed); }

/// Returns true if no tape knows the tensor.
inline bool is_unknown(const TapeList& tapes, const Body& x) {
  return !x.requires_grad && is_untracked(x) && !tapes.is_live(x);
}

/// Returns true if no tape knows the tensor, nor anything that was written into its elements.
inline bool is_plain(const TapeList& tapes, const Body& x) { return is_unknown(tapes, x) && overwrites_of(x) == 0; }

/// A run of tensors that are adjacent rows of one tensor, in order: all untracked, or all divided by one `unbatch`.
class AdjacentRows {
 public:
  AdjacentRows(const TapeList& tapes, const Body& first, std::int64_t rows, bool stacked)
      : tapes_(tapes),
        first_(first),
        stacked_(stacked),
        slot_(tapes.slot_of(first)),
        end_(rows),
        possible_(first.numel != 0 && overwrites_of(first) == 0 &&
                  (slot_ != 0 ? find_producer() : is_plain(tapes, first) && first.slot < first_isolated_scope)) {
    if (!stacked && rows > 1) set_stride(first.strides[0]);
  }

  /// Adds the next tensor, of the first one's form; returns false if it is not adjacent.
  bool add(const Body& next, std::int64_t rows) {
    if (!possible_ || next.storage != first_.storage) return false;
    if (is_dense_ && next.contiguous && next.data == static_cast<char*>(first_.data) + end_ * row_bytes_)
      return follows(next) && count(rows);
    for (int i = stacked_ ? 0 : 1; i < next.rank; ++i)
      if (next.strides[i] != first_.strides[i]) return false;
    std::int64_t distance = static_cast<char*>(next.data) - static_cast<char*>(first_.data),
                 size = static_cast<std::int64_t>(size_of(first_.dtype));
    if (!has_stride_) {
      if (distance <= 0 || distance % (size * end_) != 0) return false;
      set_stride(distance / (size * end_));
    }
    // Rows within other axes would be another order of memory than the one that a row has alone.
    for (int i = stacked_ ? 0 : 1; i < next.rank; ++i)
      if (stride_ != 0 && next.dims[i] != 1 && std::abs(next.strides[i]) > std::abs(stride_)) return false;
    if (distance != end_ * stride_ * size || (!stacked_ && rows > 1 && next.strides[0] != stride_)) return false;
    return follows(next) && count(rows);
  }

  /// Returns true if a tape tracks the rows, which are some of a tensor's.
  bool is_tracked_part() const {
    if (slot_ == 0) return false;
    RowDivision parts({producer_->attributes(), producer_->attribute_bytes});
    const SlotForm& form = *tapes_.slot(producer_->input_slots()[0]).form;
    return parts.start(part_) != 0 || parts.start(part_ + count_) != form.dims[0];
  }

  /// The tensor of which they are the rows, in a shape: a view, tracked as the rows are unless it is a part; undefined if there
  /// is no such view.
  Tensor whole(const Tensor& first, const Shape& shape) const {
    if (slot_ == 0) return untracked(first, shape);
    if (is_tracked_part()) {
      Tensor made = untracked(first, shape);
      made.body().slot = 0;
      return made;
    }
    std::uint32_t slot = producer_->input_slots()[0];
    const SlotForm& form = *tapes_.slot(slot).form;
    RowDivision parts({producer_->attributes(), producer_->attribute_bytes});
    Shape all = form.shape(), strides = all;
    int behind = parts.stacked() ? 0 : 1;
    for (int i = 1; i < all.rank(); ++i) strides[i] = first_.strides[i - 1 + behind];
    // One row here may be several in the tensor's own shape.
    std::int64_t own_rows = parts.rows(part_), rows_here = stacked_ ? 1 : rows_of_first();
    if (stride_ * rows_here % own_rows != 0) return {};
    strides[0] = stride_ * rows_here / own_rows;
    if (own_rows > 1 && strides[0] != first_.strides[0]) return {};
    Tensor made = view_of(first, all, strides, -parts.start(part_) * strides[0], {});
    tapes_.assign_slot(made.body(), slot);
    if (made.shape() == shape) return made;
    return made.is_contiguous() ? reshape(made, shape) : Tensor();
  }

 private:
  void set_stride(std::int64_t stride) {
    stride_ = stride;
    has_stride_ = true;
    std::int64_t rows = stacked_ ? 1 : first_.dims[0];
    row_bytes_ = stride * static_cast<std::int64_t>(size_of(first_.dtype));
    is_dense_ = first_.contiguous && stride * rows == first_.numel;
  }
  // Returns true if tapes know the next tensor as the next row.
  bool follows(const Body& next) const {
    if (slot_ == 0) return is_plain(tapes_, next) && next.slot == first_.slot;
    return tapes_.slot_of(next) == slot_ + count_ && part_ + count_ < producer_->output_count;
  }
  bool count(std::int64_t rows) {
    ++count_;
    end_ += rows;
    return true;
  }
  bool find_producer() {
    producer_ = tapes_.slot(slot_).producer;
    if (!producer_ || producer_->op != &unbatch_op || tapes_.is_overwritten(first_)) return false;
    part_ = slot_ - producer_->first_output;
    return true;
  }
  std::int64_t rows_of_first() const { return first_.dims[0]; }
  Tensor untracked(const Tensor& first, const Shape& shape) const {
    Shape strides = shape;
    int own = first_.rank - (stacked_ ? 0 : 1), added = shape.rank() - 1 - own;
    for (int i = 1; i < shape.rank(); ++i) strides[i] = i <= added ? 0 : first_.strides[first_.rank - shape.rank() + i];
    // An axis of size 1 has the stride that a row-major tensor would have.
    for (int i = added; i >= 1; --i) strides[i] = i + 1 < shape.rank() ? strides[i + 1] * shape[i + 1] : 1;
    strides[0] = stride_;
    Tensor made = view_of(first, shape, strides, 0, {});
    made.body().slot = first_.slot;
    return made;
  }

  const TapeList& tapes_;
  const Body& first_;
  bool stacked_;
  std::uint32_t slot_;
  std::int64_t end_;
  std::int64_t stride_ = 0;  // from row to row
  bool has_stride_ = false;  // there is more than one row
  bool is_dense_ = false;    // rows are contiguous, and no element is between them
  std::int64_t row_bytes_ = 0;
  Entry* producer_ = nullptr;
  std::size_t part_ = 0;
  std::uint32_t count_ = 1;
  bool possible_;
};

}  // namespace reel::detail
