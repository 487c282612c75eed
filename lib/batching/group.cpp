#include "group.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include <reel/ops/shape.h>
#include <reel/threads.h>

#include "../core/joint_body.h"
#include "../core/storage.h"
#include "../dispatch/invoke.h"
#include "../ops/few.h"
#include "../ops/joining.h"
#include "../ops/shape/batch.h"
#include "../record/origin.h"
#include "../record/row_division.h"
#include "../record/tape_list.h"
#include "adjacent_rows.h"

namespace reel::detail {
namespace {

bool is_view(const Call& call) { return call.specs.empty(); }

// The rows of a call that is joined by rows. A result of rank 0 is that of a single one.
std::int64_t rows_of(const Call& call) {
  if (is_view(call)) return call.input(0).dims[0];
  return call.specs[0].rank == 0 ? 1 : call.specs[0].dims[0];
}

bool same_form(const Body& a, const Body& b, bool without_rows) {
  if (a.rank != b.rank) return false;
  for (int i = without_rows; i < a.rank; ++i)
    if (a.dims[i] != b.dims[i]) return false;
  return true;
}

// A number of which several with one value are as good as one.
bool is_constant(const TapeList& tapes, const Body& x) { return x.rank == 0 && x.device == cpu && is_plain(tapes, x); }

std::int64_t rows_in(const Body& x, const Joining& joining) {
  return joining.by == Joining::By::stacked ? 1 : x.dims[0];
}

// Gathers operands of an op without a gradient, which is no use of them that a gradient could lack.
const OpInfo& batch_for_constants() {
  static const OpInfo op = [] {
    OpInfo changed = batch_op;
    changed.gradient = nullptr;
    return changed;
  }();
  return op;
}

// Returns true if it is cheap to copy the operands that calls could have shared, but that differ: the gradient of a parameter
// is divided again, too.
bool pays_to_copy_shared(const Call& call, const Joining& joining) {
  constexpr std::int64_t most = 1 << 15, most_of_parameter = 1 << 11;
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (has_input(joining.shared, i))
      if (const Body& x = call.input(static_cast<int>(i)); x.numel > (x.requires_grad ? most_of_parameter : most))
        return false;
  return true;
}

// Moves the calls for which `with` holds behind the first one; returns their number, with the first.
template <class With>
std::size_t partition(std::span<QueuedCall*> calls, With with) {
  auto other = std::find_if_not(calls.begin() + 1, calls.end(), [&](const QueuedCall* one) { return with(one->call); });
  if (other != calls.end())
    other = std::stable_partition(other, calls.end(), [&](const QueuedCall* one) { return with(one->call); });
  return static_cast<std::size_t>(other - calls.begin());
}

}  // namespace

bool is_same(const TapeList& tapes, const Tensor& a, const Tensor& b) {
  if (a.is(b) || tapes.outer()) return a.is(b);
  const Body &x = a.body(), &y = b.body();
  bool alike = x.data == y.data && x.storage == y.storage && x.slot == y.slot && x.slot_version == y.slot_version &&
               a.shape() == b.shape() && a.strides() == b.strides();
  if (!alike) return false;
  std::uint32_t slot = tapes.slot_of(x);
  return slot != 0 ? slot == tapes.slot_of(y) : is_unknown(tapes, x) && is_unknown(tapes, y);
}

void fill_pending(Body& pending, const Body& made) {
  replace_storage(pending, made);
  pending.data = made.data;
  std::copy_n(made.strides, made.rank, pending.extents() + pending.rank);
  pending.contiguous = made.contiguous;
  pending.marks = made.marks & (Body::grouped | Body::viewed);
  pending.slot = made.slot;
  pending.slot_version = made.slot_version;
  // An untracked one has the mark of an op that has used it.
  if (!is_untracked(made)) pending.epoch.store(made.epoch.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

Joining joining_of(const Call& call) {
  Joining joining = call.op.joining(call);
  // Operands are gathered in row-major order, and sums add in the order of memory.
  if (batch_invariant() && !is_view(call) && !is_elementwise(call.op))
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      if (is_in_order(call.input(static_cast<int>(i)))) continue;
      if (!has_input(joining.shared, i)) return {};
      joining.or_stacked = false;
    }
  return joining;
}

std::size_t Group::choose(const TapeList& tapes, std::span<QueuedCall*> calls, const Joining& joining) {
  if (joining.by == Joining::By::none) return 1;
  if (calls.size() < 2) return calls.size();
  const Call& first = calls[0]->call;
  if (is_view(first)) {
    // Views of one tensor are one view.
    std::size_t alike =
        partition(calls, [&](const Call& other) { return is_same(tapes, *other.inputs[0], *first.inputs[0]); });
    if (alike > 1) return alike;
    AdjacentRows run(tapes, first.input(0), rows_in(first.input(0), joining), joining.by == Joining::By::stacked);
    std::size_t count = 1;
    while (count < calls.size()) {
      const Body& next = calls[count]->call.input(0);
      if (!run.add(next, rows_in(next, joining))) break;
      ++count;
    }
    return count;
  }
  if (joining.shared == 0) return calls.size();
  std::size_t alike = partition(calls, [&](const Call& other) {
    for (std::size_t i = 0; i < first.inputs.size(); ++i)
      if (has_input(joining.shared, i) && !is_same(tapes, *other.inputs[i], *first.inputs[i])) return false;
    return true;
  });
  // Calls of one kind may differ in this, where it depends on the number of their rows.
  auto can_be_stacked = [&](const Call& call) {
    return joining_of(call).or_stacked && pays_to_copy_shared(call, joining);
  };
  if (alike > 1 || !can_be_stacked(first)) return alike;
  return partition(calls, [&](const Call& other) {
    if (!can_be_stacked(other)) return false;
    for (std::size_t i = 0; i < first.inputs.size(); ++i)
      if (!same_form(other.input(static_cast<int>(i)), first.input(static_cast<int>(i)), false)) return false;
    return true;
  });
}

Group::Group(Context& context, std::span<QueuedCall* const> calls, const Joining& joining, JoinedParts& before)
    : context_(context), calls_(calls), joining_(joining), before_(before), first_(calls[0]->call) {
  if (joining.shared != 0)
    for (std::size_t i = 0; i < first_.inputs.size(); ++i)
      if (is_shared(i) && !is_same(*context_.tapes, input(1, i), input(0, i))) {
        joining_.by = Joining::By::stacked;
        joining_.shared = 0;
      }
  rows_ = rows_by([&](const Call& call) { return stacked() ? 1 : rows_of(call); });
}

template <class RowsOf>
Group::Rows Group::rows_by(RowsOf rows_of) const {
  Rows rows;
  rows.starts.reserve(calls_.size() + 1);
  rows.starts.push_back(0);
  for (const QueuedCall* one : calls_) rows.starts.push_back(rows.starts.back() + rows_of(one->call));
  rows.division = RowDivision::attributes(rows.starts, stacked());
  return rows;
}

Group::Rows Group::rows_of_inputs(std::size_t i) const {
  return rows_by([=](const Call& call) { return call.input(static_cast<int>(i)).dims[0]; });
}

// Returns true if the input is passed on as it is: one tensor, or equal numbers.
bool Group::is_common(std::size_t i) const {
  if (is_shared(i)) return true;
  if (!is_single(i) && (!stacked() || !joining_.broadcasts)) return false;
  const Body& x = input(0, i).body();
  bool constant = is_constant(*context_.tapes, x);
  for (std::size_t k = 1; k < calls_.size(); ++k) {
    if (is_same(*context_.tapes, input(k, i), input(0, i))) continue;
    const Body& y = input(k, i).body();
    if (!constant || !is_constant(*context_.tapes, y) || std::memcmp(x.data, y.data, size_of(x.dtype)) != 0)
      return false;
  }
  return true;
}

// The shape of all parts joined. `rank`: of the result, to which stacked operands are padded; −1: they are not.
Shape Group::joined_shape(const Tensor& part, const Rows& rows, bool by_rows, int rank) const {
  const Body& x = part.body();
  if (by_rows) {
    Shape shape = part.shape();
    shape[0] = rows.starts.back();
    return shape;
  }
  Shape shape{static_cast<std::int64_t>(calls_.size())};
  for (int i = x.rank; i < rank; ++i) shape.push_back(1);
  for (int i = 0; i < x.rank; ++i) shape.push_back(x.dims[i]);
  return shape;
}

Tensor Group::joined_input(std::size_t i) {
  bool by_rows = !stacked() && !is_single(i);
  const Rows own = joining_.own_rows ? rows_of_inputs(i) : Rows();
  const Rows& of_calls = joining_.own_rows ? own : rows_;
  const std::vector<std::int64_t>& starts = of_calls.starts;
  Shape shape =
      joined_shape(input(0, i), of_calls, by_rows, stacked() && joining_.broadcasts ? first_.specs[0].rank : -1);
  AdjacentRows rows(*context_.tapes, input(0, i).body(), starts[1], !by_rows);
  for (std::size_t k = 1; k < calls_.size(); ++k)
    if (!rows.add(input(k, i).body(), starts[k + 1] - starts[k])) return gathered_input(i, shape, of_calls);
  Body& first = input(0, i).body();
  std::uint8_t marks = first.marks;
  Tensor whole = rows.whole(input(0, i), shape);
  // No example sees this view.
  first.marks = marks;
  if (whole.defined()) whole.body().marks &= Body::single_block;
  // The function that called a fused op has seen to it that its operands are contiguous.
  bool any_layout = is_view(first_) || is_elementwise(first_.op);
  if (!whole.defined() || (!any_layout && !whole.is_contiguous())) return gathered_input(i, shape, of_calls);
  if (rows.is_tracked_part()) record_joined(i, whole, of_calls);
  return whole;
}

std::vector<const Tensor*> Group::operands(std::size_t i) const {
  std::vector<const Tensor*> all(calls_.size());
  for (std::size_t k = 0; k < all.size(); ++k) all[k] = &input(k, i);
  return all;
}

// Records that a view is the calls' operands, as if they were gathered: their gradients are then rows of its, where that of a
// slice has as many elements as all rows.
void Group::record_joined(std::size_t i, Tensor& whole, const Rows& rows) {
  if (!context_.has(Context::recording)) return;
  std::vector<const Tensor*> parts = operands(i);
  Call call{batch_op, parts, std::as_bytes(std::span(rows.division)), {}, {&whole, 1}, first_.where};
  context_.tapes->record(context_, call);
}

Tensor Group::gathered_input(std::size_t i, const Shape& shape, const Rows& rows) {
  // A view of copies would not be a view of the operands.
  if (is_view(first_)) throw InternalError("batching: views of tensors that are not adjacent cannot be joined");
  std::vector<const Tensor*> parts = operands(i);
  bool differentiable = first_.op.gradient;
  Tensor whole = differentiable ? before_.find(context_, parts, shape) : Tensor();
  if (whole.defined()) return whole;
  OutputSpec spec(shape, parts[0]->dtype(), parts[0]->device());
  const OpInfo& op = differentiable ? batch_op : batch_for_constants();
  Call call{op, parts, std::as_bytes(std::span(rows.division)), {&spec, 1}, {&whole, 1}, first_.where};
  invoke(call);
  if (differentiable) before_.add(context_, parts, whole);
  return whole;
}

// Only now: a call that is refused has used nothing. Those with pending results have recorded their uses.
void Group::record_uses() {
  for (const QueuedCall* one : calls_)
    if (!one->is_pending()) context_.tapes->record_uses(*one->context, one->call);
}

void Group::fill_outputs(std::span<Tensor> joined) {
  std::size_t count = calls_.size();
  std::vector<Tensor> parts(joined.size() * count);  // of each output those of all calls
  // A listener sees every output.
  bool observed =
      std::ranges::any_of(calls_, [](const QueuedCall* one) { return one->context && one->context->listener; });
  auto dropped = [&](std::size_t j) { return (!observed || joining_.own_rows) && joining_.dropped_outputs >> j & 1; };
  for (std::size_t j = 0; j < joined.size(); ++j) {
    if (dropped(j)) continue;
    for (std::size_t k = 0; k < count; ++k) parts[j * count + k] = std::move(calls_[k]->call.outputs[j]);
    const Tensor* whole = &joined[j];
    if (joining_.own_rows) rows_ = rows_by([=](const Call& one) { return one.specs[j].dims[0]; });
    rows_.division[0] = stacked() || (!is_view(first_) && first_.specs[j].rank == 0);
    Call call{unbatch_op,  {&whole, 1}, std::as_bytes(std::span(rows_.division)), {}, {&parts[j * count], count},
              first_.where};
    try {
      invoke(call);
    } catch (...) {
      for (std::size_t i = 0; i < (j + 1) * count; ++i)
        if (parts[i].defined()) calls_[i % count]->call.outputs[i / count] = std::move(parts[i]);
      throw;
    }
  }
  for (std::size_t k = 0; k < count; ++k)
    for (std::size_t j = 0; j < joined.size(); ++j) {
      if (dropped(j)) continue;
      QueuedCall& one = *calls_[k];
      Tensor& part = parts[j * count + k];
      Body& body = part.body();
      if (!one.is_pending()) {
        body.file = one.call.where.file;
        body.line = one.call.where.line;
      }
      body.marks = 0;
      if (!is_view(first_))
        body.marks = Body::grouped;
      else if (Body& viewed = input(k, 0).body(); viewed.marks & Body::grouped)
        std::atomic_ref(viewed.marks).store(body.marks = Body::grouped | Body::viewed, std::memory_order_relaxed);
      one.call.outputs[j] = std::move(part);
    }
}

// Fills the outputs with views of one tensor. Views of a tracked tensor have one slot, because products by it are joined;
// its gradient is that of all calls.
void Group::fill_with_one(std::span<const Tensor> made) {
  TapeList& tapes = *context_.tapes;
  for (std::size_t j = 0; j < made.size(); ++j) {
    const Body& body = made[j].body();
    std::uint32_t slot = tapes.slot_of(body);
    if (slot != 0) tapes.mark_shared(slot);
    for (const QueuedCall* one : calls_) {
      Tensor& output = one->call.outputs[j];
      if (!output.defined())
        output = slot != 0 ? made[j] : view_of(made[j], made[j].shape(), made[j].strides(), 0, one->call.where);
      if (!output.is(made[j])) fill_pending(output.body(), body);
    }
  }
}

void Group::run() {
  Few<Tensor> outputs(first_.outputs.size());
  std::span<Tensor> made(outputs.begin(), outputs.size());
  // Views of one tensor.
  if (is_view(first_) && is_same(*context_.tapes, input(1, 0), input(0, 0))) {
    Call call{first_.op, first_.inputs, first_.attribute_bytes, {}, made, first_.where};
    invoke(call);
    record_uses();
    fill_with_one(made);
    return;
  }
  Few<Tensor> joined(first_.inputs.size());
  Few<const Tensor*> inputs(first_.inputs.size());
  Few<bool> common(inputs.size());
  std::ranges::copy(first_.inputs, inputs.begin());
  for (std::size_t i = 0; i < inputs.size(); ++i) common[i] = is_common(i);
  // One operand at least has an element for each call.
  if (std::ranges::find(common, false) == common.end())
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!is_shared(i)) {
        common[i] = false;
        break;
      }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (common[i]) continue;
    joined[i] = joined_input(i);
    inputs[i] = &joined[i];
  }
  std::span<const std::byte> attributes = first_.attribute_bytes;
  if (joining_.own_rows) {
    Call call{first_.op, inputs, attributes, {}, made, first_.where};
    first_.op.run_joined(call, rows_of_inputs(0).starts, rows_.starts);
    record_uses();
    return fill_outputs(made);
  }
  std::vector<std::byte> changed;
  if (first_.op.own_attributes) {
    for (std::size_t k = 0; k < calls_.size(); ++k) {
      std::span<const std::byte> own = calls_[k]->call.attribute_bytes;
      std::size_t start = changed.size();
      changed.insert(changed.end(), own.begin(), own.end());
      std::int64_t rows = rows_.starts[k + 1] - rows_.starts[k];
      std::memcpy(changed.data() + start, &rows, sizeof rows);
    }
    attributes = changed;
  } else if (stacked() && joining_.attributes) {
    changed.assign(attributes.begin(), attributes.end());
    joining_.attributes(changed, static_cast<std::int64_t>(calls_.size()));
    attributes = changed;
  }
  Few<Shape> shapes(first_.specs.size());
  std::vector<OutputSpec> specs;
  specs.reserve(shapes.size());
  for (std::size_t j = 0; j < shapes.size(); ++j) {
    const OutputSpec& spec = first_.specs[j];
    shapes[j].push_back(rows_.starts.back());
    for (int k = stacked() ? 0 : 1; k < spec.rank; ++k) shapes[j].push_back(spec.dims[k]);
    specs.emplace_back(shapes[j], spec.dtype, spec.device);
  }
  Call call{first_.op, inputs, attributes, specs, made, first_.where};
  invoke(call);
  record_uses();
  fill_outputs(made);
}

}  // namespace reel::detail
