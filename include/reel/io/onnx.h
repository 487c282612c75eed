#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <reel/location.h>
#include <reel/tensor.h>

/// \file
/// Models in ONNX files, which other runtimes load: `save` writes a function of tensors as a graph of ONNX operators
/// (operator set 17, file format 8: ONNX 1.12 of June 2022 and later), `load` runs such a file again. They are in a library
/// of their own, `libreel_onnx.so`: link with `reel_onnx` of pkg-config, or `reel::onnx` of CMake. `reel.h` does not include
/// this header.
///
///     model.eval();
///     io::onnx::save("model.onnx", [&](const Tensor& x) { return model(x); },
///                    {{.name = "x", .example = x, .axes = {"batch", "time", ""}}});
///
/// The function is called several times, at several sizes of the named axes, and the ops of these calls are compared:
/// what is equal in all of them is fixed in the file, and sizes that follow from the named axes are computed there. C++
/// loops and branches are written as they ran; a loop whose count depends on an axis is given as `scan` or `loop`. Calls
/// that read elements which depend on an input are refused, such as `item()`, `pack(x, lengths)` or a layer that is given
/// lengths; a mask as `unsqueeze(arange(x.size(0)), 1) < lengths` is computed in the file.

namespace reel::io::onnx {

/// An input of an exported function.
struct Input {
  std::string name;  ///< in the file
  Tensor example;    ///< of the dtype and rank of all inputs, with sizes at which the function can be called
  /// The names of the axes; an empty one, or one left out at the end, fixes the axis to the example's size. Axes of one
  /// name have one size.
  std::vector<std::string> axes = {};
};

/// Options of `save`.
struct SaveOptions {
  /// The names of the outputs; those left out are "output", or "output_0", "output_1", … if there are several.
  std::vector<std::string> outputs = {};
};

struct Program;

/// A model of an ONNX file, which runs its operators as reel's ops: they can be recorded on tapes, and the arrays of the
/// file are no parameters.
class Model {
 public:
  /// The names of the inputs, in the order in which they are passed.
  const std::vector<std::string>& inputs() const;
  /// The names of the outputs, in the order in which they are returned.
  const std::vector<std::string>& outputs() const;
  /// Computes the outputs.
  /// Throws: Error, with the name of the operator's node, unless there is one tensor for each input, of its dtype and rank
  /// and of its fixed sizes, and for operators whose operands do not fit.
  std::vector<Tensor> operator()(std::span<const Tensor> x, Location where = Location::here()) const;
  /// Computes the only output of one input.
  /// Throws: Error, with the name of the operator's node, unless the model has one input and one output, for an x that does
  /// not fit the input, and for operators whose operands do not fit.
  Tensor operator()(const Tensor& x, Location where = Location::here()) const;

 private:
  friend Model load(const std::string& file, Location where);
  explicit Model(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

  std::shared_ptr<const Program> program_;
};

/// Loads a model from an ONNX file whose operators are those that `save` writes, of operator set 13 to 17. Its arrays take
/// as much memory as the file. Results of operators that enlarge their operand, such as Expand and Pad, have at most 2²⁸
/// elements; how long a model runs is limited by nothing, since a file may hold any loop.
/// Throws: FileError if the file cannot be read, is no ONNX file, is cut off or faulty, or has operators, attributes or
/// element types that are not supported; FileError without libreel_onnx.so; MemoryError if there is not enough memory.
/// Source: ONNX, operator set 17.
Model load(const std::string& file, Location where = Location::here());

/// A function of several tensors with several results.
using Function = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

/// The result of `scan`.
struct ScanResult {
  std::vector<Tensor> state;    ///< after the last step
  std::vector<Tensor> outputs;  ///< those of all steps, stacked along a new axis 0
};

/// The result of a step of `scan`.
struct ScanStep {
  std::vector<Tensor> state;         ///< the next state, of the shapes and dtypes of the given one
  std::vector<Tensor> outputs = {};  ///< of this step, of one shape in all steps
};

/// Runs a step for every index of axis 0 of the inputs: state, outputs_t = step(state, inputs_t). It is a plain loop,
/// which tapes record as its ops; `save` writes it as one Scan node, whatever its length, unless its steps differ.
///
/// inputs: (T, …) each, with T >= 1; state: any shapes.
/// Throws: Error without inputs; ShapeError for inputs of different or no steps; what the step throws.
/// Source: ONNX, operator Scan.
ScanResult scan(const std::function<ScanStep(std::span<const Tensor> state, std::span<const Tensor> inputs)>& step,
                std::vector<Tensor> state, const std::vector<Tensor>& inputs, Location where = Location::here());

/// Runs a body for i = 0, 1, … count − 1: state = body(i, state). It is a plain loop, which tapes record as its ops;
/// `save` writes it as one Loop node, whatever its count. A tree is such a loop over a table of its nodes, children
/// before parents, that reads its children's rows of the state and writes its own.
///
/// count: () i64; i: () i64; state: any shapes, each kept by the body.
/// Throws: DTypeError, ShapeError for another count; what the body throws.
/// Source: ONNX, operator Loop.
std::vector<Tensor> loop(const Tensor& count,
                         const std::function<std::vector<Tensor>(const Tensor& i, std::span<const Tensor> state)>& body,
                         std::vector<Tensor> state, Location where = Location::here());

/// The size of an axis as a tensor () of i64: in an exported function it stays the size of the axis in the file, where
/// the number `x.size(axis)` would be fixed in it unless it is the size of a result.
/// Throws: ShapeError for an axis that x lacks; Error for an undefined x.
Tensor size_of(const Tensor& x, int axis, Location where = Location::here());

/// Writes a function to a file. Nothing is recorded on tapes; parameters of modules become initialisers named by their
/// path in the model, such as "encoder.layers.0.weight". Call the model's `eval()` before.
/// Throws: Error, with the op and its line, for an op that has no counterpart in ONNX, draws random numbers, or has a
/// number fixed in it that depends on the size of a named axis, and for a function that reads elements which depend on an
/// input; for names that are empty or occur twice; FileError if the file cannot be written, would have 2 GiB, or
/// libreel_onnx.so is missing. No file is left then.
/// Source: ONNX, operator set 17.
void save_function(const std::string& file, const Function& f, const std::vector<Input>& inputs,
                   const SaveOptions& options = {}, Location where = Location::here());

}  // namespace reel::io::onnx

namespace reel::detail {

/// Throws: Error unless the count of inputs is that of the parameters of the exported function.
void check_input_count(std::size_t inputs, std::size_t parameters, Location where);

/// Calls f with `count` tensors; its results as a list.
template <class F, std::size_t... places>
std::vector<Tensor> call_with(F& f, std::span<const Tensor> x, std::index_sequence<places...>) {
  using Result = decltype(f(x[places]...));
  if constexpr (std::convertible_to<Result, Tensor>)
    return {f(x[places]...)};
  else
    return f(x[places]...);
}

template <class F, std::size_t... places>
constexpr bool takes_tensors(std::index_sequence<places...>) {
  return std::is_invocable_v<F&, decltype((static_cast<void>(places), std::declval<const Tensor&>()))...>;
}

/// The number of tensors in [1, 8] that F can be called with; 0: another one.
template <class F, std::size_t count = 1>
constexpr std::size_t tensors_taken() {
  if constexpr (count > 8)
    return 0;
  else if constexpr (takes_tensors<F>(std::make_index_sequence<count>()))
    return count;
  else
    return tensors_taken<F, count + 1>();
}

}  // namespace reel::detail

namespace reel::io::onnx {

/// Writes a function to a file: f takes one tensor for each input, or all as `std::span<const Tensor>`, and returns a
/// tensor or a vector of them. Nothing is recorded on tapes; parameters of modules become initialisers named by their
/// path in the model, such as "encoder.layers.0.weight". Call the model's `eval()` before.
/// Throws: Error, with the op and its line, for an op that has no counterpart in ONNX, draws random numbers, or has a
/// number fixed in it that depends on the size of a named axis, and for a function that reads elements which depend on an
/// input; for names that are empty or occur twice; FileError if the file cannot be written, would have 2 GiB, or
/// libreel_onnx.so is missing. No file is left then.
/// Source: ONNX, operator set 17.
template <class F>
void save(const std::string& file, F&& f, const std::vector<Input>& inputs, const SaveOptions& options = {},
          Location where = Location::here()) {
  if constexpr (std::is_invocable_r_v<std::vector<Tensor>, F&, std::span<const Tensor>>) {
    save_function(file, f, inputs, options, where);
  } else {
    constexpr std::size_t count = detail::tensors_taken<F>();
    static_assert(count > 0, "io::onnx::save takes a function of 1 to 8 tensors, or of std::span<const Tensor>");
    save_function(
        file,
        [&](std::span<const Tensor> x) {
          detail::check_input_count(x.size(), count, where);
          return detail::call_with(f, x, std::make_index_sequence<count>());
        },
        inputs, options, where);
  }
}

}  // namespace reel::io::onnx
