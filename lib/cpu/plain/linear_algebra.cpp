#include "../../kernels/linear_algebra.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>
#include <tuple>
#include <type_traits>

#include <reel/error.h>

#include "../../core/dtype_dispatch.h"
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

// Calls f(range) for pieces of a batch. Returns the first index that fails, −1 if none does.
template <class F>
std::int64_t first_fault(const View& a, F f) {
  std::int64_t count = 1, rows = a.dims[a.rank - 2], columns = a.dims[a.rank - 1];
  for (int axis = 0; axis < a.rank - 2; ++axis) count *= a.dims[axis];
  std::int64_t work = std::max<std::int64_t>(1, rows * columns * std::min(rows, columns));
  std::atomic<std::int64_t> fault{count};
  parallel_for(count, std::max<std::int64_t>(1, parallel_grain / work), [&](std::int64_t begin, std::int64_t end) {
    std::int64_t found = f(MatrixRange{begin, end}), before = fault.load();
    if (found == no_memory) throw std::bad_alloc();
    while (found >= 0 && found < before && !fault.compare_exchange_weak(before, found)) {
    }
  });
  return fault == count ? -1 : fault.load();
}

// Runs a kernel of the module on a batch, which is the operand at `place`. Returns as `first_fault`.
template <auto kernel, int place, class... Operands>
std::int64_t checked(Operands... operands) {
  auto all = std::forward_as_tuple(operands...);
  const View &out = std::get<0>(all), &a = std::get<place>(all);
  if ((out.rank > 0 && out.numel == 0) || a.numel == 0) return -1;
  auto run = decompositions("linear algebra", {}).*kernel;
  return first_fault(a, [&](MatrixRange range) { return run(range, operands...); });
}

// For kernels that cannot fail.
template <auto kernel, int place, class... Operands>
void unchecked(Operands... operands) {
  checked<kernel, place, Operands...>(operands...);
}

// Sets all elements of a result, which is contiguous, as the dispatcher has allocated it.
void set_all(const View& out, double value) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) { std::fill_n(out.as<T>(), out.numel, T(value)); });
}

void determinant(const View& out, const View& a) {
  set_all(out, 1);
  unchecked<&DecompositionsTable::determinant, 1, const View&, const View&>(out, a);
}

void log_determinant(const View& sign, const View& logarithm, const View& a) {
  set_all(sign, 1);
  set_all(logarithm, 0);
  unchecked<&DecompositionsTable::log_determinant, 2, const View&, const View&, const View&>(sign, logarithm, a);
}

void lu(const View& factors, const View& order, const View& a) {
  std::int64_t rows = a.dims[a.rank - 2];
  for (std::int64_t i = 0; i < order.numel; ++i) order.as<std::int64_t>()[i] = i % rows;
  unchecked<&DecompositionsTable::lu, 2, const View&, const View&, const View&>(factors, order, a);
}

constexpr LinearAlgebraKernels linear_algebra_kernels{
    .load = [](const char* op, Location where) { decompositions(op, where); },
    .solve = checked<&DecompositionsTable::solve, 1>,
    .triangular_solve = checked<&DecompositionsTable::triangular_solve, 1>,
    .invert = checked<&DecompositionsTable::invert, 1>,
    .determinant = determinant,
    .log_determinant = log_determinant,
    .cholesky = checked<&DecompositionsTable::cholesky, 1>,
    .lu = lu,
    .qr = unchecked<&DecompositionsTable::qr, 2>,
    .svd = checked<&DecompositionsTable::svd, 3>,
    .eigh = checked<&DecompositionsTable::eigh, 2>,
    .addmm = nullptr,
};

}  // namespace

void fill_linear_algebra(KernelTable& table) { table.linear_algebra = &linear_algebra_kernels; }

}  // namespace reel::detail
