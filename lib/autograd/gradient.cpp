#include "../record/gradient.h"

#include <reel/ops.h>

#include "../core/op_error.h"
#include "backward_pass.h"
#include "owned.h"

namespace reel::detail {

const Tensor& Gradient::output(std::size_t i) {
  if (!outputs_[i].defined()) {
    const SlotForm& form = output_form(i);
    outputs_[i] = zeros(form.shape(), {.dtype = form.dtype, .device = form.device});
  }
  return outputs_[i];
}

const Tensor& Gradient::own_output(std::size_t i) {
  output(i);
  return outputs_[i] = owned(std::move(outputs_[i]));
}

Tensor Gradient::hand_over(std::size_t i) { return std::move(outputs_[i]); }

bool Gradient::hand_totals_to(BackwardPass& inner) const {
  if (!pass_.may_defer()) inner.defer_nothing();
  if (!collected_.empty()) return false;
  inner.hand_products_on();
  return true;
}

void Gradient::hand_total(std::size_t i, BackwardPass& inner, std::uint32_t slot) {
  std::uint32_t mine = entry_.input_slots()[i];
  if (Tensor total = pass_.take_sum(mine); total.defined()) inner.begin_with(slot, std::move(total));
  inner.put_products(slot, entry_, pass_.take_products(mine));
}

void Gradient::take_total_back(std::size_t i, BackwardPass& inner, std::uint32_t slot) {
  std::uint32_t mine = entry_.input_slots()[i];
  if (!takes_rows(i))
    inner.settle_rows(slot);
  else if (RowGradient rows = inner.take_rows(slot); rows.defined())
    pass_.add_rows(mine, rows.rows, std::move(rows.values));
  Tensor total = inner.take_sum(slot);
  if (!collected_.empty()) return static_cast<void>(collected_[i] = inner.rounded(slot, std::move(total)));
  if (total.defined()) pass_.add_to_sum(mine, std::move(total));
  pass_.put_products(mine, entry_, inner.take_products(slot));
}

Tensor Gradient::take_output(std::size_t i) {
  output(i);
  Tensor taken = std::move(outputs_[i]);
  return pass_.can_change(taken) ? taken : copy(taken);
}

Shape Gradient::input_shape(std::size_t i) const {
  if (std::uint32_t slot = entry_.input_slots()[i]) return pass_.list().slot(slot).form->shape();
  if (!entry_.op->keeps_input_shapes)
    throw InternalError(fmt::format("the gradient of {} asks for a shape it does not keep", entry_.op->name));
  return entry_.input_shapes()[i];
}

DType Gradient::input_dtype(std::size_t i) const { return pass_.list().slot(entry_.input_slots()[i]).form->dtype; }

void Gradient::refuse_unsaved() const {
  throw InternalError(fmt::format("the gradient of {} asks for a value it has not saved", entry_.op->name));
}

namespace {

std::string name_of_saved(int number) {
  if (number < 0) return "its result";
  if (number == Saved::captured) return "what its function uses,";
  if (number < Saved::first_kept) return fmt::format("input {}", number);
  return fmt::format("member {} of what it saved,", number - Saved::first_kept);
}

}  // namespace

void Gradient::refuse_changed(const Saved& saved) const {
  const Tensor& tensor = saved.tensor;
  const Storage& storage = *tensor.body().storage;
  if (storage.writers.load(std::memory_order_relaxed) != 0) [[unlikely]]
    fail<TapeError>(entry_.op->name, entry_.where(),
                    "its gradient needs {} {}, made at {}, but the guard that writes to it, from {}, is still alive; "
                    "end the guard before the tensor is used",
                    name_of_saved(saved.number), describe(tensor), to_string(tensor.made_at()),
                    to_string(storage.last_overwrite()));
  fail<TapeError>(entry_.op->name, entry_.where(),
                  "its gradient needs {} {}, made at {}, but that was overwritten at {} after this op had used it; "
                  "overwrite a copy, or differentiate before overwriting",
                  name_of_saved(saved.number), describe(tensor), to_string(tensor.made_at()),
                  to_string(storage.last_overwrite()));
}

const SlotForm& Gradient::output_form(std::size_t i) const {
  return *pass_.list().slot(entry_.first_output + static_cast<std::uint32_t>(i)).form;
}

const SlotForm& Gradient::input_form(std::size_t i) const { return *pass_.list().slot(entry_.input_slots()[i]).form; }

}  // namespace reel::detail
