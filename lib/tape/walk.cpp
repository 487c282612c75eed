#include "walk.h"

#include <algorithm>

#include <reel/ops.h>

#include "../core/kernel_table.h"
#include "../core/op_error.h"
#include "gradient.h"

namespace reel::detail {

Walk::Walk(Context& context, TapeList& list, std::uint32_t target)
    : context_(context), list_(list), target_(target), gradients_(target + 1) {}

void Walk::restrict_to(std::span<const std::uint32_t> sources) {
  marks_.assign(target_ + 1, 0);
  lowest_ = target_;
  for (std::uint32_t slot : sources) {
    if (slot == 0 || slot > target_) continue;
    marks_[slot] = source;
    lowest_ = std::min(lowest_, slot);
  }
  // Slots rise in the order of execution, so one pass over those above the oldest source marks what it reaches.
  for (std::uint32_t slot = lowest_; slot <= target_; ++slot) {
    const Entry* producer = list_.slot(slot).producer;
    if (!producer) continue;
    const std::uint32_t* slots = producer->input_slots();
    if (std::any_of(slots, slots + producer->input_count, [&](std::uint32_t input) { return marks_[input]; }))
      marks_[slot] |= leads;
  }
}

bool Walk::has_gradient(const Entry& entry) const {
  std::uint32_t end = std::min(entry.first_output + entry.output_count, target_ + 1);
  for (std::uint32_t slot = entry.first_output; slot < end; ++slot)
    if (gradients_[slot].defined() && (marks_.empty() || (marks_[slot] & leads))) return true;
  return false;
}

void Walk::run(Tensor seed, bool consume) {
  gradients_[target_] = std::move(seed);
  NamedCaller caller(context_, {});
  for (Entry* entry = list_.slot(target_).producer; entry; entry = entry->previous) {
    if (entry->first_output + entry->output_count <= lowest_) break;
    if (has_gradient(*entry)) {
      caller.rename(entry->where());
      visit(*entry);
    }
    if (consume) list_.release_saved(*entry);
  }
}

void Walk::visit(Entry& entry) {
  // A source's gradient flows on and is kept; any other is not needed once it has been passed on.
  outputs_.resize(entry.output_count);
  for (std::uint32_t i = 0; i < entry.output_count; ++i) {
    std::uint32_t slot = entry.first_output + i;
    if (slot > target_)
      outputs_[i].reset();
    else if (!marks_.empty() && (marks_[slot] & source))
      outputs_[i] = gradients_[slot];
    else
      outputs_[i] = std::move(gradients_[slot]);
  }
  Gradient gradient(*this, entry, outputs_, context_.has(Context::recording));
  entry.op->gradient(gradient);
  outputs_.clear();
}

// Nobody else can see a sum that only this walk holds, unless an outer tape has recorded how it came about.
inline bool Walk::can_change(const Tensor& sum) const {
  const Body& total = sum.body();
  return total.contiguous && total.references.unique() && total.storage->references.unique() &&
         !context_.has(Context::recording);
}

bool Walk::add_product(std::uint32_t slot, const Tensor& a, const Tensor& b) {
  const Tensor& sum = gradients_[slot];
  // A listener is to see the product as an op.
  if (!sum.defined() || context_.has(Context::intercepted) || !can_change(sum)) return false;
  const SlotForm& form = *list_.slot(slot).form;
  const Body &x = a.body(), &y = b.body();
  if (!x.contiguous || !y.contiguous || !form.matches(x) || !form.matches(y)) return false;
  if (form.dtype != DType::f32 && form.dtype != DType::f64) return false;
  kernels(form.device).multiply_add(sum.body(), x, y);
  return true;
}

void Walk::add(const Entry& entry, std::uint32_t slot, Tensor gradient) {
  const SlotForm& form = *list_.slot(slot).form;
  const Body& body = gradient.body();
  if (!form.matches(body)) [[unlikely]] {
    if (form.dtype != body.dtype || form.device != body.device)
      throw InternalError(fmt::format("the gradient of {} is {}, but its input is {}", entry.op->name,
                                      describe(gradient), name_of(form.dtype)));
    gradient = sum_to(gradient, form.shape());
    if (!form.matches(gradient.body()))
      throw InternalError(fmt::format("the gradient of {} is {}, but its input is {}", entry.op->name,
                                      describe(gradient), to_string(form.shape())));
  }
  Tensor& sum = gradients_[slot];
  if (!sum.defined()) {
    sum = std::move(gradient);
    return;
  }
  if (can_change(sum)) {
    const Body& total = sum.body();
    kernels(total.device).binary[static_cast<int>(Binary::add)](total, total, gradient.body());
    return;
  }
  sum = reel::add(sum, gradient);
}

bool Gradient::wants(std::size_t i) const { return walk_.wants(entry_.input_slots()[i]); }

const Tensor& Gradient::output(std::size_t i) {
  if (!outputs_[i].defined()) {
    const SlotForm& form = *walk_.list().slot(entry_.first_output + static_cast<std::uint32_t>(i)).form;
    outputs_[i] = zeros(form.shape(), {.dtype = form.dtype, .device = form.device});
  }
  return outputs_[i];
}

Shape Gradient::output_shape(std::size_t i) const {
  return walk_.list().slot(entry_.first_output + static_cast<std::uint32_t>(i)).form->shape();
}

Shape Gradient::input_shape(std::size_t i) const {
  if (std::uint32_t slot = entry_.input_slots()[i]) return walk_.list().slot(slot).form->shape();
  if (!entry_.op->keeps_input_shapes)
    throw InternalError(fmt::format("the gradient of {} asks for a shape it does not keep", entry_.op->name));
  return entry_.input_shapes()[i];
}

DType Gradient::input_dtype(std::size_t i) const { return walk_.list().slot(entry_.input_slots()[i]).form->dtype; }

const Tensor& Gradient::saved(int number) const {
  for (int k = 0; k < entry_.saved_count; ++k) {
    const Saved& saved = entry_.saved()[k];
    if (saved.number != number) continue;
    const Tensor& tensor = saved.tensor;
    const Storage& storage = *tensor.body().storage;
    if (storage.version.load(std::memory_order_relaxed) != saved.version) [[unlikely]]
      fail<TapeError>(entry_.op->name, entry_.where(),
                      "its gradient needs {} {}, made at {}, but that was overwritten at {} after this op had used it; "
                      "overwrite a copy, or differentiate before overwriting",
                      number >= 0 ? fmt::format("input {}", number) : std::string("its result"), describe(tensor),
                      to_string(tensor.made_at()), to_string(storage.last_overwrite));
    return tensor;
  }
  throw InternalError(fmt::format("the gradient of {} asks for a value it has not saved", entry_.op->name));
}

void Gradient::give_product(std::size_t i, const Tensor& a, const Tensor& b) {
  if (wants(i) && !walk_.add_product(entry_.input_slots()[i], a, b)) give(i, a * b);
}

void Gradient::give(std::size_t i, Tensor gradient) {
  if (wants(i)) walk_.add(entry_, entry_.input_slots()[i], std::move(gradient));
}

}  // namespace reel::detail
