#include <algorithm>
#include <cmath>

#include "../../../lib/kernels/formulas/vector_sign.h"
#include "../../../lib/kernels/linear_algebra.h"
#include "../../device/launch.h"
#include "../../libraries/factorise.h"
#include "../../runtime/cuda_kernels.h"
#include "addresses.h"
#include "product.h"

// The library's matrices are column-major: operands and results are transposed. Nothing waits: a matrix that cannot be
// processed is reported as a fault, and its result is unspecified.

namespace reel::detail::inline REEL_TARGET {
namespace {

struct Size {
  std::int64_t count = 1, rows, columns;

  explicit Size(const View& a) : rows(a.dims[a.rank - 2]), columns(a.dims[a.rank - 1]) {
    for (int axis = 0; axis < a.rank - 2; ++axis) count *= a.dims[axis];
  }
  std::int64_t numel() const { return count * rows * columns; }
};

template <class T>
class Array {
 public:
  explicit Array(std::int64_t count) : memory_(sizeof(T) * static_cast<std::size_t>(count)) {}
  T* get() const { return memory_.as<T>(); }

 private:
  Scratch memory_;
};

// Converts (count, rows, columns) from row-major to column-major. For the reverse, a column-major matrix is given as
// (columns, rows). Matrices that `skipped`, unless null, marks become zeros.
template <class To, class From>
struct Turn {
  To* to;
  const From* from;
  std::int64_t rows, columns;
  const int* skipped;

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t area = rows * columns, matrix = i / area, place = i % area;
    bool keeps = !skipped || skipped[matrix] == 0;
    to[matrix * area + place % columns * rows + place / columns] = keeps ? static_cast<To>(from[i]) : To(0);
  }
};

template <class To, class From>
void turn(To* to, const From* from, std::int64_t count, std::int64_t rows, std::int64_t columns,
          const int* skipped = nullptr) {
  for_each(count * rows * columns, Turn<To, From>{to, from, rows, columns, skipped});
}

template <class To, class From>
struct Convert {
  To* to;
  const From* from;
  std::int64_t area;
  const int* skipped;

  REEL_DEVICE void operator()(std::int64_t i) const {
    to[i] = skipped && skipped[i / area] != 0 ? To(0) : static_cast<To>(from[i]);
  }
};

enum class Part : std::uint8_t { all, lower, diagonal };
enum class Finding : std::uint8_t { not_finite, zero, not_positive };

// Sets the flag of a matrix to 1 if a part of it, by rows, contains such an element.
template <class T>
struct Look {
  int* found;
  const T* a;
  std::int64_t rows, columns;
  Part part;
  Finding finding;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    std::int64_t lines = part == Part::diagonal ? 1 : rows, length = part == Part::diagonal ? rows : columns;
    auto partial = group.template per_thread<int>();
    group.each([&](int thread) {
      int any = 0;
      for (std::int64_t place = thread; place < lines * length; place += group.size()) {
        std::int64_t row = part == Part::diagonal ? place : place / columns;
        std::int64_t column = part == Part::diagonal ? place : place % columns;
        if (part == Part::lower && column > row) continue;
        any |= is(a[(group.index() * rows + row) * columns + column]);
      }
      partial[thread] = any;
    });
    int any = group.reduce(partial, [](int left, int right) { return left | right; });
    group.each([&](int thread) {
      if (thread == 0 && any) found[group.index()] = 1;
    });
  }

 private:
  REEL_DEVICE bool is(T x) const {
    switch (finding) {
      case Finding::not_finite: return !(x - x == 0);
      case Finding::zero: return x == 0;
      default: return !(x > 0);
    }
  }
};

template <class T>
void look(int* found, const T* a, const Size& size, Part part, Finding finding) {
  std::int64_t elements = part == Part::diagonal ? size.rows : size.rows * size.columns;
  for_each_group(size.count, threads_for_row(elements), 0, Look<T>{found, a, size.rows, size.columns, part, finding});
}

// Reports the first matrix whose flag is not 0.
struct Report {
  const int* found;
  std::int64_t count;
  Fault fault;
  FaultReporter reporter;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    auto partial = group.template per_thread<std::int64_t>();
    group.each([&](int thread) {
      std::int64_t first = count;
      for (std::int64_t i = thread; i < count && first == count; i += group.size())
        if (found[i] != 0) first = i;
      partial[thread] = first;
    });
    std::int64_t first =
        group.reduce(partial, [](std::int64_t left, std::int64_t right) { return left < right ? left : right; });
    group.each([&](int thread) {
      if (thread == 0 && first < count) reporter.report(fault, first, 0);
    });
  }
};

void report(const int* found, std::int64_t count, Fault fault) {
  for_each_group(1, threads_for_row(count), 0, Report{found, count, fault, fault_reporter()});
}

// Flags of matrices, initially 0.
class Flags {
 public:
  explicit Flags(std::int64_t count) : numbers_(count), count_(count) {
    fill_with_zeros(get(), sizeof(int) * static_cast<std::size_t>(count));
  }
  int* get() const { return numbers_.get(); }
  void report(Fault fault) const { REEL_TARGET::report(get(), count_, fault); }

 private:
  Array<int> numbers_;
  std::int64_t count_;
};

// Calls f with a value of the element type.
template <class F>
void with_element(DType dtype, F f) {
  if (dtype == DType::f64)
    f(0.0);
  else
    f(0.0f);
}

// The factors of matrices.
template <class T>
struct Factors {
  Size size;
  Array<T> elements;
  Array<int> pivots;

  explicit Factors(const View& a)
      : size(a), elements(size.numel()), pivots(size.count * std::min(size.rows, size.columns)) {
    turn(elements.get(), a.as<T>(), size.count, size.rows, size.columns);
    factor_lu(elements.get(), size.rows, size.columns, size.count, pivots.get());
  }
  void report_singular() const {
    Flags singular(size.count);
    look(singular.get(), elements.get(), size, Part::diagonal, Finding::zero);
    singular.report(Fault::singular);
  }
};

std::int64_t solve(const View& out, const View& a, const View& b) {
  if (out.numel == 0) return -1;
  with_element(out.dtype, [&]<class T>(T) {
    Factors<T> factors(a);
    factors.report_singular();
    Size size(b);
    Array<T> right(size.numel());
    turn(right.get(), b.as<T>(), size.count, size.rows, size.columns);
    solve_factored(factors.elements.get(), factors.pivots.get(), right.get(), size.rows, size.columns, size.count);
    turn(out.as<T>(), right.get(), size.count, size.columns, size.rows);
  });
  return -1;
}

template <class T>
struct Identity {
  T* out;
  std::int64_t size;

  REEL_DEVICE void operator()(std::int64_t i) const { out[i] = T(i % (size * size) % (size + 1) == 0 ? 1 : 0); }
};

std::int64_t invert(const View& out, const View& a) {
  if (out.numel == 0) return -1;
  with_element(out.dtype, [&]<class T>(T) {
    Factors<T> factors(a);
    factors.report_singular();
    const Size& size = factors.size;
    Array<T> right(size.numel());
    for_each(size.numel(), Identity<T>{right.get(), size.rows});
    solve_factored(factors.elements.get(), factors.pivots.get(), right.get(), size.rows, size.rows, size.count);
    turn(out.as<T>(), right.get(), size.count, size.rows, size.rows);
  });
  return -1;
}

std::int64_t triangular_solve(const View& out, const View& a, const View& b, TriangleAttributes triangle) {
  if (out.numel == 0) return -1;
  with_element(out.dtype, [&]<class T>(T) {
    Size size(a);
    if (triangle.unit_diagonal == 0) {
      Flags singular(size.count);
      look(singular.get(), a.as<T>(), size, Part::diagonal, Finding::zero);
      singular.report(Fault::singular_triangle);
    }
    copy_on_device(out.data, b.data, sizeof(T) * static_cast<std::size_t>(out.numel));
    solve_triangle(a.as<T>(), out.as<T>(), size.rows, out.dims[out.rank - 1], size.count, triangle);
  });
  return -1;
}

// Run by one thread for each matrix.
template <class T>
struct MultiplyPivots {
  T *determinants, *signs, *logarithms;  // either determinants, or signs and logarithms
  const T* factors;
  const int* pivots;
  std::int64_t n;

  REEL_DEVICE void operator()(std::int64_t i) const {
    T product = 1, sign = 1, sum = 0;
    for (std::int64_t row = 0; row < n; ++row) {
      T pivot = factors[(i * n + row) * n + row];
      if (pivots[i * n + row] != row + 1) sign = -sign;
      product *= pivot;
      sign *= pivot > 0 ? T(1) : pivot < 0 ? T(-1) : pivot;
      if (logarithms) sum += std::log(std::abs(pivot));
      if (pivots[i * n + row] != row + 1) product = -product;
    }
    if (determinants) {
      determinants[i] = product;
    } else {
      signs[i] = sign;
      logarithms[i] = sum;
    }
  }
};

// Run by one thread for each matrix: the order of rows that exchanges lead to.
struct OrderRows {
  std::int64_t* order;
  const int* pivots;
  std::int64_t rows, exchanges;

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t* own = order + i * rows;
    for (std::int64_t row = 0; row < rows; ++row) own[row] = row;
    for (std::int64_t row = 0; row < exchanges; ++row) {
      std::int64_t other = pivots[i * exchanges + row] - 1, moved = own[row];
      own[row] = own[other];
      own[other] = moved;
    }
  }
};

void lu(const View& out, const View& order, const View& a) {
  Size size(a);
  auto order_rows = [&](const int* pivots, std::int64_t exchanges) {
    for_each(size.count, OrderRows{order.as<std::int64_t>(), pivots, size.rows, exchanges});
  };
  if (order.numel == 0) return;
  if (a.numel == 0) return order_rows(nullptr, 0);
  with_element(a.dtype, [&]<class T>(T) {
    Factors<T> factors(a);
    turn(out.as<T>(), factors.elements.get(), size.count, size.columns, size.rows);
    order_rows(factors.pivots.get(), std::min(size.rows, size.columns));
  });
}

template <class T>
struct Fill {
  T* out;
  T value;

  REEL_DEVICE void operator()(std::int64_t i) const { out[i] = value; }
};

void determinant(const View& out, const View& a) {
  with_element(out.dtype, [&]<class T>(T) {
    if (a.numel == 0) return for_each(out.numel, Fill<T>{out.as<T>(), 1});
    Factors<T> factors(a);
    for_each(factors.size.count, MultiplyPivots<T>{out.as<T>(), nullptr, nullptr, factors.elements.get(),
                                                   factors.pivots.get(), factors.size.rows});
  });
}

void log_determinant(const View& sign, const View& logarithm, const View& a) {
  with_element(sign.dtype, [&]<class T>(T) {
    if (a.numel == 0) {
      for_each(sign.numel, Fill<T>{sign.as<T>(), 1});
      return for_each(logarithm.numel, Fill<T>{logarithm.as<T>(), 0});
    }
    Factors<T> factors(a);
    for_each(factors.size.count, MultiplyPivots<T>{nullptr, sign.as<T>(), logarithm.as<T>(), factors.elements.get(),
                                                   factors.pivots.get(), factors.size.rows});
  });
}

// (…, n, n) in row-major order from (…, rows, n): the lower triangle, or the upper one of a column-major matrix.
template <class T>
struct Triangle {
  T* out;
  const T* from;
  std::int64_t rows, n;
  bool upper_of_columns;

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t matrix = i / (n * n), row = i / n % n, column = i % n;
    const T* own = from + matrix * rows * n;
    if (upper_of_columns)
      out[i] = column >= row ? own[column * rows + row] : T(0);
    else
      out[i] = column <= row ? own[row * n + column] : T(0);
  }
};

std::int64_t cholesky(const View& out, const View& a) {
  if (out.numel == 0) return -1;
  with_element(out.dtype, [&]<class T>(T) {
    Size size(a);
    Array<T> factors(size.numel());
    Flags faults(size.count);
    // The lower triangle of a row-major matrix is the upper one of a column-major matrix.
    copy_on_device(factors.get(), a.data, sizeof(T) * static_cast<std::size_t>(size.numel()));
    factor_cholesky(factors.get(), size.rows, size.count, faults.get());
    look(faults.get(), factors.get(), size, Part::diagonal, Finding::not_positive);
    faults.report(Fault::not_positive_definite);
    for_each(size.numel(), Triangle<T>{out.as<T>(), factors.get(), size.rows, size.rows, false});
  });
  return -1;
}

void qr(const View& q, const View& r, const View& a) {
  if (a.numel == 0) return;
  with_element(a.dtype, [&]<class T>(T) {
    Size size(a);
    Array<T> factors(size.numel()), scales(size.count * size.columns);
    turn(factors.get(), a.as<T>(), size.count, size.rows, size.columns);
    factor_qr(factors.get(), scales.get(), size.rows, size.columns, size.count);
    for_each(r.numel, Triangle<T>{r.as<T>(), factors.get(), size.rows, size.columns, true});
    unfold_q(factors.get(), scales.get(), size.rows, size.columns, size.count);
    turn(q.as<T>(), factors.get(), size.count, size.columns, size.rows);
  });
}

// One vector for each of the matrices of a batch.
struct VectorSeries {
  double* first;
  std::int64_t matrix_stride, vector_stride, length, step;

  REEL_DEVICE double* vector(std::int64_t matrix, std::int64_t number) const {
    return first + matrix * matrix_stride + number * vector_stride;
  }
};

// Fixes the signs of vectors and, if there are any, of their partners.
struct TurnVectors {
  VectorSeries vectors, partners;
  std::int64_t per_matrix;

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t matrix = i / per_matrix, number = i % per_matrix;
    double* x = vectors.vector(matrix, number);
    double sign = sign_of_vector(x, vectors.length, vectors.step);
    for (std::int64_t k = 0; k < vectors.length; ++k) x[k * vectors.step] *= sign;
    if (!partners.first) return;
    double* y = partners.vector(matrix, number);
    for (std::int64_t k = 0; k < partners.length; ++k) y[k * partners.step] *= sign;
  }
};

// Singular vectors and eigenvectors of f32 are computed in f64, too, as on the CPU.

std::int64_t svd(const View& u, const View& s, const View& vh, const View& a) {
  if (a.numel == 0) return -1;
  with_element(a.dtype, [&]<class T>(T) {
    Size size(a);
    bool wide = size.columns > size.rows;
    std::int64_t rows = wide ? size.columns : size.rows, n = wide ? size.rows : size.columns, count = size.count;
    Flags faults(count), unsolved(count);
    look(faults.get(), a.as<T>(), size, Part::all, Finding::not_finite);
    faults.report(Fault::not_finite);
    Array<double> given(size.numel()), left(size.numel()), values(count * n), right(count * n * n);
    // A matrix that is wider than high is decomposed as its transpose, whose u is v.
    if (wide)
      for_each(size.numel(), Convert<double, T>{given.get(), a.as<T>(), rows * n, faults.get()});
    else
      turn(given.get(), a.as<T>(), count, rows, n, faults.get());
    factor_svd(given.get(), left.get(), values.get(), right.get(), rows, n, count, unsolved.get());
    unsolved.report(Fault::not_finite);
    for_each(s.numel, Convert<T, double>{s.as<T>(), values.get(), 1, nullptr});
    if (!u.data) return;
    VectorSeries columns{left.get(), rows * n, rows, rows, 1}, lines{right.get(), n * n, 1, n, n};
    for_each(count * n, TurnVectors{wide ? lines : columns, wide ? columns : lines, n});
    if (wide) {
      for_each(vh.numel, Convert<T, double>{vh.as<T>(), left.get(), 1, nullptr});
      for_each(u.numel, Convert<T, double>{u.as<T>(), right.get(), 1, nullptr});
    } else {
      turn(u.as<T>(), left.get(), count, n, rows);
      turn(vh.as<T>(), right.get(), count, n, n);
    }
  });
  return -1;
}

std::int64_t eigh(const View& values, const View& vectors, const View& a) {
  if (a.numel == 0) return -1;
  with_element(a.dtype, [&]<class T>(T) {
    Size size(a);
    std::int64_t n = size.rows, count = size.count;
    Flags faults(count), unsolved(count);
    look(faults.get(), a.as<T>(), size, Part::lower, Finding::not_finite);
    faults.report(Fault::not_finite);
    Array<double> given(size.numel()), rising(count * n);
    turn(given.get(), a.as<T>(), count, n, n, faults.get());
    factor_eigh(given.get(), rising.get(), n, count, unsolved.get());
    unsolved.report(Fault::not_finite);
    for_each(values.numel, Convert<T, double>{values.as<T>(), rising.get(), 1, nullptr});
    if (!vectors.data) return;
    for_each(count * n, TurnVectors{{given.get(), n * n, n, n, 1}, {}, n});
    turn(vectors.as<T>(), given.get(), count, n, n);
  });
  return -1;
}

struct WriteAddresses {
  std::uintptr_t* to;
  std::uintptr_t first, step;

  REEL_DEVICE void operator()(std::int64_t i) const { to[i] = first + static_cast<std::uintptr_t>(i) * step; }
};

}  // namespace

void write_addresses(void* to, const void* first, std::int64_t step, std::int64_t count) {
  for_each(count, WriteAddresses{static_cast<std::uintptr_t*>(to), reinterpret_cast<std::uintptr_t>(first),
                                 static_cast<std::uintptr_t>(step)});
}

void fill_linear_algebra(KernelTable& table) {
  static constexpr LinearAlgebraKernels kernels{
      .load = nullptr,
      .solve = solve,
      .triangular_solve = triangular_solve,
      .invert = invert,
      .determinant = determinant,
      .log_determinant = log_determinant,
      .cholesky = cholesky,
      .lu = lu,
      .qr = qr,
      .svd = svd,
      .eigh = eigh,
      .addmm = add_to_product,
  };
  table.linear_algebra = &kernels;
}

}  // namespace reel::detail::inline REEL_TARGET
