#include "../core/kernels/optimise.h"

#include <cmath>

#include "instruction_set.h"
#include "optimise.h"

// These loops are bound by memory: Adam on f32 reads 16 bytes of an element and writes 12. What they compute fits beside
// it only in vectors, roots and divisions above all, so they are built once per instruction set; they are written so that
// g++ and clang vectorise them.

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

// Calls f(w, gradient, kept…) for each element; with another number of kept values it is another loop.
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

// The same in the dtype of the elements, with those kept values that are named.
template <int... kept, class F>
void each(const Descending& x, F f) {
  auto run = [&]<class T>(T*) {
    loop(x.count, f, static_cast<T*>(x.values), static_cast<const T*>(x.gradient), static_cast<T*>(x.kept[kept])...);
  };
  if (x.dtype == DType::f32)
    run(static_cast<float*>(nullptr));
  else
    run(static_cast<double*>(nullptr));
}

template <class Numbers>
Numbers read(const void* numbers) {
  return *static_cast<const Numbers*>(numbers);
}

void sgd(const Descending& x, const void* numbers) {
  each(x, [n = read<SGDNumbers>(numbers)]<class T>(T& w, T d) { w -= T(n.rate) * (d + T(n.decay) * w); });
}

void sgd_momentum(const Descending& x, const void* numbers) {
  each<0>(x, [n = read<SGDNumbers>(numbers)]<class T>(T& w, T d, T& v) {
    T g = d + T(n.decay) * w;
    v = T(n.momentum) * v + T(n.fresh) * g;
    w -= T(n.rate) * (T(n.own) * g + T(n.carried) * v);
  });
}

void adam(const Descending& x, const void* numbers) {
  each<0, 1>(x, [n = read<AdamNumbers>(numbers)]<class T>(T& w, T d, T& m, T& v) {
    T g = d + T(n.decay) * w;
    m = T(n.mean_kept) * m + T(n.mean_fresh) * g;
    v = T(n.square_kept) * v + T(n.square_fresh) * g * g;
    w = T(n.shrink) * w - (T(n.own) * g + T(n.carried) * m) / (std::sqrt(v) * T(n.root_factor) + T(n.epsilon));
  });
}

void adam_largest(const Descending& x, const void* numbers) {
  each<0, 1, 2>(x, [n = read<AdamNumbers>(numbers)]<class T>(T& w, T d, T& m, T& v, T& largest) {
    T g = d + T(n.decay) * w;
    m = T(n.mean_kept) * m + T(n.mean_fresh) * g;
    v = T(n.square_kept) * v + T(n.square_fresh) * g * g;
    largest = largest >= v ? largest : v;
    w = T(n.shrink) * w - (T(n.own) * g + T(n.carried) * m) / (std::sqrt(largest) * T(n.root_factor) + T(n.epsilon));
  });
}

void adagrad(const Descending& x, const void* numbers) {
  each<0>(x, [n = read<AdagradNumbers>(numbers)]<class T>(T& w, T d, T& s) {
    T g = d + T(n.decay) * w;
    s += g * g;
    w -= T(n.rate) * g / (std::sqrt(s) + T(n.epsilon));
  });
}

void adadelta(const Descending& x, const void* numbers) {
  each<0, 1>(x, [n = read<AdadeltaNumbers>(numbers)]<class T>(T& w, T d, T& s, T& a) {
    T g = d + T(n.decay) * w;
    s = T(n.kept) * s + T(n.fresh) * g * g;
    T step = std::sqrt((a + T(n.epsilon)) / (s + T(n.epsilon))) * g;
    a = T(n.kept) * a + T(n.fresh) * step * step;
    w -= T(n.rate) * step;
  });
}

void rmsprop(const Descending& x, const void* numbers) {
  each<0>(x, [n = read<RMSpropNumbers>(numbers)]<class T>(T& w, T d, T& s) {
    T g = d + T(n.decay) * w;
    s = T(n.kept) * s + T(n.fresh) * g * g;
    w -= T(n.rate) * g / (std::sqrt(s) + T(n.epsilon));
  });
}

void rmsprop_momentum(const Descending& x, const void* numbers) {
  each<0, 2>(x, [n = read<RMSpropNumbers>(numbers)]<class T>(T& w, T d, T& s, T& v) {
    T g = d + T(n.decay) * w;
    s = T(n.kept) * s + T(n.fresh) * g * g;
    v = T(n.momentum) * v + g / (std::sqrt(s) + T(n.epsilon));
    w -= T(n.rate) * v;
  });
}

// s − m², which rounding can make negative; NaN stays.
template <class T>
T variance(T s, T m) {
  T difference = s - m * m;
  return difference < T(0) ? T(0) : difference;
}

void rmsprop_centred(const Descending& x, const void* numbers) {
  each<0, 1>(x, [n = read<RMSpropNumbers>(numbers)]<class T>(T& w, T d, T& s, T& m) {
    T g = d + T(n.decay) * w;
    s = T(n.kept) * s + T(n.fresh) * g * g;
    m = T(n.kept) * m + T(n.fresh) * g;
    w -= T(n.rate) * g / (std::sqrt(variance(s, m)) + T(n.epsilon));
  });
}

void rmsprop_centred_momentum(const Descending& x, const void* numbers) {
  each<0, 1, 2>(x, [n = read<RMSpropNumbers>(numbers)]<class T>(T& w, T d, T& s, T& m, T& v) {
    T g = d + T(n.decay) * w;
    s = T(n.kept) * s + T(n.fresh) * g * g;
    m = T(n.kept) * m + T(n.fresh) * g;
    v = T(n.momentum) * v + g / (std::sqrt(variance(s, m)) + T(n.epsilon));
    w -= T(n.rate) * v;
  });
}

void adamax(const Descending& x, const void* numbers) {
  each<0, 1>(x, [n = read<AdamaxNumbers>(numbers)]<class T>(T& w, T d, T& m, T& u) {
    T g = d + T(n.decay) * w;
    m = T(n.mean_kept) * m + T(n.mean_fresh) * g;
    T before = T(n.largest_kept) * u, now = std::abs(g) + T(n.epsilon);
    u = before >= now ? before : now;
    w -= T(n.rate) * m / u;
  });
}

void lion(const Descending& x, const void* numbers) {
  each<0>(x, [n = read<LionNumbers>(numbers)]<class T>(T& w, T d, T& m) {
    T c = T(n.step_kept) * m + T(n.step_fresh) * d;
    T sign = c > T(0) ? T(1) : (c < T(0) ? T(-1) : c);  // of NaN it is NaN
    w = T(n.shrink) * w - T(n.rate) * sign;
    m = T(n.mean_kept) * m + T(n.mean_fresh) * d;
  });
}

void average(const Descending& x, const void* numbers) {
  each(x, [n = read<AverageNumbers>(numbers)]<class T>(T& w, T d) { w = T(n.kept) * w + T(n.fresh) * d; });
}

}  // namespace

void fill_optimise(OptimiserKernels& kernels) {
  kernels = {.sgd = sgd,
             .sgd_momentum = sgd_momentum,
             .adam = adam,
             .adam_largest = adam_largest,
             .adagrad = adagrad,
             .adadelta = adadelta,
             .rmsprop = {{rmsprop, rmsprop_momentum}, {rmsprop_centred, rmsprop_centred_momentum}},
             .adamax = adamax,
             .lion = lion,
             .average = average};
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
