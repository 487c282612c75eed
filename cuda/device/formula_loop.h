#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "../../lib/core/dtype_dispatch.h"
#include "../../lib/kernels/kernel_table.h"
#include "element.h"
#include "launch.h"
#include "offsets.h"
#include "pack.h"

// Turns formulas into kernels. If operands, or rows of them, are contiguous, a thread processes 16 bytes at a time;
// else one element. A formula is compiled once for each type of contiguous elements, and once for each type in which it
// computes otherwise: there halves are distinguished from f32 when they are loaded.

namespace reel::detail::inline REEL_TARGET {

/// Loads an element in the type in which formulas compute; f32 may be a half in memory.
template <class T>
REEL_DEVICE T load_wide(const void* from, DType dtype, std::int64_t at) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == DType::bf16) return loaded(static_cast<const BFloat16*>(from)[at]);
    if (dtype == DType::f16) return loaded(static_cast<const Float16*>(from)[at]);
  }
  return static_cast<const T*>(from)[at];
}

/// out = formula(inputs…), `lanes` elements of a row at a time. An input may be broadcast along its rows, and is f32
/// or a half then, whichever T is.
template <class F, class R, class... T>
struct PackedLoop {
  static constexpr int input_count = sizeof...(T);
  static constexpr std::size_t largest = [] {
    std::size_t size = sizeof(R);
    ((size = sizeof(T) > size ? sizeof(T) : size), ...);
    return size;
  }();
  static constexpr int lanes = static_cast<int>(16 / largest);

  F formula;
  R* out;
  const void* inputs[input_count];
  DType dtypes[input_count];
  bool repeats[input_count];
  /// True if all operands are contiguous; `count` need not be a multiple of the lanes then.
  bool flat;
  std::int64_t count;
  Offsets<input_count + 1> offsets;

  REEL_DEVICE void operator()(std::int64_t i) const { run(i, std::index_sequence_for<T...>()); }

 private:
  template <std::size_t... k>
  REEL_DEVICE void run(std::int64_t i, std::index_sequence<k...>) const {
    std::int64_t at[input_count + 1];
    if (flat) {
      at[0] = i * lanes;
      ((at[k + 1] = repeats[k] ? 0 : at[0]), ...);
    } else {
      offsets.find(i, at);
    }
    if (flat && count - at[0] < lanes)
      for (std::int64_t lane = 0; lane < count - at[0]; ++lane)
        out[at[0] + lane] = stored<R>(formula(element<T>(k, at[k + 1] + (repeats[k] ? 0 : lane))...));
    else
      write(at[0], read<T>(k, at[k + 1])...);
  }

  template <class E>
  REEL_DEVICE Wide<E> element(std::size_t k, std::int64_t at) const {
    return repeats[k] ? load_wide<Wide<E>>(inputs[k], dtypes[k], at) : loaded(static_cast<const E*>(inputs[k])[at]);
  }
  template <class E>
  REEL_DEVICE Pack<Wide<E>, lanes> read(std::size_t k, std::int64_t at) const {
    Pack<Wide<E>, lanes> wide;
    if (repeats[k]) {
      Wide<E> number = element<E>(k, at);
#pragma unroll
      for (Wide<E>& each : wide.element) each = number;
    } else {
      auto pack = *reinterpret_cast<const Pack<E, lanes>*>(static_cast<const E*>(inputs[k]) + at);
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane) wide.element[lane] = loaded(pack.element[lane]);
    }
    return wide;
  }
  template <class... P>
  REEL_DEVICE void write(std::int64_t at, const P&... packs) const {
    Pack<R, lanes> result;
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) result.element[lane] = stored<R>(formula(packs.element[lane]...));
    *reinterpret_cast<Pack<R, lanes>*>(out + at) = result;
  }
};

template <class T>
REEL_DEVICE void store_wide(void* to, DType dtype, std::int64_t at, T value) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == DType::bf16) {
      static_cast<BFloat16*>(to)[at] = stored<BFloat16>(value);
      return;
    }
    if (dtype == DType::f16) {
      static_cast<Float16*>(to)[at] = stored<Float16>(value);
      return;
    }
  }
  static_cast<T*>(to)[at] = value;
}

/// out = formula(inputs…) for any layout, an element at a time.
template <class F, class R, class... T>
struct StridedLoop {
  static constexpr int input_count = sizeof...(T);
  F formula;
  void* out;
  const void* inputs[input_count];
  DType dtypes[input_count + 1];
  Offsets<input_count + 1> offsets;

  REEL_DEVICE void operator()(std::int64_t i) const { run(i, std::index_sequence_for<T...>()); }

 private:
  template <std::size_t... k>
  REEL_DEVICE void run(std::int64_t i, std::index_sequence<k...>) const {
    std::int64_t at[input_count + 1];
    offsets.find(i, at);
    store_wide<R>(out, dtypes[0], at[0], formula(load_wide<T>(inputs[k], dtypes[k + 1], at[k + 1])...));
  }
};

/// Returns true if a view has elements of T, of which `lanes` can be read at a time; only halves and f32 are interchangeable.
template <class T>
bool is_readable(const View& view, int lanes) {
  if constexpr (std::is_same_v<Wide<T>, float>)
    if (view.dtype != dtype_of<T>()) return false;
  return is_aligned<T>(view, lanes);
}

/// Returns true if rows along axis 0 can be read `lanes` elements at a time; `readable`: whether each operand can that is not
/// broadcast along them.
template <int operand_count>
bool is_packable(const Iteration<operand_count>& iteration, int lanes, const bool (&readable)[operand_count]) {
  if (iteration.dims[0] % lanes != 0 || iteration.strides[0][0] != 1) return false;
  for (int k = 0; k < operand_count; ++k) {
    std::int64_t step = iteration.strides[k][0];
    if (step == 0) continue;
    if (step != 1 || !readable[k]) return false;
    for (int axis = 1; axis < iteration.rank; ++axis)
      if (iteration.strides[k][axis] % lanes != 0) return false;
  }
  return true;
}

/// out = formula(inputs…), the inputs broadcast to `out`, which may be one of them. R and T: the types of the elements
/// in memory.
template <class R, class... T, class F>
void run_formula(const F& formula, const View& out, const View* const (&inputs)[sizeof...(T)]) {
  constexpr int input_count = sizeof...(T);
  using Packed = PackedLoop<F, R, T...>;
  constexpr int lanes = Packed::lanes;
  if (out.numel == 0) return;
  Packed packed;
  packed.formula = formula;
  packed.out = out.as<R>();
  packed.count = out.numel;
  packed.flat = out.contiguous;
  bool readable[input_count + 1] = {is_readable<R>(out, lanes)};
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    ((readable[k + 1] = is_readable<T>(*inputs[k], lanes)), ...);
  }(std::index_sequence_for<T...>());
  bool all_readable = readable[0];
  for (int k = 0; k < input_count; ++k) {
    packed.inputs[k] = inputs[k]->data;
    packed.dtypes[k] = inputs[k]->dtype;
    packed.repeats[k] = inputs[k]->numel == 1;
    packed.flat &= packed.repeats[k] || (inputs[k]->contiguous && inputs[k]->numel == out.numel);
    all_readable &= packed.repeats[k] || readable[k + 1];
  }
  if (packed.flat && all_readable) return for_each((out.numel + lanes - 1) / lanes, packed);

  const View* operands[input_count + 1] = {&out};
  for (int k = 0; k < input_count; ++k) operands[k + 1] = inputs[k];
  auto iteration = Iteration<input_count + 1>::in_memory(operands);
  if (is_packable(iteration, lanes, readable)) {
    packed.flat = false;
    iteration.dims[0] /= lanes;
    for (int k = 0; k <= input_count; ++k) {
      if (k > 0) packed.repeats[k - 1] = iteration.strides[k][0] == 0;
      iteration.strides[k][0] *= lanes;
    }
    packed.offsets = Offsets<input_count + 1>(iteration);
    return for_each(out.numel / lanes, packed);
  }

  StridedLoop<F, Wide<R>, Wide<T>...> strided;
  strided.formula = formula;
  strided.out = out.data;
  strided.dtypes[0] = out.dtype;
  for (int k = 0; k < input_count; ++k) {
    strided.inputs[k] = inputs[k]->data;
    strided.dtypes[k + 1] = inputs[k]->dtype;
  }
  strided.offsets = Offsets<input_count + 1>(iteration);
  for_each(out.numel, strided);
}

/// Runs a formula with one dtype throughout, on 1, 2 or 3 inputs of T each.
template <class T, class F>
void run_alike(const F& formula, const View& out, const View& a) {
  run_formula<T, T>(formula, out, {&a});
}
template <class T, class F>
void run_alike(const F& formula, const View& out, const View& a, const View& b) {
  run_formula<T, T, T>(formula, out, {&a, &b});
}
template <class T, class F>
void run_alike(const F& formula, const View& out, const View& a, const View& b, const View& c) {
  run_formula<T, T, T, T>(formula, out, {&a, &b, &c});
}

/// Runs a formula for floating dtypes only.
template <class F, class... Inputs>
void run_floating(const F& formula, const View& out, const Inputs&... inputs) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) { run_alike<T>(formula, out, inputs...); });
}

/// Runs a formula for integers only.
template <class IntegerF, class... Inputs>
void run_integer(const View& out, const Inputs&... inputs) {
  with_integer(out.dtype, [&]<class T>(std::type_identity<T>) { run_alike<T>(IntegerF(), out, inputs...); });
}

/// Runs a formula for floating dtypes, and another one for integers.
template <class F, class IntegerF, class... Inputs>
void run_number(const View& out, const Inputs&... inputs) {
  if (is_floating(out.dtype)) return run_floating(F(), out, inputs...);
  run_integer<IntegerF>(out, inputs...);
}

/// The formula that a device computes; another one where a formula is inexact in f32.
template <class F>
struct DeviceFormula {
  using type = F;
};

/// out = F(inputs…) of bools.
template <class F, class T>
void compare(const View& out, const View& x) {
  run_formula<bool, T>(F(), out, {&x});
}
template <class F, class T>
void compare(const View& out, const View& a, const View& b) {
  run_formula<bool, T, T>(F(), out, {&a, &b});
}

/// The kernel of a row of the list of elementwise kernels, for one or two inputs.
template <class Row, class... Inputs>
void row_kernel(const View& out, const Inputs&... inputs) {
  using F = typename DeviceFormula<typename Row::Formula>::type;
  using IntegerF = typename Row::IntegerFormula;
  const View& first = std::get<0>(std::tie(inputs...));
  if constexpr (Row::operands == Operands::compared) {
    with_type(first.dtype, [&]<class T>(std::type_identity<T>) { compare<F, T>(out, inputs...); });
  } else if constexpr (Row::operands == Operands::floating_compared) {
    // For integers the op computes the result without a kernel.
    with_floating(first.dtype, [&]<class T>(std::type_identity<T>) { compare<F, T>(out, inputs...); });
  } else if constexpr (Row::operands == Operands::floating) {
    run_floating(F(), out, inputs...);
  } else if constexpr (Row::operands == Operands::integers || Row::operands == Operands::integers_and_bools) {
    if constexpr (Row::operands == Operands::integers_and_bools)
      if (out.dtype == DType::boolean) return run_alike<bool>(IntegerF(), out, inputs...);
    run_integer<IntegerF>(out, inputs...);
  } else {
    if constexpr (Row::operands == Operands::numbers_and_bools)
      if (out.dtype == DType::boolean) return run_alike<bool>(IntegerF(), out, inputs...);
    run_number<F, IntegerF>(out, inputs...);
  }
}

template <class... Rows>
void fill_unary_kernels(KernelTable& table, KernelList<Rows...>) {
  ((table.unary[unary_place<typename Rows::Formula>] = row_kernel<Rows>), ...);
}

}  // namespace reel::detail::inline REEL_TARGET
