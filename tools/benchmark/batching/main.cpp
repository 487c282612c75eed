// Times programs that batch_map batches beside those batched by hand, and beside themselves run one example at a time.

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include <reel/threads.h>

#include "compare.h"

extern "C" {
int omp_get_max_threads();
}

int main(int argument_count, char** arguments) {
  using reel_bench::Comparison;
  std::string_view filter = argument_count > 1 ? arguments[1] : "";
  std::vector<int> thread_counts{1};
  if (int most = omp_get_max_threads(); most > 1) thread_counts.push_back(most);
  // A minibatch of 256 trees diverges after some epochs at the workload's learning rate. Activations then vanish to denormals,
  // on which some processors take fifteen times as long; threads started later, libtorch's too, inherit the setting.
  reel::set_flush_denormals(true);
  reel_bench::Outcome outcome;
  fmt::print("Random data and parameters are of seed {}.\n", reel_bench::examples_seed);
  auto wanted = [&](std::string_view section) { return filter.empty() || section == filter; };
  bool any = false;
  auto section = [&](std::string_view name, std::vector<Comparison> (*make)()) {
    if (!wanted(name)) return;
    any = true;
    for (const Comparison& one : make()) compare(one, thread_counts, outcome);
  };
  if (wanted("trees")) {
    fmt::print("Losses of two epochs of the Tree-LSTM\n");
    check_tree_losses(outcome);
  }
  section("trees", reel_bench::tree_comparisons);
  section("branches", reel_bench::branch_comparisons);
  section("grouped", reel_bench::grouped_comparisons);
  section("ungrouped", reel_bench::ungrouped_comparisons);
  if (wanted("sizes")) {
    any = true;
    compare_sizes(outcome);
  }
  if (!any) {
    fmt::print(stderr,
               "reel_batching_bench: there is no section \"{}\"; there are: trees branches grouped ungrouped sizes\n",
               filter);
    return 2;
  }
  if (outcome.wrong > 0) fmt::print("\n{} results are WRONG\n", outcome.wrong);
  fmt::print("\n{}\n", outcome.missed == 0 ? "every goal met" : fmt::format("{} goals missed", outcome.missed));
  return outcome.wrong == 0 ? 0 : 1;
}
