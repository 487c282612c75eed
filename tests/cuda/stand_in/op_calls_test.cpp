#include <string>
#include <vector>

#include "catch.h"
#include "core/device_module.h"
#include "cuda/gpu.h"
#include "cuda/stand_in/cudnn_backend.h"
#include "cuda/stand_in/record.h"
#include "ops/table/row_checks.h"

// Every row of the op table on a stand-in for a GPU, which runs nothing and checks each call. Results are all 0, and are not
// compared.

namespace reel_test {

using namespace reel;

namespace {

std::vector<Tensor> on(Device device, const std::vector<Tensor>& tensors) {
  std::vector<Tensor> moved;
  for (const Tensor& tensor : tensors) moved.push_back(to(tensor, device));
  return moved;
}

// The row with its captured tensors on the device, such as offsets and targets.
Row on_device(const Row& row) {
  Row guarded = row;
  guarded.run = [run = row.run](std::span<const Tensor> x) {
    DeviceGuard guard(gpu);
    return run(x);
  };
  return guarded;
}

// These read and write elements by pointer, which a device forbids.
bool runs_on_device(const Row& row) { return row.op != "data" && row.op != "write" && row.op != "item"; }

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
  // What was checked.
  CHECK(plans.asked > 300);
  stand_in::Counts counts = stand_in::counts();
  CHECK(counts["launch"] > 200000);
  CHECK(counts["cublasLtMatmul"] > 4000);
  CHECK(counts["cudnnBackendExecute"] > 400);
  CHECK(counts["cudnnRNNForward"] > 100);
  CHECK(counts["cusparseSpMM"] > 100);
}

}  // namespace reel_test
