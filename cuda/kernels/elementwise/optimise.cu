#include "../../../lib/kernels/formulas/update_step.h"

#include <type_traits>
#include <utility>
#include <vector>

#include "../../device/formula_loop.h"
#include "../../device/tensor_parts.h"
#include "../../runtime/cuda_kernels.h"
#include "../reduce/optimise_norm.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

constexpr int step_threads = 256;

// Calls f(w, gradient, kept…) for each element of a chunk of a parameter, `lanes` of them at a time.
template <class F, class T, int kept_count>
struct StepLoop {
  static constexpr int lanes = 16 / sizeof(T), packs = 2;
  static constexpr std::int64_t chunk = std::int64_t{step_threads} * lanes * packs;

  using Numbers = NumbersOf<F>;
  using Part = TensorPart<2 + kept_count>;

  F given;
  const Numbers* recorded;  // null, or the address of numbers that replace those in `given`
  TensorParts<2 + kept_count> parts;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    F f = recorded ? F{*recorded} : given;
    auto found = parts.chunk(parts.number(group.index()), chunk);
    const Part& part = found.part;
    std::int64_t begin = found.begin;
    group.each([&](int thread) {
#pragma unroll
      for (int pack = 0; pack < packs; ++pack)
        run(f, part, begin + (std::int64_t{pack} * step_threads + thread) * lanes,
            std::make_index_sequence<kept_count>());
    });
  }

 private:
  using Some = Pack<T, lanes>;

  template <std::size_t... k>
  REEL_DEVICE static void run(const F& f, const Part& part, std::int64_t at, std::index_sequence<k...>) {
    T *values = static_cast<T*>(part.data[0]), *gradient = static_cast<T*>(part.data[1]);
    T* kept[kept_count + 1] = {static_cast<T*>(part.data[2 + k])...};  // one more, because an array must not be empty
    std::int64_t count = part.count;
    if (!is_aligned(part) || count - at < lanes) {
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
  REEL_DEVICE static bool is_aligned(const Part& part) {
    std::uintptr_t all = 0;
    for (void* data : part.data) all |= reinterpret_cast<std::uintptr_t>(data);
    return all % 16 == 0;
  }
  REEL_DEVICE static Some read(const T* from) { return *reinterpret_cast<const Some*>(from); }
  REEL_DEVICE static void write(T* to, const Some& some) { *reinterpret_cast<Some*>(to) = some; }
};

template <class T, class F, int... kept>
void run_steps(std::span<const ParameterSlice> slices, DType dtype, const F& f, const void* recorded) {
  using Loop = StepLoop<F, T, sizeof...(kept)>;
  std::vector<typename Loop::Part> parts;
  for (const ParameterSlice& x : slices)
    if (x.dtype == dtype) parts.push_back({{x.values, const_cast<void*>(x.gradient), x.kept[kept]...}, x.count});
  divide_into_chunks(parts, Loop::chunk);
  for_each_chunk(parts, step_threads, [&](const auto& some) {
    return Loop{f, static_cast<const typename Loop::Numbers*>(recorded), some};
  });
}

// An update step that uses the listed state variables.
template <class F, int... kept>
void step(std::span<const ParameterSlice> slices, const NumbersOf<F>& numbers, const void* recorded) {
  run_steps<float, F, kept...>(slices, DType::f32, F{numbers}, recorded);
  run_steps<double, F, kept...>(slices, DType::f64, F{numbers}, recorded);
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

void fill_device_optimisers(OptimiserKernels& kernels) {
  fill_all(kernels, formulas::UpdateSteps());
  kernels.norm = norm_of_tensors;
}

}  // namespace reel::detail::inline REEL_TARGET
