#include "../../kernels/linear_algebra.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>

#include <reel/error.h>

#include "../../core/modules/module.h"
#include "../../core/threads/parallel.h"
#include "../cpu_kernels.h"
#include "../decompositions/decompositions_table.h"

// Eigen's templates, which compile for longer than any ten files and are called by few programs, are a module.

namespace reel::detail {
namespace {

const DecompositionsTable& decompositions(const char* op, Location where) {
  return open_module<DecompositionsTable, Error>(op, where);
}

void load_decompositions(const char* op, Location where) { decompositions(op, where); }

template <class T>
Matrices<T> matrices(const View& x) {
  return {x.as<T>(), x.dims[x.rank - 2], x.dims[x.rank - 1]};
}

std::int64_t batch_size(const View& a) {
  std::int64_t count = 1;
  for (int axis = 0; axis < a.rank - 2; ++axis) count *= a.dims[axis];
  return count;
}

// Calls f(kernels of the dtype, range) for all matrices of a batch. Returns the first index that fails, −1 if none does.
template <class F>
std::int64_t first_fault(const View& a, F f) {
  const DecompositionsTable& table = decompositions("linear algebra", {});
  std::int64_t count = batch_size(a), rows = a.dims[a.rank - 2], columns = a.dims[a.rank - 1];
  std::int64_t work = std::max<std::int64_t>(1, rows * columns * std::min(rows, columns));
  std::atomic<std::int64_t> fault{count};
  parallel_for(count, std::max<std::int64_t>(1, parallel_grain / work), [&](std::int64_t begin, std::int64_t end) {
    MatrixRange range{begin, end};
    std::int64_t found = a.dtype == DType::f64 ? f(table.f64, range) : f(table.f32, range);
    if (found == no_memory) throw std::bad_alloc();
    std::int64_t before = fault.load();
    while (found >= 0 && found < before && !fault.compare_exchange_weak(before, found)) {
    }
  });
  return fault == count ? -1 : fault.load();
}

std::int64_t solve(const View& out, const View& a, const View& b) {
  if (out.numel == 0) return -1;
  return first_fault(a, [&]<class T>(const DecompositionKernels<T>& kernels, MatrixRange range) {
    return kernels.solve(matrices<T>(out), matrices<T>(a), matrices<T>(b), range);
  });
}

std::int64_t triangular_solve(const View& out, const View& a, const View& b, TriangleAttributes attributes) {
  if (out.numel == 0) return -1;
  Triangle triangle{attributes.upper != 0, attributes.transposed != 0, attributes.unit_diagonal != 0};
  return first_fault(a, [&]<class T>(const DecompositionKernels<T>& kernels, MatrixRange range) {
    return kernels.triangular_solve(matrices<T>(out), matrices<T>(a), matrices<T>(b), triangle, range);
  });
}

std::int64_t invert(const View& out, const View& a) {
  if (out.numel == 0) return -1;
  return first_fault(a, [&]<class T>(const DecompositionKernels<T>& kernels, MatrixRange range) {
    return kernels.invert(matrices<T>(out), matrices<T>(a), range);
  });
}

void fill_all(const View& x, double value) {
  if (x.dtype == DType::f64)
    std::fill_n(x.as<double>(), x.numel, value);
  else
    std::fill_n(x.as<float>(), x.numel, static_cast<float>(value));
}

void determinant(const View& out, const View& a) {
  if (a.numel == 0) return fill_all(out, 1);
  first_fault(a, [&]<class T>(const DecompositionKernels<T>& kernels, MatrixRange range) {
    return kernels.determinant(out.as<T>(), matrices<T>(a), range);
  });
}

void log_determinant(const View& sign, const View& logarithm, const View& a) {
  if (a.numel == 0) {
    fill_all(sign, 1);
    return fill_all(logarithm, 0);
  }
  first_fault(a, [&]<class T>(const DecompositionKernels<T>& kernels, MatrixRange range) {
    return kernels.log_determinant(sign.as<T>(), logarithm.as<T>(), matrices<T>(a), range);
  });
}

std::int64_t cholesky(const View& out, const View& a) {
  if (out.numel == 0) return -1;
  return first_fault(a, [&]<class T>(const DecompositionKernels<T>& kernels, MatrixRange range) {
    return kernels.cholesky(matrices<T>(out), matrices<T>(a), range);
  });
}

void qr(const View& q, const View& r, const View& a) {
  if (a.numel == 0) return;
  first_fault(a, [&]<class T>(const DecompositionKernels<T>& kernels, MatrixRange range) {
    return kernels.qr(matrices<T>(q), matrices<T>(r), matrices<T>(a), range);
  });
}

std::int64_t svd(const View& u, const View& s, const View& vh, const View& a) {
  if (a.numel == 0) return -1;
  return first_fault(a, [&]<class T>(const DecompositionKernels<T>& kernels, MatrixRange range) {
    return kernels.svd(matrices<T>(u), s.as<T>(), matrices<T>(vh), matrices<T>(a), range);
  });
}

std::int64_t eigh(const View& values, const View& vectors, const View& a) {
  if (a.numel == 0) return -1;
  return first_fault(a, [&]<class T>(const DecompositionKernels<T>& kernels, MatrixRange range) {
    return kernels.eigh(values.as<T>(), matrices<T>(vectors), matrices<T>(a), range);
  });
}

constexpr LinearAlgebraKernels linear_algebra_kernels{
    .load = load_decompositions,
    .solve = solve,
    .triangular_solve = triangular_solve,
    .invert = invert,
    .determinant = determinant,
    .log_determinant = log_determinant,
    .cholesky = cholesky,
    .qr = qr,
    .svd = svd,
    .eigh = eigh,
    .addmm = nullptr,
};

}  // namespace

void fill_linear_algebra(KernelTable& table) { table.linear_algebra = &linear_algebra_kernels; }

}  // namespace reel::detail
