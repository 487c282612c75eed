#include <reel/ops.h>

#include "../kernels/kernel_table.h"
#include "../ops/if_needed.h"
#include "../ops/shape/batch.h"
#include "../record/gradient.h"
#include "../record/row_division.h"
#include "backward_pass.h"

// Gradients of the ops that join operands of several examples, and divide their results. Between the two ops lie the
// tensors of single examples; gradients pass from one joined tensor to the other without tensors of their own.

namespace reel::detail {

BackwardPass::Rows BackwardPass::rows_behind(std::uint32_t slot) const {
  Rows rows = rows_of_part(slot);
  if (!wants(rows.slot)) return {};
  const SlotForm& form = *list_.slot(rows.slot).form;
  return size_of(form.dtype) != 2 && form.device == cpu ? rows : Rows{};
}

void BackwardPass::split_among_parts(const Entry& entry) {
  std::uint32_t whole = entry.input_slots()[0];
  if (whole < lowest_ || !sum(whole).defined()) return;
  Tensor total = std::move(sum(whole));
  for (std::uint32_t slot = begin_of(entry); slot < end_of(entry); ++slot) {
    Rows rows = rows_of_part(slot);
    add_to_sum(slot, reshape(slice(total, 0, rows.start, rows.start + rows.count), list_.slot(slot).form->shape()));
  }
}

BackwardPass::Rows BackwardPass::rows_of_part(std::uint32_t slot) const {
  Entry* producer = slot ? list_.slot(slot).producer : nullptr;
  if (!producer || producer->op != &unbatch_op) return {};
  std::uint32_t whole = producer->input_slots()[0];
  RowDivision parts({producer->attributes(), producer->attribute_bytes});
  std::size_t part = slot - producer->first_output;
  return {whole, parts.start(part), parts.rows(part)};
}

void BackwardPass::add_to_rows(const Rows& rows, const View& gradient) {
  const SlotForm& form = *list_.slot(rows.slot).form;
  Tensor& total = sum(rows.slot);
  if (!total.defined())
    total = zeros(form.shape(), {.dtype = form.dtype, .device = form.device});
  else if (!can_change(total))
    total = copy(total);
  Body& body = total.body();
  std::int64_t row = body.numel / form.dims[0], count = rows.count * row, stride = 1;
  View part{static_cast<char*>(body.data) + rows.start * row * static_cast<std::int64_t>(size_of(body.dtype)),
            &count,
            &stride,
            count,
            1,
            body.dtype,
            true};
  View more = gradient;
  more.dims = &count;
  more.strides = &stride;
  more.rank = 1;
  run_alike(kernels(body.device), binary_place<formulas::Add>, part, part, more);
}

namespace {

// Rows of a contiguous tensor, as one row of numbers.
View rows_of(const Tensor& x, std::int64_t start, std::int64_t count) {
  View part = x.body();
  std::int64_t row = part.numel / part.dims[0];
  part.data = static_cast<char*>(part.data) + start * row * static_cast<std::int64_t>(size_of(part.dtype));
  part.numel = count * row;
  return part;
}

}  // namespace

void Gradient::accumulate_parts(const RowDivision& parts) {
  bool direct = !recording_ && collected_.empty();
  Tensor d = contiguous_if_needed(output());
  for (std::uint32_t i = 0; i < entry_.input_count;) {
    std::uint32_t first = i++;
    if (!wants(first)) continue;
    std::int64_t start = parts.start(first), count = parts.rows(first);
    BackwardPass::Rows rows = direct ? pass_.rows_behind(entry_.input_slots()[first]) : BackwardPass::Rows{};
    if (rows.slot == 0) {
      accumulate(first, reshape(slice(d, 0, start, start + count), input_form(first).shape()));
      continue;
    }
    // Rows that are adjacent in both are added at once.
    while (i < entry_.input_count) {
      BackwardPass::Rows next = pass_.rows_behind(entry_.input_slots()[i]);
      if (next.slot != rows.slot || next.start != rows.start + rows.count) break;
      rows.count += next.count;
      count += parts.rows(i++);
    }
    pass_.add_to_rows(rows, rows_of(d, start, count));
  }
}

void Gradient::accumulate_whole(const RowDivision& parts) {
  std::uint32_t slot = entry_.input_slots()[0];
  const SlotForm& form = input_form(0);
  if (recording_ || !collected_.empty() || size_of(form.dtype) == 2 || form.device != cpu) {
    std::vector<Tensor> all;
    all.reserve(entry_.output_count);
    for (std::size_t i = 0; i < entry_.output_count; ++i) {
      Shape shape = form.shape();
      shape[0] = parts.rows(i);
      all.push_back(reshape(output(i), shape));
    }
    return accumulate(0, concat(all, 0));
  }
  for (std::size_t i = 0; i < entry_.output_count; ++i)
    if (outputs_[i].defined()) {
      Tensor d = contiguous_if_needed(outputs_[i]);
      pass_.add_to_rows({slot, parts.start(i), parts.rows(i)}, d.body());
    }
}

}  // namespace reel::detail
