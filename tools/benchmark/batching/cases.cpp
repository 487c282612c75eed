#include <fmt/format.h>

#include <cmath>

#include "compare.h"
#include "core/context.h"

namespace reel_bench {

using namespace reel;

namespace {

// The arithmetic of a tree on average, forward and backward.
constexpr double work_of_tree = 46.9e6;

struct TreeProgram {
  std::string name;
  TreeBatching form;
  bool immediate;
};
const std::vector<TreeProgram>& tree_programs() {
  static const std::vector<TreeProgram> all{
      {"by level, by hand", TreeBatching::by_level, false},
      {"node by node", TreeBatching::examples, true},
      {"batch_map", TreeBatching::examples, false},
  };
  return all;
}

// Products of 512 rows and the weights of inner nodes.
constexpr int product_count = 4;
constexpr std::int64_t product_rows = 512;
constexpr double product_flop = 2.0 * product_rows * (2 * tree_net::hidden) * (5 * tree_net::hidden);
Work products() {
  Tensor x = drawn_tensor(1, 1, {product_rows, 2 * tree_net::hidden}),
         w = drawn_tensor(2, 0.08f, {2 * tree_net::hidden, 5 * tree_net::hidden});
  return [=] {
    Tensor y;
    for (int i = 0; i < product_count; ++i) y = matmul(x, w);
    return static_cast<double>(y.data<float>()[0]);
  };
}

// The speed at which examples would pass if their multiplications and additions cost what they do in products.
Program product_bound(double flop) {
  return {"bound: products of 512 rows", products(), product_count * product_flop / flop, false};
}

Comparison trees_in(int minibatch, const std::vector<Tree>& trees) {
  Comparison made{fmt::format("Tree-LSTM, training, minibatch {}", minibatch), "trees", {}, {}, {}};
  auto count = static_cast<double>(trees.size());
  for (const TreeProgram& one : tree_programs()) {
    auto training = std::make_shared<TreeTraining>();
    BatchOptions options{.immediate = one.immediate};
    made.programs.push_back(
        {one.name, [=] { return training->epoch_in_batches(trees, minibatch, one.form, options); }, count});
  }
  std::optional<PeerTrees> peer = peer_trees();
  if (peer) made.programs.push_back({peer->name, [=] { return peer->epoch(trees, minibatch); }, count});
  std::size_t peer_index = 3, bound = made.programs.size();
  made.programs.push_back(product_bound(work_of_tree));
  made.ratios = {{1, 0, "of by level"}, {2, 0, "of by level", RatioKind::speed, minibatch == 25 ? 0.84 : 0.87}};
  for (std::size_t i = 0; i < 3; ++i) {
    if (peer) made.ratios.push_back({i, peer_index, "of libtorch by level"});
    made.ratios.push_back({i, bound, "of the bound"});
  }
  return made;
}

// The groups of a run: mean size, and how many of the calls ran in one.
std::string groups_of(const BatchReport& report) {
  std::int64_t calls = 0, groups = 0, grouped = 0;
  for (const BatchedLine& line : report.lines) {
    calls += line.calls;
    groups += line.groups;
    grouped += line.grouped;
  }
  if (groups == 0) return fmt::format("no groups, {} calls", calls);
  return fmt::format("groups of {:.1f} calls on average, with {:.0f} % of {} calls forward",
                     static_cast<double>(grouped) / static_cast<double>(groups),
                     100.0 * static_cast<double>(grouped) / static_cast<double>(calls), calls);
}

using Make = Work (*)(const BatchOptions& options);

Comparison beside_immediate(const std::string& name, const std::string& unit, double operations, Make make,
                            RatioKind kind, double goal) {
  BatchReport report;
  make({.report = &report})();
  return {name,
          unit,
          {{"immediate", make({.immediate = true}), operations}, {"batch_map", make({}), operations}},
          {{1, 0, kind == RatioKind::added ? "ns an op more" : "of immediate", kind, goal}},
          {groups_of(report)}};
}

}  // namespace

void check_tree_losses(Outcome& outcome) {
  use_threads(1);
  std::vector<Tree> trees = random_trees();
  for (int minibatch : {25, 256}) {
    // Where no losses are published, those of the first program are expected.
    std::array<double, 2> expected{NAN, NAN};
    for (const tree_net::ExpectedLosses& one : tree_net::expected_losses)
      if (one.minibatch == minibatch) expected = one.epochs;
    auto check = [&](const std::string& name, auto epoch) {
      std::string found;
      bool agrees = true;
      for (double& loss : expected) {
        double one = epoch();
        if (std::isnan(loss)) loss = one;
        agrees = agrees && std::abs(one - loss) <= 1e-5 * loss;
        found += fmt::format("{:12.3f}", one);
      }
      fmt::print("  minibatch {:>3}, {:<28}{}: {}\n", minibatch, name, found, agrees ? "pass" : "FAIL");
      std::fflush(stdout);
      outcome.wrong += !agrees;
    };
    for (const TreeProgram& one : tree_programs()) {
      TreeTraining training;
      check(one.name,
            [&] { return training.epoch_in_batches(trees, minibatch, one.form, {.immediate = one.immediate}); });
    }
    if (std::optional<PeerTrees> peer = peer_trees()) check(peer->name, [&] { return peer->epoch(trees, minibatch); });
  }
}

std::vector<Comparison> tree_comparisons() {
  std::vector<Tree> trees = random_trees();
  return {trees_in(25, trees), trees_in(256, trees)};
}

std::vector<Comparison> branch_comparisons() {
  std::vector<Comparison> all;
  std::vector<Tree> trees = random_trees();
  for (TreeBatching form : {TreeBatching::examples, TreeBatching::siblings}) {
    // Without learning every run decides as the recorded one did.
    TreeTraining net(0);
    auto recorded = std::make_shared<ExtraCells>(trees);
    net.epoch_in_batches(trees, 25, form, {}, recorded.get());
    std::int64_t nodes = 0, extra = 0;
    for (std::size_t i = 0; i < trees.size(); ++i)
      for (std::size_t k = 0; k < trees[i].size(); ++k) {
        nodes += trees[i][k].left >= 0;
        extra += recorded->of_tree[i][k];
      }
    auto predicted = std::make_shared<ExtraCells>(*recorded);
    recorded->source = ExtraCells::Source::recorded;
    auto epochs = [&](const std::shared_ptr<ExtraCells>& cells) -> Work {
      auto training = std::make_shared<TreeTraining>(0);
      return [=, cells = cells] { return training->epoch_in_batches(trees, 25, form, {}, cells.get()); };
    };
    auto count = static_cast<double>(trees.size());
    all.push_back({fmt::format("Tree-LSTM{}, minibatch 25, an extra cell by an argmax just computed",
                               form == TreeBatching::siblings ? " with both()" : ""),
                   "trees",
                   {{"decisions recorded, no value read", epochs(recorded), count},
                    {"decisions by the argmax, read", epochs(predicted), count}},
                   {{1, 0, "of recorded decisions", RatioKind::speed, 0.85}},
                   {fmt::format("{} of {} inner nodes have the extra cell", extra, nodes)}});
  }
  return all;
}

std::vector<Comparison> grouped_comparisons() {
  std::vector<Comparison> all;
  for (const ExampleWorkload& one : grouped_workloads()) {
    Comparison made = beside_immediate(fmt::format("{}, training, minibatch {}", one.name, sentence_count), "examples",
                                       sentence_count, one.make, RatioKind::speed, 0);
    made.programs.push_back({"by hand", one.by_hand(), sentence_count});
    made.ratios.push_back({1, 2, "of by hand", RatioKind::speed, one.share});
    double before = detail::context().multiplications;
    one.make({.immediate = true})();
    double flop = 2 * (detail::context().multiplications - before) / sentence_count;
    made.notes.push_back(fmt::format("products of {:.1f} MFLOP an example", flop * 1e-6));
    for (std::size_t i = 0; i < 3; ++i) made.ratios.push_back({i, 3, "of the bound"});
    made.programs.push_back(product_bound(flop));
    all.push_back(std::move(made));
  }
  return all;
}

void compare_sizes(Outcome& outcome) {
  constexpr std::int64_t widths[] = {16, 64, 150, 300};
  constexpr std::size_t examples[] = {1, 2, 4, 8, 32, 256};
  constexpr double mean_goal = 0.75, worst_goal = 1.08;
  fmt::print("\nTraining, time over that of the plain loop, by width and number of examples\n{:<38}{:>6}", "", "width");
  for (std::size_t count : examples) fmt::print("{:>7}", count);
  use_threads(1);
  double logarithms = 0, worst = 0;
  int cells = 0;
  for (const SizedWorkload& net : sized_workloads())
    for (std::int64_t width : widths) {
      fmt::print("\n{:<38}{:>6}", net.name, width);
      for (std::size_t count : examples) {
        Work plain = net.make(width, count, {.immediate = true}), batched = net.make(width, count, {});
        double expected = plain(), found = batched();
        outcome.wrong += std::abs(found - expected) > 1e-4 * std::abs(expected);
        Repeats repeats = repeats_of(plain);
        Times ratios;
        for (int round = 0; round < rounds; ++round) {
          Measured own, other;
          own.add(time_of(batched, repeats), 1);
          other.add(time_of(plain, repeats), 1);
          ratios.push_back(own.fair[0] / other.fair[0]);
        }
        double ratio = median(ratios);
        fmt::print("{:>7.2f}", ratio);
        std::fflush(stdout);
        logarithms += std::log(ratio);
        worst = std::max(worst, ratio);
        ++cells;
      }
    }
  double mean = std::exp(logarithms / cells);
  outcome.missed += (mean > mean_goal) + (worst > worst_goal);
  fmt::print("\ngeometric mean of {} cells {:.3f} (≤ {}), the worst {:.2f} (≤ {})\n", cells, mean, mean_goal, worst,
             worst_goal);
}

std::vector<Comparison> ungrouped_comparisons() {
  auto large = [](const std::string& name, Make make) {
    return beside_immediate(name, "examples", large_examples, make, RatioKind::time, 1.05);
  };
  return {
      large("784-1024-1024-10, 4 examples of 64 rows, training", mlp_examples),
      large("two convolutions, 9216-128-10, 4 examples of 64 images, training", cnn_examples),
      large("LSTM in a loop, T = 50, H = 512, 4 examples of 32 sequences, training", lstm_examples),
      beside_immediate(fmt::format("{} examples that share no op", unshared_examples), "op",
                       unshared_examples * unshared_ops, unshared, RatioKind::added, 200),
      beside_immediate("Tree-LSTM, one tree at a time", "trees", 25, single_trees, RatioKind::time, 1.05),
  };
}

}  // namespace reel_bench
