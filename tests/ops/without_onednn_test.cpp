#include <dnnl.h>

#include <reel/reel.h>

#include "../catch.h"

// Takes the place of oneDNN's function for the whole program: it refuses each product, as it does where it cannot generate
// a kernel.
extern "C" dnnl_status_t dnnl_sgemm(char, char, dnnl_dim_t, dnnl_dim_t, dnnl_dim_t, float, const float*, dnnl_dim_t,
                                    const float*, dnnl_dim_t, float, float*, dnnl_dim_t) {
  return dnnl_unimplemented;
}

namespace {

using namespace reel;

TEST_CASE("large products are right where oneDNN refuses to multiply") {
  manual_seed(19);
  // Large enough that oneDNN would multiply them.
  Tensor a = randn({2048, 1536}), b = randn({1536, 2048}), c = matmul(a, b);
  for (std::int64_t row : {0, 1023, 2047}) {
    Tensor expected = sum(reshape(to(select(a, 0, row), f64), {1536, 1}) * to(b, f64), 0);
    REQUIRE(max(abs(to(select(c, 0, row), f64) - expected)).item<double>() < 1e-3);
  }
}

TEST_CASE("products of bf16 are right where oneDNN refuses to multiply") {
  manual_seed(19);
  Tensor a = to(randn({256, 512}), bf16), b = to(randn({512, 256}), bf16), c = matmul(a, b);
  Tensor expected = matmul(to(a, f64), to(b, f64));
  // A rounding to bf16 of numbers up to 2⁷ is off by at most 2⁻².
  REQUIRE(max(abs(to(c, f64) - expected)).item<double>() < 0.26);
}

}  // namespace
