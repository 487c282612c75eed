#include <algorithm>

#include "../../../lib/kernels/formulas/draw.h"
#include "../../device/formula_loop.h"
#include "../../device/random_call.h"
#include "../../runtime/cuda_kernels.h"
#include "../../runtime/faults.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

using namespace formulas;

// Elements are numbered in row-major order; outputs are contiguous.
template <class T, class Draw>
struct Filling {
  T* out;
  DeviceCall call;
  Draw draw;
  REEL_DEVICE void operator()(std::int64_t i) const { out[i] = stored<T>(static_cast<Wide<T>>(draw(call.words(i)))); }
};

template <class T, class Draw>
void fill_typed(const View& out, RandomCall call, Draw draw) {
  for_each(out.numel, Filling<T, Draw>{out.as<T>(), DeviceCall(call), draw});
}

void uniform(const View& out, RandomCall call) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) { fill_typed<T>(out, call, UniformDraw<T>()); });
}

void normal(const View& out, RandomCall call) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) { fill_typed<T>(out, call, NormalDraw<Wide<T>>()); });
}

void gumbel(const View& out, RandomCall call) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) { fill_typed<T>(out, call, GumbelDraw<Wide<T>>()); });
}

void randint(const View& out, std::int64_t low, std::uint64_t count, RandomCall call) {
  IntegerDraw draw{low, count};
  with_integer(out.dtype, [&]<class T>(std::type_identity<T>) { fill_typed<T>(out, call, draw); });
}

// V: the type in which probabilities are compared.
template <class V>
struct Flags {
  bool* out;
  const void* p;
  DType dtype;
  std::int64_t numel, probabilities;
  DeviceCall call;
  FaultReporter reporter;

  REEL_DEVICE void operator()(std::int64_t i) const {
    auto probability = static_cast<double>(load_wide<V>(p, dtype, probabilities == 1 ? 0 : i));
    if (probability >= 0 && probability <= 1) {
      if (i < numel) out[i] = call.words(i).word[0] < threshold_of(probability);
    } else {
      if (i < numel) out[i] = false;
      if (i < probabilities) reporter.report(Fault::probability, 0, 0, probability);
    }
  }
};

bool bernoulli(const View& out, const View& p, RandomCall call, double&) {
  auto run = [&]<class V>(V) {
    for_each(std::max(out.numel, p.numel),
             Flags<V>{out.as<bool>(), p.data, p.dtype, out.numel, p.numel, DeviceCall(call), fault_reporter()});
  };
  if (p.dtype == DType::f64)
    run(0.0);
  else
    run(0.0f);
  return true;
}

template <class T>
struct Dropout {
  T* out;
  const T* x;
  Wide<T> scale;
  std::uint64_t threshold;
  DeviceCall call;
  bool contiguous;
  Offsets<2> offsets;

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t at[2] = {i, i};
    if (!contiguous) offsets.find(i, at);
    bool kept = call.words(i).word[0] >= threshold;
    out[at[0]] = stored<T>(kept ? loaded(x[at[1]]) * scale : Wide<T>(0));
  }
};

void dropout(const View& out, const View& x, double probability, RandomCall call) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    auto scale = static_cast<Wide<T>>(probability < 1 ? 1 / (1 - probability) : 0);
    Dropout<T> dropout{out.as<T>(), x.as<const T>(), scale, threshold_of(probability), DeviceCall(call), true, {}};
    if (!(out.contiguous && x.contiguous) && out.numel > 0) {
      dropout.contiguous = false;
      dropout.offsets = Offsets<2>(Iteration<2>({&out, &x}));
    }
    for_each(out.numel, dropout);
  });
}

}  // namespace

void fill_random(KernelTable& table) {
  table.uniform = uniform;
  table.normal = normal;
  table.gumbel = gumbel;
  table.bernoulli = bernoulli;
  table.randint = randint;
  table.dropout = dropout;
}

}  // namespace reel::detail::inline REEL_TARGET
