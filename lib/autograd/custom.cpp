#include <reel/custom.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include <reel/ops/elementwise.h>
#include <reel/tape.h>

#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../dispatch/invoke.h"
#include "../ops/if_needed.h"
#include "../record/gradient.h"
#include "custom.h"
#include "isolated_tape_scope.h"

namespace reel::detail {

/// A user-defined op. `called` passes the dispatcher but is not recorded in the ordinary way; its forward records
/// `listed`.
struct CustomOp {
  std::string name;
  CustomFunctions functions;
  OpInfo called, listed;
};

namespace {

// Precedes the op's own state in an entry.
struct Header {
  const CustomOp* op;
  std::uint64_t undefined;  // bits of the undefined saved values, of the first 64
  std::uint32_t outputs;    // without the hidden ones
  std::uint8_t hidden[8];   // the indices of the saved values that are hidden outputs
  bool autocast;            // the forward ran within a scope
};

struct CustomCall : Call {
  const CustomOp& custom;
  void* functions;
  std::vector<std::byte> state;  // a header, followed by the op's own state
};

// One run of a forward function, from the inputs to the entry.
class Run {
 public:
  Run(Context& context, CustomCall& call)
      : context_(context), call_(call), name_(call.op.name), where_(context.call_site(call.where)) {
    header_.op = &call.custom;
    header_.outputs = static_cast<std::uint32_t>(call.outputs.size());
    header_.autocast = context.has(Context::autocasting);
    call.state.resize(sizeof(Header) + call.custom.functions.state_bytes);
  }

  void compute(std::span<const Tensor> inputs) {
    forward_ = {.op = call_.functions,
                .inputs = inputs,
                .outputs = call_.outputs,
                .saved = {},
                .state = call_.state.data() + sizeof(Header)};
    call_.custom.functions.forward(forward_);
  }

  void compute_and_record() {
    {
      IsolatedTapeScope scope(context_, IsolatedTapeScope::Purpose::collect_uses);
      Aliases inputs(call_.inputs);
      compute(inputs.tensors());
      check_use(scope, inputs);
      std::vector<Tensor> returned(call_.outputs.begin(), call_.outputs.end());
      make_outputs(name_, scope, inputs, call_.outputs, where_);
      sort_saved(scope, inputs, returned);
    }
    check_results();
    std::memcpy(call_.state.data(), &header_, sizeof header_);
    call_.attribute_bytes = call_.state;
    context_.tapes->record_saving(context_, call_, call_.custom.listed, values_, hidden_);
  }

  void check_results() const {
    bool any_floating = false;
    for (std::size_t k = 0; k < call_.outputs.size(); ++k) {
      check_result(name_, call_.outputs[k], k, where_);
      any_floating |= is_floating(call_.outputs[k].dtype());
    }
    if (!any_floating)
      fail<DTypeError>(name_, where_,
                       "its forward returned {}, through which no gradient can flow back; call the function itself",
                       describe(call_.outputs[0]));
  }

 private:
  void check_use(const IsolatedTapeScope& scope, const Aliases& inputs) const {
    if (int i = inputs.overwritten(); i >= 0) {
      const Tensor& input = *call_.inputs[static_cast<std::size_t>(i)];
      fail<TapeError>(name_, where_, "its forward overwrote its input {}, {} made at {}, at {}; overwrite a copy", i,
                      describe(input), to_string(input.made_at()), to_string(input.body().storage->last_overwrite()));
    }
    if (scope.list().adopted().empty()) return;
    const Tensor& used = scope.list().adopted().front();
    fail<TapeError>(name_, where_,
                    "its forward uses {}, made at {}, which is tracked but not among its inputs, so that no gradient "
                    "would flow back to it; pass it as an input, or use stop_gradient of it",
                    describe(used), to_string(used.made_at()));
  }

  // Classifies each saved value: an input, an output, or an intermediate result.
  void sort_saved(const IsolatedTapeScope& scope, const Aliases& inputs, std::span<const Tensor> returned) {
    for (std::size_t k = 0; k < forward_.saved.size(); ++k) {
      Tensor& value = forward_.saved[k];
      if (!value.defined()) {
        header_.undefined |= std::uint64_t{1} << k;
        continue;
      }
      int output = forward_.saves_outputs && k < returned.size() ? static_cast<int>(k) : -1;
      int input = output < 0 ? inputs.index_of(value) : -1;
      for (std::size_t j = 0; j < returned.size() && output < 0 && input < 0; ++j)
        if (returned[j].is(value)) output = static_cast<int>(j);
      if (input >= 0) {
        values_.push_back({*call_.inputs[static_cast<std::size_t>(input)], input});
      } else if (output >= 0) {
        values_.push_back({call_.outputs[static_cast<std::size_t>(output)], -1 - output});
      } else {
        if (is_floating(value.dtype()) && scope.has_made(value)) hide(scope, value, k);
        values_.push_back({value, Saved::first_kept + static_cast<int>(k)});
      }
    }
  }

  void hide(const IsolatedTapeScope& scope, const Tensor& value, std::size_t member) {
    scope.free(value.body());
    for (const Tensor& earlier : hidden_)
      if (earlier.is(value)) return;
    header_.hidden[hidden_.size()] = static_cast<std::uint8_t>(member);
    hidden_.push_back(value);
  }

  Context& context_;
  CustomCall& call_;
  const char* name_;
  Location where_;
  Header header_{};
  CustomForward forward_{};
  std::vector<TapeList::ToSave> values_;
  std::vector<Tensor> hidden_;
};

void run_forward(Call& door_call) {
  auto& call = static_cast<CustomCall&>(door_call);
  Context& context = detail::context();
  Run run(context, call);
  if (context.has(Context::recording)) return run.compute_and_record();
  std::vector<Tensor> inputs;
  for (const Tensor* input : call.inputs) inputs.push_back(*input);
  run.compute(inputs);
  replace_aliased_results(call.op.name, inputs, call.outputs, context.call_site(call.where));
  run.check_results();
}

const Header& header_of(const Gradient& g) { return *reinterpret_cast<const Header*>(g.attribute_bytes().data()); }

// Saved intermediate results have slots behind those of the outputs, so that a gradient that would have to flow through
// one is detected.
void check_hidden(const Gradient& g) {
  const Header& header = header_of(g);
  for (std::size_t k = header.outputs; k < g.output_count(); ++k)
    if (g.has_output(k))
      fail<TapeError>(g.op()->name, g.where(),
                      "a gradient of higher order has to flow back through member {} of what its forward saved, which "
                      "was computed on the way; compute it from the inputs in the gradient function, return it as a "
                      "further result, or save stop_gradient of it if it counts as a constant",
                      static_cast<int>(header.hidden[k - header.outputs]));
}

void run_gradient(Gradient& g) {
  check_hidden(g);
  CustomGradient run(g);
  const CustomFunctions& functions = header_of(g).op->functions;
  if (g.recording()) return functions.gradient(run);
  // Isolated, so that the function may open tapes of its own.
  IsolatedTapeScope scope(context(), IsolatedTapeScope::Purpose::compute);
  functions.gradient(run);
}

struct CustomOps {
  ForkSafeMutex mutex;
  std::list<CustomOp> made;
};

CustomOps& custom_ops() {
  static auto& ops = *std::make_unique<CustomOps>().release();
  return ops;
}

// Gradient functions need not know which of the dtypes that an autocast scope mixes their inputs had.
bool mixes(DType dtype) { return is_floating(dtype) && dtype != DType::f64; }

bool broadcasts_to(const Shape& small, const Shape& large) {
  Shape shape;
  return broadcast(small, large, shape) && shape == large;
}

}  // namespace

const CustomOp& custom_op(std::string_view name, const CustomFunctions& functions) {
  CustomOps& ops = custom_ops();
  std::lock_guard lock(ops.mutex);
  for (const CustomOp& op : ops.made)
    if (op.name == name && op.functions.forward == functions.forward) return op;
  ops.made.push_back({std::string(name), functions, {}, {}});
  CustomOp& op = ops.made.back();
  op.called = {.name = op.name.c_str(), .forward = run_forward};
  op.listed = op.called;
  op.listed.gradient = run_gradient;
  return op;
}

bool is_custom_op(std::string_view name) {
  CustomOps& ops = custom_ops();
  std::lock_guard lock(ops.mutex);
  return std::any_of(ops.made.begin(), ops.made.end(), [&](const CustomOp& op) { return op.name == name; });
}

std::string_view name_of(const CustomOp& op) { return op.name; }

void run_custom(const CustomOp& op, void* functions, std::span<const Arg> inputs, std::span<Tensor> outputs) {
  with_memory_error(op.called.name, inputs[0].location(), [&] {
    const char* name = op.called.name;
    Location where = inputs[0].location();
    std::vector<const Tensor*> tensors;
    for (const Arg& input : inputs) {
      const Tensor& tensor = tensor_of(name, input.is_tensor() ? Arg(*input.tensor(), where) : input);
      if (op.functions.cpu_only && tensor.device().type != Device::Type::cpu)
        fail<DeviceError>(name, where, "it runs on the CPU only, and {} is on {}; copy it over", describe(tensor),
                          to_string(tensor.device()));
      tensors.push_back(&tensor);
    }
    CustomCall call{{op.called, tensors, {}, {}, outputs, where}, op, functions, {}};
    invoke(call);
  });
}

CustomGradient::CustomGradient(Gradient& gradient) : gradient_(gradient) {}

Tensor CustomGradient::output(std::size_t k) const { return gradient_.own_output(k); }

Tensor CustomGradient::saved(std::size_t k) const {
  std::uint64_t undefined = header_of(gradient_).undefined;
  if (k >= 64) return gradient_.saved_value(k - static_cast<std::size_t>(std::popcount(undefined)));
  if (undefined >> k & 1) return {};
  std::uint64_t before = undefined & ((std::uint64_t{1} << k) - 1);
  return gradient_.saved_value(k - static_cast<std::size_t>(std::popcount(before)));
}

const std::byte* CustomGradient::state() const { return gradient_.attribute_bytes().data() + sizeof(Header); }

Wanted CustomGradient::wanted() const {
  std::uint64_t inputs = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(gradient_.input_count(), 64); ++i)
    inputs |= std::uint64_t{gradient_.wants(i)} << i;
  return Wanted(inputs);
}

bool CustomGradient::on_cuda() const { return gradient_.output_form(0).device.type == Device::Type::cuda; }

void CustomGradient::give(std::span<const Tensor> gradients) const {
  Gradient& g = gradient_;
  const char* name = g.op()->name;
  if (gradients.size() != g.input_count())
    fail<TapeError>(name, g.where(),
                    "its gradient function returned {} gradients for {} inputs; return one for each, an "
                    "undefined tensor where none flows",
                    gradients.size(), g.input_count());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Tensor gradient = gradients[i];
    if (!g.wants(i) || !gradient.defined()) continue;
    const SlotForm& form = g.input_form(i);
    if (header_of(g).autocast && mixes(gradient.dtype()) && mixes(form.dtype))
      gradient = to_if_needed(gradient, form.dtype);
    std::string input = fmt::format("{} {}", to_string(form.shape()), name_of(form.dtype));
    if (gradient.dtype() != form.dtype)
      fail<DTypeError>(name, g.where(),
                       "its gradient function returned {} for input {}, which is {}; convert it with to(gradient, {})",
                       describe(gradient), i, input, name_of(form.dtype));
    if (gradient.device() != form.device)
      fail<DeviceError>(name, g.where(),
                        "its gradient function returned {} on {} for input {}, which is on {}; copy it over",
                        describe(gradient), to_string(gradient.device()), i, to_string(form.device));
    // The gradient of a broadcast input may have a result's shape: the backward pass sums it.
    bool fits = gradient.shape() == form.shape();
    for (std::size_t k = 0; k < header_of(g).outputs && !fits; ++k)
      fits = gradient.shape() == g.output_form(k).shape() && broadcasts_to(form.shape(), gradient.shape());
    if (!fits)
      fail<ShapeError>(
          name, g.where(),
          "its gradient function returned {} for input {}, which is {}; return a gradient of the input's shape",
          describe(gradient), i, input);
    // The gradient is on a tape that the gradient function opened and that has finished.
    bool is_dead = !g.recording() && !is_untracked(gradient.body());
    g.accumulate(i, is_dead ? stop_gradient(gradient) : gradient);
  }
}

}  // namespace reel::detail
