#include "backward_pass.h"

#include <algorithm>

#include <reel/ops.h>

#include "../core/op_error.h"
#include "../kernels/kernel_table.h"
#include "../ops/if_needed.h"
#include "../ops/registry.h"
#include "../ops/shape/batch.h"
#include "../record/gradient.h"
#include "../record/prefetcher.h"
#include "differentiation.h"
#include "hooks.h"
#include "row_gradient.h"

namespace reel::detail {

BackwardPass::BackwardPass(Context& context, TapeList& list, std::uint32_t target)
    : context_(context),
      list_(list),
      target_(target),
      sums_(std::move(list.pass_memory.sums)),
      outputs_(std::move(list.pass_memory.outputs)) {}

BackwardPass::~BackwardPass() {
  // The buffer of a backward pass over a huge tape is not kept.
  constexpr std::size_t most_kept = 1 << 16;
  if (!empty_) sums_.clear();
  outputs_.clear();
  if (sums_.capacity() <= most_kept) list_.pass_memory = {std::move(sums_), std::move(outputs_)};
}

void BackwardPass::release_leaves() {
  if (!passed_all_) return;
  for (const TapeList::LeafSlot& leaf : list_.leaves()) take_sum(leaf.slot);
  empty_ = true;
}

void BackwardPass::restrict_to(std::span<const std::uint32_t> sources) {
  for (std::uint32_t slot : sources) {
    if (slot == 0 || slot > target_) continue;
    sources_.push_back(slot);
    if (Rows rows = rows_of_part(slot); rows.slot != 0) sources_.push_back(rows.slot);
  }
  lowest_ = sources_.empty() ? target_ : *std::min_element(sources_.begin(), sources_.end());
  marks_.assign(target_ - lowest_ + 1, 0);
  for (std::uint32_t slot : sources_) mark(slot) = source;
  collect_reached();
  // Slot indices ascend in the order of execution, so one pass over the reached entries, first to last, marks all that
  // depend on the sources.
  for (std::size_t i = path_.size(); i-- > 0;) {
    const Entry& entry = *path_[i];
    if (leads_from_source(entry))
      for (std::uint32_t slot = begin_of(entry); slot < end_of(entry); ++slot) mark(slot) |= leads;
  }
  std::erase_if(path_, [&](const Entry* entry) {
    for (std::uint32_t slot = begin_of(*entry); slot < end_of(*entry); ++slot)
      if (mark(slot) & (leads | source)) return false;
    return true;
  });
}

// Returns true if the entry divides a tensor of which the target is computed without the parts.
bool BackwardPass::reaches_parts(const Entry* entry) const {
  if (!entry || entry->op != &unbatch_op) return false;
  std::uint32_t whole = entry->input_slots()[0];
  return whole >= lowest_ && (mark(whole) & reached);
}

void BackwardPass::collect_reached() {
  mark(target_) |= reached;
  for (std::uint32_t slot = target_ + 1; slot-- > lowest_;) {
    bool asked_part = mark(slot) == source && reaches_parts(list_.slot(slot).producer);
    if (!(mark(slot) & reached) && !asked_part) continue;
    Entry* producer = list_.slot(slot).producer;
    if (!producer) continue;
    if (reaches_parts(producer))
      for (std::uint32_t part = begin_of(*producer); part < end_of(*producer); ++part)
        if (mark(part) & source) mark(part) |= reached;
    path_.push_back(producer);
    for (std::uint32_t input : producer->inputs())
      if (input >= lowest_) mark(input) |= reached;
    slot = begin_of(*producer);
  }
}

bool BackwardPass::leads_from_source(const Entry& entry) const {
  for (std::uint32_t input : entry.inputs())
    if (input >= lowest_ && (mark(input) & (source | leads))) return true;
  return false;
}

[[gnu::always_inline]] inline bool BackwardPass::has_gradient(const Entry& entry) const {
  if (entry.output_count == 1) [[likely]] {
    std::uint32_t slot = entry.first_output;
    return slot >= lowest_ && sum(slot).defined() && (marks_.empty() || (mark(slot) & leads));
  }
  std::uint32_t end = end_of(entry);
  for (std::uint32_t slot = entry.first_output; slot < end; ++slot)
    if (slot >= lowest_ && sum(slot).defined() && (marks_.empty() || (mark(slot) & leads))) return true;
  return false;
}

void BackwardPass::complete(std::uint32_t slot) {
  if (deferred_.holds(slot)) compute_deferred_products(slot);
  if (hooks_) hooks_->complete(*this, slot);
}

void BackwardPass::run(Tensor seed, bool consume) {
  run_with_stack(context_, [&] { run_entries(std::move(seed), consume); });
}

void BackwardPass::run_entries(Tensor seed, bool consume) {
  consumes_ = consume;
  if (sums_.size() < target_ - lowest_ + 1) sums_.resize(target_ - lowest_ + 1);
  for (std::uint32_t slot : sources_) sum(slot).reset();
  row_parts_.clear();
  for (Begun& begun : begun_) add_to_sum(begun.slot, std::move(begun.gradient));
  begun_.clear();
  if (seed.defined()) sum(target_) = std::move(seed);
  completes_ |= context_.listener != nullptr;
  incomplete_leaves_ = list_.leaves().size();
  NamedCaller caller(context_, {});
  ScopedValue<const OpInfo*> differentiated(context_.differentiating);
  // Each op's gradient runs in the dtypes in which its forward ran.
  AutocastPause as_recorded(context_);
  bool far = list_.outgrows_caches();
  if (marks_.empty()) {
    Entry* last = list_.slot(target_).producer;
    Prefetcher ahead(far ? last : nullptr);
    for (Entry* entry = last; entry; entry = entry->previous) {
      if (far) ahead.advance();
      pass(*entry, caller, consume);
    }
    if (consume) list_.mark_released(last);
    passed_all_ = true;
  } else {
    for (std::size_t i = 0; i < path_.size(); ++i) {
      if (far) Prefetcher::fetch(path_, i);
      pass(*path_[i], caller, consume);
    }
  }
  if (!hands_products_on_)
    while (!deferred_.empty()) compute_deferred_products(deferred_.next());
  if (hooks_) complete_leaves_from(lowest_);
}

// No entry before a leaf's first use adds to its gradient, and its slot is that of its first use. By index: a hook may
// open a tape, which adds leaves.
void BackwardPass::complete_leaves_from(std::uint32_t slot) {
  while (incomplete_leaves_ > 0) {
    std::uint32_t leaf = list_.leaves()[incomplete_leaves_ - 1].slot;
    if (leaf < slot) return;
    --incomplete_leaves_;
    if (leaf >= lowest_ && leaf <= target_) complete(leaf);
  }
}

inline void BackwardPass::pass(Entry& entry, NamedCaller& caller, bool consume) {
  bool visited = false;
  if (completes_) [[unlikely]]
    visited = complete_outputs(entry, caller);
  if (!visited && has_gradient(entry)) {
    caller.rename(entry.where());
    context_.differentiating = entry.op;
    entry.output_count == 1 ? visit_single(entry) : visit(entry);
  }
  if (consume) TapeList::release_saved(entry);
}

[[gnu::always_inline]] inline void BackwardPass::visit_single(Entry& entry) {
  std::uint32_t slot = entry.first_output;
  Tensor output = !marks_.empty() && (mark(slot) & source) ? sum(slot) : std::move(sum(slot));
  if (output.dtype() != list_.slot(slot).form->dtype) [[unlikely]]
    output = rounded(slot, std::move(output));
  Gradient gradient(*this, entry, {&output, 1}, context_.has(Context::recording));
  entry.op->gradient(gradient);
}

inline void BackwardPass::take_gradients(const Entry& entry) {
  // A source's gradient is kept after it has been passed on; any other is released.
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
}

void BackwardPass::visit(Entry& entry) {
  take_gradients(entry);
  visit_taken(entry);
}

void BackwardPass::visit_taken(Entry& entry) {
  Gradient gradient(*this, entry, outputs_, context_.has(Context::recording));
  entry.op->gradient(gradient);
  outputs_.clear();
}

bool BackwardPass::complete_outputs(Entry& entry, NamedCaller& caller) {
  if (hooks_) complete_leaves_from(end_of(entry));
  if (hooks_ && entry.op == &unbatch_op) split_among_parts(entry);
  for (std::uint32_t slot = begin_of(entry); slot < end_of(entry); ++slot) complete(slot);
  bool hooked = hooks_ && hooks_->sees(*entry.op);
  if (!hooked && !context_.listener) return false;
  if (!has_gradient(entry)) return true;
  caller.rename(entry.where());
  context_.differentiating = entry.op;
  take_gradients(entry);
  ObservedGradient observed(context_, entry, outputs_);
  hooked ? visit_hooked(entry) : visit_taken(entry);
  return true;
}

void BackwardPass::visit_hooked(Entry& entry) {
  // The op's gradient function may consume the gradients of its outputs.
  std::vector<Tensor> outputs = outputs_, inputs(entry.input_count);
  Gradient gradient(*this, entry, outputs_, context_.has(Context::recording), inputs);
  entry.op->gradient(gradient);
  outputs_.clear();
  hooks_->pass(list_, entry, outputs, inputs);
  for (std::uint32_t i = 0; i < entry.input_count; ++i)
    if (std::uint32_t slot = entry.input_slots()[i]; wants(slot) && inputs[i].defined())
      add(entry, slot, std::move(inputs[i]));
}

void BackwardPass::add_rows_to_sum(std::uint32_t slot) {
  if (row_parts_.empty()) [[likely]]
    return;
  RowGradient rows = take_rows(slot);
  if (!rows.defined()) return;
  const SlotForm& form = *list_.slot(slot).form;
  if (!sum(slot).defined()) {
    sum(slot) = dense(rows, form.shape());
  } else {
    bool half = size_of(form.dtype) == 2;
    sum(slot) = with_rows(half ? to_if_needed(sum(slot), DType::f32) : sum(slot), rows.rows, rows.values);
  }
}

Tensor BackwardPass::gradient(std::uint32_t slot) {
  if (slot < lowest_ || slot > target_) return {};
  if (Rows rows = rows_of_part(slot); rows.slot != 0 && rows.slot >= lowest_) {
    Tensor whole = gradient(rows.slot);
    if (!whole.defined()) return {};
    return reshape(slice(whole, 0, rows.start, rows.start + rows.count), list_.slot(slot).form->shape());
  }
  add_rows_to_sum(slot);
  return rounded(slot, sum(slot));
}

Tensor BackwardPass::take_gradient(std::uint32_t slot) {
  if (slot < lowest_ || slot > target_) return {};
  add_rows_to_sum(slot);
  return rounded(slot, std::move(sum(slot)));
}

LeafGradient BackwardPass::leaf_gradient(std::uint32_t slot, const Tensor& parameter) {
  if (row_parts_.empty()) return {gradient(slot), {}};
  if (slot >= lowest_ && slot <= target_ && !sum(slot).defined())
    if (RowGradient rows = take_rows(slot); rows.defined())
      return {{}, combined(rows.rows, rows.values, parameter.size(0))};
  return {gradient(slot), {}};
}

void BackwardPass::add_rows(std::uint32_t slot, const Tensor& indices, Tensor values) {
  RowParts& parts = row_parts_[slot];
  parts.indices.push_back(to_if_needed(indices, DType::i64));
  parts.values.push_back(std::move(values));
}

RowGradient BackwardPass::take_rows(std::uint32_t slot) {
  auto found = row_parts_.find(slot);
  if (found == row_parts_.end()) return {};
  RowParts parts = std::move(found->second);
  row_parts_.erase(found);
  if (parts.indices.size() == 1) return {parts.indices[0], parts.values[0]};
  return {concat(parts.indices), concat(parts.values)};
}

Tensor BackwardPass::rounded(std::uint32_t slot, Tensor total) {
  DType dtype = list_.slot(slot).form->dtype;
  if (!total.defined() || total.dtype() == dtype) return total;
  return to(total, dtype);
}

Tensor BackwardPass::take_sum(std::uint32_t slot) {
  if (slot < lowest_ || slot > target_) return {};
  return std::move(sum(slot));
}

void BackwardPass::put_products(std::uint32_t slot, const Entry& asks, DeferredProducts::Panel panel) {
  if (panel.count == 0) return;
  completes_ |= list_.slot(slot).producer != nullptr;
  // Two inputs may be the same tensor.
  if (deferred_.holds(slot))
    deferred_.append(slot, asks, slice(panel.left, 0, 0, panel.count), slice(panel.right, 0, 0, panel.count));
  else
    deferred_.put(slot, asks, std::move(panel));
}

}  // namespace reel::detail
