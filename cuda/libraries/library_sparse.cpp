#include "library_sparse.h"

#include <cusparse.h>

#include <limits>
#include <string>

#include <reel/error.h>

#include "../../lib/core/context.h"
#include "../kernels/index/sparse_offsets.h"
#include "../runtime/of_queue.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// Checks the library's status.
void check(cusparseStatus_t status, const char* call) {
  if (status == CUSPARSE_STATUS_SUCCESS) return;
  throw DeviceError(std::string("cuSPARSE: ") + call + " gave \"" + cusparseGetErrorString(status) + '"',
                    context().call_site({}));
}

class Handle : Immovable {
 public:
  Handle() { check(cusparseCreate(&handle_), "cusparseCreate"); }
  ~Handle() { cusparseDestroy(handle_); }

  cusparseHandle_t on_stream() const {
    check(cusparseSetStream(handle_, current_stream()), "cusparseSetStream");
    return handle_;
  }

 private:
  cusparseHandle_t handle_;
};

class SparseMatrix : Immovable {
 public:
  SparseMatrix(const RowPattern& pattern, const std::int32_t* offsets, const void* values, cudaDataType type) {
    check(cusparseCreateConstCsr(&matrix_, pattern.row_count, pattern.column_count, pattern.entry_count, offsets,
                                 pattern.columns, values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                 CUSPARSE_INDEX_BASE_ZERO, type),
          "cusparseCreateConstCsr");
  }
  ~SparseMatrix() { cusparseDestroySpMat(matrix_); }
  cusparseConstSpMatDescr_t get() const { return matrix_; }

 private:
  cusparseConstSpMatDescr_t matrix_;
};

// A row-major matrix.
class DenseMatrix : Immovable {
 public:
  DenseMatrix(const View& x, cudaDataType type) {
    check(cusparseCreateDnMat(&matrix_, x.dims[0], x.dims[1], x.dims[1], x.data, type, CUSPARSE_ORDER_ROW),
          "cusparseCreateDnMat");
  }
  ~DenseMatrix() { cusparseDestroyDnMat(matrix_); }
  cusparseDnMatDescr_t get() const { return matrix_; }

 private:
  cusparseDnMatDescr_t matrix_;
};

// The only algorithm for CSR whose results are deterministic.
constexpr cusparseSpMMAlg_t algorithm = CUSPARSE_SPMM_CSR_ALG3;
constexpr cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;

// Parts of tensors may have any alignment.
bool is_aligned(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory) % 16 == 0; }

}  // namespace

bool library_sparse_product(const View& out, const View& values, const View& dense, const RowPattern& pattern) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  // Columns have 32 bits, so the offsets must have 32 bits, too.
  bool fits = pattern.entry_count < most && pattern.row_count < most && dense.dims[1] < most;
  fits =
      fits && is_aligned(out.data) && is_aligned(values.data) && is_aligned(dense.data) && is_aligned(pattern.columns);
  if (!fits || pattern.entry_count == 0 || dense.dims[1] < 2) return false;
  cusparseHandle_t handle = of_current_queue<Handle>().on_stream();
  Scratch offsets(static_cast<std::size_t>(pattern.row_count + 1) * sizeof(std::int32_t));
  narrow_offsets(offsets.as<std::int32_t>(), pattern);
  cudaDataType type = out.dtype == DType::f64 ? CUDA_R_64F : CUDA_R_32F;
  SparseMatrix a(pattern, offsets.as<const std::int32_t>(), values.data, type);
  DenseMatrix b(dense, type), c(out, type);
  const double one = 1, zero = 0;
  const float short_one = 1, short_zero = 0;
  bool wide = type == CUDA_R_64F;
  const void* alpha = wide ? static_cast<const void*>(&one) : &short_one;
  const void* beta = wide ? static_cast<const void*>(&zero) : &short_zero;
  std::size_t bytes = 0;
  check(cusparseSpMM_bufferSize(handle, plain, plain, alpha, a.get(), b.get(), beta, c.get(), type, algorithm, &bytes),
        "cusparseSpMM_bufferSize");
  Scratch workspace(bytes > 0 ? bytes : 1);
  check(
      cusparseSpMM(handle, plain, plain, alpha, a.get(), b.get(), beta, c.get(), type, algorithm, workspace.as<void>()),
      "cusparseSpMM");
  return true;
}

}  // namespace reel::detail::inline REEL_TARGET
