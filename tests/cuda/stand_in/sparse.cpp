#include <cusparse.h>

#include <memory>

#include "record.h"
#include "streams.h"

// cuSPARSE: each call checks the memory that it would read and write.

using namespace reel_test::stand_in;

struct cusparseContext {
  int device;
  cudaStream_t stream = nullptr;
};
struct cusparseSpMatDescr {
  std::int64_t rows, columns, entries;
  const void *offsets, *indices, *values;
  cudaDataType type;
};
struct cusparseDnMatDescr {
  std::int64_t rows, columns, lead;
  void* values;
  cudaDataType type;
};

namespace {

std::size_t size_of(cudaDataType type) { return type == CUDA_R_64F ? 8 : 4; }

void use_matrix(CUstream_st& stream, const cusparseDnMatDescr& x) {
  use_extent(stream, x.values, static_cast<std::size_t>(x.rows * x.lead) * size_of(x.type), "a matrix of cuSPARSE");
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

cusparseStatus_t cusparseCreate(cusparseHandle_t* handle) {
  count("cusparseCreate");
  *handle = std::make_unique<cusparseContext>(cusparseContext{current_device()}).release();
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroy(cusparseHandle_t handle) {
  std::unique_ptr<cusparseContext> freed(handle);
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream) {
  if (stream->device != handle->device) violation("cuSPARSE: a handle gets a stream of another device");
  handle->stream = stream;
  return CUSPARSE_STATUS_SUCCESS;
}
const char* cusparseGetErrorString(cusparseStatus_t) { return "a status of the stand-in"; }

cusparseStatus_t cusparseCreateConstCsr(cusparseConstSpMatDescr_t* matrix, std::int64_t rows, std::int64_t columns,
                                        std::int64_t entries, const void* offsets, const void* indices,
                                        const void* values, cusparseIndexType_t offset_type,
                                        cusparseIndexType_t index_type, cusparseIndexBase_t, cudaDataType type) {
  if (offset_type != CUSPARSE_INDEX_32I || index_type != CUSPARSE_INDEX_32I)
    violation("cuSPARSE: the indices of a matrix do not have 32 bits");
  *matrix =
      std::make_unique<cusparseSpMatDescr>(cusparseSpMatDescr{rows, columns, entries, offsets, indices, values, type})
          .release();
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t matrix) {
  std::unique_ptr<const cusparseSpMatDescr> freed(matrix);
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t* matrix, std::int64_t rows, std::int64_t columns,
                                     std::int64_t lead, void* values, cudaDataType type, cusparseOrder_t order) {
  if (order != CUSPARSE_ORDER_ROW || lead < columns) violation("cuSPARSE: a matrix is not stored by rows");
  *matrix = std::make_unique<cusparseDnMatDescr>(cusparseDnMatDescr{rows, columns, lead, values, type}).release();
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t matrix) {
  std::unique_ptr<const cusparseDnMatDescr> freed(matrix);
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t, cusparseOperation_t, cusparseOperation_t, const void*,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b, const void*,
                                         cusparseDnMatDescr_t c, cudaDataType, cusparseSpMMAlg_t, std::size_t* bytes) {
  if (a->columns != b->rows || a->rows != c->rows || b->columns != c->columns || a->type != b->type ||
      a->type != c->type)
    violation("cuSPARSE: the matrices of a product do not agree");
  *bytes = 1024;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpMM(cusparseHandle_t handle, cusparseOperation_t, cusparseOperation_t, const void*,
                              cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b, const void*,
                              cusparseDnMatDescr_t c, cudaDataType, cusparseSpMMAlg_t, void* work) {
  count("cusparseSpMM");
  std::lock_guard lock(mutex());
  CUstream_st* queued = queue_work(handle->stream, "cusparseSpMM");
  if (!queued) return CUSPARSE_STATUS_EXECUTION_FAILED;
  auto entries = static_cast<std::size_t>(a->entries);
  use_extent(*queued, a->offsets, static_cast<std::size_t>(a->rows + 1) * 4, "the offsets of a sparse matrix");
  use_extent(*queued, a->indices, entries * 4, "the columns of a sparse matrix");
  use_extent(*queued, a->values, entries * size_of(a->type), "the values of a sparse matrix");
  use_matrix(*queued, *b);
  use_matrix(*queued, *c);
  use_extent(*queued, work, 1024, "the workspace of cuSPARSE");
  return CUSPARSE_STATUS_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
