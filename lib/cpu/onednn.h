#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <cstdint>

#include <reel/error.h>

// The one place where the library meets oneDNN, 2.6 or 3.x. `dnnl_sgemm` is the same in both.

// OpenMP's own header comes with some compilers only.
extern "C" int omp_get_max_threads();
extern "C" void omp_set_num_threads(int count);

namespace reel::detail::onednn {

/// Products of fewer multiplications stay on the calling thread: waking the others takes longer than they save, and far
/// longer where another process holds their processor. Medians with OMP_WAIT_POLICY=passive on two idle processors
/// (Zen 5, oneDNN 2.6.3), µs with one thread / with two:
///
///     32×256×1024     8.4 M   75 / 121         256×256×256    16.8 M   130 / 118
///     32×1024×256 ᵀ   8.4 M  137 / 259         2048×256×64    33.6 M   294 / 200
///     128×128×128     2.1 M   16 /  52         512×512×512     134 M  1085 / 601
inline constexpr std::int64_t parallel_multiplications = std::int64_t{1} << 24;

/// While it lives, the calling thread's parallel regions have one thread.
class OneThread {
 public:
  explicit OneThread(bool wanted) : before_(wanted ? omp_get_max_threads() : 0) {
    if (before_ > 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ > 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

/// C (m × n) = A (m × k) · B (k × n), row-major; a transposed operand is stored the other way round.
inline void sgemm(bool transposed_a, bool transposed_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                  std::int64_t lda, const float* b, std::int64_t ldb, float* c, std::int64_t ldc) {
  OneThread alone(m * n * k < parallel_multiplications);
  dnnl_status_t status =
      dnnl_sgemm(transposed_a ? 'T' : 'N', transposed_b ? 'T' : 'N', m, n, k, 1.0f, a, lda, b, ldb, 0.0f, c, ldc);
  if (status != dnnl_success)
    throw InternalError("oneDNN refused a matrix product with status " + std::to_string(static_cast<int>(status)));
}

}  // namespace reel::detail::onednn
