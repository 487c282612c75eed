#include <cublas_v2.h>
#include <cusolverDn.h>

#include <algorithm>
#include <memory>

#include "record.h"
#include "streams.h"

// cuBLAS, cuSOLVER and cuSPARSE: each call checks the memory that it would read and write.

using namespace reel_test::stand_in;

namespace {

struct Handle {
  int device;
  cudaStream_t stream = nullptr;
};

template <class T>
T made_handle() {
  return reinterpret_cast<T>(new Handle{current_device()});
}
template <class T>
Handle& as_handle(T handle) {
  return *reinterpret_cast<Handle*>(handle);
}
template <class T>
void free_handle(T handle) {
  std::unique_ptr<Handle> freed(&as_handle(handle));
}
template <class T>
void set_stream(T handle, cudaStream_t stream, const char* library) {
  if (stream->device != as_handle(handle).device) violation("{}: a handle gets a stream of another device", library);
  as_handle(handle).stream = stream;
}

// One call of a library, with the memory that it uses.
class Call {
 public:
  template <class T>
  Call(T handle, const char* name) : lock_(mutex()), name_(name) {
    count(name);
    stream_ = queue_work(as_handle(handle).stream, name);
  }
  template <class T>
  Call& uses(const T* memory, std::int64_t elements) {
    if (stream_ && elements > 0) use_extent(*stream_, memory, static_cast<std::size_t>(elements) * sizeof(T), name_);
    return *this;
  }
  Call& uses_bytes(const void* memory, std::size_t bytes) {
    return uses(static_cast<const char*>(memory), static_cast<std::int64_t>(bytes));
  }
  Call& wants(bool holds, const char* condition) {
    if (!holds) violation("{}: {} does not hold", name_, condition);
    return *this;
  }

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  const char* name_;
  CUstream_st* stream_;
};

constexpr int most_batch = 65535, work_elements = 4096;

template <class T>
cublasStatus_t lu_batch(cublasHandle_t handle, int n, T* const a[], int lead, int* pivots, int* faults, int batch) {
  Call(handle, "cublas<t>getrfBatched")
      .wants(batch <= most_batch, "a batch of at most 65535")
      .wants(lead >= n, "lda >= n")
      .uses(a, batch)
      .uses(pivots, std::int64_t{n} * batch)
      .uses(faults, batch);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
cublasStatus_t solve_batch(cublasHandle_t handle, int n, int, const T* const a[], int lead, const int* pivots,
                           T* const b[], int lead_b, int* fault, int batch) {
  Call(handle, "cublas<t>getrsBatched")
      .wants(batch <= most_batch, "a batch of at most 65535")
      .wants(lead >= n && lead_b >= n, "lda >= n and ldb >= n")
      .wants(fault != nullptr, "info on the CPU")
      .uses(a, batch)
      .uses(b, batch)
      .uses(pivots, std::int64_t{n} * batch);
  *fault = 0;
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
cublasStatus_t triangle_batch(cublasHandle_t handle, int rows, int columns, const T* const a[], int lead, T* const b[],
                              int lead_b, int batch) {
  Call(handle, "cublas<t>trsmBatched")
      .wants(batch <= most_batch, "a batch of at most 65535")
      .wants(lead >= columns && lead_b >= rows, "lda >= n and ldb >= m")
      .uses(a, batch)
      .uses(b, batch);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
cublasStatus_t triangle(cublasHandle_t handle, int rows, int columns, const T* a, int lead, T* b, int lead_b) {
  Call(handle, "cublas<t>trsm")
      .uses(a, std::int64_t{lead} * columns)
      .uses(b, std::int64_t{lead_b} * columns)
      .wants(lead >= columns && lead_b >= rows, "lda >= n and ldb >= m");
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  count("cublasCreate");
  *handle = made_handle<cublasHandle_t>();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  free_handle(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  set_stream(handle, stream, "cuBLAS");
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t) { return "a status of the stand-in"; }

cublasStatus_t cublasSgetrfBatched(cublasHandle_t handle, int n, float* const a[], int lead, int* pivots, int* faults,
                                   int batch) {
  return lu_batch(handle, n, a, lead, pivots, faults, batch);
}
cublasStatus_t cublasDgetrfBatched(cublasHandle_t handle, int n, double* const a[], int lead, int* pivots, int* faults,
                                   int batch) {
  return lu_batch(handle, n, a, lead, pivots, faults, batch);
}
cublasStatus_t cublasSgetrsBatched(cublasHandle_t handle, cublasOperation_t, int n, int sides, const float* const a[],
                                   int lead, const int* pivots, float* const b[], int lead_b, int* fault, int batch) {
  return solve_batch(handle, n, sides, a, lead, pivots, b, lead_b, fault, batch);
}
cublasStatus_t cublasDgetrsBatched(cublasHandle_t handle, cublasOperation_t, int n, int sides, const double* const a[],
                                   int lead, const int* pivots, double* const b[], int lead_b, int* fault, int batch) {
  return solve_batch(handle, n, sides, a, lead, pivots, b, lead_b, fault, batch);
}
cublasStatus_t cublasStrsmBatched(cublasHandle_t handle, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,
                                  cublasDiagType_t, int rows, int columns, const float*, const float* const a[],
                                  int lead, float* const b[], int lead_b, int batch) {
  return triangle_batch(handle, rows, columns, a, lead, b, lead_b, batch);
}
cublasStatus_t cublasDtrsmBatched(cublasHandle_t handle, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,
                                  cublasDiagType_t, int rows, int columns, const double*, const double* const a[],
                                  int lead, double* const b[], int lead_b, int batch) {
  return triangle_batch(handle, rows, columns, a, lead, b, lead_b, batch);
}
cublasStatus_t cublasStrsm_v2(cublasHandle_t handle, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,
                              cublasDiagType_t, int rows, int columns, const float*, const float* a, int lead, float* b,
                              int lead_b) {
  return triangle(handle, rows, columns, a, lead, b, lead_b);
}
cublasStatus_t cublasDtrsm_v2(cublasHandle_t handle, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,
                              cublasDiagType_t, int rows, int columns, const double*, const double* a, int lead,
                              double* b, int lead_b) {
  return triangle(handle, rows, columns, a, lead, b, lead_b);
}

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) {
  count("cusolverDnCreate");
  *handle = made_handle<cusolverDnHandle_t>();
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
  free_handle(handle);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t* parameters) {
  *parameters = made_handle<cusolverDnParams_t>();
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t parameters) {
  free_handle(parameters);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
  set_stream(handle, stream, "cuSOLVER");
  return CUSOLVER_STATUS_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop

namespace {

template <class T>
cusolverStatus_t factor(cusolverDnHandle_t handle, const char* name, int rows, int columns, T* a, int lead, T* work,
                        std::int64_t work_size, int* fault, const T* scales, std::int64_t scale_count, int* pivots) {
  Call call(handle, name);
  call.wants(lead >= rows, "lda >= m").uses(a, std::int64_t{lead} * columns).uses(work, work_size).uses(fault, 1);
  if (scales) call.uses(scales, scale_count);
  if (pivots) call.uses(pivots, std::min(rows, columns));
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t give_work(int* work) {
  *work = work_elements;
  return CUSOLVER_STATUS_SUCCESS;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

cusolverStatus_t cusolverDnSgetrf_bufferSize(cusolverDnHandle_t, int, int, float*, int, int* work) {
  return give_work(work);
}
cusolverStatus_t cusolverDnDgetrf_bufferSize(cusolverDnHandle_t, int, int, double*, int, int* work) {
  return give_work(work);
}
cusolverStatus_t cusolverDnSgetrf(cusolverDnHandle_t handle, int m, int n, float* a, int lead, float* work, int* pivots,
                                  int* fault) {
  return factor<float>(handle, "cusolverDn<t>getrf", m, n, a, lead, work, work_elements, fault, nullptr, 0, pivots);
}
cusolverStatus_t cusolverDnDgetrf(cusolverDnHandle_t handle, int m, int n, double* a, int lead, double* work,
                                  int* pivots, int* fault) {
  return factor<double>(handle, "cusolverDn<t>getrf", m, n, a, lead, work, work_elements, fault, nullptr, 0, pivots);
}
cusolverStatus_t cusolverDnSgetrs(cusolverDnHandle_t handle, cublasOperation_t, int n, int sides, const float* a,
                                  int lead, const int* pivots, float* b, int lead_b, int* fault) {
  Call(handle, "cusolverDn<t>getrs")
      .uses(a, std::int64_t{lead} * n)
      .uses(pivots, n)
      .uses(b, std::int64_t{lead_b} * sides)
      .uses(fault, 1);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDgetrs(cusolverDnHandle_t handle, cublasOperation_t, int n, int sides, const double* a,
                                  int lead, const int* pivots, double* b, int lead_b, int* fault) {
  Call(handle, "cusolverDn<t>getrs")
      .uses(a, std::int64_t{lead} * n)
      .uses(pivots, n)
      .uses(b, std::int64_t{lead_b} * sides)
      .uses(fault, 1);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSpotrf_bufferSize(cusolverDnHandle_t, cublasFillMode_t, int, float*, int, int* work) {
  return give_work(work);
}
cusolverStatus_t cusolverDnDpotrf_bufferSize(cusolverDnHandle_t, cublasFillMode_t, int, double*, int, int* work) {
  return give_work(work);
}
cusolverStatus_t cusolverDnSpotrf(cusolverDnHandle_t handle, cublasFillMode_t, int n, float* a, int lead, float* work,
                                  int work_size, int* fault) {
  return factor<float>(handle, "cusolverDn<t>potrf", n, n, a, lead, work, work_size, fault, nullptr, 0, nullptr);
}
cusolverStatus_t cusolverDnDpotrf(cusolverDnHandle_t handle, cublasFillMode_t, int n, double* a, int lead, double* work,
                                  int work_size, int* fault) {
  return factor<double>(handle, "cusolverDn<t>potrf", n, n, a, lead, work, work_size, fault, nullptr, 0, nullptr);
}
cusolverStatus_t cusolverDnSpotrfBatched(cusolverDnHandle_t handle, cublasFillMode_t, int n, float* a[], int lead,
                                         int* faults, int batch) {
  Call(handle, "cusolverDn<t>potrfBatched")
      .wants(lead >= n, "lda >= n")
      .wants(batch <= most_batch, "a batch of at most 65535")
      .uses(a, batch)
      .uses(faults, batch);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDpotrfBatched(cusolverDnHandle_t handle, cublasFillMode_t, int n, double* a[], int lead,
                                         int* faults, int batch) {
  Call(handle, "cusolverDn<t>potrfBatched")
      .wants(lead >= n, "lda >= n")
      .wants(batch <= most_batch, "a batch of at most 65535")
      .uses(a, batch)
      .uses(faults, batch);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSgeqrf_bufferSize(cusolverDnHandle_t, int, int, float*, int, int* work) {
  return give_work(work);
}
cusolverStatus_t cusolverDnDgeqrf_bufferSize(cusolverDnHandle_t, int, int, double*, int, int* work) {
  return give_work(work);
}
cusolverStatus_t cusolverDnSgeqrf(cusolverDnHandle_t handle, int m, int n, float* a, int lead, float* scales,
                                  float* work, int work_size, int* fault) {
  return factor<float>(handle, "cusolverDn<t>geqrf", m, n, a, lead, work, work_size, fault, scales, std::min(m, n),
                       nullptr);
}
cusolverStatus_t cusolverDnDgeqrf(cusolverDnHandle_t handle, int m, int n, double* a, int lead, double* scales,
                                  double* work, int work_size, int* fault) {
  return factor<double>(handle, "cusolverDn<t>geqrf", m, n, a, lead, work, work_size, fault, scales, std::min(m, n),
                        nullptr);
}
cusolverStatus_t cusolverDnSorgqr_bufferSize(cusolverDnHandle_t, int, int, int, const float*, int, const float*,
                                             int* work) {
  return give_work(work);
}
cusolverStatus_t cusolverDnDorgqr_bufferSize(cusolverDnHandle_t, int, int, int, const double*, int, const double*,
                                             int* work) {
  return give_work(work);
}
cusolverStatus_t cusolverDnSorgqr(cusolverDnHandle_t handle, int m, int n, int k, float* a, int lead,
                                  const float* scales, float* work, int work_size, int* fault) {
  return factor<float>(handle, "cusolverDn<t>orgqr", m, n, a, lead, work, work_size, fault, scales, k, nullptr);
}
cusolverStatus_t cusolverDnDorgqr(cusolverDnHandle_t handle, int m, int n, int k, double* a, int lead,
                                  const double* scales, double* work, int work_size, int* fault) {
  return factor<double>(handle, "cusolverDn<t>orgqr", m, n, a, lead, work, work_size, fault, scales, k, nullptr);
}
cusolverStatus_t cusolverDnDgesvd_bufferSize(cusolverDnHandle_t, int m, int n, int* work) {
  if (m < n) violation("cusolverDnDgesvd takes matrices with at least as many rows as columns");
  return give_work(work);
}
cusolverStatus_t cusolverDnDgesvd(cusolverDnHandle_t handle, signed char, signed char, int m, int n, double* a,
                                  int lead, double* s, double* u, int lead_u, double* vt, int lead_v, double* work,
                                  int work_size, double* unconverged, int* fault) {
  Call(handle, "cusolverDnDgesvd")
      .uses(a, std::int64_t{lead} * n)
      .uses(s, std::min(m, n))
      .uses(u, std::int64_t{lead_u} * n)
      .uses(vt, std::int64_t{lead_v} * n)
      .uses(work, work_size)
      .uses(unconverged, std::min(m, n) - 1)
      .uses(fault, 1);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDsyevd_bufferSize(cusolverDnHandle_t, cusolverEigMode_t, cublasFillMode_t, int,
                                             const double*, int, const double*, int* work) {
  return give_work(work);
}
cusolverStatus_t cusolverDnDsyevd(cusolverDnHandle_t handle, cusolverEigMode_t, cublasFillMode_t, int n, double* a,
                                  int lead, double* values, double* work, int work_size, int* fault) {
  Call(handle, "cusolverDnDsyevd").uses(a, std::int64_t{lead} * n).uses(values, n).uses(work, work_size).uses(fault, 1);
  return CUSOLVER_STATUS_SUCCESS;
}
#if CUSOLVER_VER_MAJOR >= 12
cusolverStatus_t cusolverDnXsyevBatched_bufferSize(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t,
                                                   cublasFillMode_t, std::int64_t, cudaDataType, const void*,
                                                   std::int64_t, cudaDataType, const void*, cudaDataType,
                                                   std::size_t* on_device, std::size_t* on_host, std::int64_t) {
  *on_device = *on_host = work_elements;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnXsyevBatched(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t,
                                        cublasFillMode_t, std::int64_t n, cudaDataType, void* a, std::int64_t lead,
                                        cudaDataType, void* values, cudaDataType, void* on_device,
                                        std::size_t device_bytes, void*, std::size_t, int* faults, std::int64_t batch) {
  Call(handle, "cusolverDnXsyevBatched")
      .uses(static_cast<double*>(a), lead * n * batch)
      .uses(static_cast<double*>(values), n * batch)
      .uses_bytes(on_device, device_bytes)
      .uses(faults, batch);
  return CUSOLVER_STATUS_SUCCESS;
}
#endif

}  // extern "C"
#pragma GCC visibility pop
