#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "../../core/fail.h"
#include "../../core/op.h"
#include "model.h"
#include "sizes.h"
#include "trace.h"

namespace reel::io::onnx {

constexpr const char* save_name = "io::onnx::save";

using Attributes = std::vector<detail::OnnxAttribute>;
using Names = std::vector<std::string>;

detail::OnnxAttribute attribute(const char* name, std::int64_t value);
detail::OnnxAttribute attribute(const char* name, double value);
detail::OnnxAttribute attribute(const char* name, const char* value);
detail::OnnxAttribute attribute(const char* name, std::vector<std::int64_t> values);
detail::OnnxAttribute attribute(const char* name, std::vector<std::string> values);
detail::OnnxAttribute attribute(const char* name, std::shared_ptr<detail::OnnxGraph> graph);

/// State shared by the writers of a model's graphs.
struct Export {
  detail::OnnxGraph& root;
  const NamedAxes& axes;
  Names inputs;  ///< of the model
  std::unordered_set<std::string> taken = {};
  std::unordered_map<std::string, std::string> constants = {};  ///< elements → name
  std::map<std::vector<std::pair<std::int64_t, unsigned>>, std::string> sizes = {};
  std::size_t count = 0;

  /// A name that nothing has yet: the wanted one, or it with a number.
  std::string fresh(const std::string& wanted);
};

/// Writes the traced steps of one graph as nodes. While a step is written, it gives the operator's function that step's
/// inputs and attributes, in every run, and takes the names of its results.
class Writer {
 public:
  /// `runs`: the traces of one function at the sizes of all runs, which differ in nothing but attributes and sizes.
  Writer(Export& shared, detail::OnnxGraph& graph, std::vector<const Trace*> runs, Writer* outer = nullptr);

  /// Gives an input of the graph its name.
  void name_input(std::size_t input, const std::string& name);
  /// Writes the steps that lead to the outputs.
  void write();
  /// The name of an output of the graph.
  std::string output_name(std::size_t output);
  /// A Writer for the body of the current step, which is a loop.
  Writer body_writer(detail::OnnxGraph& graph);
  Export& shared() { return shared_; }

  // The current step.
  const TracedStep& step(std::size_t run = 0) const;
  std::size_t run_count() const { return runs_.size(); }
  std::size_t input_count() const { return step().inputs.size(); }
  std::size_t output_count() const { return step().outputs.size(); }
  bool has(std::size_t input) const { return input < input_count() && step().inputs[input] != no_value; }
  bool has_output(std::size_t output) const { return output < output_count() && step().outputs[output] != no_value; }
  const Tensor& tensor(std::size_t input, std::size_t run = 0) const;
  const Tensor& out(std::size_t output = 0, std::size_t run = 0) const;
  /// The attributes in one run.
  template <class T>
  const T& attributes(std::size_t run) const {
    return *reinterpret_cast<const T*>(step(run).attributes.data());
  }
  /// The attributes of all runs. Throws: Error, with the op and its line, if they differ.
  template <class T>
  const T& attributes() const {
    if (other_run() > 0) refuse("its options depend on the size of an axis: give constants, or fix the axis");
    return attributes<T>(0);
  }
  /// The first run with other attributes than the run 0; 0 if there is none.
  std::size_t other_run() const;
  /// f(run) of all runs.
  template <class F>
  Numbers numbers(F f) const {
    Numbers found;
    for (std::size_t run = 0; run < runs_.size(); ++run) found.push_back(static_cast<std::int64_t>(f(run)));
    return found;
  }
  Numbers in_size(std::size_t input, int axis) const;
  Numbers out_size(std::size_t output, int axis) const;
  /// A number that all runs have. Throws: Error, with the op and its line, if they differ; `what` is "the window".
  std::int64_t fixed(const Numbers& numbers, const char* what) const;
  /// Throws: Error with the op and its line; a number beside a tensor is named as the op that takes it. `reason` is a clause such as "its windows overlap".
  [[noreturn]] void refuse(const std::string& reason) const;
  /// Throws: Error if an output is used that the operator does not have.
  void refuse_output(std::size_t output, const char* what) const;

  /// From here on, the step computes in f32 in place of a half: `in` converts halves, and `result` rounds. Returns the
  /// dtype in which it computes.
  DType widen();
  /// The name of an input.
  std::string in(std::size_t input);
  /// The name of an input, converted if it has another dtype.
  std::string in_as(std::size_t input, DType dtype);
  /// The name of an input of f32 whose elements are rounded to a half: in the file, if it is a constant.
  std::string in_rounded(std::size_t input, DType half);
  void result(const std::string& name) { result(0, name); }
  void result(std::size_t output, const std::string& name);

  // Nodes and constants.
  std::string node(const char* type, const Names& inputs, const Attributes& attributes = {});
  Names nodes(const char* type, const Names& inputs, std::size_t outputs, const Attributes& attributes = {});
  std::string cast(const std::string& x, DType dtype);
  std::string scalar(double value, DType dtype);
  /// A number f(run) of all runs: a constant, or computed from the named axes if it is whole in each.
  std::string number(const std::function<double(std::size_t run)>& f, DType dtype);
  std::string integers(const std::vector<std::int64_t>& values);
  std::string integer(std::int64_t value);
  std::string constant(detail::OnnxTensor array);
  /// A list of one number in the file: a constant, a function of the named axes, or the size of an axis of a tensor.
  std::string size(const Numbers& numbers);
  std::string sizes(const std::vector<Numbers>& numbers);
  std::vector<Numbers> out_shape(std::size_t output = 0) const;
  std::vector<Numbers> in_shape(std::size_t input) const;
  std::string reshape(const std::string& x, const std::vector<Numbers>& shape);
  std::string transposed(const std::string& x, std::vector<std::int64_t> axes);
  /// x[start:stop] along an axis.
  std::string sliced(const std::string& x, int axis, std::int64_t start, std::int64_t stop);

 private:
  std::string name_of(ValueId id);
  std::string rounded_name(ValueId id, DType half);
  std::string constant_value(ValueId id);
  std::string size_from_axes(const std::vector<Term>& terms);
  std::string size_from_tensor(const Numbers& numbers);
  std::string input_size(std::size_t axis);
  void write_step(std::size_t index);
  bool write_as_constant();
  bool drops_nothing() const;
  bool is_constant_value(ValueId id, bool& has_parameter) const;
  std::vector<bool> needed_steps() const;
  const TracedValue& value(ValueId id, std::size_t run = 0) const {
    return runs_[run]->values[static_cast<std::size_t>(id)];
  }

  Export& shared_;
  detail::OnnxGraph& graph_;
  std::vector<const Trace*> runs_;
  Writer* outer_;
  std::size_t current_ = 0;
  bool widens_ = false;
  std::unordered_map<ValueId, std::string> names_;
  std::unordered_set<ValueId> used_;
  std::map<std::pair<ValueId, DType>, std::string> converted_;
};

struct Operator;
/// The row of the op; null if ONNX has no counterpart.
const Operator* operator_of(std::string_view op);
/// Writes the nodes of the current step's op.
void write_op(Writer& w, const Operator& row);
/// True for ops whose results are drawn at random.
bool is_random(std::string_view op);

void write_size(Writer& w);
void write_scan(Writer& w);
void write_loop(Writer& w);

}  // namespace reel::io::onnx
