#include "walk.h"

#include <algorithm>

#include <reel/ops.h>

#include "../core/kernel_table.h"
#include "../core/op_error.h"
#include "../ops/registry.h"
#include "gradient.h"
#include "hooks.h"
#include "lookahead.h"
#include "row_gradient.h"

namespace reel::detail {

Walk::Walk(Context& context, TapeList& list, std::uint32_t target)
    : context_(context),
      list_(list),
      target_(target),
      sums_(std::move(list.walk_memory.sums)),
      outputs_(std::move(list.walk_memory.outputs)) {}

Walk::~Walk() {
  // Not that of a walk over a giant.
  constexpr std::size_t most_kept = 1 << 16;
  sums_.clear();
  if (sums_.capacity() <= most_kept) list_.walk_memory = {std::move(sums_), std::move(outputs_)};
}

void Walk::restrict_to(std::span<const std::uint32_t> sources) {
  for (std::uint32_t slot : sources)
    if (slot != 0 && slot <= target_) sources_.push_back(slot);
  lowest_ = sources_.empty() ? target_ : *std::min_element(sources_.begin(), sources_.end());
  marks_.assign(target_ - lowest_ + 1, 0);
  for (std::uint32_t slot : sources_) mark(slot) = source;
  collect_reached();
  // Slots rise in the order of execution, so of what is reached, one pass upwards marks all that the sources lead to.
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

void Walk::collect_reached() {
  mark(target_) |= reached;
  for (std::uint32_t slot = target_ + 1; slot-- > lowest_;) {
    if (!(mark(slot) & reached)) continue;
    Entry* producer = list_.slot(slot).producer;
    if (!producer) continue;
    path_.push_back(producer);
    for (std::uint32_t input : producer->inputs())
      if (input >= lowest_) mark(input) |= reached;
    slot = begin_of(*producer);
  }
}

bool Walk::leads_from_source(const Entry& entry) const {
  for (std::uint32_t input : entry.inputs())
    if (input >= lowest_ && (mark(input) & (source | leads))) return true;
  return false;
}

bool Walk::has_gradient(const Entry& entry) const {
  std::uint32_t end = end_of(entry);
  for (std::uint32_t slot = entry.first_output; slot < end; ++slot)
    if (slot >= lowest_ && sum(slot).defined() && (marks_.empty() || (mark(slot) & leads))) return true;
  return false;
}

void Walk::complete(std::uint32_t slot) {
  if (deferred_.holds(slot)) settle_products(slot);
  if (hooks_) hooks_->complete(*this, slot);
}

namespace {

// While it lives, the context may say whose gradient runs.
class DifferentiatedOp {
 public:
  explicit DifferentiatedOp(Context& context) : context_(context), before_(context.differentiating) {}
  ~DifferentiatedOp() { context_.differentiating = before_; }
  DifferentiatedOp(const DifferentiatedOp&) = delete;
  DifferentiatedOp& operator=(const DifferentiatedOp&) = delete;

 private:
  Context& context_;
  const OpInfo* before_;
};

}  // namespace

void Walk::run(Tensor seed, bool consume) {
  sums_.resize(target_ - lowest_ + 1);
  for (std::uint32_t slot : sources_) sum(slot).reset();
  row_parts_.clear();
  for (Begun& begun : begun_) add_to_sum(begun.slot, std::move(begun.gradient));
  begun_.clear();
  if (seed.defined()) sum(target_) = std::move(seed);
  NamedCaller caller(context_, {});
  DifferentiatedOp differentiated(context_);
  bool far = list_.outgrows_caches();
  if (marks_.empty()) {
    Entry* last = list_.slot(target_).producer;
    Lookahead ahead(far ? last : nullptr);
    for (Entry* entry = last; entry; entry = entry->previous) {
      ahead.advance();
      pass(*entry, caller, consume);
    }
  } else {
    for (std::size_t i = 0; i < path_.size(); ++i) {
      if (far) Lookahead::fetch(path_, i);
      pass(*path_[i], caller, consume);
    }
  }
  if (!hands_products_on_)
    while (!deferred_.empty()) settle_products(deferred_.next());
  if (!completes_) return;
  // By number: a hook may open a tape, which finds more leaves.
  for (std::size_t i = 0, count = list_.leaves().size(); i < count; ++i)
    if (std::uint32_t leaf = list_.leaves()[i].slot; leaf >= lowest_ && leaf <= target_) complete(leaf);
}

inline void Walk::pass(Entry& entry, NamedCaller& caller, bool consume) {
  bool visited = false;
  if (completes_) [[unlikely]]
    visited = complete_outputs(entry, caller);
  if (!visited && has_gradient(entry)) {
    caller.rename(entry.where());
    visit(entry);
  }
  if (consume) list_.release_saved(entry);
}

inline void Walk::take_gradients(const Entry& entry) {
  context_.differentiating = entry.op;
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
}

void Walk::visit(Entry& entry) {
  take_gradients(entry);
  Gradient gradient(*this, entry, outputs_, context_.has(Context::recording));
  entry.op->gradient(gradient);
  outputs_.clear();
}

bool Walk::complete_outputs(Entry& entry, NamedCaller& caller) {
  for (std::uint32_t slot = begin_of(entry); slot < end_of(entry); ++slot) complete(slot);
  if (!hooks_ || !hooks_->sees(*entry.op)) return false;
  if (has_gradient(entry)) {
    caller.rename(entry.where());
    visit_hooked(entry);
  }
  return true;
}

void Walk::visit_hooked(Entry& entry) {
  take_gradients(entry);
  // The op may take the gradients of its outputs for its own use.
  std::vector<Tensor> outputs = outputs_, inputs(entry.input_count);
  Gradient gradient(*this, entry, outputs_, context_.has(Context::recording), inputs);
  entry.op->gradient(gradient);
  outputs_.clear();
  hooks_->pass(list_, entry, outputs, inputs);
  for (std::uint32_t i = 0; i < entry.input_count; ++i)
    if (std::uint32_t slot = entry.input_slots()[i]; wants(slot) && inputs[i].defined())
      add(entry, slot, std::move(inputs[i]));
}

Tensor Walk::gradient(std::uint32_t slot) {
  if (slot < lowest_ || slot > target_) return {};
  if (!row_parts_.empty()) [[unlikely]]
    add_rows_up(slot);
  return rounded(slot, sum(slot));
}

void Walk::add_rows_up(std::uint32_t slot) {
  RowGradient rows = rows_of(slot);
  if (!rows.defined()) return;
  const SlotForm& form = *list_.slot(slot).form;
  if (!sum(slot).defined()) {
    sum(slot) = dense(rows, form.shape());
  } else {
    bool half = size_of(form.dtype) == 2;
    sum(slot) = with_rows(half ? to(sum(slot), DType::f32) : sum(slot), rows.rows, rows.values);
  }
  std::erase_if(row_parts_, [slot](const RowPart& part) { return part.slot == slot; });
}

void Walk::hand_rows(std::uint32_t slot, Walk& other, std::uint32_t other_slot) {
  for (RowPart& part : row_parts_)
    if (part.slot == slot) other.add_rows(other_slot, std::move(part.indices), std::move(part.values));
  std::erase_if(row_parts_, [slot](const RowPart& part) { return part.slot == slot; });
}

void Walk::replace(std::uint32_t slot, Tensor gradient) {
  if (!context_.has(Context::recording) && gradient.body().epoch.load(std::memory_order_relaxed) != 0)
    gradient = stop_gradient(gradient);
  sum(slot) = std::move(gradient);
}

Leaf Walk::leaf_gradient(std::uint32_t slot, const Tensor& parameter) {
  if (row_parts_.empty()) return {gradient(slot), {}};
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

// total += leftᵀ right

constexpr OpInfo accumulate_transposed_product_op{
    .name = "accumulate_transposed_product",
    .arity = 3,
    .batching = Batching::loop,
    .forward =
        [](Call& call) {
          const Body& left = call.input(1);
          const std::int64_t dims[] = {left.dims[1], left.dims[0]}, strides[] = {left.strides[1], left.strides[0]};
          View turned = left;
          turned.dims = dims;
          turned.strides = strides;
          kernels(call.output().device).matmul_add(call.output(), turned, call.input(2));
        },
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

// Of a computed tensor it is not known whether more will come, before some has.
bool Walk::defers(std::uint32_t slot, std::int64_t rows) const {
  return may_defer_ && DeferredProducts::pays(rows, list_.slot(slot).form->numel()) &&
         !context_.has(Context::recording) &&
         (!list_.slot(slot).producer || sum(slot).defined() || deferred_.holds(slot));
}

void Walk::add_transposed_product(const Entry& entry, std::uint32_t slot, const Tensor& left, const Tensor& right) {
  bool matrices = left.rank() == 2 && right.rank() == 2;
  if (matrices && defers(slot, left.size(0))) {
    completes_ |= list_.slot(slot).producer != nullptr;
    deferred_.append(slot, entry, left, right);
    if (deferred_.is_full(slot)) settle_products(slot);
  } else if (matrices) {
    add_product_now(slot, left, right);
  } else {
    add(entry, slot, matmul(transpose(left), right));
  }
}

void Walk::add_product_now(std::uint32_t slot, const Tensor& left, const Tensor& right) {
  Tensor& total = sum(slot);
  // Halves are added up in f32.
  bool whole = left.dtype() == DType::f32 || left.dtype() == DType::f64;
  if (whole && total.defined() && can_change(total))
    run_in_place(accumulate_transposed_product_op, total, {&total, &left, &right});
  else
    add_to_sum(slot, matmul(transpose(left), right));
}

void Walk::settle_products(std::uint32_t slot) {
  DeferredProducts::Panel panel = deferred_.take(slot);
  // In the name of the last that asked for it.
  context_.caller = panel.asked_by->where();
  context_.differentiating = panel.asked_by->op;
  add_product_now(slot, slice(panel.left, 0, 0, panel.count), slice(panel.right, 0, 0, panel.count));
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

Tensor Walk::fitted(const Entry& entry, std::uint32_t slot, Tensor gradient) {
  const SlotForm& form = *list_.slot(slot).form;
  const Body& body = gradient.body();
  if (form.matches(body)) return gradient;
  auto refuse = [&](std::string_view is) {
    throw InternalError(
        fmt::format("the gradient of {} is {}, but its input is {}", entry.op->name, describe(gradient), is));
  };
  if (form.dtype != body.dtype || form.device != body.device) refuse(name_of(form.dtype));
  gradient = sum_to(gradient, form.shape());
  if (!form.matches(gradient.body())) refuse(to_string(form.shape()));
  return gradient;
}

void Walk::add(const Entry& entry, std::uint32_t slot, Tensor gradient) {
  const SlotForm& form = *list_.slot(slot).form;
  if (!form.matches(gradient.body())) [[unlikely]]
    gradient = fitted(entry, slot, std::move(gradient));
  add_up(slot, form.dtype, std::move(gradient));
}

Tensor Walk::take_sum(std::uint32_t slot) {
  if (slot < lowest_ || slot > target_) return {};
  return std::move(sum(slot));
}

void Walk::put_products(std::uint32_t slot, const Entry& asks, DeferredProducts::Panel panel) {
  if (panel.count == 0) return;
  completes_ |= list_.slot(slot).producer != nullptr;
  // Two inputs may be the same tensor.
  if (deferred_.holds(slot))
    deferred_.append(slot, asks, slice(panel.left, 0, 0, panel.count), slice(panel.right, 0, 0, panel.count));
  else
    deferred_.put(slot, asks, std::move(panel));
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

bool Gradient::hand_totals_to(Walk& inner) const {
  if (!walk_.may_defer()) inner.defer_nothing();
  if (!collected_.empty()) return false;
  inner.hand_products_on();
  return true;
}

void Gradient::hand_total(std::size_t i, Walk& inner, std::uint32_t slot) {
  std::uint32_t mine = entry_.input_slots()[i];
  if (Tensor total = walk_.take_sum(mine); total.defined()) inner.begin_with(slot, std::move(total));
  inner.put_products(slot, entry_, walk_.take_products(mine));
}

void Gradient::take_total_back(std::size_t i, Walk& inner, std::uint32_t slot) {
  std::uint32_t mine = entry_.input_slots()[i];
  if (takes_rows(i))
    inner.hand_rows(slot, walk_, mine);
  else
    inner.add_rows_up(slot);
  Tensor total = inner.take_sum(slot);
  if (!collected_.empty()) return static_cast<void>(collected_[i] = inner.rounded(slot, std::move(total)));
  if (total.defined()) walk_.add_to_sum(mine, std::move(total));
  walk_.put_products(mine, entry_, inner.take_products(slot));
}

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
  if (!wants(i)) return;
  if (!collected_.empty() || !walk_.add_product(entry_.input_slots()[i], a, b)) give(i, a * b);
}

bool Gradient::defers(std::size_t i, std::int64_t rows) const {
  return collected_.empty() && walk_.defers(entry_.input_slots()[i], rows);
}

void Gradient::give_transposed_product(std::size_t i, const Tensor& left, const Tensor& right) {
  if (!wants(i)) return;
  if (collected_.empty())
    walk_.add_transposed_product(entry_, entry_.input_slots()[i], left, right);
  else
    give(i, matmul(transpose(left), right));
}

bool Gradient::takes_rows(std::size_t i) const {
  return collected_.empty() && walk_.takes_rows(entry_.input_slots()[i]);
}

void Gradient::give_rows(std::size_t i, const Tensor& indices, Tensor values) {
  if (wants(i)) walk_.add_rows(entry_.input_slots()[i], indices, std::move(values));
}

void Gradient::give(std::size_t i, Tensor gradient) {
  if (!wants(i)) return;
  std::uint32_t slot = entry_.input_slots()[i];
  if (collected_.empty()) [[likely]]
    return walk_.add(entry_, slot, std::move(gradient));
  gradient = walk_.fitted(entry_, slot, std::move(gradient));
  collected_[i] = collected_[i].defined() ? reel::add(collected_[i], gradient) : std::move(gradient);
}

std::span<const RegisteredOp> walk_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "accumulate", .info = &accumulate_op, .internal = true},
      {.name = "accumulate_product", .info = &accumulate_product_op, .internal = true},
      {.name = "accumulate_transposed_product", .info = &accumulate_transposed_product_op, .internal = true},
  };
  return ops;
}

}  // namespace reel::detail
