#include "writer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <reel/no_record.h>
#include <reel/ops/create.h>

#include "../../ops/if_needed.h"
#include "../../ops/joining.h"
#include "../../ops/operand.h"
#include "../../ops/random/attributes.h"
#include "model_tensor.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

OnnxAttribute named(const char* name, OnnxAttribute::Kind kind) {
  OnnxAttribute made;
  made.name = name;
  made.kind = kind;
  return made;
}

bool is_overwritten(const TracedValue& value) {
  return value.version != value.tensor.body().storage->version.load(std::memory_order_relaxed);
}

}  // namespace

OnnxAttribute attribute(const char* name, std::int64_t value) {
  OnnxAttribute made = named(name, OnnxAttribute::Kind::integer);
  made.integer = value;
  return made;
}
OnnxAttribute attribute(const char* name, double value) {
  OnnxAttribute made = named(name, OnnxAttribute::Kind::number);
  made.number = static_cast<float>(value);
  return made;
}
OnnxAttribute attribute(const char* name, const char* value) {
  OnnxAttribute made = named(name, OnnxAttribute::Kind::text);
  made.text = value;
  return made;
}
OnnxAttribute attribute(const char* name, std::vector<std::int64_t> values) {
  OnnxAttribute made = named(name, OnnxAttribute::Kind::integers);
  made.integers = std::move(values);
  return made;
}
OnnxAttribute attribute(const char* name, std::vector<std::string> values) {
  OnnxAttribute made = named(name, OnnxAttribute::Kind::texts);
  made.texts = std::move(values);
  return made;
}
OnnxAttribute attribute(const char* name, std::shared_ptr<OnnxGraph> graph) {
  OnnxAttribute made = named(name, OnnxAttribute::Kind::graph);
  made.graph = std::move(graph);
  return made;
}

std::string Export::fresh(const std::string& wanted) {
  if (!wanted.empty() && taken.insert(wanted).second) return wanted;
  std::string name;
  do name = fmt::format("{}_{}", wanted.empty() ? "value" : wanted, count++);
  while (!taken.insert(name).second);
  return name;
}

Writer::Writer(Export& shared, OnnxGraph& graph, std::vector<const Trace*> runs, Writer* outer)
    : shared_(shared), graph_(graph), runs_(std::move(runs)), outer_(outer) {}

void Writer::name_input(std::size_t input, const std::string& name) {
  // Inputs are the first values of a trace.
  names_[static_cast<ValueId>(input)] = name;
}

const TracedStep& Writer::step(std::size_t run) const {
  static const TracedStep none{.kind = StepKind::size};
  if (!runs_[run]->steps.empty()) return runs_[run]->steps[current_];
  return outer_ ? outer_->step(run) : none;
}

const Tensor& Writer::tensor(std::size_t input, std::size_t run) const {
  return value(step(run).inputs[input], run).tensor;
}
const Tensor& Writer::out(std::size_t output, std::size_t run) const {
  return value(step(run).outputs[output], run).tensor;
}
Numbers Writer::in_size(std::size_t input, int axis) const {
  return numbers([&](std::size_t run) { return tensor(input, run).size(axis); });
}
Numbers Writer::out_size(std::size_t output, int axis) const {
  return numbers([&](std::size_t run) { return out(output, run).size(axis); });
}
std::vector<Numbers> Writer::out_shape(std::size_t output) const {
  std::vector<Numbers> shape;
  for (int axis = 0; axis < out(output).rank(); ++axis) shape.push_back(out_size(output, axis));
  return shape;
}
std::vector<Numbers> Writer::in_shape(std::size_t input) const {
  std::vector<Numbers> shape;
  for (int axis = 0; axis < tensor(input).rank(); ++axis) shape.push_back(in_size(input, axis));
  return shape;
}

std::size_t Writer::other_run() const {
  for (std::size_t run = 1; run < runs_.size(); ++run)
    if (step(run).attributes != step().attributes) return run;
  return 0;
}

void Writer::refuse(const std::string& reason) const {
  const TracedStep& shown = runs_[0]->steps.empty() ? step() : shown_step(*runs_[0], current_);
  fail<Error>(save_name, shown.where, "the op {} cannot be exported: {}", shown.name(), reason);
}

void Writer::refuse_output(std::size_t output, const char* what) const {
  if (has_output(output) && used_.contains(step().outputs[output]))
    refuse(fmt::format("ONNX does not return {}", what));
}

std::int64_t Writer::fixed(const Numbers& numbers, const char* what) const {
  if (is_constant(numbers)) return numbers.front();
  auto other = static_cast<std::size_t>(
      std::find_if(numbers.begin(), numbers.end(), [&](std::int64_t n) { return n != numbers.front(); }) -
      numbers.begin());
  refuse(
      fmt::format("{} depends on the size of an axis: it is {} for {} and {} for {}; such a number is fixed in an "
                  "ONNX graph, so the axis has to be fixed, too",
                  what, numbers.front(), shared_.axes.sizes_text(0), numbers[other], shared_.axes.sizes_text(other)));
}

DType Writer::widen() {
  widens_ = widens_ || is_half(out().dtype());
  return widens_ ? f32 : tensor(0).dtype();
}

std::string Writer::in(std::size_t input) {
  ValueId id = step().inputs[input];
  if (!widens_ || !is_half(tensor(input).dtype())) return name_of(id);
  std::string& name = converted_[{id, f32}];
  return name.empty() ? name = cast(name_of(id), f32) : name;
}

std::string Writer::in_as(std::size_t input, DType dtype) {
  std::string name = in(input);
  return tensor(input).dtype() == dtype ? name : cast(name, dtype);
}

std::string Writer::in_rounded(std::size_t input, DType half) { return rounded_name(step().inputs[input], half); }

std::string Writer::rounded_name(ValueId id, DType half) {
  std::string& name = converted_[{id, half}];
  if (!name.empty()) return name;
  if (auto outside = runs_[0]->captured.find(id); outside != runs_[0]->captured.end())
    return name = outer_->rounded_name(outside->second, half);
  const TracedValue& first = value(id);
  // Runtimes differ in how they round; what is written here is rounded already.
  if (first.kind != TracedValue::Kind::constant) return name = cast(cast(name_of(id), half), first.tensor.dtype());
  Unobserved unobserved(context());
  NoRecord pause;
  OnnxTensor array = onnx_tensor(first.name, to(to(first.tensor, half), first.tensor.dtype()));
  if (first.name.empty()) return name = constant(std::move(array));
  name = array.name = shared_.fresh(first.name);
  shared_.root.initialisers.push_back(std::move(array));
  return name;
}

void Writer::result(std::size_t output, const std::string& name) {
  if (!has_output(output)) return;
  bool rounds = widens_ && is_half(out(output).dtype());
  names_[step().outputs[output]] = rounds ? cast(name, out(output).dtype()) : name;
}

std::string Writer::name_of(ValueId id) {
  if (auto found = names_.find(id); found != names_.end()) return found->second;
  if (auto outside = runs_[0]->captured.find(id); outside != runs_[0]->captured.end())
    return names_[id] = outer_->name_of(outside->second);
  if (value(id).kind == TracedValue::Kind::constant) return names_[id] = constant_value(id);
  refuse("an operand of it was made by an op that is not in the graph");
}

std::string Writer::constant_value(ValueId id) {
  const TracedValue& first = value(id);
  if (is_overwritten(first)) refuse(fmt::format("its operand {} is overwritten later", describe(first.tensor)));
  for (std::size_t run = 1; run < runs_.size(); ++run) {
    const Tensor& other = value(id, run).tensor;
    if (&other.body() == &first.tensor.body() || same_elements(first.tensor, other)) continue;
    bool is_number = first.tensor.numel() == 1 && other.numel() == 1;
    if (is_number) {
      Unobserved unobserved(context());
      NoRecord pause;
      Numbers found = numbers([&](std::size_t r) { return value(id, r).tensor.item<double>(); });
      bool whole = true;
      for (std::size_t r = 0; r < runs_.size(); ++r)
        whole = whole && value(id, r).tensor.item<double>() == static_cast<double>(found[r]);
      if (whole)
        if (auto terms = shared_.axes.fit(found))
          return reshape(cast(size_from_axes(*terms), first.tensor.dtype()),
                         std::vector<Numbers>(static_cast<std::size_t>(first.tensor.rank()), Numbers(runs_.size(), 1)));
    }
    refuse(fmt::format(
        "its operand {}, which no op made, is another one for {} than for {}: it would be fixed in the file; compute "
        "it with ops from the inputs or from io::onnx::size_of, or give a loop as io::onnx::scan or io::onnx::loop",
        describe(first.tensor), shared_.axes.sizes_text(run), shared_.axes.sizes_text(0)));
  }
  OnnxTensor array = onnx_tensor(first.name, first.tensor);
  if (first.name.empty()) return constant(std::move(array));
  array.name = shared_.fresh(first.name);
  shared_.root.initialisers.push_back(std::move(array));
  return shared_.root.initialisers.back().name;
}

std::string Writer::node(const char* type, const Names& inputs, const Attributes& attributes) {
  return nodes(type, inputs, 1, attributes)[0];
}

Names Writer::nodes(const char* type, const Names& inputs, std::size_t outputs, const Attributes& attributes) {
  OnnxNode made;
  made.type = type;
  made.inputs = inputs;
  made.attributes = attributes;
  const TracedStep& now = step();
  made.name = shared_.fresh(now.module.empty() ? type : now.module + "." + type);
  made.note = fmt::format("{} at {}", now.name(), to_string(now.where));
  for (std::size_t i = 0; i < outputs; ++i) made.outputs.push_back(shared_.fresh(now.name()));
  graph_.nodes.push_back(made);
  return made.outputs;
}

std::string Writer::cast(const std::string& x, DType dtype) {
  return node("Cast", {x}, {attribute("to", static_cast<std::int64_t>(onnx_type(dtype)))});
}

std::string Writer::scalar(double value, DType dtype) {
  Unobserved unobserved(context());
  NoRecord pause;
  DeviceGuard here(cpu);
  return constant(onnx_tensor({}, full({}, value, {.dtype = dtype})));
}

std::string Writer::number(const std::function<double(std::size_t)>& f, DType dtype) {
  for (std::size_t other = 1; other < runs_.size(); ++other) {
    if (std::bit_cast<std::uint64_t>(f(other)) == std::bit_cast<std::uint64_t>(f(0))) continue;
    for (std::size_t run = 0; run < runs_.size(); ++run)
      if (!(std::abs(f(run)) < 0x1p53) || f(run) != std::trunc(f(run)))
        refuse(
            fmt::format("its number is {} for {} and {} for {}, and would be fixed in the file; compute it with ops "
                        "from the inputs or from io::onnx::size_of",
                        f(0), shared_.axes.sizes_text(0), f(other), shared_.axes.sizes_text(other)));
    std::string counted = size(numbers(f));
    return node("Squeeze", {dtype == DType::i64 ? counted : cast(counted, dtype)});
  }
  return scalar(f(0), dtype);
}

std::string Writer::integers(const std::vector<std::int64_t>& values) {
  OnnxTensor array;
  array.type = OnnxType::i64;
  array.dims = {static_cast<std::int64_t>(values.size())};
  array.bytes.resize(values.size() * sizeof(std::int64_t));
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return constant(std::move(array));
}

std::string Writer::integer(std::int64_t value) {
  OnnxTensor array;
  array.type = OnnxType::i64;
  array.bytes.resize(sizeof value);
  std::memcpy(array.bytes.data(), &value, sizeof value);
  return constant(std::move(array));
}

std::string Writer::constant(OnnxTensor array) {
  std::string key = fmt::format("{}:{}:", static_cast<int>(array.type), fmt::join(array.dims, ","));
  key.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  auto [found, is_new] = shared_.constants.try_emplace(std::move(key));
  if (is_new) {
    found->second = array.name = shared_.fresh("constant");
    shared_.root.initialisers.push_back(std::move(array));
  }
  return found->second;
}

std::string Writer::input_size(std::size_t axis) {
  auto [input, place] = shared_.axes.place(axis);
  std::string& name = shared_.sizes[{{1, 1u << axis}}];
  if (!name.empty()) return name;
  OnnxNode shape;
  shape.type = "Shape";
  shape.name = shared_.fresh("size_of_" + shared_.axes.names()[axis]);
  shape.inputs = {shared_.inputs[input]};
  shape.attributes = {attribute("start", std::int64_t{place}), attribute("end", std::int64_t{place} + 1)};
  shape.outputs = {shared_.fresh(shared_.axes.names()[axis])};
  shared_.root.nodes.push_back(shape);
  return name = shape.outputs[0];
}

std::string Writer::size_from_axes(const std::vector<Term>& terms) {
  if (terms.empty()) return integers({0});
  std::vector<std::pair<std::int64_t, unsigned>> key;
  for (const Term& term : terms) key.emplace_back(term.factor, term.axes);
  if (auto found = shared_.sizes.find(key); found != shared_.sizes.end()) return found->second;
  auto combine = [&](const char* type, const std::string& a, const std::string& b) {
    OnnxNode made;
    made.type = type;
    made.name = shared_.fresh("size");
    made.inputs = {a, b};
    made.outputs = {shared_.fresh("size")};
    shared_.root.nodes.push_back(made);
    return made.outputs[0];
  };
  std::string sum;
  for (const Term& term : terms) {
    std::string product;
    if (term.factor != 1 || term.axes == 0) product = integers({term.factor});
    for (std::size_t axis = 0; axis < shared_.axes.names().size(); ++axis) {
      if (!(term.axes >> axis & 1)) continue;
      std::string size = input_size(axis);
      product = product.empty() ? size : combine("Mul", product, size);
    }
    sum = sum.empty() ? product : combine("Add", sum, product);
  }
  return shared_.sizes[key] = sum;
}

// The size of an axis of a tensor that has these sizes in all runs; empty if there is none.
std::string Writer::size_from_tensor(const Numbers& wanted) {
  auto size_in = [&](ValueId id) -> std::string {
    for (int axis = 0; axis < value(id).tensor.rank(); ++axis)
      if (numbers([&](std::size_t run) { return value(id, run).tensor.size(axis); }) == wanted)
        return node("Shape", {names_.at(id)},
                    {attribute("start", std::int64_t{axis}), attribute("end", std::int64_t{axis} + 1)});
    return {};
  };
  for (ValueId id : step().inputs)
    if (id != no_value && names_.contains(id))
      if (std::string found = size_in(id); !found.empty()) return found;
  std::vector<ValueId> known;
  for (const auto& [id, name] : names_)
    if (value(id).kind != TracedValue::Kind::constant) known.push_back(id);
  std::sort(known.begin(), known.end(), std::greater<>());
  for (ValueId id : known)
    if (std::string found = size_in(id); !found.empty()) return found;
  return {};
}

std::string Writer::size(const Numbers& wanted) {
  if (is_constant(wanted)) return integers({wanted.front()});
  if (auto terms = shared_.axes.fit(wanted)) return size_from_axes(*terms);
  if (std::string found = size_from_tensor(wanted); !found.empty()) return found;
  refuse(fmt::format(
      "a size of it is {} for {} and {} for {}, which is no sum of products of the named axes' sizes, and "
      "no size of a tensor before it",
      wanted.front(), shared_.axes.sizes_text(0), wanted.back(), shared_.axes.sizes_text(runs_.size() - 1)));
}

std::string Writer::sizes(const std::vector<Numbers>& all) {
  if (std::all_of(all.begin(), all.end(), is_constant)) {
    std::vector<std::int64_t> values;
    for (const Numbers& numbers : all) values.push_back(numbers.front());
    return integers(values);
  }
  Names parts;
  for (const Numbers& numbers : all) parts.push_back(size(numbers));
  return parts.size() == 1 ? parts[0] : node("Concat", parts, {attribute("axis", std::int64_t{0})});
}

std::string Writer::reshape(const std::string& x, const std::vector<Numbers>& shape) {
  std::vector<Numbers> target = shape;
  std::vector<std::size_t> varying;
  bool empty = false;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (!is_constant(target[i])) varying.push_back(i);
    for (std::int64_t size : target[i]) empty = empty || size == 0;
  }
  // One size follows from the others.
  if (varying.size() == 1 && !empty) target[varying[0]] = Numbers(runs_.size(), -1);
  return node("Reshape", {x, sizes(target)}, {attribute("allowzero", std::int64_t{1})});
}

std::string Writer::transposed(const std::string& x, std::vector<std::int64_t> axes) {
  return node("Transpose", {x}, {attribute("perm", std::move(axes))});
}

std::string Writer::sliced(const std::string& x, int axis, std::int64_t start, std::int64_t stop) {
  return node("Slice", {x, integers({start}), integers({stop}), integers({axis})});
}

// Ops of constants alone are run now.
bool Writer::is_constant_value(ValueId id, bool& has_parameter) const {
  if (id == no_value) return true;
  if (auto outside = runs_[0]->captured.find(id); outside != runs_[0]->captured.end())
    return outer_->is_constant_value(outside->second, has_parameter);
  const TracedValue& found = value(id);
  if (found.kind == TracedValue::Kind::constant) {
    has_parameter = has_parameter || !found.name.empty();
    return true;
  }
  return false;
}

bool Writer::write_as_constant() {
  const TracedStep& now = step();
  if (now.kind != StepKind::op || is_random(now.op->name) || now.op->writes_part) return false;
  bool has_parameter = false;
  for (ValueId input : now.inputs)
    if (!is_constant_value(input, has_parameter)) return false;
  if (has_parameter && operator_of(now.op->name)) return false;
  for (std::size_t i = 0; i < now.outputs.size(); ++i) {
    if (!has_output(i) || !used_.contains(now.outputs[i])) continue;
    if (is_overwritten(value(now.outputs[i]))) return false;
    for (std::size_t run = 1; run < runs_.size(); ++run)
      if (!same_elements(out(i), out(i, run))) return false;
  }
  for (std::size_t i = 0; i < now.outputs.size(); ++i)
    if (has_output(i) && used_.contains(now.outputs[i])) result(i, constant(onnx_tensor({}, out(i))));
  return true;
}

std::vector<bool> Writer::needed_steps() const {
  const Trace& trace = *runs_[0];
  std::vector<bool> needed(trace.steps.size());
  std::vector<ValueId> waiting = trace.outputs;
  while (!waiting.empty()) {
    ValueId id = waiting.back();
    waiting.pop_back();
    if (id == no_value || trace.captured.contains(id)) continue;
    const TracedValue& found = trace.values[static_cast<std::size_t>(id)];
    if (found.kind != TracedValue::Kind::result || needed[static_cast<std::size_t>(found.step)]) continue;
    const TracedStep& made_by = trace.steps[static_cast<std::size_t>(found.step)];
    needed[static_cast<std::size_t>(found.step)] = true;
    waiting.insert(waiting.end(), made_by.inputs.begin(), made_by.inputs.end());
    if (made_by.body)
      for (const auto& [inside, outside] : made_by.body->captured) waiting.push_back(outside);
  }
  return needed;
}

void Writer::write() {
  const Trace& trace = *runs_[0];
  std::vector<bool> needed = needed_steps();
  used_.insert(trace.outputs.begin(), trace.outputs.end());
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (!needed[i]) continue;
    used_.insert(trace.steps[i].inputs.begin(), trace.steps[i].inputs.end());
    if (trace.steps[i].body)
      for (const auto& [inside, outside] : trace.steps[i].body->captured) used_.insert(outside);
  }
  for (std::size_t i = 0; i < needed.size(); ++i)
    if (needed[i]) write_step(i);
}

// A dropout of probability 0, as models run when they are evaluated.
bool Writer::drops_nothing() const {
  if (std::string_view(step().op->name) != "dropout") return false;
  return numbers([&](std::size_t run) {
           return static_cast<double>(attributes<DrawAttributes>(run).probability) == 0;
         }) == Numbers(runs_.size(), 1);
}

void Writer::write_step(std::size_t index) {
  current_ = index;
  switch (step().kind) {
    case StepKind::size: return write_size(*this);
    case StepKind::scan: return write_scan(*this);
    case StepKind::loop: return write_loop(*this);
    case StepKind::op: break;
  }
  widens_ = false;
  if (write_as_constant()) return;
  const char* op = step().op->name;
  if (drops_nothing()) return result(node("Identity", {in(0)}));
  if (is_random(op)) refuse("it draws random numbers; call the model's eval(), or pass them as an input");
  const Operator* row = operator_of(op);
  if (!row) refuse("ONNX has no counterpart; compute it outside of the exported function, or with other ops");
  // A number of f32 beside halves.
  if (is_elementwise(*step().op) && input_count() > 1)
    for (std::size_t i = 0; i < input_count(); ++i)
      if (is_half(out().dtype()) && tensor(i).dtype() == f32) widen();
  write_op(*this, *row);
}

Writer Writer::body_writer(OnnxGraph& graph) {
  std::vector<const Trace*> bodies;
  for (std::size_t run = 0; run < runs_.size(); ++run) bodies.push_back(step(run).body.get());
  return {shared_, graph, std::move(bodies), this};
}

std::string Writer::output_name(std::size_t output) { return name_of(runs_[0]->outputs[output]); }

}  // namespace reel::io::onnx
