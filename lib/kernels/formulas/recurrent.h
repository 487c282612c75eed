#pragma once

#include <cstdint>
#include <type_traits>

#include "../recurrent.h"
#include "unary.h"

// The forward and backward formulas of recurrent cells for one row of gate arguments, for scalars and for vectors: `at`
// selects units of the row, and loads and stores them as At::V.

namespace reel::formulas::inline REEL_TARGET {

using detail::RecurrentCell;

/// Pointers into one row. Blocks of gates are `size` elements apart, those of q `q_stride`.
template <class T>
struct CellRow {
  const T *p, *q, *bias, *before;  // bias may be null
  T *h, *work, *c;
  std::int64_t units, size, q_stride;
};

template <class T>
struct CellGradientRow {
  const T *dh, *more_dh, *dc;  // the gradient of h is the sum of the first two; more_dh may be null
  const T *work, *before, *after;
  T *dp, *dq, *d_before;  // d_before may be dc or more_dh
  std::int64_t units, size;
};

template <class V>
REEL_HOST_DEVICE V sigmoid(V x) {
  return Sigmoid()(x);
}

template <class T>
  requires std::is_floating_point_v<T>
REEL_HOST_DEVICE T multiply_add(T a, T b, T c) {
  return a * b + c;
}

template <class T, class At>
REEL_HOST_DEVICE typename At::V gate_argument(const CellRow<T>& row, At at, int gate) {
  typename At::V given = at.load(row.p + gate * row.size);
  if (row.bias) given = given + at.load(row.bias + gate * row.size);
  return given + at.load(row.q + gate * row.q_stride);
}

template <class T, class At>
REEL_HOST_DEVICE typename At::V gradient_of_h(const CellGradientRow<T>& row, At at) {
  return row.more_dh ? at.load(row.dh) + at.load(row.more_dh) : at.load(row.dh);
}

/// A single unit of a row.
template <class T>
struct Unit {
  using V = T;
  std::int64_t column;
  REEL_HOST_DEVICE T load(const T* row) const { return row[column]; }
  REEL_HOST_DEVICE void store(T* row, T value) const { row[column] = value; }
};

template <RecurrentCell cell>
struct Cell;

template <>
struct Cell<RecurrentCell::lstm> {
  template <class T, class At>
  REEL_HOST_DEVICE static void forward(const CellRow<T>& row, At at) {
    using V = typename At::V;
    using std::tanh;
    V i = sigmoid(gate_argument(row, at, 0)), f = sigmoid(gate_argument(row, at, 1));
    V g = tanh(gate_argument(row, at, 2)), o = sigmoid(gate_argument(row, at, 3));
    V c = multiply_add(f, at.load(row.before), i * g);
    at.store(row.work, i);
    at.store(row.work + row.size, f);
    at.store(row.work + 2 * row.size, g);
    at.store(row.work + 3 * row.size, o);
    at.store(row.c, c);
    at.store(row.h, o * tanh(c));
  }

  template <class T, class At>
  REEL_HOST_DEVICE static void backward(const CellGradientRow<T>& row, At at) {
    using V = typename At::V;
    using std::tanh;
    V one(1), dh = gradient_of_h(row, at), shown = tanh(at.load(row.after)), before = at.load(row.before);
    V i = at.load(row.work), f = at.load(row.work + row.size);
    V g = at.load(row.work + 2 * row.size), o = at.load(row.work + 3 * row.size);
    V dc = multiply_add(dh * o, one - shown * shown, at.load(row.dc));
    at.store(row.dp, dc * g * i * (one - i));
    at.store(row.dp + row.size, dc * before * f * (one - f));
    at.store(row.dp + 2 * row.size, dc * i * (one - g * g));
    at.store(row.dp + 3 * row.size, dh * shown * o * (one - o));
    at.store(row.d_before, dc * f);
  }
};

template <>
struct Cell<RecurrentCell::gru> {
  template <class T, class At>
  REEL_HOST_DEVICE static void forward(const CellRow<T>& row, At at) {
    using V = typename At::V;
    using std::tanh;
    V r = sigmoid(gate_argument(row, at, 0)), z = sigmoid(gate_argument(row, at, 1));
    V given = at.load(row.p + 2 * row.size), m = at.load(row.q + 2 * row.q_stride), before = at.load(row.before);
    if (row.bias) {
      given = given + at.load(row.bias + 2 * row.size);
      m = m + at.load(row.bias + 3 * row.size);
    }
    V n = tanh(multiply_add(r, m, given));
    at.store(row.work, r);
    at.store(row.work + row.size, z);
    at.store(row.work + 2 * row.size, n);
    at.store(row.work + 3 * row.size, m);
    at.store(row.h, multiply_add(V(1) - z, n, z * before));
  }

  template <class T, class At>
  REEL_HOST_DEVICE static void backward(const CellGradientRow<T>& row, At at) {
    using V = typename At::V;
    V one(1), dh = gradient_of_h(row, at), before = at.load(row.before);
    V r = at.load(row.work), z = at.load(row.work + row.size);
    V n = at.load(row.work + 2 * row.size), m = at.load(row.work + 3 * row.size);
    V dn = dh * (one - z) * (one - n * n), dz = dh * (before - n) * z * (one - z), dr = dn * m * r * (one - r);
    at.store(row.dp, dr);
    at.store(row.dp + row.size, dz);
    at.store(row.dp + 2 * row.size, dn);
    at.store(row.dq, dr);
    at.store(row.dq + row.size, dz);
    at.store(row.dq + 2 * row.size, dn * r);
    at.store(row.d_before, dh * z);
  }
};

template <>
struct Cell<RecurrentCell::rnn_tanh> {
  template <class T, class At>
  REEL_HOST_DEVICE static void forward(const CellRow<T>& row, At at) {
    using std::tanh;
    at.store(row.h, tanh(gate_argument(row, at, 0)));
  }

  template <class T, class At>
  REEL_HOST_DEVICE static void backward(const CellGradientRow<T>& row, At at) {
    using V = typename At::V;
    V h = at.load(row.after);
    at.store(row.dp, gradient_of_h(row, at) * (V(1) - h * h));
  }
};

template <>
struct Cell<RecurrentCell::rnn_relu> {
  template <class T, class At>
  REEL_HOST_DEVICE static void forward(const CellRow<T>& row, At at) {
    at.store(row.h, Relu()(gate_argument(row, at, 0)));
  }

  template <class T, class At>
  REEL_HOST_DEVICE static void backward(const CellGradientRow<T>& row, At at) {
    using V = typename At::V;
    at.store(row.dp, select(at.load(row.after) == V(0), V(0), gradient_of_h(row, at)));
  }
};

/// A node of a tree, with the members of CellRow. Blocks of gates are `size` elements apart. The gates' arguments are a, or
/// a + p with p of four blocks, i o u f, the last for each child; a may be work, since all is read before it is written.
template <class T>
struct TreeRow {
  const T *a, *p, *before[detail::most_children];  // p may be null
  T *h, *work, *c;
  std::int64_t size;
  int children;

  template <class At>
  REEL_HOST_DEVICE typename At::V argument(At at, int gate) const {
    typename At::V own = at.load(a + gate * size);
    return p ? own + at.load(p + (gate < 3 ? gate : 3) * size) : own;
  }

  template <class At>
  REEL_HOST_DEVICE void forward(At at) const {
    using V = typename At::V;
    using std::tanh;
    V i = sigmoid(argument(at, 0)), o = sigmoid(argument(at, 1)), u = tanh(argument(at, 2)), sum = i * u;
    at.store(work, i);
    at.store(work + size, o);
    at.store(work + 2 * size, u);
    for (int k = 0; k < children; ++k) {
      V f = sigmoid(argument(at, 3 + k));
      at.store(work + (3 + k) * size, f);
      sum = multiply_add(f, at.load(before[k]), sum);
    }
    at.store(c, sum);
    at.store(h, o * tanh(sum));
  }
};

template <class T>
struct TreeGradientRow {
  const T *dh, *dc, *work, *after, *before[detail::most_children];
  T *da, *d_before[detail::most_children];
  std::int64_t size;
  int children;

  template <class At>
  REEL_HOST_DEVICE void backward(At at) const {
    using V = typename At::V;
    using std::tanh;
    V one(1), d = at.load(dh), shown = tanh(at.load(after));
    V i = at.load(work), o = at.load(work + size), u = at.load(work + 2 * size);
    V e = multiply_add(d * o, one - shown * shown, at.load(dc));
    at.store(da, e * u * i * (one - i));
    at.store(da + size, d * shown * o * (one - o));
    at.store(da + 2 * size, e * i * (one - u * u));
    for (int k = 0; k < children; ++k) {
      V f = at.load(work + (3 + k) * size);
      at.store(da + (3 + k) * size, e * at.load(before[k]) * f * (one - f));
      at.store(d_before[k], e * f);
    }
  }
};

}  // namespace reel::formulas::inline REEL_TARGET
