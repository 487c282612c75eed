#include <string>
#include <vector>

#include "catch.h"
#include "core/device/device_module.h"
#include "cuda/gpu.h"
#include "cuda/stand_in/cudnn_backend.h"
#include "cuda/stand_in/record.h"
#include "cuda/stand_in/row_runs.h"

// Every row of the op table on a stand-in for a GPU, which runs nothing and checks each call. Results are all 0, and are not
// compared.

namespace reel_test {

using namespace reel;

namespace {

void run_row(const Row& row, DType dtype, bool backwards) {
  stand_in::set_subject(row.name + " " + name_of(dtype));
  std::vector<Tensor> there = on(gpu, draw_inputs(row, dtype, table_seed));
  try {
    if (backwards) {
      static_cast<void>(gradients(of_floating_inputs(row, there), floating_inputs(row, there)));
    } else {
      static_cast<void>(to(row.run(there), cpu));
    }
    detail::device_module().synchronise(0);
  } catch (const InternalError&) {
    throw;
  } catch (const DeviceError&) {
    throw;
  } catch (const Error&) {
    // Results of 0 may be refused on the CPU, such as sizes that depend on values.
  }
}

}  // namespace

TEST_CASE(
    "no call of any op breaks a rule of a GPU, forwards and backwards, in every dtype, and cuDNN plans all of them") {
  if (lacks_device()) return;
  static_cast<void>(stand_in::take_violations());
  stand_in::forget_counts();
  for (const Row& plain : table()) {
    if (!runs_on_device(plain)) continue;
    Row row = on_device(plain);
    CAPTURE(row.name);
    for (DType dtype : row.dtypes) {
      CHECK_NOTHROW(run_row(row, dtype, false));
      if (row.differentiable && is_floating(dtype)) CHECK_NOTHROW(run_row(row, dtype, true));
    }
  }
  stand_in::set_subject("");
  CHECK(stand_in::take_violations() == std::vector<std::string>());
  stand_in::Plans plans = stand_in::take_plans();
  CHECK(plans.without == std::vector<std::string>());
  // Least numbers of plans and calls that were checked.
  CHECK(plans.asked > 300);
  stand_in::Counts counts = stand_in::counts();
  CHECK(counts["launch"] > 200000);
  CHECK(counts["cublasLtMatmul"] > 4000);
  CHECK(counts["cudnnBackendExecute"] > 400);
  CHECK(counts["cudnnRNNForward"] > 100);
  CHECK(counts["cusparseSpMM"] > 100);
}

}  // namespace reel_test
