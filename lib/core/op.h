#pragma once

#include <cassert>
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

/// How calls of one op are joined, so that they run as one.
struct Joining {
  enum class By : std::uint8_t {
    none,     ///< not at all: each runs alone
    rows,     ///< along axis 0 of the operands, whose indices the op treats one by one; their number may differ
    stacked,  ///< along a new axis 0; the calls agree in the shapes of all operands
  };
  By by = By::none;
  /// Inputs that all the calls have in common, and that are not joined.
  std::uint8_t shared = 0;
  /// By rows: inputs without axis 0, as bits, each of which goes with the only row of its call. They are stacked, unless
  /// all calls have them in common.
  std::uint8_t single = 0;
  /// By rows: where calls differ in a shared input, they are stacked.
  bool or_stacked = false;
  /// By rows: operands and results have different numbers of rows. `OpInfo::run_joined` runs the joined call.
  bool own_rows = false;
  /// Stacked: the operands broadcast. Those that all calls have in common are not joined, and the others get axes of
  /// size 1 behind the new one, up to the rank of the result.
  bool broadcasts = false;
  /// Outputs that the calling function drops, as bits.
  std::uint8_t dropped_outputs = 0;
  /// Stacked: changes the attributes of one call, in place, into those of `count` joined calls. Null: nothing in them
  /// depends on the axes.
  void (*attributes)(std::span<std::byte> attributes, std::int64_t count) = nullptr;
};

/// In which dtype an op runs within an `autocast` scope. f64 and integers stay as they are.
enum class Precision : std::uint8_t {
  promoted,  ///< the dtype of its operands
  low,       ///< the scope's dtype: products
  full,      ///< f32 in place of halves: sums of many terms, and functions that grow or vary fast
};

/// A set of input indices below 8.
using InputSet = std::uint8_t;
constexpr InputSet inputs(std::initializer_list<int> numbers) {
  InputSet set = 0;
  for (int number : numbers) set |= static_cast<InputSet>(1 << number);
  return set;
}

/// The fixed properties of an op; one static constant for each op.
struct OpInfo {
  const char* name;
  /// Computes `call.outputs`. They are allocated, unless `call.specs` is empty: then it makes them, as views of the
  /// inputs.
  void (*forward)(Call& call);
  /// Computes the gradients of the inputs that need one. Null: the op is not differentiable and never recorded.
  void (*gradient)(Gradient& gradient) = nullptr;
  /// Bit k of entry i: the gradient of input k needs the value of input i. An input is saved only if one of these is
  /// tracked.
  InputSet saves_input_for[8] = {};
  /// Bit k of entry i: the gradient of input k needs the value of output i.
  InputSet saves_output_for[4] = {};
  /// The gradient reads the shapes of untracked inputs too.
  bool keeps_input_shapes = false;
  /// Bits of the outputs that only the gradient reads. They may hold infinities, and parts may be unwritten.
  std::uint8_t hidden_outputs = 0;
  /// The op is in place and writes only a part of the output.
  bool writes_part = false;
  Precision precision = Precision::promoted;
  /// How this call can be joined with others of its kind; `by_elements` for elementwise ops. Null: every call runs alone.
  Joining (*joining)(const Call& call) = nullptr;
  /// Runs calls that are joined by rows of their own numbers, with any ops: fills the outputs that are not dropped. `starts`
  /// and `result_starts`: where the rows of each call begin in input 0 and in output 0, and their end.
  void (*run_joined)(Call& joined, std::span<const std::int64_t> starts,
                     std::span<const std::int64_t> result_starts) = nullptr;
  /// Calls that differ in their attributes are joined. The attributes of the joined call are those of all the calls, in order.
  /// Each begins with the number of the call's rows as std::int64_t; 0: all, in a call by itself.
  bool own_attributes = false;
  /// Calls may have a weight in common, which a joined call reads once, or a table.
  bool shares_weight = false;
  /// Returns true if no element of the operands makes `forward` throw, false also for pending ones. Null: none ever does.
  bool (*accepts_elements)(const Call& call) = nullptr;
  /// No public function has this name, or the op is a public one's form for some operands.
  bool internal = false;
  /// The op runs only where a device other than the CPU takes part; tests/cuda has its tests.
  bool needs_device = false;
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

/// One call of an op.
struct Call {
  const OpInfo& op;
  std::span<const Tensor* const> inputs;
  std::span<const std::byte> attribute_bytes;
  std::span<const OutputSpec> specs;
  std::span<Tensor> outputs;
  Location where;

  template <Attributes T>
  const T& attributes() const {
    assert(attribute_bytes.size() == sizeof(T));
    return *reinterpret_cast<const T*>(attribute_bytes.data());
  }
  /// The attributes of each of the calls that are joined here, for an op with `own_attributes`.
  template <Attributes T>
  std::span<const T> attributes_of_calls() const {
    return {reinterpret_cast<const T*>(attribute_bytes.data()), attribute_bytes.size() / sizeof(T)};
  }
  const Body& input(int i) const { return inputs[i]->body(); }
  const Body& output(int i = 0) const { return outputs[i].body(); }
  /// Returns true if the call makes views of a parameter.
  bool views_parameter() const { return specs.empty() && !inputs.empty() && input(0).requires_grad; }
  /// Returns true if both calls have the same op and attributes.
  bool same_kind(const Call& other) const {
    return &op == &other.op && attribute_bytes.size() == other.attribute_bytes.size() &&
           (attribute_bytes.empty() ||
            std::memcmp(attribute_bytes.data(), other.attribute_bytes.data(), attribute_bytes.size()) == 0);
  }
};

template <Attributes T>
std::span<const std::byte> bytes_of(const T& attributes) {
  return std::as_bytes(std::span(&attributes, 1));
}

}  // namespace reel::detail
