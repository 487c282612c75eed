#pragma once

#include <cmath>
#include <type_traits>

#include "../../core/target.h"

// The update steps of the optimisers, for one parameter w with its gradient and its optimiser state, and their list,
// from which each device makes its kernels.

namespace reel::detail {

// The numbers of one step. Everywhere g = gradient + decay · w.

/// v = momentum · v + fresh · g;  w = w − rate (own · g + carried · v)
struct SGDNumbers {
  double decay, momentum, fresh, own, carried, rate;
};
/// m = mean_kept · m + mean_fresh · g;  v = square_kept · v + square_fresh · g²;
/// w = shrink · w − (own · g + carried · m) / (√v · root_factor + epsilon)
struct AdamNumbers {
  double decay, shrink, mean_kept, mean_fresh, square_kept, square_fresh, own, carried, root_factor, epsilon;
};
/// s = s + g²;  w = w − rate · g / (√s + epsilon)
struct AdagradNumbers {
  double decay, rate, epsilon;
};
/// s = kept · s + fresh · g²;  δ = √((a + epsilon) / (s + epsilon)) · g;  a = kept · a + fresh · δ²;  w = w − rate · δ
struct AdadeltaNumbers {
  double decay, kept, fresh, rate, epsilon;
};
/// s = kept · s + fresh · g²;  m = kept · m + fresh · g;  h = g / (√(s − m²) + epsilon);
/// v = momentum · v + h;  w = w − rate · v
struct RMSpropNumbers {
  double decay, kept, fresh, momentum, rate, epsilon;
};
/// m = mean_kept · m + mean_fresh · g;  u = max(largest_kept · u, |g| + epsilon);  w = w − rate · m / u
struct AdamaxNumbers {
  double decay, mean_kept, mean_fresh, largest_kept, rate, epsilon;
};
/// c = step_kept · m + step_fresh · g;  w = shrink · w − rate · sign(c);  m = mean_kept · m + mean_fresh · g, where
/// g is the gradient alone
struct LionNumbers {
  double shrink, step_kept, step_fresh, mean_kept, mean_fresh, rate;
};
/// s = 1 at the first step, else min(grow · s, most), max(shrink · s, least) or s where gradient · b is above, below or at
/// 0;  b = gradient, but 0 where the product is below 0;  w = w − rate · s · sign(b)
struct RpropNumbers {
  double rate, shrink, grow, least, most, first;
};
/// w = kept · w + fresh · gradient
struct AverageNumbers {
  double kept, fresh;
};
/// w = factor · w; the gradient is not read
struct ScaleNumbers {
  double factor;
};
/// w = w cut to [−limit, limit], NaN if it is NaN; the gradient is not read
struct CutNumbers {
  double limit;
};

}  // namespace reel::detail

namespace reel::formulas {
inline namespace REEL_TARGET {

struct Sgd {
  detail::SGDNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d) const {
    w -= T(n.rate) * (d + T(n.decay) * w);
  }
};

struct SgdMomentum {
  detail::SGDNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& v) const {
    T g = d + T(n.decay) * w;
    v = T(n.momentum) * v + T(n.fresh) * g;
    w -= T(n.rate) * (T(n.own) * g + T(n.carried) * v);
  }
};

struct Adam {
  detail::AdamNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& m, T& v) const {
    T g = d + T(n.decay) * w;
    m = T(n.mean_kept) * m + T(n.mean_fresh) * g;
    v = T(n.square_kept) * v + T(n.square_fresh) * g * g;
    w = T(n.shrink) * w - (T(n.own) * g + T(n.carried) * m) / (std::sqrt(v) * T(n.root_factor) + T(n.epsilon));
  }
};

struct AdamLargest {
  detail::AdamNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& m, T& v, T& largest) const {
    T g = d + T(n.decay) * w;
    m = T(n.mean_kept) * m + T(n.mean_fresh) * g;
    v = T(n.square_kept) * v + T(n.square_fresh) * g * g;
    largest = largest >= v ? largest : v;
    w = T(n.shrink) * w - (T(n.own) * g + T(n.carried) * m) / (std::sqrt(largest) * T(n.root_factor) + T(n.epsilon));
  }
};

struct Adagrad {
  detail::AdagradNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& s) const {
    T g = d + T(n.decay) * w;
    s += g * g;
    w -= T(n.rate) * g / (std::sqrt(s) + T(n.epsilon));
  }
};

struct Adadelta {
  detail::AdadeltaNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& s, T& a) const {
    T g = d + T(n.decay) * w;
    s = T(n.kept) * s + T(n.fresh) * g * g;
    T step = std::sqrt((a + T(n.epsilon)) / (s + T(n.epsilon))) * g;
    a = T(n.kept) * a + T(n.fresh) * step * step;
    w -= T(n.rate) * step;
  }
};

struct Rmsprop {
  detail::RMSpropNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& s) const {
    T g = d + T(n.decay) * w;
    s = T(n.kept) * s + T(n.fresh) * g * g;
    w -= T(n.rate) * g / (std::sqrt(s) + T(n.epsilon));
  }
};

struct RmspropMomentum {
  detail::RMSpropNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& s, T& v) const {
    T g = d + T(n.decay) * w;
    s = T(n.kept) * s + T(n.fresh) * g * g;
    v = T(n.momentum) * v + g / (std::sqrt(s) + T(n.epsilon));
    w -= T(n.rate) * v;
  }
};

// s − m², at least 0, because rounding can make it negative; keeps NaN.
template <class T>
REEL_HOST_DEVICE T variance(T s, T m) {
  T difference = s - m * m;
  return difference < T(0) ? T(0) : difference;
}

struct RmspropCentred {
  detail::RMSpropNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& s, T& m) const {
    T g = d + T(n.decay) * w;
    s = T(n.kept) * s + T(n.fresh) * g * g;
    m = T(n.kept) * m + T(n.fresh) * g;
    w -= T(n.rate) * g / (std::sqrt(variance(s, m)) + T(n.epsilon));
  }
};

struct RmspropCentredMomentum {
  detail::RMSpropNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& s, T& m, T& v) const {
    T g = d + T(n.decay) * w;
    s = T(n.kept) * s + T(n.fresh) * g * g;
    m = T(n.kept) * m + T(n.fresh) * g;
    v = T(n.momentum) * v + g / (std::sqrt(variance(s, m)) + T(n.epsilon));
    w -= T(n.rate) * v;
  }
};

struct Adamax {
  detail::AdamaxNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& m, T& u) const {
    T g = d + T(n.decay) * w;
    m = T(n.mean_kept) * m + T(n.mean_fresh) * g;
    T before = T(n.largest_kept) * u, now = std::abs(g) + T(n.epsilon);
    u = before >= now ? before : now;
    w -= T(n.rate) * m / u;
  }
};

struct Lion {
  detail::LionNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& m) const {
    T c = T(n.step_kept) * m + T(n.step_fresh) * d;
    T sign = c > T(0) ? T(1) : (c < T(0) ? T(-1) : c);  // NaN for NaN
    w = T(n.shrink) * w - T(n.rate) * sign;
    m = T(n.mean_kept) * m + T(n.mean_fresh) * d;
  }
};

struct Rprop {
  detail::RpropNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& before, T& s) const {
    T agreement = d * before, grown = T(n.grow) * s, shrunk = T(n.shrink) * s;
    T step = agreement > T(0) ? (grown < T(n.most) ? grown : T(n.most))
                              : (agreement < T(0) ? (shrunk > T(n.least) ? shrunk : T(n.least)) : s);
    s = n.first != 0 ? T(1) : step;
    before = agreement < T(0) ? T(0) : d;
    T sign = before > T(0) ? T(1) : (before < T(0) ? T(-1) : before);  // NaN for NaN
    w -= T(n.rate) * s * sign;
  }
};

struct Average {
  detail::AverageNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d) const {
    w = T(n.kept) * w + T(n.fresh) * d;
  }
};

struct Scale {
  detail::ScaleNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T) const {
    w *= T(n.factor);
  }
};

struct Cut {
  detail::CutNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T) const {
    T most = T(n.limit);
    w = w > most ? most : w < -most ? -most : w;
  }
};

}  // namespace REEL_TARGET
}  // namespace reel::formulas

namespace reel::detail {
inline namespace REEL_TARGET {

/// A formula with the state variables that it takes, in their order, by their places in ParameterSlice::kept.
template <class F, int... kept>
struct UpdateRow {
  using Formula = F;
  using Numbers = decltype(F::n);
};
template <class... Rows>
struct UpdateList {};

// clang-format off
using UpdateSteps = UpdateList<
    UpdateRow<formulas::Sgd>,
    UpdateRow<formulas::SgdMomentum, 0>,
    UpdateRow<formulas::Adam, 0, 1>,
    UpdateRow<formulas::AdamLargest, 0, 1, 2>,
    UpdateRow<formulas::Adagrad, 0>,
    UpdateRow<formulas::Adadelta, 0, 1>,
    UpdateRow<formulas::Rmsprop, 0>,
    UpdateRow<formulas::RmspropMomentum, 0, 2>,
    UpdateRow<formulas::RmspropCentred, 0, 1>,
    UpdateRow<formulas::RmspropCentredMomentum, 0, 1, 2>,
    UpdateRow<formulas::Adamax, 0, 1>,
    UpdateRow<formulas::Lion, 0>,
    UpdateRow<formulas::Rprop, 0, 1>,
    UpdateRow<formulas::Average>,
    UpdateRow<formulas::Scale>,
    UpdateRow<formulas::Cut>>;
// clang-format on

template <class F, class... Rows>
constexpr int find_update(UpdateList<Rows...>) {
  constexpr bool is_it[] = {std::is_same_v<F, typename Rows::Formula>...};
  int place = 0;
  while (!is_it[place]) ++place;
  return place;
}
/// The place of a formula's kernel in OptimiserKernels.
template <class F>
inline constexpr int update_place = find_update<F>(UpdateSteps());

}  // namespace REEL_TARGET
}  // namespace reel::detail
