#include "autocast.h"

#include <reel/autocast.h>

#include <array>

#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../record/tape_list.h"

namespace reel {
namespace detail {
namespace {

DType autocast_dtype(const Context& context, Precision precision, DType dtype) {
  bool half = size_of(dtype) == 2;
  switch (precision) {
    case Precision::low: return half || dtype == DType::f32 ? context.casts->low() : dtype;
    case Precision::full: return half ? DType::f32 : dtype;
    case Precision::promoted: break;
  }
  return dtype;
}

std::uint32_t version_of(const Tensor& tensor) {
  return tensor.body().storage->version.load(std::memory_order_relaxed);
}

// The id of the isolated function in which a cast was made; 0 outside of all.
std::uint32_t isolated_scope_of(const Context& context) {
  return context.scope_id < first_isolated_scope ? 0 : context.scope_id;
}

Tensor cast(Context& context, const Tensor& tensor, DType dtype, Location where) {
  return context.casts->cast(context, tensor, dtype, where);
}

}  // namespace

bool Casts::is_valid(const Context& context, const Made& made, DType dtype) const {
  const TapeList& tapes = *context.tapes;
  // Operands of a checkpoint's function are tracked only where a gradient is asked for, which may not change what it does.
  bool constant = tapes.outer() && tapes.depth <= 1 && !tapes.is_live(made.parameter.body());
  return made.cast.dtype() == dtype && made.version == version_of(made.parameter) &&
         made.scope_id == isolated_scope_of(context) && made.epoch == tapes.epoch() &&
         (constant || !context.has(Context::recording) || tapes.is_live(made.cast.body()));
}

Tensor Casts::cast(Context& context, const Tensor& tensor, DType dtype, Location where) {
  const Body& body = tensor.body();
  bool being_written = body.storage->writers.load(std::memory_order_relaxed) != 0;
  if (!body.requires_grad || being_written) return converted(tensor, dtype, where);
  auto found = made_.find(&body);
  if (found != made_.end() && is_valid(context, found->second, dtype)) return found->second.cast;
  Made made{tensor, converted(tensor, dtype, where), version_of(tensor), isolated_scope_of(context),
            context.tapes->epoch()};
  return made_.insert_or_assign(&body, std::move(made)).first->second.cast;
}

bool has_autocast_dtypes(const Context& context, const Call& call) {
  // An op without specs makes views or writes in place: neither changes a dtype.
  if (call.op.precision == Precision::promoted || call.specs.empty()) return true;
  for (const Tensor* input : call.inputs)
    if (input->defined() && autocast_dtype(context, call.op.precision, input->dtype()) != input->dtype()) return false;
  return true;
}

void invoke_autocast(Context& context, Call& call) {
  constexpr std::size_t most = 8;
  std::array<Tensor, most> made;
  std::array<const Tensor*, most> inputs;
  std::vector<OutputSpec> specs(call.specs.begin(), call.specs.end());
  if (call.inputs.size() > most)
    throw InternalError(fmt::format("{} takes {} tensors, more than are cast", call.op.name, call.inputs.size()));
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& input = *(inputs[i] = call.inputs[i]);
    if (!input.defined()) continue;
    DType dtype = autocast_dtype(context, call.op.precision, input.dtype());
    if (dtype == input.dtype()) continue;
    made[i] = cast(context, input, dtype, call.where);
    inputs[i] = &made[i];
  }
  for (OutputSpec& spec : specs) spec.dtype = autocast_dtype(context, call.op.precision, spec.dtype);
  Call cast_call{call.op, {inputs.data(), call.inputs.size()}, call.attribute_bytes, specs, call.outputs, call.where};
  invoke(cast_call);
}

DType autocast_dtype(Precision precision, DType dtype) {
  Context& context = detail::context();
  context.tapes->scopes().apply_remote_ends(context);
  return context.has(Context::autocasting) ? autocast_dtype(context, precision, dtype) : dtype;
}

void AutocastArg::cast(Precision precision) {
  if (!arg_.is_tensor() || !arg_.tensor()->defined()) return;
  made_ = autocast_operand(precision, *arg_.tensor(), arg_.location());
  arg_ = Arg(made_, arg_.location());
}

Tensor autocast_operand(Precision precision, const Tensor& tensor, Location where) {
  if (!tensor.defined()) return tensor;
  DType dtype = autocast_dtype(precision, tensor.dtype());
  return dtype == tensor.dtype() ? tensor : cast(context(), tensor, dtype, where);
}

}  // namespace detail

AutocastScope::AutocastScope(DType dtype, Location where) {
  detail::Context& context = detail::context();
  if (!is_floating(dtype) || dtype == DType::f64)
    detail::fail<DTypeError>("autocast", where, "takes bf16 or f16, or f32 to switch an outer scope off, not {}",
                             name_of(dtype));
  casts_ = detail::with_memory_error("autocast", where, [&] { return std::make_unique<detail::Casts>(dtype); });
  context.tapes->scopes().begin(context, {this, detail::Setting::autocast, dtype != DType::f32, casts_.get()});
}

AutocastScope::~AutocastScope() { detail::Scopes::end(this); }

}  // namespace reel
