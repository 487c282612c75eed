#include <cublas_v2.h>
#include <cusolverDn.h>

#include <algorithm>
#include <string>
#include <vector>

#include <reel/error.h>

#include "../../lib/core/context.h"
#include "../kernels/products/addresses.h"
#include "../runtime/of_queue.h"
#include "factorise.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// Checks the status of the two libraries.
void check(cusolverStatus_t status, const char* call) {
  if (status == CUSOLVER_STATUS_SUCCESS) return;
  throw DeviceError(std::string("cuSOLVER: ") + call + " gave status " + std::to_string(static_cast<int>(status)),
                    context().call_site({}));
}
void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(std::string("cuBLAS: ") + call + " gave \"" + cublasGetStatusString(status) + '"',
                    context().call_site({}));
}

class Solver : Immovable {
 public:
  Solver() {
    check(cusolverDnCreate(&handle_), "cusolverDnCreate");
    check(cusolverDnCreateParams(&parameters_), "cusolverDnCreateParams");
  }
  ~Solver() {
    cusolverDnDestroyParams(parameters_);
    cusolverDnDestroy(handle_);
  }

  cusolverDnHandle_t on_stream() const {
    check(cusolverDnSetStream(handle_, current_stream()), "cusolverDnSetStream");
    return handle_;
  }
  cusolverDnParams_t parameters() const { return parameters_; }

 private:
  cusolverDnHandle_t handle_;
  cusolverDnParams_t parameters_;
};

class Blas : Immovable {
 public:
  Blas() { check(cublasCreate(&handle_), "cublasCreate"); }
  ~Blas() { cublasDestroy(handle_); }

  cublasHandle_t on_stream() const {
    check(cublasSetStream(handle_, current_stream()), "cublasSetStream");
    return handle_;
  }

 private:
  cublasHandle_t handle_;
};

struct Library {
  Solver solver;
  Blas blas;
};

// Matrices up to this size fill a device only in batches.
constexpr std::int64_t most_for_batch = 512;
bool runs_as_batch(std::int64_t n, std::int64_t count) { return count > 1 && n <= most_for_batch; }

// The libraries' kernels have an axis of a grid for the matrices of a batch. Calls f(first, count) for each part of it.
template <class F>
void for_each_part(std::int64_t count, const F& f) {
  constexpr std::int64_t most = 65535;
  for (std::int64_t first = 0; first < count; first += most) f(first, std::min(most, count - first));
}

int as_int(std::int64_t number) { return static_cast<int>(number); }

template <class T>
class Array {
 public:
  explicit Array(std::int64_t count) : memory_(sizeof(T) * static_cast<std::size_t>(count > 0 ? count : 1)) {}
  T* get() const { return memory_.as<T>(); }

 private:
  Scratch memory_;
};

// The addresses of the matrices of a batch, in the device's memory. They are computed there, so that a graph may record it.
template <class T>
class Addresses {
 public:
  Addresses(T* first, std::int64_t area, std::int64_t count) : memory_(count) {
    write_addresses(memory_.get(), first, area * static_cast<std::int64_t>(sizeof(T)), count);
  }
  T** get() const { return memory_.get(); }

 private:
  Array<T*> memory_;
};

// One name for the functions of both element types.
template <class T>
struct Calls;

template <>
struct Calls<float> {
  static constexpr auto lu_size = cusolverDnSgetrf_bufferSize;
  static constexpr auto lu = cusolverDnSgetrf;
  static constexpr auto lu_batch = cublasSgetrfBatched;
  static constexpr auto solve = cusolverDnSgetrs;
  static constexpr auto solve_batch = cublasSgetrsBatched;
  static constexpr auto triangle = cublasStrsm;
  static constexpr auto triangle_batch = cublasStrsmBatched;
  static constexpr auto cholesky_size = cusolverDnSpotrf_bufferSize;
  static constexpr auto cholesky = cusolverDnSpotrf;
  static constexpr auto cholesky_batch = cusolverDnSpotrfBatched;
  static constexpr auto qr_size = cusolverDnSgeqrf_bufferSize;
  static constexpr auto qr = cusolverDnSgeqrf;
  static constexpr auto q_size = cusolverDnSorgqr_bufferSize;
  static constexpr auto q = cusolverDnSorgqr;
};

template <>
struct Calls<double> {
  static constexpr auto lu_size = cusolverDnDgetrf_bufferSize;
  static constexpr auto lu = cusolverDnDgetrf;
  static constexpr auto lu_batch = cublasDgetrfBatched;
  static constexpr auto solve = cusolverDnDgetrs;
  static constexpr auto solve_batch = cublasDgetrsBatched;
  static constexpr auto triangle = cublasDtrsm;
  static constexpr auto triangle_batch = cublasDtrsmBatched;
  static constexpr auto cholesky_size = cusolverDnDpotrf_bufferSize;
  static constexpr auto cholesky = cusolverDnDpotrf;
  static constexpr auto cholesky_batch = cusolverDnDpotrfBatched;
  static constexpr auto qr_size = cusolverDnDgeqrf_bufferSize;
  static constexpr auto qr = cusolverDnDgeqrf;
  static constexpr auto q_size = cusolverDnDorgqr_bufferSize;
  static constexpr auto q = cusolverDnDorgqr;
};

}  // namespace

// The status is ignored: a singular matrix is detected from its factors.
template <class T>
void factor_lu(T* a, std::int64_t rows, std::int64_t n, std::int64_t count, int* pivots) {
  auto& library = of_current_queue<Library>();
  Array<int> faults(count);
  int size = as_int(n), height = as_int(rows);
  if (rows == n && runs_as_batch(n, count)) {
    Addresses<T> matrices(a, n * n, count);
    return for_each_part(count, [&](std::int64_t first, std::int64_t part) {
      check(Calls<T>::lu_batch(library.blas.on_stream(), size, matrices.get() + first, size, pivots + first * n,
                               faults.get() + first, as_int(part)),
            "cublas<t>getrfBatched");
    });
  }
  cusolverDnHandle_t handle = library.solver.on_stream();
  int work = 0;
  check(Calls<T>::lu_size(handle, height, size, a, height, &work), "cusolverDn<t>getrf_bufferSize");
  Array<T> workspace(work);
  for (std::int64_t i = 0; i < count; ++i)
    check(Calls<T>::lu(handle, height, size, a + i * rows * n, height, workspace.get(), pivots + i * std::min(rows, n),
                       faults.get() + i),
          "cusolverDn<t>getrf");
}

template <class T>
void solve_factored(const T* factors, const int* pivots, T* right, std::int64_t n, std::int64_t columns,
                    std::int64_t count) {
  auto& library = of_current_queue<Library>();
  int size = as_int(n), sides = as_int(columns);
  if (runs_as_batch(n, count)) {
    Addresses<const T> matrices(factors, n * n, count);
    Addresses<T> solutions(right, n * columns, count);
    int wrong_argument = 0;
    return for_each_part(count, [&](std::int64_t first, std::int64_t part) {
      check(Calls<T>::solve_batch(library.blas.on_stream(), CUBLAS_OP_N, size, sides, matrices.get() + first, size,
                                  pivots + first * n, solutions.get() + first, size, &wrong_argument, as_int(part)),
            "cublas<t>getrsBatched");
    });
  }
  cusolverDnHandle_t handle = library.solver.on_stream();
  Array<int> wrong_argument(1);
  for (std::int64_t i = 0; i < count; ++i)
    check(Calls<T>::solve(handle, CUBLAS_OP_N, size, sides, factors + i * n * n, size, pivots + i * n,
                          right + i * n * columns, size, wrong_argument.get()),
          "cusolverDn<t>getrs");
}

// A row-major matrix is the transpose of the one that the library sees: instead of op(a) x = b it solves xᵀ op(a)ᵀ =
// bᵀ, with aᵀ for a.
template <class T>
void solve_triangle(const T* a, T* right, std::int64_t n, std::int64_t columns, std::int64_t count,
                    TriangleAttributes triangle) {
  cublasHandle_t handle = of_current_queue<Library>().blas.on_stream();
  cublasFillMode_t part = triangle.upper != 0 ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
  cublasOperation_t operation = triangle.transposed != 0 ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasDiagType_t diagonal = triangle.unit_diagonal != 0 ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
  int size = as_int(n), sides = as_int(columns);
  T one = 1;
  if (runs_as_batch(n, count)) {
    Addresses<const T> matrices(a, n * n, count);
    Addresses<T> solutions(right, n * columns, count);
    return for_each_part(count, [&](std::int64_t first, std::int64_t matrix_count) {
      check(
          Calls<T>::triangle_batch(handle, CUBLAS_SIDE_RIGHT, part, operation, diagonal, sides, size, &one,
                                   matrices.get() + first, size, solutions.get() + first, sides, as_int(matrix_count)),
          "cublas<t>trsmBatched");
    });
  }
  for (std::int64_t i = 0; i < count; ++i)
    check(Calls<T>::triangle(handle, CUBLAS_SIDE_RIGHT, part, operation, diagonal, sides, size, &one, a + i * n * n,
                             size, right + i * n * columns, sides),
          "cublas<t>trsm");
}

template <class T>
void factor_cholesky(T* a, std::int64_t n, std::int64_t count, int* faults) {
  cusolverDnHandle_t handle = of_current_queue<Library>().solver.on_stream();
  int size = as_int(n);
  if (runs_as_batch(n, count)) {
    Addresses<T> matrices(a, n * n, count);
    return for_each_part(count, [&](std::int64_t first, std::int64_t part) {
      check(Calls<T>::cholesky_batch(handle, CUBLAS_FILL_MODE_UPPER, size, matrices.get() + first, size, faults + first,
                                     as_int(part)),
            "cusolverDn<t>potrfBatched");
    });
  }
  int work = 0;
  check(Calls<T>::cholesky_size(handle, CUBLAS_FILL_MODE_UPPER, size, a, size, &work), "cusolverDn<t>potrf_bufferSize");
  Array<T> workspace(work);
  for (std::int64_t i = 0; i < count; ++i)
    check(Calls<T>::cholesky(handle, CUBLAS_FILL_MODE_UPPER, size, a + i * n * n, size, workspace.get(), work,
                             faults + i),
          "cusolverDn<t>potrf");
}

template <class T>
void factor_qr(T* a, T* scales, std::int64_t rows, std::int64_t n, std::int64_t count) {
  cusolverDnHandle_t handle = of_current_queue<Library>().solver.on_stream();
  int height = as_int(rows), width = as_int(n), work = 0;
  check(Calls<T>::qr_size(handle, height, width, a, height, &work), "cusolverDn<t>geqrf_bufferSize");
  Array<T> workspace(work);
  Array<int> wrong_argument(1);
  for (std::int64_t i = 0; i < count; ++i)
    check(Calls<T>::qr(handle, height, width, a + i * rows * n, height, scales + i * n, workspace.get(), work,
                       wrong_argument.get()),
          "cusolverDn<t>geqrf");
}

template <class T>
void unfold_q(T* a, const T* scales, std::int64_t rows, std::int64_t n, std::int64_t count) {
  cusolverDnHandle_t handle = of_current_queue<Library>().solver.on_stream();
  int height = as_int(rows), width = as_int(n), work = 0;
  check(Calls<T>::q_size(handle, height, width, width, a, height, scales, &work), "cusolverDn<t>orgqr_bufferSize");
  Array<T> workspace(work);
  Array<int> wrong_argument(1);
  for (std::int64_t i = 0; i < count; ++i)
    check(Calls<T>::q(handle, height, width, width, a + i * rows * n, height, scales + i * n, workspace.get(), work,
                      wrong_argument.get()),
          "cusolverDn<t>orgqr");
}

void factor_svd(double* a, double* u, double* s, double* vt, std::int64_t rows, std::int64_t n, std::int64_t count,
                int* faults) {
  cusolverDnHandle_t handle = of_current_queue<Library>().solver.on_stream();
  int height = as_int(rows), width = as_int(n), work = 0;
  check(cusolverDnDgesvd_bufferSize(handle, height, width, &work), "cusolverDnDgesvd_bufferSize");
  Array<double> workspace(work), unconverged(n);
  for (std::int64_t i = 0; i < count; ++i)
    check(cusolverDnDgesvd(handle, 'S', 'S', height, width, a + i * rows * n, height, s + i * n, u + i * rows * n,
                           height, vt + i * n * n, width, workspace.get(), work, unconverged.get(), faults + i),
          "cusolverDnDgesvd");
}

#if CUSOLVER_VER_MAJOR >= 12
static void factor_eigh_batch(const Solver& solver, double* a, double* values, std::int64_t n, std::int64_t count,
                              int* faults) {
  constexpr cusolverEigMode_t vectors = CUSOLVER_EIG_MODE_VECTOR;
  constexpr cublasFillMode_t part = CUBLAS_FILL_MODE_LOWER;
  constexpr cudaDataType type = CUDA_R_64F;
  cusolverDnHandle_t handle = solver.on_stream();
  std::size_t on_device = 0, on_host = 0;
  check(cusolverDnXsyevBatched_bufferSize(handle, solver.parameters(), vectors, part, n, type, a, n, type, values, type,
                                          &on_device, &on_host, count),
        "cusolverDnXsyevBatched_bufferSize");
  Array<char> workspace(static_cast<std::int64_t>(on_device));
  std::vector<char> host_workspace(on_host);
  check(cusolverDnXsyevBatched(handle, solver.parameters(), vectors, part, n, type, a, n, type, values, type,
                               workspace.get(), on_device, host_workspace.data(), on_host, faults, count),
        "cusolverDnXsyevBatched");
}
#endif

void factor_eigh(double* a, double* values, std::int64_t n, std::int64_t count, int* faults) {
  const Solver& solver = of_current_queue<Library>().solver;
  cusolverDnHandle_t handle = solver.on_stream();
#if CUSOLVER_VER_MAJOR >= 12
  if (runs_as_batch(n, count)) return factor_eigh_batch(solver, a, values, n, count, faults);
#endif
  int size = as_int(n), work = 0;
  check(cusolverDnDsyevd_bufferSize(handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, size, a, size, values,
                                    &work),
        "cusolverDnDsyevd_bufferSize");
  Array<double> workspace(work);
  for (std::int64_t i = 0; i < count; ++i)
    check(cusolverDnDsyevd(handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, size, a + i * n * n, size,
                           values + i * n, workspace.get(), work, faults + i),
          "cusolverDnDsyevd");
}

template void factor_lu(float*, std::int64_t, std::int64_t, std::int64_t, int*);
template void factor_lu(double*, std::int64_t, std::int64_t, std::int64_t, int*);
template void solve_factored(const float*, const int*, float*, std::int64_t, std::int64_t, std::int64_t);
template void solve_factored(const double*, const int*, double*, std::int64_t, std::int64_t, std::int64_t);
template void solve_triangle(const float*, float*, std::int64_t, std::int64_t, std::int64_t, TriangleAttributes);
template void solve_triangle(const double*, double*, std::int64_t, std::int64_t, std::int64_t, TriangleAttributes);
template void factor_cholesky(float*, std::int64_t, std::int64_t, int*);
template void factor_cholesky(double*, std::int64_t, std::int64_t, int*);
template void factor_qr(float*, float*, std::int64_t, std::int64_t, std::int64_t);
template void factor_qr(double*, double*, std::int64_t, std::int64_t, std::int64_t);
template void unfold_q(float*, const float*, std::int64_t, std::int64_t, std::int64_t);
template void unfold_q(double*, const double*, std::int64_t, std::int64_t, std::int64_t);

}  // namespace reel::detail::inline REEL_TARGET
