#include "recorder.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <reel/nn/module.h>
#include <reel/no_record.h>

#include "../../core/dtype_dispatch.h"
#include "../../core/iteration.h"
#include "../../core/storage.h"
#include "../../kernels/kernel_table.h"
#include "../../ops/if_needed.h"
#include "zero_units.h"

namespace reel::debug {

using namespace detail;

namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

// The elements on the CPU: the tensor itself, or a copy of what is on another device.
Tensor on_cpu(const Tensor& tensor) {
  if (tensor.device() == cpu) return tensor;
  Unobserved unobserved(detail::context());
  NoRecord pause;
  return to_if_needed(tensor, cpu);
}

ElementSummary summary_of(const Tensor& tensor, bool statistics, bool fingerprint) {
  Tensor here = on_cpu(tensor);
  return kernels(cpu).summarise(here.body(), statistics, fingerprint);
}

double norm_of(const Tensor& tensor) {
  return statistics_of(summary_of(tensor, true, false), tensor.numel()).norm_of_all();
}

// Never 0, which means that there is none.
std::uint64_t fingerprint_of(const Body& body, std::uint32_t elements) {
  std::uint64_t form = static_cast<std::uint64_t>(body.dtype) + 1;
  for (int axis = 0; axis < body.rank; ++axis)
    form = (form ^ static_cast<std::uint64_t>(body.dims[axis])) * 0x9E3779B97F4A7C15u + 1;
  return (form >> 32 | std::uint64_t{1} << 31) << 32 | elements;
}

// The Euclidean norm of a − before, which is overwritten: contiguous tensors of one shape and dtype on the CPU.
double distance(const Tensor& a, Tensor& before) {
  with_floating(a.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* x = a.body().as<T>();
    T* y = before.body().as<T>();
    for (std::int64_t i = 0, count = a.numel(); i < count; ++i) y[i] = static_cast<T>(x[i] - y[i]);
  });
  return norm_of(before);
}

// In the place of an output or a gradient that is undefined.
RecordedTensor undefined_tensor() {
  RecordedTensor tensor;
  tensor.shape = Shape{0};
  return tensor;
}

// The number that identifies a tensor as long as the process runs, whatever memory it has.
std::uint32_t serial_of(Body& body) {
  static std::atomic<std::uint32_t> last = 0;
  std::atomic_ref serial(body.serial);  // other threads may record the tensor, too
  std::uint32_t found = serial.load(std::memory_order_relaxed);
  if (found != 0) return found;
  std::uint32_t next = 0;
  while (next == 0) next = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return serial.compare_exchange_strong(found, next, std::memory_order_relaxed) ? next : found;
}

Tensor gradient_of_leaf(const Body& body) {
  std::lock_guard lock(gradient_mutex());
  if (body.leaf->gradient.defined()) return body.leaf->gradient;
  return body.leaf->row_gradient.values;
}

}  // namespace

double RecordedStatistics::norm_of_all() const {
  if (nans > 0) return no_number;
  if (infinities > 0) return std::numeric_limits<double>::infinity();
  return std::isnan(norm) ? 0 : norm;
}

RecordedStatistics statistics_of(const ElementSummary& summary, std::int64_t numel) {
  std::int64_t finite = numel - summary.nans - summary.infinities;
  bool any = finite > 0;
  return {.min = any ? summary.min : no_number,
          .max = any ? summary.max : no_number,
          .mean = any ? summary.sum / static_cast<double>(finite) : no_number,
          .norm = any ? std::sqrt(summary.squares) : no_number,
          .nans = summary.nans,
          .infinities = summary.infinities,
          .zeros = summary.zeros};
}

Recorder::Recorder(const Options& options) : ListenerScope(detail::context()), options_(options) {}

void Recorder::starting(const Call& call, Location where) {
  if (records()) {
    std::vector<TensorId> inputs;
    if (!spare_.empty()) {
      inputs = std::move(spare_.back());
      spare_.pop_back();
      inputs.clear();
    }
    bool has_zero_input = false;
    // Before the op runs, which may overwrite them.
    for (const Tensor* input : call.inputs)
      if (input->defined()) {
        const Known& known = recorded(*input);
        inputs.push_back(known.id);
        has_zero_input |= known.is_zero;
      }
    running_.push_back({&call, now(), std::move(inputs), has_zero_input});
  }
  ListenerScope::starting(call, where);
}

void Recorder::finished(const Call& call, Location where) {
  std::int64_t end = now();
  // A listener around this one may change the results, as tests do.
  ListenerScope::finished(call, where);
  record_call(call, where, end, {});
}

void Recorder::failed(const Call& call) noexcept {
  try {
    throw;
  } catch (const std::exception& error) {
    try {
      record_call(call, detail::context().call_site(call.where), now(), error.what());
    } catch (...) {  // The op's own error is the one to report.
    }
  } catch (...) {  // A switch of fibres, or what a hook throws.
    take_running(call);
  }
  ListenerScope::failed(call);
}

void Recorder::refused(const char* op, Location where, const std::string& sentence) noexcept {
  // The error of an op that has started is recorded by `failed`.
  if (records() && !detail::context().running) try {
      RecordedOp refusal = opened(differentiating_.empty() ? OpKind::forward : OpKind::backward, op, where, now());
      refusal.error = sentence;
      record(refusal);
    } catch (...) {  // The error itself is the one to report.
    }
  ListenerScope::refused(op, where, sentence);
}

void Recorder::record_call(const Call& call, Location where, std::int64_t end, std::string_view error) {
  Running running = take_running(call);
  if (!running.call) return;  // the recording, or this step of it, began within the op
  RecordedOp op =
      opened(differentiating_.empty() ? OpKind::forward : OpKind::backward, call.op.name, where, running.start);
  // An op of an example in batch_map waits for those of others.
  if (!detail::context().interceptor) op.duration = end - running.start;
  op.inputs = std::move(running.inputs);
  op.error = error;
  op.outputs = std::move(spare_outputs_);
  if (error.empty()) {
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      const Tensor& output = call.outputs[i];
      // Elements that only the gradient reads, and those around a written part, may be uninitialised.
      bool summarised = !(call.op.hidden_outputs >> i & 1) && !call.op.writes_part;
      op.outputs.push_back(output.defined() ? described(output, summarised, true) : undefined_tensor());
      if (!output.defined()) continue;
      remember(output, {op.id, static_cast<std::uint32_t>(i)}, op.outputs.back());
      // Zeros that are computed from zeros, such as an initial state, say nothing of a unit.
      if (op.kind == OpKind::forward && !call.inputs.empty() && !running.has_zero_input)
        find_zero_units(op.outputs.back(), output);
    }
    if (op.kind == OpKind::forward) link(call, op);
  }
  record(op);
  spare_.push_back(std::move(op.inputs));
  op.outputs.clear();
  spare_outputs_ = std::move(op.outputs);
}

Recorder::Running Recorder::take_running(const Call& call) {
  for (std::size_t i = running_.size(); i-- > 0;)
    if (running_[i].call == &call) {
      Running found = std::move(running_[i]);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      return found;
    }
  return {nullptr, 0, {}};
}

RecordedOp Recorder::opened(OpKind kind, const char* op, Location where, std::int64_t start) {
  RecordedOp record;
  record.id = next_id_++;
  record.kind = kind;
  record.op = op;
  record.file = interned_file(where.file);
  record.line = where.line;
  record.step = step_;
  record.start = start;
  if (kind == OpKind::forward || kind == OpKind::source) {
    record.module = module_path();
    record.notes = notes();
  } else if (!differentiating_.empty()) {
    const RecordedOp& gradient = differentiating_.back().op;
    record.forward = gradient.forward;
    record.module = gradient.module;
    record.notes = gradient.notes;
  }
  return record;
}

RecordedTensor Recorder::described(const Tensor& tensor, bool summarised, bool at_once) const {
  const Body& body = tensor.body();
  RecordedTensor record;
  record.shape = tensor.shape();
  record.dtype = body.dtype;
  record.device = body.device;
  if (!summarised) return record;
  if (options_.statistics || options_.fingerprints) {
    ElementSummary summary = summary_of(tensor, options_.statistics, options_.fingerprints);
    record.has_statistics = options_.statistics;
    if (options_.statistics) record.statistics = statistics_of(summary, body.numel);
    if (options_.fingerprints) record.fingerprint = fingerprint_of(body, summary.fingerprint);
  }
  if (body.numel <= options_.value_elements) {
    bool is_read_in_place = at_once && !options_.copies_values && body.contiguous && body.device == cpu;
    record.values = is_read_in_place ? tensor : copy_of(tensor);
  }
  return record;
}

void Recorder::find_zero_units(RecordedTensor& record, const Tensor& tensor) {
  int axis = unit_axis(record.shape);
  if (!record.has_statistics || !is_floating(record.dtype) || axis < 0) return;
  std::int64_t units = record.shape[axis];
  // A unit has as many elements as there are examples, or pixels.
  if (units > most_units || units == 0 || record.statistics.zeros == 0 ||
      record.statistics.zeros < tensor.numel() / units)
    return;
  Tensor here = on_cpu(tensor);
  record.zero_units = zero_units_of(here.body().contiguous ? here : copy_of(here));
}

Tensor Recorder::copy_of(const Tensor& tensor) {
  Tensor here = on_cpu(tensor);
  Shape shape = tensor.shape();
  Tensor copy = allocate(detail::context(), {shape, tensor.dtype(), cpu}, "recording", tensor.made_at());
  if (here.body().contiguous) {
    std::memcpy(copy.body().data, here.body().data, static_cast<std::size_t>(here.numel()) * size_of(here.dtype()));
    return copy;
  }
  Iteration<1> iteration({&here.body()});
  with_bits(tensor.dtype(), [&]<class T>(std::type_identity<T>) {
    T* to = copy.body().as<T>();
    iteration.for_each_row([&](const std::int64_t* offset) {
      const T* row = here.body().as<T>() + offset[0];
      for (std::int64_t i = 0; i < iteration.dims[0]; ++i) *to++ = row[i * iteration.strides[0][0]];
    });
  });
  return copy;
}

Recorder::Known& Recorder::known(const Tensor& tensor) {
  Known& found = known_[&tensor.body()];
  std::uint32_t serial = serial_of(tensor.body());
  if (found.serial != serial) found = {.serial = serial};
  return found;
}

const Recorder::Known& Recorder::recorded(const Tensor& input) {
  Known& found = known(input);
  bool is_known = found.id.op != 0, is_parameter = input.is_parameter();
  if (is_known && found.version == input.body().storage->version.load(std::memory_order_relaxed)) {
    // An initialiser has made it, outside of the module that names it.
    if (is_parameter && !found.is_named && detail::context().module_call)
      record_name(found.id, name_of_parameter(input));
    return found;
  }
  RecordedOp source = opened(OpKind::source,
                             is_parameter ? "parameter"
                             : is_known   ? "overwritten"
                                          : "data",
                             input.made_at(), now());
  if (is_known) source.inputs.push_back(found.id);
  source.outputs.push_back(described(input, true, true));
  source.outputs[0].name = is_parameter ? name_of_parameter(input) : found.name;
  record(source);
  remember(input, {source.id, 0}, source.outputs[0]);
  return found;
}

void Recorder::remember(const Tensor& tensor, TensorId id, const RecordedTensor& described) {
  Known& found = known(tensor);
  found.id = id;
  found.is_zero = described.has_statistics && described.statistics.zeros == described.shape.numel();
  found.version = tensor.body().storage->version.load(std::memory_order_relaxed);
}

void Recorder::link(const Call& call, const RecordedOp& op) {
  const TapeList& tapes = *detail::context().tapes;
  for (const Tensor& output : call.outputs) {
    if (!output.defined()) continue;
    std::uint32_t slot = tapes.slot_of(output.body());
    const Entry* entry = slot != 0 ? tapes.slot(slot).producer : nullptr;
    // The result of an example in batch_map is a part of its group's, whose own op has the gradient.
    if (!entry || entry->op != &call.op) continue;
    Forwards& forwards = forwards_[TapeList::list_id(tapes.epoch())];
    if (forwards.epoch != tapes.epoch()) forwards = {.epoch = tapes.epoch()};
    forwards.by_slot.insert_or_assign(entry->first_output, Forward{op.id, op.module, op.notes});
    return;
  }
}

const Recorder::Forward* Recorder::forward_of(const Entry& entry) {
  std::uint64_t epoch = detail::context().tapes->epoch();
  auto list = forwards_.find(TapeList::list_id(epoch));
  if (list == forwards_.end() || list->second.epoch != epoch) return nullptr;
  auto found = list->second.by_slot.find(entry.first_output);
  return found != list->second.by_slot.end() ? &found->second : nullptr;
}

void Recorder::gradient_starting(const Entry& entry, std::span<const Tensor> gradients) {
  if (records()) {
    RecordedOp op = opened(OpKind::gradient, entry.op->name, entry.where(), now());
    if (gradients.empty()) next_id_ = op.id;  // a deferred product, which is not recorded itself
    if (const Forward* forward = forward_of(entry)) {
      op.forward = forward->id;
      op.module = forward->module;
      op.notes = forward->notes;
    }
    for (const Tensor& gradient : gradients) {
      op.outputs.push_back(gradient.defined() ? described(gradient, true, false) : undefined_tensor());
      if (!gradient.defined()) continue;
      if (TensorId computed = known(gradient).id; computed.op != 0) op.inputs.push_back(computed);
      remember(gradient, {op.id, static_cast<std::uint32_t>(op.outputs.size() - 1)}, op.outputs.back());
    }
    differentiating_.push_back({&entry, std::move(op)});
  }
  ListenerScope::gradient_starting(entry, gradients);
}

void Recorder::gradient_finished(const Entry& entry) noexcept {
  if (!differentiating_.empty() && differentiating_.back().entry == &entry) {
    RecordedOp op = std::move(differentiating_.back().op);
    differentiating_.pop_back();
    op.duration = now() - op.start;
    try {
      if (!op.outputs.empty()) record(op);
    } catch (...) {  // Without memory the run goes on, unrecorded.
    }
  }
  ListenerScope::gradient_finished(entry);
}

void Recorder::leaf_gradient(const Tensor& leaf, const Tensor& gradient) {
  if (records() && leaf.defined() && gradient.defined()) {
    std::string_view name = leaf.is_parameter() ? name_of_parameter(leaf) : known(leaf).name;
    RecordedOp op = opened(OpKind::gradient, leaf.is_parameter() ? "parameter" : "data", leaf.made_at(), now());
    op.forward = known(leaf).id.op;
    op.outputs.push_back(described(gradient, true, true));
    op.outputs[0].name = name;
    if (TensorId computed = known(gradient).id; computed.op != 0) op.inputs.push_back(computed);
    remember(gradient, {op.id, 0}, op.outputs[0]);
    record(op);
  }
  ListenerScope::leaf_gradient(leaf, gradient);
}

void Recorder::updating(std::span<const Tensor> parameters) {
  ListenerScope::updating(parameters);
  if (!records() || !options_.updates) return;
  updating_.clear();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Tensor gradient = gradient_of_leaf(parameters[i].body());
    if (!gradient.defined()) continue;
    updating_.push_back({i, norm_of(parameters[i]), norm_of(gradient), copy_of(parameters[i])});
  }
}

void Recorder::updated(std::span<const Tensor> parameters) {
  for (Updating& one : updating_) {
    if (one.index >= parameters.size()) continue;
    const Tensor& parameter = parameters[one.index];
    Tensor here = on_cpu(parameter);
    if (here.numel() != one.before.numel() || here.dtype() != one.before.dtype()) continue;
    if (!here.body().contiguous) here = copy_of(here);
    std::string_view name = name_of_parameter(parameter, "parameter " + std::to_string(one.index));
    record_update({step_, name, one.weight_norm, one.gradient_norm, distance(here, one.before)});
  }
  updating_.clear();
  running_.clear();  // calls of cancelled fibres never finish
  ++step_;
  ListenerScope::updated(parameters);
}

void Recorder::named(const Tensor& tensor, std::string_view name) {
  if (tensor.defined()) {
    std::string_view kept = intern(name);
    known(tensor).name = kept;
    known(tensor).is_named = true;
    if (records()) record_name(recorded(tensor).id, kept);
  }
  ListenerScope::named(tensor, name);
}

std::string_view Recorder::module_path() {
  const auto* call = static_cast<const nn::ModuleCall*>(detail::context().module_call);
  if (!call) return {};
  if (call == last_call_ && nn::ModuleCall::observed_calls() == calls_before_path_) return last_path_;
  std::string path = call->module_path();
  last_call_ = call;
  calls_before_path_ = nn::ModuleCall::observed_calls();
  last_path_ = intern(path.empty() ? call->module().type_name() : path);
  return last_path_;
}

std::string_view Recorder::name_of_parameter(const Tensor& parameter, const std::string& otherwise) {
  Known& found = known(parameter);
  const auto* call = static_cast<const nn::ModuleCall*>(detail::context().module_call);
  if (call && !found.is_named)
    for (const NamedTensor& member : call->module().outermost().named_parameters())
      if (Known& one = known(member.tensor); !std::exchange(one.is_named, true))
        one.name = name_of_its_own(member.name, one.serial);
  if (found.name.empty()) {
    const Leaf* leaf = parameter.body().leaf;
    found.name = name_of_its_own(leaf && !leaf->name.empty() ? leaf->name : otherwise, found.serial);
  }
  found.is_named |= call != nullptr;  // no other module has it
  return found.name;
}

// Two layers, or two models, may have parameters of one name.
std::string_view Recorder::name_of_its_own(const std::string& name, std::uint32_t serial) {
  if (name.empty()) return {};
  for (int number = 1;; ++number) {
    std::string_view own = intern(number == 1 ? name : fmt::format("{} ({})", name, number));
    if (owners_.try_emplace(own, serial).first->second == serial) return own;
  }
}

std::string_view Recorder::notes() {
  const ActiveNote* innermost = detail::context().notes;
  return innermost ? intern(notes_text(innermost)) : std::string_view();
}

std::string_view Recorder::interned_file(const char* file) {
  if (!file) return {};
  // A library that was closed has given its address to the texts of another one.
  std::string_view text = file;
  while (text.starts_with("../")) text.remove_prefix(3);
  return text == last_file_ ? last_file_ : last_file_ = intern(text);
}

}  // namespace reel::debug
