#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <cstdint>

#include <reel/error.h>

// The one place where the library meets oneDNN, 2.6 or 3.x. `dnnl_sgemm` is the same in both.

namespace reel::detail::onednn {

/// C (m × n) = A (m × k) · B (k × n), row-major; a transposed operand is stored the other way round.
inline void sgemm(bool transposed_a, bool transposed_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                  std::int64_t lda, const float* b, std::int64_t ldb, float* c, std::int64_t ldc) {
  dnnl_status_t status = dnnl_sgemm(transposed_a ? 'T' : 'N', transposed_b ? 'T' : 'N', m, n, k, 1.0f, a, lda, b, ldb,
                                    0.0f, c, ldc);
  if (status != dnnl_success)
    throw InternalError("oneDNN refused a matrix product with status " + std::to_string(static_cast<int>(status)));
}

}  // namespace reel::detail::onednn
