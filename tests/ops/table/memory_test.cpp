#include <reel/reel.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "catch.h"
#include "failing_allocator.h"
#include "ops/table/row_checks.h"

// Every op, forward and backward, with a failing allocation: all allocations if REEL_ALLOCATION_FAULTS=all is in the
// environment, else some.

namespace reel_test {

using namespace reel;

namespace {

// The result, then the gradients if there are any.
std::vector<Tensor> results(const Row& row, const std::vector<Tensor>& inputs) {
  manual_seed(1);
  std::vector<Tensor> all{row.run(inputs)};
  if (!row.differentiable || !is_floating(all[0].dtype())) return all;
  for (Tensor& gradient : gradients(of_floating_inputs(row, inputs), floating_inputs(row, inputs)))
    all.push_back(std::move(gradient));
  return all;
}

bool are_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!same_bits(a[i], b[i])) return false;
  return true;
}

// Eigen's singular value decomposition, which these ops call, frees memory twice if an allocation fails.
bool is_survivable(const Row& row) {
  static constexpr const char* by_svd[] = {"svd", "pinv", "lstsq", "matrix_rank", "matrix_norm"};
  return std::ranges::none_of(by_svd, [&](const char* op) { return row.name.find(op) != row.name.npos; });
}

bool fails_every_one() {
  const char* wanted = std::getenv("REEL_ALLOCATION_FAULTS");
  return wanted && std::string(wanted) == "all";
}

// Returns an empty text if the row has its usual result, or a MemoryError with an op and a line and the usual result afterwards.
std::string fault_of(const Row& row, const std::vector<Tensor>& inputs, const std::vector<Tensor>& usual, long index,
                     Fault kind) {
  std::string fault;
  release_memory_cache();
  fail_allocation(index, kind);
  try {
    std::vector<Tensor> found = results(row, inputs);
    stop_failing();
    if (!are_same(found, usual)) fault = "other values";
  } catch (const MemoryError& error) {
    stop_failing();
    if (!error.where().file || !std::strstr(error.what(), ": there is no memory"))
      fault = fmt::format("an error without op or line: {}", error.what());
  } catch (const std::exception& error) {
    stop_failing();
    fault = error.what();
  }
  if (fault.empty() && !are_same(results(row, inputs), usual)) fault = "other values afterwards";
  return fault;
}

}  // namespace

TEST_CASE("an op that gets no memory, forward or backward, is a MemoryError with op and line, and leaves nothing") {
  const long stride = fails_every_one() ? 1 : 37;
  long tried = 0, offset = 0;
  std::string wrong;
  for (const Row& row : table()) {
    if (!is_survivable(row)) continue;
    std::thread([&] {
      set_memory_cache_limit(0);
      MemoryStatistics before = memory_statistics();
      {
        std::vector<Tensor> inputs = draw_inputs(row, row.dtypes[0], table_seed), usual = results(row, inputs);
        for (Fault kind : {Fault::once, Fault::from_then_on}) {
          std::size_t faults = 0;
          for (long index = offset++ % stride;; index += stride) {
            std::string fault = fault_of(row, inputs, usual, index, kind);
            if (!has_failed()) break;
            ++tried;
            if (!fault.empty() && ++faults <= 2)
              wrong += fmt::format("{}, allocation {}{}: {}\n", row.name, index,
                                   kind == Fault::once ? "" : " and all later ones", fault);
          }
        }
      }
      release_memory_cache();
      MemoryStatistics after = memory_statistics();
      if (after.live_tensors != before.live_tensors || after.live_bytes != before.live_bytes)
        wrong += fmt::format("{}: {} tensors are left\n", row.name, after.live_tensors - before.live_tensors);
    }).join();
  }
  INFO(wrong);
  CHECK(wrong.empty());
  CHECK(tried > 0);
  if (stride == 1) std::cout << tried << " allocations failed\n";
}

}  // namespace reel_test
