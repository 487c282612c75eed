#include <cstring>
#include <limits>
#include <optional>

#include "batching/checks.h"

// Calls whose groups would cost more than they save run at once.

namespace reel_test {

using namespace reel;

namespace {

struct Counts {
  std::int64_t grouped = 0, cheaper = 0;
};

Counts counts_of(const BatchReport& report, const std::string& op) {
  Counts counts;
  for (const BatchedLine& line : report.lines)
    if (line.op == op) {
      counts.grouped += line.grouped;
      counts.cheaper += line.alone_cheaper;
    }
  return counts;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  std::vector<float> x = a.to_vector<float>(), y = b.to_vector<float>();
  return a.shape() == b.shape() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("calls without a weight run at once, and so do products by a small one") {
  GroupCost cost(1);
  Tensor small = randn({8, 8}), large = randn({512, 512});
  std::vector<int> examples = numbers(16);
  BatchReport report;
  auto run = [&](int i) {
    Tensor x = tanh(full({1, 8}, i)), y = matmul(full({1, 512}, 0.1 * i), large);
    return concat({matmul(x, small), sigmoid(y)}, 1);
  };
  std::vector<Tensor> results = batch_map(examples, run, {.report = &report});
  CHECK(counts_of(report, "tanh").cheaper == 16);
  CHECK(counts_of(report, "matmul").cheaper == 16);
  CHECK(counts_of(report, "matmul").grouped == 16);
  // They follow a product that is delayed.
  CHECK(counts_of(report, "sigmoid").grouped == 16);
  CHECK(counts_of(report, "concat").grouped == 16);
  for (int i : examples) CHECK(same_bits(results[static_cast<std::size_t>(i)], run(i)));
}

TEST_CASE(
    "a weight's size from which products are joined falls with the number of examples, and while a tape records") {
  GroupCost cost(1);
  auto least_size = [](int count, bool records) {
    for (std::int64_t size = 8; size <= 1024; size += 16) {
      Tensor W = randn({size, size}).requires_grad(), x = randn({1, size});
      BatchReport report;
      std::optional<Tape> tape;
      if (records) tape.emplace();
      batch_map(numbers(count), [&](int) { return matmul(x, W); }, {.report = &report});
      if (counts_of(report, "matmul").grouped > 0) return size;
    }
    return std::numeric_limits<std::int64_t>::max();
  };
  for (bool records : {false, true}) {
    CAPTURE(records);
    CHECK(least_size(4, records) <= least_size(2, records));
    CHECK(least_size(16, records) < least_size(4, records));
    CHECK(least_size(64, records) < least_size(16, records));
    CHECK(least_size(64, records) > 8);
  }
  CHECK(least_size(64, true) < least_size(64, false));
}

TEST_CASE("a product after which only calls without a weight follow is not delayed for long") {
  GroupCost cost(1);
  std::vector<int> examples = numbers(64);
  auto cheaper = [&](int followers, bool is_parameter) {
    Tensor W = randn({320, 320});
    if (is_parameter) W.requires_grad();
    BatchReport report;
    NoRecord pause;
    batch_map(examples,
              [&](int) {
                Tensor x = ones({1, 320});
                for (int step = 0; step < 4; ++step) {
                  x = matmul(x, W);
                  for (int k = 0; k < followers; ++k) x = tanh(x);
                  if (x(0, 0).item() > 2) break;
                }
                return x;
              },
              {.report = &report});
    return counts_of(report, "matmul").cheaper;
  };
  for (bool is_parameter : {false, true}) {
    CHECK(cheaper(1, is_parameter) == 0);
    CHECK(cheaper(60, is_parameter) > 64);
  }
}

TEST_CASE("results and gradients are the same bits with a report, which every call passes, as without one") {
  for (double factor : {0.0, 1e-4, 1.0}) {
    CAPTURE(factor);
    GroupCost cost(factor);
    auto run = [&](BatchReport* report) {
      manual_seed(3);
      Tensor table = randn({20, 64}).requires_grad(), W = randn({64, 64}).requires_grad(),
             b = randn({64}).requires_grad();
      Tape tape;
      std::vector<Tensor> losses = batch_map(numbers(40),
                                             [&](int i) {
                                               Tensor h = embedding(table, tensor({std::int64_t(i % 20)}));
                                               for (int step = 0; step < 2 + i % 5; ++step)
                                                 h = tanh(matmul(h, W) + b) * 0.5 + h;
                                               return sum(square(h));
                                             },
                                             {.report = report});
      Tensor all = stack(losses);
      tape.backward(sum(all));
      return std::vector<Tensor>{all, table.grad(), W.grad(), b.grad()};
    };
    BatchReport report;
    std::vector<Tensor> with = run(&report), without = run(nullptr);
    CHECK(report.lines.size() >= 6);
    for (std::size_t i = 0; i < with.size(); ++i) CHECK(same_bits(with[i], without[i]));
  }
}

TEST_CASE("an example whose calls run at once reads what another has delayed") {
  GroupCost cost(1);
  Tensor W = randn({512, 512});
  Tensor common;
  std::vector<Tensor> results = batch_map(numbers(8), [&](int i) {
    if (i == 0) common = matmul(ones({1, 512}), W);
    return tanh(common) + i;
  });
  Tensor expected = tanh(matmul(ones({1, 512}), W));
  for (int i = 0; i < 8; ++i) CHECK(same_bits(results[static_cast<std::size_t>(i)], expected + i));

  // In two siblings of one example.
  std::vector<Tensor> pairs = batch_map(numbers(4), [&](int) {
    Tensor made;
    auto [first, second] = both([&] { return tanh(ones({1, 4})); }, [&] { return made = matmul(ones({1, 512}), W); });
    return concat({first, tanh(made)}, 1);
  });
  for (const Tensor& pair : pairs) CHECK(same_bits(slice(pair, 1, 4, 516), expected));
}

TEST_CASE("two calls by different parameters are not stacked, which would copy them") {
  GroupCost cost(0);
  Tensor V = randn({64, 64}).requires_grad(), W = randn({64, 64}).requires_grad();
  BatchReport report;
  Tape tape;
  batch_map(numbers(2), [&](int i) { return sum(matmul(ones({1, 64}), i == 0 ? V : W)); }, {.report = &report});
  CHECK(counts_of(report, "matmul").grouped == 0);
  CHECK(counts_of(report, "sum").grouped == 2);
}

TEST_CASE("lookups begin chains of enough examples while a tape records, and run at once otherwise") {
  GroupCost cost(1);
  Tensor table = randn({20, 300}).requires_grad(), W = randn({300, 300}).requires_grad();
  auto grouped = [&](int count, bool records) {
    BatchReport report;
    std::optional<Tape> tape;
    if (records) tape.emplace();
    batch_map(numbers(count), [&](int i) { return matmul(embedding(table, tensor({std::int64_t(i % 20)})), W); },
              {.report = &report});
    return counts_of(report, "embedding").grouped;
  };
  CHECK(grouped(32, true) == 32);
  CHECK(grouped(8, true) == 0);
  CHECK(grouped(32, false) == 0);
}

TEST_CASE("products by one view of a parameter that each example takes are joined while a tape records") {
  GroupCost cost(1);
  Tensor W = randn({300, 300}).requires_grad();
  BatchReport report;
  std::vector<int> examples = numbers(16);
  auto gradient = [&](const BatchOptions& options) {
    Tape tape;
    std::vector<Tensor> made = batch_map(
        examples,
        [&](int i) {
          return sum(square(matmul(full({1, 300}, 0.01 * i), transpose(W))));
        },
        options);
    return tape.gradient(sum(stack(made)), W);
  };
  Tensor found = gradient({.report = &report}), expected = gradient({.immediate = true});
  CHECK(counts_of(report, "matmul").grouped == 16);
  CHECK(max(abs(found - expected)).item() <= 1e-5 * max(abs(expected)).item());
  // Without a report, too, which every call passes.
  CHECK(same_bits(gradient({}), found));
}

TEST_CASE("a report of a batch within an example whose calls run at once counts all of them") {
  GroupCost cost(1);
  for (bool immediate : {true, false}) {
    CAPTURE(immediate);
    std::vector<BatchReport> reports(3);
    batch_map(numbers(3), [&](int i) {
      Tensor x = tanh(ones({1, 4}));
      std::vector<int> inner = numbers(5);
      batch_map(inner,
                [&](int) {
                  return matmul(exp(x), ones({4, 4}));
                },
                {.immediate = immediate, .report = &reports[static_cast<std::size_t>(i)]});
      return tanh(x);
    });
    for (const BatchReport& report : reports) {
      std::int64_t exps = 0, products = 0;
      for (const BatchedLine& line : report.lines) {
        if (line.op == "exp") exps += line.calls;
        if (line.op == "matmul") products += line.calls;
      }
      CHECK(exps == 5);
      CHECK(products == 5);
    }
  }
}

TEST_CASE("a cost of groups that is out of range is refused") {
  double before = group_cost();
  for (double bad : {-1.0, 1e7, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    CHECK_THAT(error_of<Error>([&] { set_group_cost(bad); }), contains("it must be in [0, 1000000]"));
  CHECK(group_cost() == before);
}

}  // namespace reel_test
