#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <type_traits>

#include <reel/tensor.h>

#include "storage.h"

namespace reel::detail {

class Gradient;
struct Call;

/// How equal calls of different examples may be run as one.
enum class Batching : std::uint8_t {
  elementwise,  ///< any call with the same op, dtypes and attributes: side by side
  stack,        ///< calls of the same shapes: along a new or the leading axis
  gather,       ///< calls that share a table: their indices side by side
  loop,         ///< one after the other
};

/// In which dtype an op runs within an `autocast` scope. f64 and integers stay as they are.
enum class Precision : std::uint8_t {
  promoted,  ///< that of its operands
  low,       ///< the scope's: products
  full,      ///< f32 in place of halves: sums of many terms, and what grows or varies fast
};

/// A set of input numbers below 8.
using InputSet = std::uint8_t;
constexpr InputSet inputs(std::initializer_list<int> numbers) {
  InputSet set = 0;
  for (int number : numbers) set |= static_cast<InputSet>(1 << number);
  return set;
}

/// What is fixed about an op. One static constant each.
struct OpInfo {
  const char* name;
  /// Inputs; -1: any number.
  int arity;
  Batching batching;
  /// Computes `call.outputs`: allocated, unless `call.specs` is empty, when it makes them as views of the inputs.
  void (*forward)(Call& call);
  /// Gives each wanted input its gradient. Null: the op is not differentiable and never recorded.
  void (*gradient)(Gradient& gradient) = nullptr;
  /// Which inputs' gradients need the value of input 0, 1, …. An input is saved only if one of them is tracked.
  InputSet saves_input_for[8] = {};
  /// Which inputs' gradients need the value of output 0, 1, ….
  InputSet saves_output_for[4] = {};
  /// The gradient asks for the shapes of untracked inputs too.
  bool keeps_input_shapes = false;
  /// Outputs, bit by bit, that only the gradient reads. Infinities are ordinary there, and a part may be unwritten.
  std::uint8_t hidden_outputs = 0;
  /// In place, and only a part of the output is written.
  bool writes_part = false;
  Precision precision = Precision::promoted;
};

/// A floating attribute, compared and hashed by its bits.
class FloatBits {
 public:
  FloatBits(double value = 0) { std::memcpy(&bits_, &value, sizeof bits_); }
  operator double() const {
    double value;
    std::memcpy(&value, &bits_, sizeof value);
    return value;
  }

 private:
  std::uint64_t bits_;
};

/// Attributes are copied, compared and hashed byte by byte.
template <class T>
concept Attributes = std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>;

/// Attributes of an op along one axis.
struct AxisAttributes {
  std::int64_t axis;
};

/// One run of an op.
struct Call {
  const OpInfo& op;
  std::span<const Tensor* const> inputs;
  std::span<const std::byte> attribute_bytes;
  std::span<const OutputSpec> specs;
  std::span<Tensor> outputs;
  Location where;

  template <Attributes T>
  const T& attributes() const {
    return *reinterpret_cast<const T*>(attribute_bytes.data());
  }
  const Body& input(int i) const { return inputs[i]->body(); }
  const Body& output(int i = 0) const { return outputs[i].body(); }
  /// Same op, same attributes.
  bool same_kind(const Call& other) const;
};

/// The single door: every op passes it. Runs the op and records it if an input is tracked.
void invoke(Call& call);

/// Runs and records a call here and now: what is left to a lane that has seen it.
void run_and_record(Call& call);

template <Attributes T>
std::span<const std::byte> bytes_of(const T& attributes) {
  return std::as_bytes(std::span(&attributes, 1));
}

/// For an op with one output.
inline Tensor invoke(const OpInfo& op, std::initializer_list<const Tensor*> inputs, const OutputSpec& spec,
                     Location where, std::span<const std::byte> attributes = {}) {
  Tensor output;
  Call call{op, {inputs.begin(), inputs.size()}, attributes, {&spec, 1}, {&output, 1}, where};
  invoke(call);
  return output;
}

/// For an op whose output is a view of its input.
inline Tensor invoke_view(const OpInfo& op, const Tensor& input, Location where,
                          std::span<const std::byte> attributes) {
  Tensor output;
  const Tensor* inputs[] = {&input};
  Call call{op, inputs, attributes, {}, {&output, 1}, where};
  invoke(call);
  return output;
}

}  // namespace reel::detail
