#include <chrono>
#include <memory>

#include "cases.h"
#include "models/workloads.h"

namespace reel_bench {

namespace {

using Clock = std::chrono::steady_clock;

// Instructions are counted inside of the functions that are named measured_…
[[gnu::noinline]] void measured_work(const Work& work) { work(); }

}  // namespace

std::vector<Case> models() {
  std::vector<Case> cases;
  for (const Workload& one : workloads()) {
    auto work = std::make_shared<Work>();
    cases.push_back({"models", one.name, one.operations, one.nanoseconds,
                     [work, make = one.make] {
                       if (!*work) *work = make();
                       auto start = Clock::now();
                       measured_work(*work);
                       return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
                     },
                     nullptr, one.instructions});
  }
  return cases;
}

}  // namespace reel_bench
