#include "../record/gradient.h"

#include <fmt/format.h>

#include <reel/ops.h>

#include "../core/memory_order.h"
#include "../core/op_error.h"
#include "../core/parameter_version.h"
#include "../dispatch/invoke_shortly.h"
#include "../kernels/kernel_table.h"
#include "../ops/elementwise/elementwise.h"
#include "../ops/if_needed.h"
#include "../ops/linear_algebra/multiplications.h"
#include "../ops/linear_algebra/transposed_matrix.h"
#include "../ops/registry.h"
#include "backward_pass.h"
#include "differentiation.h"
#include "owned.h"

// The view that the gradient functions of ops have of a backward pass, and its sums, to which they contribute. Both are in
// one file, because each op of a backward uses both.

namespace reel::detail {

// In place, so that the sums pass the dispatcher like every other op. Only the backward pass runs these, when nothing
// records.

constexpr OpInfo accumulate_op{
    .name = "accumulate",
    .forward =
        [](Call& call) {
          const Body& total = call.output();
          kernels(total.device).binary[binary_place<formulas::Add>](total, total, call.input(1));
        },
    .internal = true,
};

constexpr OpInfo accumulate_product_op{
    .name = "accumulate_product",
    .forward =
        [](Call& call) { kernels(call.output().device).multiply_add(call.output(), call.input(1), call.input(2)); },
    .internal = true,
};

// total += leftᵀ right

constexpr OpInfo accumulate_transposed_product_op{
    .name = "accumulate_transposed_product",
    .forward =
        [](Call& call) {
          const Body& left = call.input(1);
          count_products(call.output(), left.dims[0]);
          kernels(call.output().device).matmul_add(call.output(), TransposedMatrix(left).view(), call.input(2), {});
        },
    .internal = true,
};

namespace {

// Whether gradients of a dtype, which is floating, are added up in it: halves are in f32.
constexpr bool adds_up_in(DType dtype) { return dtype <= DType::f64; }

// `contiguous`: both of them are.
[[gnu::always_inline]] inline void add_in_place(Context& context, Tensor& total, const Tensor& gradient,
                                                bool contiguous) {
  const Body& more = gradient.body();
  invoke_in_place(context, accumulate_op, total, {&total, &gradient}, [&](const View& sum) {
    const KernelTable& table = kernels(more.device);
    if (contiguous) [[likely]]
      run_alike(table, binary_place<formulas::Add>, sum, sum, more);
    else
      table.binary[binary_place<formulas::Add>](sum, sum, more);
  });
}

// Returns true if the elements fill a range of memory, each once, in any order of axes.
bool is_without_gaps(const Body& x) {
  MemoryOrder order(x.dims, x.strides, x.rank);
  std::int64_t expected = 1;
  for (int place = order.rank; place-- > 0; expected *= x.dims[order.axes[place]])
    if (x.strides[order.axes[place]] != expected) return false;
  return true;
}

}  // namespace

[[gnu::noinline]] void BackwardPass::add_up_slowly(std::uint32_t slot, Tensor gradient) {
  Tensor& total = sum(slot);
  // Halves are summed in f32, and rounded once when the sum is complete.
  if (!adds_up_in(list_.slot(slot).form->dtype)) {
    gradient = to_if_needed(gradient, DType::f32);
    total = to_if_needed(total, DType::f32);
  }
  if (!can_change(total) && can_change(gradient)) std::swap(total, gradient);
  if (can_change(total) || (is_only_handle(total) && is_without_gaps(total.body())))
    add_in_place(context_, total, gradient, gradient.body().contiguous && total.body().contiguous);
  else
    total = reel::add(total, gradient);
}

// `gradient`: a Tensor that is not needed any more, or a reference to one that is.
template <class Given>
[[gnu::always_inline]] inline void BackwardPass::add_up(std::uint32_t slot, Given&& gradient) {
  Tensor& total = sum(slot);
  if (!total.defined())
    total = std::forward<Given>(gradient);
  else if (adds_up_in(total.body().dtype) && adds_up_in(gradient.body().dtype) && can_change(total)) [[likely]]
    add_in_place(context_, total, gradient, gradient.body().contiguous);
  else
    add_up_slowly(slot, std::forward<Given>(gradient));
}

inline bool BackwardPass::are_plain(std::uint32_t slot, const Body& a, const Body& b) const {
  const SlotForm& form = *list_.slot(slot).form;
  return (form.dtype == DType::f32 || form.dtype == DType::f64) && a.contiguous && b.contiguous && form.matches(a) &&
         form.matches(b);
}

[[gnu::always_inline]] inline bool BackwardPass::add_plain_product(std::uint32_t slot, const Tensor& a,
                                                                   const Tensor& b) {
  Tensor& total = sum(slot);
  if (!total.defined() || !can_change(total)) return false;
  const Body &x = a.body(), &y = b.body();
  invoke_in_place(context_, accumulate_product_op, total, {&total, &a, &b}, [&](const View& z) {
    const KernelTable& table = kernels(x.device);
    if (z.dtype == DType::f32 && z.numel < KernelTable::few) [[likely]]
      table.plain_multiply_add(z.as<float>(), x.as<float>(), y.as<float>(), z.numel);
    else
      table.multiply_add(z, x, y);
  });
  return true;
}

inline bool BackwardPass::add_product(std::uint32_t slot, const Tensor& a, const Tensor& b) {
  return are_plain(slot, a.body(), b.body()) && add_plain_product(slot, a, b);
}

// A listener must see the operands as they were, so nothing is overwritten while one is open.
[[gnu::always_inline]] inline bool BackwardPass::can_overwrite(const Tensor& gradient) const {
  return can_change(gradient) && !context_.has(Context::intercepted);
}

[[gnu::always_inline]] inline void BackwardPass::compute_in_place(int kernel, Tensor& gradient, const Tensor& b) {
  const Body &z = gradient.body(), &y = b.body();
  run_alike(kernels(y.device), kernel, z, z, y);
}

[[gnu::always_inline]] inline void BackwardPass::add_last_product(std::uint32_t slot, Tensor& gradient,
                                                                  const Tensor& b) {
  if (add_plain_product(slot, gradient, b)) return;
  if (!can_overwrite(gradient)) return add_up(slot, gradient * b);
  compute_in_place(binary_place<formulas::Mul>, gradient, b);
  add_up(slot, std::move(gradient));
}

bool BackwardPass::add_to_part(std::uint32_t slot, const OpInfo& op, std::span<const std::byte> attributes,
                               const Tensor& gradient) {
  Tensor& total = sum(slot);
  if (!total.defined() || !can_change(total) || total.dtype() != gradient.dtype() || !adds_up_in(total.dtype()))
    return false;
  const Tensor* inputs[] = {&total, &gradient};
  Call call{op, inputs, attributes, {}, {&total, 1}, {}};
  invoke(call);
  return true;
}

// For a computed tensor it is unknown whether more products will follow, until one has.
bool BackwardPass::defers(std::uint32_t slot, std::int64_t rows) const {
  return may_defer_ && DeferredProducts::pays(rows, list_.slot(slot).form->numel()) &&
         !context_.has(Context::recording) &&
         (!list_.slot(slot).producer || sum(slot).defined() || deferred_.holds(slot));
}

void BackwardPass::add_transposed_product(const Entry& entry, std::uint32_t slot, const Tensor& left,
                                          const Tensor& right) {
  bool matrices = left.rank() == 2 && right.rank() == 2;
  if (matrices && defers(slot, left.size(0))) {
    completes_ |= list_.slot(slot).producer != nullptr;
    if (deferred_.append(slot, entry, left, right)) compute_deferred_products(slot);
  } else if (matrices) {
    add_product_now(slot, left, right);
  } else {
    add(entry, slot, matmul(transpose(left), right));
  }
}

void BackwardPass::add_product_now(std::uint32_t slot, const Tensor& left, const Tensor& right) {
  Tensor& total = sum(slot);
  // Halves are summed in f32.
  bool whole = left.dtype() == DType::f32 || left.dtype() == DType::f64;
  if (!whole || !total.defined() || !can_change(total)) return add_to_sum(slot, matmul(transpose(left), right));
  const Tensor* inputs[] = {&total, &left, &right};
  Call call{accumulate_transposed_product_op, inputs, {}, {}, {&total, 1}, {}};
  invoke(call);
}

void BackwardPass::compute_deferred_products(std::uint32_t slot) {
  DeferredProducts::Panel panel = deferred_.take(slot);
  // Reported at the entry that added to it last.
  context_.caller = panel.asked_by->where();
  context_.differentiating = panel.asked_by->op;
  ObservedGradient observed(context_, *panel.asked_by, {});
  add_product_now(slot, slice(panel.left, 0, 0, panel.count), slice(panel.right, 0, 0, panel.count));
}

void BackwardPass::add_to_sum(std::uint32_t slot, Tensor gradient) { add_up(slot, std::move(gradient)); }

namespace {

// Returns true if the gradient's extra axes all have size 1, as for the gradient of a bias from a single row.
bool adds_nothing(const Body& body, const SlotForm& form) {
  int extra = body.rank - form.rank;
  for (int i = 0; i < body.rank; ++i)
    if (body.dims[i] != (i < extra ? 1 : form.dims[i - extra])) return false;
  return extra >= 0;
}

}  // namespace

Tensor BackwardPass::fitted(const Entry& entry, std::uint32_t slot, Tensor gradient) {
  const SlotForm& form = *list_.slot(slot).form;
  if (form.matches(gradient.body())) return gradient;
  auto refuse = [&](std::string_view is) {
    throw InternalError(
        fmt::format("the gradient of {} is {}, but its input is {}", entry.op->name, describe(gradient), is));
  };
  // Operands of f32 beside halves, such as plain numbers, make a gradient f32.
  auto mixes = [](DType dtype) { return is_floating(dtype) && dtype != DType::f64; };
  if (mixes(form.dtype) && mixes(gradient.dtype())) gradient = to_if_needed(gradient, form.dtype);
  if (form.dtype != gradient.dtype() || form.device != gradient.device()) refuse(name_of(form.dtype));
  if (form.matches(gradient.body())) return gradient;
  gradient =
      adds_nothing(gradient.body(), form) ? reshape(gradient, form.shape()) : sum_to_if_needed(gradient, form.shape());
  if (!form.matches(gradient.body())) refuse(to_string(form.shape()));
  return gradient;
}

void BackwardPass::add(const Entry& entry, std::uint32_t slot, Tensor gradient) {
  if (!list_.slot(slot).form->matches(gradient.body())) [[unlikely]]
    gradient = fitted(entry, slot, std::move(gradient));
  add_up(slot, std::move(gradient));
}

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
    inner.add_rows_to_sum(slot);
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

const SlotForm& Gradient::output_form(std::size_t i) const {
  return *pass_.list().slot(entry_.first_output + static_cast<std::uint32_t>(i)).form;
}

const SlotForm& Gradient::input_form(std::size_t i) const { return *pass_.list().slot(entry_.input_slots()[i]).form; }

bool Gradient::is_last_use_of(const Tensor& saved) const {
  const Body& body = saved.body();
  return pass_.consumes() && !recording_ && body.references.unique() && body.storage->references.unique();
}

bool Gradient::wants(std::size_t i) const { return pass_.wants(entry_.input_slots()[i]); }

void Gradient::accumulate(std::size_t i, Tensor gradient) {
  if (!wants(i)) return;
  std::uint32_t slot = entry_.input_slots()[i];
  if (collected_.empty()) [[likely]]
    return pass_.add(entry_, slot, std::move(gradient));
  gradient = pass_.fitted(entry_, slot, std::move(gradient));
  collected_[i] = collected_[i].defined() ? reel::add(collected_[i], gradient) : std::move(gradient);
}

void Gradient::accumulate_product(std::size_t i, const Tensor& a, const Tensor& b) {
  if (!wants(i)) return;
  if (!collected_.empty() || !pass_.add_product(entry_.input_slots()[i], a, b)) accumulate(i, a * b);
}

bool Gradient::add_to_part(std::size_t i, const OpInfo& op) {
  return collected_.empty() && pass_.add_to_part(entry_.input_slots()[i], op, attribute_bytes(), output());
}

void Gradient::pass_on(std::size_t i, bool last) {
  std::uint32_t slot = entry_.input_slots()[i];
  if (!pass_.wants(slot)) return;
  const TapeList& list = pass_.list();
  Tensor& gradient = outputs_[0];
  if (!collected_.empty() || list.slot(slot).form != list.slot(entry_.first_output).form) [[unlikely]]
    accumulate(i, gradient);
  else if (last)
    pass_.add_up(slot, std::move(gradient));
  else
    pass_.add_up(slot, std::as_const(gradient));
}

void Gradient::accumulate_fused(std::size_t i, const OpInfo& op, int kernel, const Tensor& b) {
  std::uint32_t slot = entry_.input_slots()[i];
  if (!pass_.wants(slot)) return;
  Tensor& gradient = outputs_[0];
  if (pass_.can_overwrite(gradient) && pass_.are_plain(slot, gradient.body(), b.body())) [[likely]]
    pass_.compute_in_place(kernel, gradient, b);
  else
    gradient = invoke(op, {&gradient, &b}, elementwise_result(gradient, gradient.dtype()), where());
  accumulate(i, std::move(gradient));
}

void Gradient::accumulate_factors() {
  const TapeList& list = pass_.list();
  std::uint32_t a = entry_.input_slots()[0], b = entry_.input_slots()[1];
  const SlotForm* form = list.slot(entry_.first_output).form;
  Tensor& gradient = outputs_[0];
  if (collected_.empty() && list.slot(a).form == form && list.slot(b).form == form && adds_up_in(form->dtype) &&
      pass_.wants(a) && pass_.wants(b)) [[likely]] {
    const Tensor &x = saved_input(0), &y = saved_input(1);
    if (x.is_contiguous() && y.is_contiguous() && gradient.is_contiguous()) [[likely]] {
      if (!pass_.add_plain_product(b, gradient, x)) pass_.add_up(b, gradient * x);
      return pass_.add_last_product(a, gradient, y);
    }
  }
  if (wants(0)) accumulate_product(0, gradient, saved_input(1));
  if (wants(1)) accumulate_product(1, gradient, saved_input(0));
}

bool Gradient::defers(std::size_t i, std::int64_t rows) const {
  return collected_.empty() && pass_.defers(entry_.input_slots()[i], rows);
}

void Gradient::accumulate_transposed_product(std::size_t i, const Tensor& left, const Tensor& right) {
  if (!wants(i)) return;
  if (collected_.empty())
    pass_.add_transposed_product(entry_, entry_.input_slots()[i], left, right);
  else
    accumulate(i, matmul(transpose(left), right));
}

bool Gradient::takes_rows(std::size_t i) const {
  return collected_.empty() && pass_.takes_rows(entry_.input_slots()[i]);
}

void Gradient::accumulate_rows(std::size_t i, const Tensor& indices, Tensor values) {
  if (wants(i)) pass_.add_rows(entry_.input_slots()[i], indices, std::move(values));
}

OpList backward_pass_ops() {
  static constexpr const OpInfo* ops[] = {&accumulate_op, &accumulate_product_op, &accumulate_transposed_product_op};
  return ops;
}

}  // namespace reel::detail
