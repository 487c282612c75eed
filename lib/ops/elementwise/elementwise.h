#pragma once

#include "../../dispatch/invoke_shortly.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../joining.h"
#include "../operand.h"

// How elementwise ops check their operands and call their kernels.

namespace reel::detail {

template <class F>
void unary_forward(Call& call) {
  kernels(call.output().device).unary[unary_place<F>](call.output(), call.input(0));
}

template <class F>
void binary_forward(Call& call) {
  kernels(call.output().device).binary[binary_place<F>](call.output(), call.input(0), call.input(1));
}

/// A unary op whose gradient is computed from x, or from y.
template <class F>
constexpr OpInfo unary_by_x(const char* name, void (*gradient)(Gradient& g),
                            Precision precision = Precision::promoted) {
  return {.name = name,
          .forward = unary_forward<F>,
          .gradient = gradient,
          .saves_input_for = {inputs({0})},
          .precision = precision,
          .joining = by_elements};
}
template <class F>
constexpr OpInfo unary_by_y(const char* name, void (*gradient)(Gradient& g),
                            Precision precision = Precision::promoted) {
  return {.name = name,
          .forward = unary_forward<F>,
          .gradient = gradient,
          .saves_output_for = {inputs({0})},
          .precision = precision,
          .joining = by_elements};
}

/// The dtypes that a binary op accepts and returns. A plain number beside halves is rounded to their dtype where the op
/// compares it (`comparison`), or may return it (`extreme`), as PyTorch does; elsewhere it enters in f32.
enum class Types { arithmetic, extreme, no_bool, floating, comparison, integers, integers_and_bools };

/// The operands of a binary op in their common dtype, or in f32: see Types. Throws: ShapeError; DTypeError; DeviceError.
struct BinaryOperands {
  BinaryOperands(const char* op, const Arg& a, const Arg& b, Types types);
  DType dtype;
  Operand a, b;
  /// The shape to which they broadcast.
  Shape shape;
};

/// Checks and runs a binary op on any operands. Throws: ShapeError; DTypeError; DeviceError.
Tensor binary_general(const OpInfo& op, const Arg& a, const Arg& b, Types types);

/// Returns true if an axis of more than one element has stride 0.
bool repeats_elements(const Body& x);

/// `in_order_of` for specs that are not those of a contiguous tensor.
OutputSpec in_order_of_strided(OutputSpec spec, std::initializer_list<const Tensor*> operands);
/// Returns the spec of an elementwise op's result with the order of axes in memory of the first operand that has its shape
/// and repeats no element, or else of the first that has its shape, so that operands of one order are read and written in it.
inline OutputSpec in_order_of(OutputSpec spec, std::initializer_list<const Tensor*> operands) {
  return spec.like ? spec : in_order_of_strided(spec, operands);
}
/// Returns the spec of the result of an elementwise op on x.
inline OutputSpec elementwise_result(const Tensor& x, DType dtype) { return in_order_of({x.body(), dtype}, {&x}); }

inline bool same_shape(const Body& a, const Body& b) {
  for (int i = 0; i < a.rank; ++i)
    if (a.dims[i] != b.dims[i]) return false;
  return true;
}
inline bool same_form(const Body& a, const Body& b) {
  return a.dtype == b.dtype && a.rank == b.rank && a.device == b.device && same_shape(a, b);
}

/// Runs a binary op; operands that are floating, contiguous and of one shape and dtype take an inlined path. Throws: as
/// `binary_general`.
template <class F>
inline Tensor binary(const OpInfo& op, const Arg& a, const Arg& b, Types types) {
  if (a.is_tensor() && b.is_tensor() && a.tensor()->defined() && b.tensor()->defined()) [[likely]] {
    const Body &x = a.tensor()->body(), &y = b.tensor()->body();
    // Members side by side in memory, which are compared at once.
    bool alike = x.dtype == y.dtype && x.rank == y.rank && x.contiguous == y.contiguous && x.device == y.device;
    if (alike && x.contiguous && same_shape(x, y) && is_floating(x.dtype)) [[likely]]
      return invoke_shortly(
          op, a.location(),
          [](const KernelTable& table, const View& out, const View& x, const View& y) {
            run_alike(table, binary_place<F>, out, x, y);
          },
          *a.tensor(), *b.tensor());
  }
  return binary_general(op, a, b, types);
}

/// Runs a binary op; floating operands of one shape and dtype take a shorter path. Throws: as `binary_general`.
inline Tensor binary(const OpInfo& op, const Arg& a, const Arg& b, Types types) {
  if (a.is_tensor() && b.is_tensor() && a.tensor()->defined() && b.tensor()->defined()) [[likely]] {
    const Body& x = a.tensor()->body();
    if (same_form(x, b.tensor()->body()) && is_floating(x.dtype)) [[likely]]
      return invoke(op, {a.tensor(), b.tensor()},
                    in_order_of({x, types == Types::comparison ? DType::boolean : x.dtype}, {a.tensor(), b.tensor()}),
                    a.location());
  }
  return binary_general(op, a, b, types);
}

/// Runs a unary op whose result has x's dtype.
Tensor unary(const OpInfo& op, const Arg& x);
/// Runs a unary op whose results are not integers: integers and bools are converted to f32.
Tensor floating_unary(const OpInfo& op, const Arg& x);
/// Runs a unary op whose results are not integers; contiguous x take an inlined path.
template <class F>
inline Tensor floating_unary(const OpInfo& op, const Arg& x) {
  if (x.is_tensor() && x.tensor()->defined()) [[likely]] {
    const Body& body = x.tensor()->body();
    if (is_floating(body.dtype) && body.contiguous) [[likely]]
      return invoke_shortly(
          op, x.location(),
          [](const KernelTable& table, const View& out, const View& x) { table.unary[unary_place<F>](out, x); },
          *x.tensor());
  }
  return floating_unary(op, x);
}
/// Runs a unary op on numbers. Throws: DTypeError for bool.
Tensor number_unary(const OpInfo& op, const Arg& x);

/// Adds zeros to the gradient of input i, which can be differentiated.
void accumulate_zeros(Gradient& g, std::size_t i);

}  // namespace reel::detail
