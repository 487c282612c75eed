#include <cublasLt.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "record.h"
#include "streams.h"

// cuBLASLt: any product that its documentation allows is supported, and none runs.
// Source: NVIDIA's cuBLAS documentation, "Using the cuBLASLt API".

using namespace reel_test::stand_in;

namespace {

struct Handle {
  int device;
};

struct Layout {
  cudaDataType type;
  std::uint64_t rows, columns;
  std::int64_t leading_dimension;
  std::int32_t batches = 1;
  std::int64_t batch_stride = 0;
};

struct Product {
  cublasComputeType_t compute;
  cudaDataType scale;
  cublasOperation_t first = CUBLAS_OP_N, second = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};

struct Preference {
  std::uint64_t most_workspace = 0;
  std::uint32_t alignments[4] = {256, 256, 256, 256};
};

// The sizes and alignments that an algorithm was chosen for, which later calls must not exceed.
struct Algorithm {
  std::uint32_t alignments[4];
  std::uint64_t rows, columns, depth;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

template <class T>
T& as(const void* opaque) {
  return *static_cast<T*>(const_cast<void*>(opaque));
}

std::size_t size_of(cudaDataType type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

template <class T>
cublasStatus_t set(T& member, const void* value, std::size_t bytes, const char* what) {
  if (bytes != sizeof(T)) {
    violation("cuBLASLt: {} has {} bytes instead of {}", what, bytes, sizeof(T));
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::memcpy(&member, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// Kernels of batches have their matrix in an axis of the grid that goes up to this number.
constexpr std::int32_t most_batches = 65535;

struct Operands {
  const Layout &a, &b, &c, &d;
};

std::string fault_of(const Product& product, const Operands& of) {
  bool is_double = of.a.type == CUDA_R_64F;
  if (of.b.type != of.a.type || of.c.type != of.a.type || of.d.type != of.a.type) return "operands of several types";
  bool computes_so = is_double ? product.compute == CUBLAS_COMPUTE_64F && product.scale == CUDA_R_64F
                               : product.scale == CUDA_R_32F &&
                                     (product.compute == CUBLAS_COMPUTE_32F ||
                                      (product.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && of.a.type == CUDA_R_32F));
  if (!computes_so) return "a compute type that does not go with the operands";
  bool first_transposed = product.first != CUBLAS_OP_N, second_transposed = product.second != CUBLAS_OP_N;
  std::uint64_t rows = first_transposed ? of.a.columns : of.a.rows, depth = first_transposed ? of.a.rows : of.a.columns,
                second_depth = second_transposed ? of.b.columns : of.b.rows,
                columns = second_transposed ? of.b.rows : of.b.columns;
  if (rows != of.d.rows || columns != of.d.columns || depth != second_depth || of.c.rows != of.d.rows ||
      of.c.columns != of.d.columns)
    return "sizes that do not agree";
  for (const Layout* layout : {&of.a, &of.b, &of.c, &of.d}) {
    if (layout->leading_dimension < static_cast<std::int64_t>(layout->rows))
      return "a leading dimension below the rows";
    if (layout->batches != of.d.batches) return "batches of several sizes";
    if (layout->rows == 0 || layout->columns == 0) return "an empty matrix";
  }
  if (of.d.batches > most_batches) return fmt::format("a batch of {} matrices", of.d.batches);
  auto area =
      of.d.leading_dimension * static_cast<std::int64_t>(of.d.columns - 1) + static_cast<std::int64_t>(of.d.rows);
  if (of.d.batches > 1 && std::abs(of.d.batch_stride) < area) return "results that overlap";
  return {};
}

bool is_well_formed(const Product& product, const Operands& of) {
  std::string fault = fault_of(product, of);
  if (!fault.empty()) violation("cuBLASLt: a product with {}", fault);
  return fault.empty();
}

// The memory of all matrices of a batch, which may run backwards.
void use_matrices(CUstream_st& stream, const Layout& layout, const void* data, std::uint32_t alignment,
                  const char* what) {
  auto size = static_cast<std::int64_t>(size_of(layout.type));
  auto address = reinterpret_cast<std::uintptr_t>(data);
  std::int64_t last = (layout.batches - 1) * layout.batch_stride;
  std::int64_t elements = layout.leading_dimension * static_cast<std::int64_t>(layout.columns - 1) +
                          static_cast<std::int64_t>(layout.rows) + std::abs(last);
  if (address % alignment != 0) violation("{} is not aligned to {} bytes, as its algorithm wants", what, alignment);
  if (layout.batches > 1 && layout.batch_stride * size % alignment != 0)
    violation("a matrix of a batch in {} is not aligned to {} bytes, as its algorithm wants", what, alignment);
  use_extent(stream, static_cast<const char*>(data) + std::min<std::int64_t>(0, last) * size,
             static_cast<std::size_t>(elements * size), what);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  count("cublasLtCreate");
  *handle = reinterpret_cast<cublasLtHandle_t>(new Handle{current_device()});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  std::unique_ptr<Handle> freed(&as<Handle>(handle));
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusString(cublasStatus_t) { return "a status of the stand-in"; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *product = reinterpret_cast<cublasLtMatmulDesc_t>(new Product{compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  std::unique_ptr<Product> freed(&as<Product>(product));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  auto& made = as<Product>(product);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(made.first, value, bytes, "the transposition of the first operand");
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(made.second, value, bytes, "the transposition of the second operand");
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(made.epilogue, value, bytes, "the epilogue");
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(made.bias, value, bytes, "the bias");
    default: violation("cuBLASLt: a product has an unknown attribute"); return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading_dimension) {
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, leading_dimension});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  std::unique_ptr<Layout> freed(&as<Layout>(layout));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                std::size_t bytes) {
  auto& made = as<Layout>(layout);
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return set(made.batches, value, bytes, "the number of matrices");
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return set(made.batch_stride, value, bytes, "the stride of a batch");
    default: violation("cuBLASLt: a layout has an unknown attribute"); return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference{});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  std::unique_ptr<Preference> freed(&as<Preference>(preference));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  auto& made = as<Preference>(preference);
  std::uint32_t ignored = 0;
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return set(made.most_workspace, value, bytes, "the workspace");
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return set(ignored, value, bytes, "the kinds of reduction");
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return set(made.alignments[0], value, bytes, "an alignment");
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return set(made.alignments[1], value, bytes, "an alignment");
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return set(made.alignments[2], value, bytes, "an alignment");
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return set(made.alignments[3], value, bytes, "an alignment");
    default: violation("cuBLASLt: a preference has an unknown attribute"); return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                              cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference,
                                              int wanted, cublasLtMatmulHeuristicResult_t* results, int* found) {
  count("cublasLtMatmulAlgoGetHeuristic");
  const auto& wish = as<Preference>(preference);
  Operands of{as<Layout>(a), as<Layout>(b), as<Layout>(c), as<Layout>(d)};
  *found = 0;
  if (wanted < 1 || !is_well_formed(as<Product>(product), of)) return CUBLAS_STATUS_NOT_SUPPORTED;
  Algorithm chosen{{}, of.d.rows, of.d.columns, 0};
  std::copy(std::begin(wish.alignments), std::end(wish.alignments), chosen.alignments);
  *results = {};
  std::memcpy(&results->algo, &chosen, sizeof chosen);
  results->workspaceSize = std::min<std::size_t>(wish.most_workspace, std::size_t{4} << 20);
  results->state = CUBLAS_STATUS_SUCCESS;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void*, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void*, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  count("cublasLtMatmul");
  std::lock_guard lock(mutex());
  const auto& made = as<Product>(product);
  Operands of{as<Layout>(a_layout), as<Layout>(b_layout), as<Layout>(c_layout), as<Layout>(d_layout)};
  if (!is_well_formed(made, of)) return CUBLAS_STATUS_INVALID_VALUE;
  Algorithm chosen;
  std::memcpy(&chosen, algorithm, sizeof chosen);
  CUstream_st* queued = queue_work(stream, "cublasLtMatmul");
  if (!queued) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (as<Handle>(handle).device != queued->device) violation("cuBLASLt: the handle is one of another device");
  if (chosen.rows != of.d.rows || chosen.columns != of.d.columns)
    violation("cuBLASLt: the algorithm was chosen for other sizes");
  use_matrices(*queued, of.a, a, chosen.alignments[0], "the first operand of a product");
  use_matrices(*queued, of.b, b, chosen.alignments[1], "the second operand of a product");
  use_matrices(*queued, of.c, c, chosen.alignments[2], "the sum to which a product is added");
  use_matrices(*queued, of.d, d, std::min(chosen.alignments[3], chosen.alignments[2]), "the result of a product");
  if (made.epilogue == CUBLASLT_EPILOGUE_BIAS) {
    use_extent(*queued, made.bias, of.d.rows * size_of(of.d.type), "the bias of a product");
    if (reinterpret_cast<std::uintptr_t>(made.bias) % size_of(of.d.type) != 0) violation("a bias is not aligned");
  }
  if (workspace_bytes > 0) {
    use_extent(*queued, workspace, workspace_bytes, "the workspace of a product");
    if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0) violation("a workspace is not aligned to 256 bytes");
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
