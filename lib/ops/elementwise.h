#pragma once

#include "../core/invoke_shortly.h"
#include "../core/kernel_table.h"
#include "../tape/gradient.h"
#include "operand.h"

// How elementwise ops check their operands and reach their kernels.

namespace reel::detail {

template <Unary op>
void unary_forward(Call& call) {
  kernels(call.output().device).unary[static_cast<int>(op)](call.output(), call.input(0));
}

template <Binary op>
void binary_forward(Call& call) {
  kernels(call.output().device).binary[static_cast<int>(op)](call.output(), call.input(0), call.input(1));
}

/// What dtypes a binary op takes and gives.
enum class Types { arithmetic, no_bool, floating, comparison };

/// Throws: ShapeError; DTypeError; DeviceError.
Tensor binary_general(const OpInfo& op, const Arg& a, const Arg& b, Types types);

inline bool same_form(const Body& a, const Body& b) {
  if (a.dtype != b.dtype || a.rank != b.rank || a.device != b.device) return false;
  for (int i = 0; i < a.rank; ++i)
    if (a.dims[i] != b.dims[i]) return false;
  return true;
}

/// The same, for what is worth a shorter way where operands are floating, contiguous and of one form.
template <Binary kind>
inline Tensor binary(const OpInfo& op, const Arg& a, const Arg& b, Types types) {
  if (a.is_tensor() && b.is_tensor() && a.tensor()->defined() && b.tensor()->defined()) [[likely]] {
    const Body &x = a.tensor()->body(), &y = b.tensor()->body();
    if (same_form(x, y) && x.contiguous && y.contiguous && is_floating(x.dtype)) [[likely]]
      return invoke_shortly(
          op, a.location(),
          [](const KernelTable& table, const View& out, const View& x, const View& y) {
            run_alike(table, kind, out, x, y);
          },
          *a.tensor(), *b.tensor());
  }
  return binary_general(op, a, b, types);
}

/// The same, by a short way for floating operands of one form.
inline Tensor binary(const OpInfo& op, const Arg& a, const Arg& b, Types types) {
  if (a.is_tensor() && b.is_tensor() && a.tensor()->defined() && b.tensor()->defined()) [[likely]] {
    const Body& x = a.tensor()->body();
    if (same_form(x, b.tensor()->body()) && is_floating(x.dtype)) [[likely]]
      return invoke(op, {a.tensor(), b.tensor()}, {x, types == Types::comparison ? DType::boolean : x.dtype},
                    a.location());
  }
  return binary_general(op, a, b, types);
}

/// Of x's dtype.
Tensor unary(const OpInfo& op, const Arg& x);
/// For functions whose results are not integers: those and bools become f32.
Tensor floating_unary(const OpInfo& op, const Arg& x);
/// The same, for what is worth a shorter way where x is contiguous.
template <Unary kind>
inline Tensor floating_unary(const OpInfo& op, const Arg& x) {
  if (x.is_tensor() && x.tensor()->defined()) [[likely]] {
    const Body& body = x.tensor()->body();
    if (is_floating(body.dtype) && body.contiguous) [[likely]]
      return invoke_shortly(
          op, x.location(),
          [](const KernelTable& table, const View& out, const View& x) { table.unary[static_cast<int>(kind)](out, x); },
          *x.tensor());
  }
  return floating_unary(op, x);
}
/// Throws: DTypeError for bool.
Tensor number_unary(const OpInfo& op, const Arg& x);

/// Gives input i zeros, which can be differentiated in turn.
void give_zeros(Gradient& g, std::size_t i);

}  // namespace reel::detail
