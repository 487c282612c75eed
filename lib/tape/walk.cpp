#include "walk.h"

#include <algorithm>

#include <reel/ops.h>

#include "../core/kernel_table.h"
#include "../core/op_error.h"
#include "../ops/registry.h"
#include "gradient.h"
#include "row_gradient.h"

namespace reel::detail {

Walk::Walk(Context& context, TapeList& list, std::uint32_t target) : context_(context), list_(list), target_(target) {}

void Walk::restrict_to(std::span<const std::uint32_t> sources) {
  lowest_ = target_;
  for (std::uint32_t slot : sources)
    if (slot != 0) lowest_ = std::min(lowest_, slot);
  marks_.assign(target_ - lowest_ + 1, 0);
  for (std::uint32_t slot : sources)
    if (slot != 0 && slot <= target_) mark(slot) = source;
  // Slots rise in the order of execution, so one pass upwards marks what the sources lead to, and one downwards what the
  // target is computed from.
  for (std::uint32_t slot = lowest_; slot <= target_; ++slot)
    for (std::uint32_t input : inputs_of(slot))
      if (input >= lowest_ && (mark(input) & (source | leads))) mark(slot) |= leads;
  mark(target_) |= reached;
  for (std::uint32_t slot = target_; slot > lowest_; --slot) {
    if (!(mark(slot) & reached)) continue;
    for (std::uint32_t input : inputs_of(slot))
      if (input >= lowest_) mark(input) |= reached;
  }
}

std::span<const std::uint32_t> Walk::inputs_of(std::uint32_t slot) const {
  const Entry* producer = list_.slot(slot).producer;
  return producer ? std::span(producer->input_slots(), producer->input_count) : std::span<const std::uint32_t>();
}

bool Walk::has_gradient(const Entry& entry) const {
  std::uint32_t end = std::min(entry.first_output + entry.output_count, target_ + 1);
  for (std::uint32_t slot = entry.first_output; slot < end; ++slot)
    if (slot >= lowest_ && sum(slot).defined() && (marks_.empty() || (mark(slot) & leads))) return true;
  return false;
}

void Walk::complete(std::uint32_t) {}

void Walk::run(Tensor seed, bool consume) {
  sums_.resize(target_ - lowest_ + 1);
  for (Begun& begun : begun_) add_to_sum(begun.slot, std::move(begun.gradient));
  begun_.clear();
  if (seed.defined()) sum(target_) = std::move(seed);
  NamedCaller caller(context_, {});
  for (Entry* entry = list_.slot(target_).producer; entry; entry = entry->previous) {
    if (entry->first_output + entry->output_count <= lowest_) break;
    if (completes_) [[unlikely]] {
      std::uint32_t end = std::min(entry->first_output + entry->output_count, target_ + 1);
      for (std::uint32_t slot = std::max(entry->first_output, lowest_); slot < end; ++slot) complete(slot);
    }
    if (has_gradient(*entry)) {
      caller.rename(entry->where());
      visit(*entry);
    }
    if (consume) list_.release_saved(*entry);
  }
  if (completes_)
    for (const TapeList::LeafSlot& leaf : list_.leaves())
      if (leaf.slot >= lowest_ && leaf.slot <= target_) complete(leaf.slot);
}

void Walk::visit(Entry& entry) {
  // A source's gradient flows on and is kept; any other is not needed once it has been passed on.
  outputs_.resize(entry.output_count);
  for (std::uint32_t i = 0; i < entry.output_count; ++i) {
    std::uint32_t slot = entry.first_output + i;
    if (slot > target_ || slot < lowest_)
      outputs_[i].reset();
    else if (!marks_.empty() && (mark(slot) & source))
      outputs_[i] = rounded(slot, sum(slot));
    else
      outputs_[i] = rounded(slot, std::move(sum(slot)));
  }
  Gradient gradient(*this, entry, outputs_, context_.has(Context::recording));
  entry.op->gradient(gradient);
  outputs_.clear();
}

Tensor Walk::gradient(std::uint32_t slot) {
  if (slot < lowest_ || slot > target_) return {};
  RowGradient rows = rows_of(slot);
  if (!rows.defined()) [[likely]]
    return rounded(slot, sum(slot));
  const SlotForm& form = *list_.slot(slot).form;
  if (!sum(slot).defined()) {
    sum(slot) = dense(rows, form.shape());
  } else {
    bool half = size_of(form.dtype) == 2;
    sum(slot) = with_rows(half ? to(sum(slot), DType::f32) : sum(slot), rows.rows, rows.values);
  }
  std::erase_if(row_parts_, [slot](const RowPart& part) { return part.slot == slot; });
  return rounded(slot, sum(slot));
}

Leaf Walk::leaf_gradient(std::uint32_t slot, const Tensor& parameter) {
  if (slot >= lowest_ && slot <= target_ && !sum(slot).defined())
    if (RowGradient rows = rows_of(slot); rows.defined())
      return {{}, combined(rows.rows, rows.values, parameter.size(0))};
  return {gradient(slot), {}};
}

void Walk::add_rows(std::uint32_t slot, Tensor indices, Tensor values) {
  row_parts_.push_back({slot, std::move(indices), std::move(values)});
}

RowGradient Walk::rows_of(std::uint32_t slot) const {
  std::vector<Tensor> indices, values;
  for (const RowPart& part : row_parts_) {
    if (part.slot != slot) continue;
    indices.push_back(to(part.indices, DType::i64));
    values.push_back(part.values);
  }
  if (indices.size() <= 1) return indices.empty() ? RowGradient{} : RowGradient{indices[0], values[0]};
  return {concat(indices), concat(values)};
}

Tensor Walk::rounded(std::uint32_t slot, Tensor total) {
  DType dtype = list_.slot(slot).form->dtype;
  return !total.defined() || total.dtype() == dtype ? total : to(total, dtype);
}

// In place, so that the walk's sums pass the door like every other op. Only the walk runs these, when nothing records.

constexpr OpInfo accumulate_op{
    .name = "accumulate",
    .arity = 2,
    .batching = Batching::elementwise,
    .forward =
        [](Call& call) {
          const Body& total = call.output();
          kernels(total.device).binary[static_cast<int>(Binary::add)](total, total, call.input(1));
        },
};

constexpr OpInfo accumulate_product_op{
    .name = "accumulate_product",
    .arity = 3,
    .batching = Batching::elementwise,
    .forward =
        [](Call& call) { kernels(call.output().device).multiply_add(call.output(), call.input(1), call.input(2)); },
};

namespace {

void run_in_place(const OpInfo& op, Tensor& total, std::initializer_list<const Tensor*> inputs) {
  Call call{op, {inputs.begin(), inputs.size()}, {}, {}, {&total, 1}, {}};
  invoke(call);
}

}  // namespace

// Nobody else can see a sum that only this walk holds, unless an outer tape has recorded how it came about.
inline bool Walk::can_change(const Tensor& total) const {
  const Body& body = total.body();
  return body.contiguous && body.references.unique() && body.storage->references.unique() &&
         !context_.has(Context::recording);
}

bool Walk::add_product(std::uint32_t slot, const Tensor& a, const Tensor& b) {
  Tensor& total = sum(slot);
  if (!total.defined() || !can_change(total)) return false;
  const SlotForm& form = *list_.slot(slot).form;
  const Body &x = a.body(), &y = b.body();
  if (!x.contiguous || !y.contiguous || !form.matches(x) || !form.matches(y)) return false;
  if (form.dtype != DType::f32 && form.dtype != DType::f64) return false;
  run_in_place(accumulate_product_op, total, {&total, &a, &b});
  return true;
}

[[gnu::always_inline]] inline void Walk::add_up(std::uint32_t slot, DType dtype, Tensor&& gradient) {
  if (!sum(slot).defined()) {
    sum(slot) = std::move(gradient);
    return;
  }
  // Halves are added up in f32, and rounded once when the sum is handed on.
  if (size_of(dtype) == 2) {
    gradient = to(gradient, DType::f32);
    sum(slot) = to(sum(slot), DType::f32);
  }
  Tensor& total = sum(slot);
  if (can_change(total))
    run_in_place(accumulate_op, total, {&total, &gradient});
  else
    total = reel::add(total, gradient);
}

void Walk::add_to_sum(std::uint32_t slot, Tensor gradient) {
  add_up(slot, list_.slot(slot).form->dtype, std::move(gradient));
}

Tensor Walk::take_sum(std::uint32_t slot) {
  if (slot < lowest_ || slot > target_) return {};
  if (rows_of(slot).defined()) return gradient(slot);
  return std::move(sum(slot));
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
  add_up(slot, form.dtype, std::move(gradient));
}

bool Gradient::wants(std::size_t i) const { return walk_.wants(entry_.input_slots()[i]); }

const Tensor& Gradient::output(std::size_t i) {
  if (!outputs_[i].defined()) {
    const SlotForm& form = output_form(i);
    outputs_[i] = zeros(form.shape(), {.dtype = form.dtype, .device = form.device});
  }
  return outputs_[i];
}

Tensor Gradient::hand_over(std::size_t i) { return std::move(outputs_[i]); }

Tensor Gradient::take_total(std::size_t i) { return walk_.take_sum(entry_.input_slots()[i]); }

void Gradient::give_total(std::size_t i, Tensor total) { walk_.add_to_sum(entry_.input_slots()[i], std::move(total)); }

Tensor Gradient::take_output(std::size_t i) {
  output(i);
  Tensor taken = std::move(outputs_[i]);
  return walk_.can_change(taken) ? taken : copy(taken);
}

Shape Gradient::input_shape(std::size_t i) const {
  if (std::uint32_t slot = entry_.input_slots()[i]) return walk_.list().slot(slot).form->shape();
  if (!entry_.op->keeps_input_shapes)
    throw InternalError(fmt::format("the gradient of {} asks for a shape it does not keep", entry_.op->name));
  return entry_.input_shapes()[i];
}

DType Gradient::input_dtype(std::size_t i) const { return walk_.list().slot(entry_.input_slots()[i]).form->dtype; }

const Tensor& Gradient::saved(int number) const {
  for (std::uint32_t k = 0; k < entry_.saved_count; ++k)
    if (const Saved& saved = entry_.saved()[k]; saved.number == number) return unchanged(saved);
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

const Tensor& Gradient::unchanged(const Saved& saved) const {
  const Tensor& tensor = saved.tensor;
  const Storage& storage = *tensor.body().storage;
  if (storage.writers.load(std::memory_order_relaxed) != 0) [[unlikely]]
    fail<TapeError>(entry_.op->name, entry_.where(),
                    "its gradient needs {} {}, made at {}, but the guard that writes to it, from {}, is still alive; "
                    "end the guard before the tensor is used",
                    name_of_saved(saved.number), describe(tensor), to_string(tensor.made_at()),
                    to_string(storage.last_overwrite()));
  if (storage.version.load(std::memory_order_relaxed) != saved.version) [[unlikely]]
    fail<TapeError>(entry_.op->name, entry_.where(),
                    "its gradient needs {} {}, made at {}, but that was overwritten at {} after this op had used it; "
                    "overwrite a copy, or differentiate before overwriting",
                    name_of_saved(saved.number), describe(tensor), to_string(tensor.made_at()),
                    to_string(storage.last_overwrite()));
  return tensor;
}

const SlotForm& Gradient::output_form(std::size_t i) const {
  return *walk_.list().slot(entry_.first_output + static_cast<std::uint32_t>(i)).form;
}

const SlotForm& Gradient::input_form(std::size_t i) const { return *walk_.list().slot(entry_.input_slots()[i]).form; }

void Gradient::give_product(std::size_t i, const Tensor& a, const Tensor& b) {
  if (wants(i) && !walk_.add_product(entry_.input_slots()[i], a, b)) give(i, a * b);
}

bool Gradient::takes_rows(std::size_t i) const { return walk_.takes_rows(entry_.input_slots()[i]); }

void Gradient::give_rows(std::size_t i, const Tensor& indices, Tensor values) {
  if (wants(i)) walk_.add_rows(entry_.input_slots()[i], indices, std::move(values));
}

void Gradient::give(std::size_t i, Tensor gradient) {
  if (wants(i)) walk_.add(entry_, entry_.input_slots()[i], std::move(gradient));
}

std::span<const RegisteredOp> walk_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "accumulate", .info = &accumulate_op, .internal = true},
      {.name = "accumulate_product", .info = &accumulate_product_op, .internal = true},
  };
  return ops;
}

}  // namespace reel::detail
