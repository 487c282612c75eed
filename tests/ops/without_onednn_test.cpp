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

TEST_CASE("products of bf16 are right where oneDNN refuses to multiply") {
  manual_seed(19);
  Tensor a = to(randn({256, 512}), bf16), b = to(randn({512, 256}), bf16), c = matmul(a, b);
  Tensor expected = matmul(to(a, f64), to(b, f64));
  // A rounding to bf16 of numbers up to 2⁷ is off by at most 2⁻².
  REQUIRE(max(abs(to(c, f64) - expected)).item<double>() < 0.26);
}

}  // namespace
