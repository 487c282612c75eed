#include <cublasLt.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>

#include <reel/error.h>

#include "../../lib/core/context.h"
#include "../../lib/core/iteration.h"
#include "../../lib/core/recent_cache.h"
#include "../../lib/core/tensor_float.h"
#include "../device/matrix_layout.h"
#include "../runtime/driver.h"
#include "../runtime/of_queue.h"
#include "library_product.h"

// cuBLASLt's matrices are column-major. A row-major matrix is the transpose of the one that the library sees, so it
// computes the transposed product, outᵀ = bᵀ aᵀ: its first operand is b, its rows are our columns.

namespace reel::detail::inline REEL_TARGET {
namespace {

// Checks this library's status.
void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(std::string("cuBLASLt: ") + call + " gave \"" + cublasLtGetStatusString(status) + '"',
                    context().call_site({}));
}

// NVIDIA's recommendation for Hopper; an algorithm's need is known before it runs.
constexpr std::size_t most_workspace = std::size_t{32} << 20;
// The library's kernels have an axis of a grid for the matrices of a batch; a larger batch is divided into series.
constexpr std::int64_t most_matrices = 65535;
// A broadcast batch without a constant stride is divided into series, too. If there are more than these, the kernel for any
// strides runs.
constexpr std::int64_t most_series = 512;

class Handle : Immovable {
 public:
  Handle() { check(cublasLtCreate(&handle_), "cublasLtCreate"); }
  ~Handle() { cublasLtDestroy(handle_); }
  operator cublasLtHandle_t() const { return handle_; }

 private:
  cublasLtHandle_t handle_;
};

// Everything that determines the algorithm. Operands are in the library's order: b, a, out.
struct Key {
  std::int64_t rows, columns, depth;  // of the library's result
  std::int64_t leading_dimensions[3];
  std::int64_t count, batch_strides[3];
  std::int64_t alignments[4];  // the last one is that of the bias, 0 if there is none
  std::int64_t dtype, transposed[2];
  std::int64_t adds, tf32;
};

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return CUDA_R_64F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::f16: return CUDA_R_16F;
    default: return CUDA_R_32F;
  }
}

class LibraryMatrixLayout : Immovable {
 public:
  LibraryMatrixLayout(const Key& key, int operand, std::int64_t rows, std::int64_t columns) {
    check(cublasLtMatrixLayoutCreate(&layout_, type_of(static_cast<DType>(key.dtype)), static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns), key.leading_dimensions[operand]),
          "cublasLtMatrixLayoutCreate");
    if (key.count == 1) return;
    auto count = static_cast<std::int32_t>(key.count);
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, key.batch_strides[operand]);
  }
  ~LibraryMatrixLayout() { cublasLtMatrixLayoutDestroy(layout_); }
  operator cublasLtMatrixLayout_t() const { return layout_; }

 private:
  template <class T>
  void set(cublasLtMatrixLayoutAttribute_t attribute, T value) {
    check(cublasLtMatrixLayoutSetAttribute(layout_, attribute, &value, sizeof(T)), "cublasLtMatrixLayoutSetAttribute");
  }

  cublasLtMatrixLayout_t layout_;
};

class Operation : Immovable {
 public:
  explicit Operation(const Key& key) {
    bool wide = static_cast<DType>(key.dtype) == DType::f64;
    cublasComputeType_t compute = wide            ? CUBLAS_COMPUTE_64F
                                  : key.tf32 != 0 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                  : CUBLAS_COMPUTE_32F;
    check(cublasLtMatmulDescCreate(&operation_, compute, wide ? CUDA_R_64F : CUDA_R_32F), "cublasLtMatmulDescCreate");
    set(CUBLASLT_MATMUL_DESC_TRANSA, std::int32_t{key.transposed[0] != 0 ? CUBLAS_OP_T : CUBLAS_OP_N});
    set(CUBLASLT_MATMUL_DESC_TRANSB, std::int32_t{key.transposed[1] != 0 ? CUBLAS_OP_T : CUBLAS_OP_N});
    // The library adds a bias to each row; its rows are our columns.
    if (key.alignments[3] != 0) set(CUBLASLT_MATMUL_DESC_EPILOGUE, std::uint32_t{CUBLASLT_EPILOGUE_BIAS});
  }
  ~Operation() { cublasLtMatmulDescDestroy(operation_); }
  operator cublasLtMatmulDesc_t() const { return operation_; }

  void set_bias(const void* bias) const { set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); }

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) const {
    check(cublasLtMatmulDescSetAttribute(operation_, attribute, &value, sizeof(T)), "cublasLtMatmulDescSetAttribute");
  }

  cublasLtMatmulDesc_t operation_;
};

class Preference : Immovable {
 public:
  explicit Preference(const Key& key) {
    check(cublasLtMatmulPreferenceCreate(&preference_), "cublasLtMatmulPreferenceCreate");
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{most_workspace});
    // Sums are rounded to halves only when they are complete.
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(key.alignments[0]));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(key.alignments[1]));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(key.alignments[2]));
    // The library has no preference for a bias's alignment; it is treated as that of the result.
    std::int64_t written = key.alignments[3] != 0 ? std::min(key.alignments[2], key.alignments[3]) : key.alignments[2];
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(written));
  }
  ~Preference() { cublasLtMatmulPreferenceDestroy(preference_); }
  operator cublasLtMatmulPreference_t() const { return preference_; }

 private:
  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof(T)),
          "cublasLtMatmulPreferenceSetAttribute");
  }

  cublasLtMatmulPreference_t preference_;
};

// The algorithm for a kind of product; empty if the library has none.
struct Plan {
  Operation operation;
  LibraryMatrixLayout first, second, result;
  std::optional<cublasLtMatmulAlgo_t> algorithm;
  std::size_t workspace = 0;

  Plan(cublasLtHandle_t handle, const Key& key, const void* bias)
      : operation(key),
        first(key, 0, key.transposed[0] != 0 ? key.depth : key.rows, key.transposed[0] != 0 ? key.rows : key.depth),
        second(key, 1, key.transposed[1] != 0 ? key.columns : key.depth,
               key.transposed[1] != 0 ? key.depth : key.columns),
        result(key, 2, key.rows, key.columns) {
    // Set before the heuristic is queried, because its alignment matters.
    if (bias) operation.set_bias(bias);
    Preference preference(key);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, operation, first, second, result, result, preference, 1, &found, &count);
    // The library, or each of its algorithms on this device, refuses the product.
    if (status != CUBLAS_STATUS_SUCCESS || count == 0 || found.state != CUBLAS_STATUS_SUCCESS) {
      driver_forget_error();
      return;
    }
    algorithm = found.algo;
    workspace = found.workspaceSize;
  }
};

struct Library {
  Handle handle;
  RecentCache<Key, std::unique_ptr<Plan>> plans{512};
};

// The largest power of two, up to 256, that divides an address and all those at multiples of some strides.
std::int64_t alignment_of(const View& x, const std::int64_t (&strides)[8], int count) {
  auto all = reinterpret_cast<std::uintptr_t>(x.data) | 256;
  for (int i = 0; i < count; ++i) all |= static_cast<std::uintptr_t>(strides[i]) * size_of(x.dtype);
  return std::int64_t{1} << std::countr_zero(all);
}

View batch_of(const View& view) {
  View batch = view;
  batch.rank -= 2;
  return batch;
}

template <class Scale>
cublasStatus_t run(const Library& library, const Plan& plan, const cublasLtMatmulAlgo_t& algorithm, const Key& key,
                   const void* first, const void* second, void* result, void* workspace) {
  Scale alpha = 1, beta = key.adds != 0 ? 1 : 0;
  return cublasLtMatmul(library.handle, plan.operation, &alpha, first, plan.first, second, plan.second, &beta, result,
                        plan.result, result, plan.result, &algorithm, workspace, plan.workspace, current_stream());
}

bool run_product(const View& out, const View& a, const View& b, bool adds, const void* bias) {
  std::int64_t rows = out.dims[out.rank - 2], columns = out.dims[out.rank - 1], depth = a.dims[a.rank - 1];
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (rows > most || columns > most || depth > most) return false;
  View batches[] = {batch_of(out), batch_of(a), batch_of(b)};
  Iteration<3> batch({&batches[0], &batches[1], &batches[2]});
  std::int64_t series = 1;
  for (int axis = 1; axis < batch.rank; ++axis) series *= batch.dims[axis];
  std::int64_t parts = (batch.dims[0] + most_matrices - 1) / most_matrices;
  if (series > most_series / parts) return false;
  MatrixLayout of_a = matrix_layout_of(a), of_b = matrix_layout_of(b);
  if (of_a.leading_dimension > most || of_b.leading_dimension > most) return false;
  bool one = batch.dims[0] == 1;
  Key key{
      .rows = columns,
      .columns = rows,
      .depth = depth,
      .leading_dimensions = {of_b.leading_dimension, of_a.leading_dimension, columns},
      .count = std::min(batch.dims[0], most_matrices),
      .batch_strides = {one ? 0 : batch.strides[2][0], one ? 0 : batch.strides[1][0], one ? 0 : batch.strides[0][0]},
      .alignments = {alignment_of(b, batch.strides[2], batch.rank), alignment_of(a, batch.strides[1], batch.rank),
                     alignment_of(out, batch.strides[0], batch.rank),
                     bias ? std::int64_t{1} << std::countr_zero(reinterpret_cast<std::uintptr_t>(bias) | 256) : 0},
      .dtype = static_cast<std::int64_t>(out.dtype),
      .transposed = {of_b.by_columns, of_a.by_columns},
      .adds = adds,
      .tf32 = out.dtype == DType::f32 && may_use_tf32()};
  auto& library = of_current_queue<Library>();
  auto plan_for = [&](const Key& key) -> const Plan& {
    return *library.plans.find(key, [&] { return std::make_unique<Plan>(library.handle, key, bias); });
  };
  // One plan for all parts but the last, and one for the last, which may have fewer matrices.
  const Plan& plan = plan_for(key);
  Key last_key = key;
  last_key.count = batch.dims[0] - (parts - 1) * most_matrices;
  const Plan& last_plan = parts == 1 ? plan : plan_for(last_key);
  if (!plan.algorithm || !last_plan.algorithm) return false;
  if (bias)
    for (const Plan* each : {&plan, &last_plan}) each->operation.set_bias(bias);
  std::optional<Scratch> workspace;
  if (std::size_t bytes = std::max(plan.workspace, last_plan.workspace); bytes > 0) workspace.emplace(bytes);
  void* memory = workspace ? workspace->as<void>() : nullptr;
  auto size = static_cast<std::int64_t>(size_of(out.dtype));
  bool first = true, refused = false;
  auto run_part = [&](const std::int64_t(&offsets)[3], std::int64_t part) {
    if (refused) return;
    const Plan& own = part == parts - 1 ? last_plan : plan;
    std::int64_t before = part * most_matrices;
    char* to = out.as<char>() + (offsets[0] + before * key.batch_strides[2]) * size;
    const char* left = a.as<char>() + (offsets[1] + before * key.batch_strides[1]) * size;
    const char* right = b.as<char>() + (offsets[2] + before * key.batch_strides[0]) * size;
    cublasStatus_t status = out.dtype == DType::f64
                                ? run<double>(library, own, *own.algorithm, key, right, left, to, memory)
                                : run<float>(library, own, *own.algorithm, key, right, left, to, memory);
    refused = first && status == CUBLAS_STATUS_NOT_SUPPORTED;
    if (!refused) check(status, "cublasLtMatmul");
    first = false;
  };
  batch.for_each_row([&](const std::int64_t(&offsets)[3]) {
    for (std::int64_t part = 0; part < parts; ++part) run_part(offsets, part);
  });
  if (refused) driver_forget_error();
  return !refused;
}

}  // namespace

bool multiply_by_library(const View& out, const View& a, const View& b, bool adds) {
  return run_product(out, a, b, adds, nullptr);
}

bool multiply_by_library(const View& out, const View& a, const View& b, const void* bias) {
  return run_product(out, a, b, false, bias);
}

}  // namespace reel::detail::inline REEL_TARGET
