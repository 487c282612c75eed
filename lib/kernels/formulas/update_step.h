#pragma once

#include <cmath>

#include "../optimise.h"

// The update steps of the optimisers, for one parameter w with its gradient and its optimiser state.

namespace reel::formulas::inline REEL_TARGET {

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
    v = T(n.momentum) * v + T(n.added) * g;
    w -= T(n.rate) * (T(n.gradient_factor) * g + T(n.state_factor) * v);
  }
};

struct Adam {
  detail::AdamNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& m, T& v) const {
    T g = d + T(n.decay) * w;
    m = T(n.mean_kept) * m + T(n.mean_added) * g;
    v = T(n.square_kept) * v + T(n.square_added) * g * g;
    w = T(n.shrink) * w -
        (T(n.gradient_factor) * g + T(n.state_factor) * m) / (std::sqrt(v) * T(n.root_factor) + T(n.epsilon));
  }
};

struct AmsGrad {
  detail::AdamNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& m, T& v, T& largest) const {
    T g = d + T(n.decay) * w;
    m = T(n.mean_kept) * m + T(n.mean_added) * g;
    v = T(n.square_kept) * v + T(n.square_added) * g * g;
    largest = largest >= v ? largest : v;
    w = T(n.shrink) * w -
        (T(n.gradient_factor) * g + T(n.state_factor) * m) / (std::sqrt(largest) * T(n.root_factor) + T(n.epsilon));
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
    s = T(n.kept) * s + T(n.added) * g * g;
    T step = std::sqrt((a + T(n.epsilon)) / (s + T(n.epsilon))) * g;
    a = T(n.kept) * a + T(n.added) * step * step;
    w -= T(n.rate) * step;
  }
};

struct Rmsprop {
  detail::RMSpropNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& s) const {
    T g = d + T(n.decay) * w;
    s = T(n.kept) * s + T(n.added) * g * g;
    w -= T(n.rate) * g / (std::sqrt(s) + T(n.epsilon));
  }
};

struct RmspropMomentum {
  detail::RMSpropNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& s, T& v) const {
    T g = d + T(n.decay) * w;
    s = T(n.kept) * s + T(n.added) * g * g;
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
    s = T(n.kept) * s + T(n.added) * g * g;
    m = T(n.kept) * m + T(n.added) * g;
    w -= T(n.rate) * g / (std::sqrt(variance(s, m)) + T(n.epsilon));
  }
};

struct RmspropCentredMomentum {
  detail::RMSpropNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& s, T& m, T& v) const {
    T g = d + T(n.decay) * w;
    s = T(n.kept) * s + T(n.added) * g * g;
    m = T(n.kept) * m + T(n.added) * g;
    v = T(n.momentum) * v + g / (std::sqrt(variance(s, m)) + T(n.epsilon));
    w -= T(n.rate) * v;
  }
};

struct Adamax {
  detail::AdamaxNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& m, T& u) const {
    T g = d + T(n.decay) * w;
    m = T(n.mean_kept) * m + T(n.mean_added) * g;
    T before = T(n.largest_kept) * u, now = std::abs(g) + T(n.epsilon);
    u = before >= now ? before : now;
    w -= T(n.rate) * m / u;
  }
};

struct Lion {
  detail::LionNumbers n;
  template <class T>
  REEL_HOST_DEVICE void operator()(T& w, T d, T& m) const {
    T c = T(n.step_kept) * m + T(n.step_added) * d;
    T sign = c > T(0) ? T(1) : (c < T(0) ? T(-1) : c);  // NaN for NaN
    w = T(n.shrink) * w - T(n.rate) * sign;
    m = T(n.mean_kept) * m + T(n.mean_added) * d;
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
    w = T(n.kept) * w + T(n.added) * d;
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

}  // namespace reel::formulas::inline REEL_TARGET
