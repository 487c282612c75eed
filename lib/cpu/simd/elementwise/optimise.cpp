#include "../../../kernels/formulas/update_step.h"

#include "../instruction_set.h"
#include "optimise.h"

// These loops are memory-bound: Adam on f32 reads 16 bytes of an element and writes 12. Their arithmetic, above all
// roots and divisions, takes less time than that only in vectors, so they are built once per instruction set, in a form
// that g++ and clang vectorise.

namespace reel::detail::inline REEL_TARGET {
namespace {

// Calls f(w, gradient, kept…) for each element; there is one overload for each number of state variables.
template <class T, class F>
void loop(std::int64_t count, F f, T* __restrict w, const T* __restrict d) {
  for (std::int64_t i = 0; i < count; ++i) f(w[i], d[i]);
}
template <class T, class F>
void loop(std::int64_t count, F f, T* __restrict w, const T* __restrict d, T* __restrict a) {
  for (std::int64_t i = 0; i < count; ++i) f(w[i], d[i], a[i]);
}
template <class T, class F>
void loop(std::int64_t count, F f, T* __restrict w, const T* __restrict d, T* __restrict a, T* __restrict b) {
  for (std::int64_t i = 0; i < count; ++i) f(w[i], d[i], a[i], b[i]);
}
template <class T, class F>
void loop(std::int64_t count, F f, T* __restrict w, const T* __restrict d, T* __restrict a, T* __restrict b,
          T* __restrict c) {
  for (std::int64_t i = 0; i < count; ++i) f(w[i], d[i], a[i], b[i], c[i]);
}

// An update step that uses the listed state variables.
template <class F, int... kept>
void step(std::span<const ParameterSlice> slices, const NumbersOf<F>& numbers, const void*) {
  for (const ParameterSlice& x : slices) {
    auto run = [&]<class T>(T*) {
      loop(x.count, F{numbers}, static_cast<T*>(x.values), static_cast<const T*>(x.gradient),
           static_cast<T*>(x.kept[kept])...);
    };
    if (x.dtype == DType::f32)
      run(static_cast<float*>(nullptr));
    else
      run(static_cast<double*>(nullptr));
  }
}

template <class F, int... kept>
void fill(OptimiserKernels& table, UpdateRow<F, NumbersOf<F>, kept...>) {
  kernel_of<F>(table) = step<F, kept...>;
}
template <class... Rows>
void fill_all(OptimiserKernels& table, UpdateList<Rows...>) {
  (fill(table, Rows()), ...);
}

}  // namespace

void fill_optimise(OptimiserKernels& kernels) { fill_all(kernels, formulas::UpdateSteps()); }

}  // namespace reel::detail::inline REEL_TARGET
