#include <reel/ops/in_place.h>

#include <reel/no_record.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../../record/tape_list.h"
#include "../if_needed.h"
#include "../index/assign_part.h"
#include "../index/index_checks.h"
#include "../operand.h"
#include "../registry.h"
#include "../shape/batch.h"
#include "elementwise.h"

namespace reel {

using namespace detail;

// copy_: x = y;  dy = d

constexpr OpInfo copy_in_place_op{
    .name = "copy_",
    .forward = [](Call& call) { kernels(call.output().device).copy(call.output(), call.input(0)); },
    .gradient = [](Gradient& g) { g.accumulate(0, to_if_needed(g.output(), g.input_dtype(0))); },
};

namespace {

bool same_elements(const Body& a, const Body& b) {
  if (a.data != b.data || !same_form(a, b)) return false;
  for (int i = 0; i < a.rank; ++i)
    if (a.strides[i] != b.strides[i]) return false;
  return true;
}

// One run of an in-place function: the tensor that is overwritten, and its new slot. All that can throw happens before
// the first element is written.
class Overwriting {
 public:
  Overwriting(const char* op, const Destination& to)
      : op_(op), to_(to), x_(tensor_of(op, Arg(to.tensor(), to.location()))), where_(to.location()) {
    const Tensor& whole = owner();
    if (repeats_elements(whole.body())) [[unlikely]]
      fail<ShapeError>(op, where_,
                       "x {} repeats elements (strides {}), so one would stand for several; overwrite a copy",
                       describe(whole), to_string(whole.strides()));
    leave_group(op_, whole, where_);
    wait_for(x_, where_);
    if (list().outer()) context_.set(Context::runs_alone, true);
  }

  const Tensor& x() const { return x_; }
  Location where() const { return where_; }

  /// Throws: ShapeError unless y broadcasts to x; DeviceError.
  void check_operand(const Tensor& y) const {
    check_same_device(op_, x_, y, where_);
    Shape shape;
    if (!broadcast(x_.shape(), y.shape(), shape) || shape != x_.shape())
      fail<ShapeError>(op_, where_, "y {} does not broadcast to x {}", to_string(y.shape()), to_string(x_.shape()));
  }
  /// Throws: DTypeError unless x can hold results of this dtype.
  void check_result(DType dtype) const {
    if (!is_castable(dtype, x_.dtype()))
      fail<DTypeError>(op_, where_, "x {} cannot hold the results, which are {}; convert it first with to(x, {})",
                       describe(x_), name_of(dtype), name_of(dtype));
  }

  /// Whether x's new values are computed from its old ones, or replace them.
  enum class OldValues : std::uint8_t { read, replaced };
  /// Determines whether x will be tracked. `inputs`: the operands of its new values besides the old ones; nulls are
  /// skipped. Throws: TapeError.
  void prepare(OldValues old, std::initializer_list<const Tensor*> inputs) {
    // While one waits, another example may assign a handle that they share.
    for (bool again = true; std::exchange(again, false);)
      for (const Tensor* input : inputs)
        if (input && input->body().marks & Body::pending) {
          wait_for(*input, where_);
          again = true;
        }
    if (!context_.has(Context::recording)) {
      // A tensor that is overwritten as a whole no longer belongs to a finished tape.
      replaces_all_ = old == OldValues::replaced;
      return;
    }
    const Tensor* read[6];
    std::size_t count = 0;
    if (old == OldValues::read) read[count++] = &x_;
    for (const Tensor* input : inputs)
      if (input) read[count++] = input;
    if (to_.part()) read[count++] = &owner();
    OpInfo op{.name = op_, .forward = nullptr};
    bool tracked = list().prepare_overwrite(Call{op, {read, count}, {}, {}, {}, where_}, owner());
    tracked_ = tracked && is_floating(x_.dtype());
    marks_tracked_write_ = tracked_ || list().is_live(x_.body());
    if (tracked_) list().make_room(op_, where_);
  }
  bool tracked() const { return tracked_; }

  /// A copy of an operand that is about to be overwritten, to be saved for the gradient.
  Tensor kept(const Tensor& operand) const {
    NoRecord pause;
    Tensor kept = copy(Arg(operand, where_));
    if (std::uint32_t slot = list().slot_of(operand.body())) list().assign_slot(kept.body(), slot);
    return kept;
  }
  /// The operand; if it shares elements with x, a copy.
  Tensor apart(const Tensor& operand) const {
    return operand.body().storage == x_.body().storage ? kept(operand) : operand;
  }

  /// Runs an op that writes to an untracked x.
  void run(const OpInfo& op, std::initializer_list<const Tensor*> inputs) {
    for (const Tensor* input : inputs) wait_for(*input, where_);
    wait_for_uses(x_, context_);
    bool untracks = context_.has(Context::recording) || (replaces_all_ && !list().is_live(x_.body()));
    if (untracks) list().forget(x_.body());
    write(op, inputs);
    if (untracks) TapeList::mark_current(x_.body());
  }

  /// Writes a value, which broadcasts and shares no elements with x, to x.
  /// `fresh`: it has x's shape, and no other handle has its slot.
  void put(const Tensor& value, bool fresh) {
    wait_for(value, where_);
    wait_for_uses(x_, context_);
    if (!tracked_) return run(copy_in_place_op, {&value});
    if (to_.part()) return put_part(value);
    std::uint32_t slot = fresh ? list().slot_of(value.body()) : 0;
    list().forget(x_.body());
    if (fresh) {
      NoRecord pause;
      write(copy_in_place_op, {&value});
      if (slot) list().assign_slot(x_.body(), slot);
    } else {
      write(copy_in_place_op, {&value});
    }
    TapeList::mark_current(x_.body());
  }

  /// Writes the result of any op to x.
  void put_result(const Tensor& value) { put(tracked_ ? to_if_needed(Arg(value, where_), x_.dtype()) : value, true); }

  /// If x was given as a part, the part stays usable after the call.
  Tensor result() const {
    if (to_.part() && tracked_) show_part(context_, *to_.part(), where_);
    return x_;
  }

 private:
  // Records the overwrite however the op ends: elements have changed even if a listener throws.
  class WriteGuard : detail::Immovable {
   public:
    explicit WriteGuard(const Overwriting& run) : run_(run) {
      // While the op runs, x has no version that products of a listener's ops could cache.
      run.x_.body().storage->writers.fetch_add(1, std::memory_order_relaxed);
    }
    ~WriteGuard() {
      const Body& body = run_.x_.body();
      body.storage->overwritten(run_.context_.call_site(run_.where_));
      body.storage->writers.fetch_sub(1, std::memory_order_relaxed);
      if (run_.marks_tracked_write_) run_.list().mark_tracked_write(body);
    }

   private:
    const Overwriting& run_;
  };

  const Tensor& owner() const { return to_.part() ? to_.part()->base() : x_; }
  TapeList& list() const { return *context_.tapes; }

  void write(const OpInfo& op, std::initializer_list<const Tensor*> inputs) {
    Tensor output = x_;
    Call call{op, {inputs.begin(), inputs.size()}, {}, {}, {&output, 1}, where_};
    WriteGuard guard(*this);
    invoke(call);
  }

  void put_part(const Tensor& value) {
    {
      WriteGuard guard(*this);
      assign_part(*to_.part(), value, where_);
    }
    TapeList::mark_current(owner().body());
  }

  Context& context_ = context();
  // A function that a checkpoint may run again joins no group here: the first run does not know whether x will be tracked.
  FlagScope alone_{context_, Context::runs_alone, context_.has(Context::runs_alone)};
  const char* op_;
  const Destination& to_;
  const Tensor& x_;
  Location where_;
  bool tracked_ = false;
  bool marks_tracked_write_ = false;  // x will be tracked, or was
  bool replaces_all_ = false;
};

// x = f(x, y)
struct InPlaceBinary {
  OpInfo info;
  Tensor (*apply)(const Arg& a, const Arg& b);
  bool takes_bool = true;
  bool divides = false;
  /// The gradient of y needs x.
  bool saves_x = false;
};

// The op that runs on x itself if nothing is tracked. Otherwise the op that is not in place computes the result, and x
// gets its slot.
template <class F>
constexpr OpInfo binary_info(const char* name) {
  return {.name = name, .forward = binary_forward<F>};
}

constexpr InPlaceBinary add_in_place{.info = binary_info<formulas::Add>("add_"), .apply = add};
constexpr InPlaceBinary sub_in_place{.info = binary_info<formulas::Sub>("sub_"), .apply = sub, .takes_bool = false};
constexpr InPlaceBinary mul_in_place{.info = binary_info<formulas::Mul>("mul_"), .apply = mul, .saves_x = true};
constexpr InPlaceBinary div_in_place{.info = binary_info<formulas::Div>("div_"), .apply = div, .divides = true};

// The dtype of f(x, y). Throws: as the in-place functions, for invalid x and y.
DType check_binary(const InPlaceBinary& op, const Overwriting& run, const Arg& y) {
  const char* name = op.info.name;
  Arg x(run.x(), run.where());
  if (y.is_tensor()) run.check_operand(*y.tensor());
  DType dtype = common_dtype(name, x, y);
  if (op.divides && !is_floating(dtype)) dtype = DType::f32;
  if (!op.takes_bool && dtype == DType::boolean)
    fail<DTypeError>(name, run.where(), "bools cannot be operands; convert them with to(x, i32)");
  run.check_result(dtype);
  check_fits(name, y, dtype);
  return dtype;
}

Tensor overwrite(const InPlaceBinary& op, const Destination& to, const Arg& y) {
  Overwriting run(op.info.name, to);
  const Tensor& x = run.x();
  const Tensor* other = y.is_tensor() ? &tensor_of(op.info.name, Arg(*y.tensor(), run.where())) : nullptr;
  DType dtype = x.dtype();
  if (!other || !is_floating(dtype) || !same_form(x.body(), other->body())) dtype = check_binary(op, run, y);
  run.prepare(Overwriting::OldValues::read, {other});
  if (!run.tracked() && dtype == x.dtype() && x.is_contiguous()) {
    Operand operand(op.info.name, y, arithmetic_dtype(y, dtype), Arg(x, run.where()));
    bool overlaps = operand->body().storage == x.body().storage && !same_elements(operand->body(), x.body());
    Tensor copied = overlaps ? run.kept(*operand) : Tensor{};
    run.run(op.info, {&x, overlaps ? &copied : &*operand});
    return x;
  }
  OpScope caller(run.where(), op.info.name);
  if (!run.tracked()) {
    run.put(op.apply(x, y), true);
    return x;
  }
  Tensor old = op.saves_x && other ? run.kept(x) : x;
  Tensor operand = other ? run.apart(*other) : Tensor{};
  run.put_result(other ? op.apply(old, operand) : op.apply(old, y));
  return run.result();
}

// Whether x is a part that masks or tensors of indices select: a copy of elements, which is overwritten first.
bool is_selected(const Destination& x) { return x.part() && x.part()->selection(); }

template <class F>
Tensor overwrite_selected(const char* op, const Destination& x, F overwrite_elements) {
  const Indexed& part = *x.part();
  Tensor elements = part;
  overwrite_elements(Destination(elements, x.location()));
  assign_elements(op, part, Arg(elements, x.location()));
  return elements;
}

Tensor overwrite_anywhere(const InPlaceBinary& op, const Destination& x, const Arg& y) {
  if (!is_selected(x)) return overwrite(op, x, y);
  return overwrite_selected(op.info.name, x, [&](const Destination& elements) { overwrite(op, elements, y); });
}

}  // namespace

Tensor add_(const Destination& x, const Arg& y) { return overwrite_anywhere(add_in_place, x, y); }
Tensor sub_(const Destination& x, const Arg& y) { return overwrite_anywhere(sub_in_place, x, y); }
Tensor mul_(const Destination& x, const Arg& y) { return overwrite_anywhere(mul_in_place, x, y); }
Tensor div_(const Destination& x, const Arg& y) { return overwrite_anywhere(div_in_place, x, y); }

namespace {

// x = y
void overwrite_by_copy(Overwriting& run, const char* name, const Arg& y) {
  const Tensor& x = run.x();
  OpScope caller(run.where(), name);
  if (!y.is_tensor()) {
    run.prepare(Overwriting::OldValues::replaced, {});
    return run.put(*Operand(name, y, x.dtype(), x), false);
  }
  const Tensor& value = tensor_of(name, Arg(*y.tensor(), run.where()));
  run.check_operand(value);
  run.prepare(Overwriting::OldValues::replaced, {&value});
  bool shared = value.body().storage == x.body().storage;
  run.put(shared ? copy(value) : value, shared && value.shape() == x.shape() && value.dtype() == x.dtype());
}

}  // namespace

Tensor copy_(const Destination& x, const Arg& y) {
  if (is_selected(x)) return overwrite_selected("copy_", x, [&](const Destination& elements) { copy_(elements, y); });
  Overwriting run(copy_in_place_op.name, x);
  overwrite_by_copy(run, copy_in_place_op.name, y);
  return run.result();
}

void detail::assign_view(const char* op, const Indexed& view, const Arg& y) {
  Destination to(view, y.location());
  Overwriting run(op, to);
  overwrite_by_copy(run, op, y);
}

void detail::assign(const Indexed& part, const Arg& y) {
  const char* name = "index_assign_";
  if (part.selection()) return assign_elements(name, part, y);
  assign_view(name, part, y);
}

Tensor fill_(const Destination& x, const Arg& value) {
  if (is_selected(x))
    return overwrite_selected("fill_", x, [&](const Destination& elements) { fill_(elements, value); });
  Overwriting run("fill_", x);
  if (value.is_tensor() && tensor_of("fill_", Arg(*value.tensor(), run.where())).rank() != 0)
    fail<ShapeError>("fill_", run.where(), "the value {} is not a single number; write the tensor with copy_",
                     describe(*value.tensor()));
  overwrite_by_copy(run, "fill_", value);
  return run.result();
}

constexpr OpInfo zero_op{
    .name = "zero_",
    .forward = [](Call& call) { kernels(call.output().device).fill(call.output(), 0, 0); },
};

Tensor zero_(const Destination& x) {
  if (is_selected(x)) return overwrite_selected("zero_", x, [&](const Destination& elements) { zero_(elements); });
  Overwriting run(zero_op.name, x);
  run.prepare(Overwriting::OldValues::replaced, {});
  if (!run.tracked()) {
    run.run(zero_op, {});
    return run.x();
  }
  OpScope caller(run.where(), zero_op.name);
  run.put(zeros({}, {.dtype = run.x().dtype(), .device = run.x().device()}), false);
  return run.result();
}

namespace {

bool is_bound(const Arg& bound) { return bound.is_tensor() || !std::isinf(bound.number()); }

}  // namespace

Tensor clamp_(const Destination& x, const Arg& low, const Arg& high) {
  if (is_selected(x))
    return overwrite_selected("clamp_", x, [&](const Destination& elements) { clamp_(elements, low, high); });
  Overwriting run("clamp_", x);
  for (const Arg* bound : {&low, &high}) {
    if (bound->is_tensor()) run.check_operand(tensor_of("clamp_", Arg(*bound->tensor(), run.where())));
    if (is_bound(*bound)) run.check_result(common_dtype("clamp_", Arg(run.x(), run.where()), *bound));
  }
  run.prepare(Overwriting::OldValues::read, {low.tensor(), high.tensor()});
  OpScope caller(run.where(), "clamp_");
  if (!run.tracked()) {
    run.put_result(clamp(run.x(), low, high));
    return run.x();
  }
  // The gradient needs the old values of all three.
  Tensor old = run.kept(run.x()), least = low.is_tensor() ? run.apart(*low.tensor()) : Tensor{},
         most = high.is_tensor() ? run.apart(*high.tensor()) : Tensor{};
  run.put_result(clamp(old, low.is_tensor() ? Arg(least) : low, high.is_tensor() ? Arg(most) : high));
  return run.result();
}

Tensor masked_fill_(const Destination& x, const Arg& mask, const Arg& value) {
  if (is_selected(x))
    return overwrite_selected("masked_fill_", x,
                              [&](const Destination& elements) { masked_fill_(elements, mask, value); });
  Overwriting run("masked_fill_", x);
  const Tensor& at = tensor_of("masked_fill_", mask);
  if (value.is_tensor()) tensor_of("masked_fill_", value);
  run.prepare(Overwriting::OldValues::read, {&at, value.tensor()});
  OpScope caller(run.where(), "masked_fill_");
  run.put_result(detail::masked_fill("masked_fill_", run.x(), at, value));
  return run.result();
}

Tensor index_put_(const Destination& x, std::span<const Tensor> indices, const Arg& values, IndexPutOptions options) {
  if (is_selected(x))
    return overwrite_selected("index_put_", x,
                              [&](const Destination& elements) { index_put_(elements, indices, values, options); });
  Overwriting run("index_put_", x);
  if (values.is_tensor()) tensor_of("index_put_", values);
  run.prepare(Overwriting::OldValues::read, {values.tensor()});
  OpScope caller(run.where(), "index_put_");
  run.put_result(detail::index_put("index_put_", run.x(), indices, values, options));
  return run.result();
}

OpList detail::in_place_ops() {
  static constexpr const OpInfo* ops[] = {&add_in_place.info, &sub_in_place.info, &mul_in_place.info,
                                          &div_in_place.info, &copy_in_place_op,  &zero_op};
  return ops;
}

}  // namespace reel
