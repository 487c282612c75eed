#include "../../../lib/kernels/optimise.h"

#include "../../device/formula_loop.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

// Calls f(w, gradient, kept…) for each element, `lanes` of them at a time.
template <class F, class T, int kept_count>
struct StepLoop {
  static constexpr int lanes = 16 / sizeof(T);

  using Numbers = decltype(F::n);

  F given;
  const Numbers* recorded;  // null, or the address of numbers that replace those in `given`
  bool aligned;
  std::int64_t count;
  T* values;
  const T* gradient;
  T* kept[kept_count + 1];  // one more than needed, because an array must not be empty

  REEL_DEVICE void operator()(std::int64_t i) const {
    run(recorded ? F{*recorded} : given, i * lanes, std::make_index_sequence<kept_count>());
  }

 private:
  using Some = Pack<T, lanes>;

  template <std::size_t... k>
  REEL_DEVICE void run(const F& f, std::int64_t at, std::index_sequence<k...>) const {
    if (!aligned || count - at < lanes) {
      std::int64_t end = count - at < lanes ? count : at + lanes;
      for (; at < end; ++at) f(values[at], gradient[at], kept[k][at]...);
      return;
    }
    Some w = read(values + at), d = read(gradient + at), more[kept_count + 1];
    ((more[k] = read(kept[k] + at)), ...);
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) f(w.element[lane], d.element[lane], more[k].element[lane]...);
    write(values + at, w);
    (write(kept[k] + at, more[k]), ...);
  }
  REEL_DEVICE static Some read(const T* from) { return *reinterpret_cast<const Some*>(from); }
  REEL_DEVICE static void write(T* to, const Some& some) { *reinterpret_cast<Some*>(to) = some; }
};

bool is_aligned(const void* place) { return reinterpret_cast<std::uintptr_t>(place) % 16 == 0; }

template <class T, class F, int... kept>
void run_step(const F& f, const ParameterSlice& x) {
  using Loop = StepLoop<F, T, sizeof...(kept)>;
  Loop loop{f,
            static_cast<const typename Loop::Numbers*>(x.recorded),
            is_aligned(x.values) && is_aligned(x.gradient),
            x.count,
            static_cast<T*>(x.values),
            static_cast<const T*>(x.gradient),
            {static_cast<T*>(x.kept[kept])...}};
  for (T* place : loop.kept) loop.aligned &= is_aligned(place);
  for_each((x.count + Loop::lanes - 1) / Loop::lanes, loop);
}

// An update step that uses the listed state variables.
template <class F, int... kept>
void step(const ParameterSlice& x, const decltype(F::n)& numbers) {
  if (x.dtype == DType::f32)
    run_step<float, F, kept...>(F{numbers}, x);
  else
    run_step<double, F, kept...>(F{numbers}, x);
}

template <class F, int... kept>
void fill(OptimiserKernels& table, UpdateRow<F, kept...>) {
  kernel_of<F>(table) = step<F, kept...>;
}
template <class... Rows>
void fill_all(OptimiserKernels& table, UpdateList<Rows...>) {
  (fill(table, Rows()), ...);
}

}  // namespace

void fill_device_optimisers(OptimiserKernels& kernels) { fill_all(kernels, UpdateSteps()); }

}  // namespace REEL_TARGET
}  // namespace reel::detail
