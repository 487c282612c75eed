#include <reel/dist/sharded_embedding.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include <fmt/format.h>

#include <reel/io/safetensors.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>

#include "catch.h"
#include "dist/row_shares.h"
#include "io/folder.h"
#include "ranks.h"

using namespace reel;
using namespace reel_test;

namespace {

// A million rows of 64 in place of a small table.
bool is_long() {
  const char* set = std::getenv("REEL_ENDURANCE");
  return set && std::string(set) == "1";
}

// One table that is not divided, updated in plain loops by rows, in double precision.
struct PlainTable {
  std::int64_t count, size;
  std::vector<double> values, first = {}, second = {};
  std::int64_t steps = 0;

  enum class Rule { sgd, adagrad, adam };
  // gradients: of each row that was read.
  void step(Rule rule, double rate, const std::map<std::int64_t, std::vector<double>>& gradients) {
    first.resize(values.size());
    second.resize(values.size());
    ++steps;
    for (const auto& [row, gradient] : gradients)
      for (std::int64_t i = 0; i < size; ++i) {
        auto at = static_cast<std::size_t>(row * size + i);
        double g = gradient[static_cast<std::size_t>(i)], t = static_cast<double>(steps);
        if (rule == Rule::sgd) {
          values[at] -= rate * g;
        } else if (rule == Rule::adagrad) {
          second[at] += g * g;
          values[at] -= rate * g / (std::sqrt(second[at]) + 1e-10);
        } else {
          first[at] = 0.9 * first[at] + 0.1 * g;
          second[at] = 0.999 * second[at] + 0.001 * g * g;
          values[at] -=
              rate * (first[at] / (1 - std::pow(0.9, t))) / (std::sqrt(second[at] / (1 - std::pow(0.999, t))) + 1e-8);
        }
      }
  }
};

// All rows on all ranks, in order.
std::vector<double> whole_table(const dist::Group& group, const dist::ShardedEmbedding& table) {
  Tensor rows = group.all_gatherv(table.rows()), values = group.all_gatherv(table.shard());
  return to(index_select(values, 0, argsort(rows)), f64).to_vector<double>();
}

std::unique_ptr<optim::Optimiser> optimiser_of(PlainTable::Rule rule, const Tensor& shard, double rate) {
  if (rule == PlainTable::Rule::sgd)
    return std::make_unique<optim::SGD>(std::vector{shard}, optim::SGDOptions{.learning_rate = rate});
  if (rule == PlainTable::Rule::adagrad)
    return std::make_unique<optim::Adagrad>(std::vector{shard}, optim::AdagradOptions{.learning_rate = rate});
  return std::make_unique<optim::Adam>(std::vector{shard}, optim::AdamOptions{.learning_rate = rate});
}

// A folder for all ranks.
class SharedFolder {
 public:
  explicit SharedFolder(dist::Group group) : group_(std::move(group)) {
    if (group_.rank() == 0) own_.emplace();
    path_ = own_ ? own_->file("") : "";
    group_.broadcast(path_);
  }
  ~SharedFolder() { group_.barrier(); }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + name; }
  std::size_t count() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  dist::Group group_;
  std::optional<reel_test::Folder> own_;
  std::string path_;
};

}  // namespace

TEST_CASE("a table over several ranks is trained as one table is, by SGD, Adagrad and Adam") {
  dist::Group group;
  std::uint64_t seed = printed_seed();
  std::int64_t count = is_long() ? 1'000'000 : 500, size = is_long() ? 64 : 6;
  int steps = is_long() ? 100 : 30;
  using Rule = PlainTable::Rule;
  for (auto [rule, rate] : {std::pair(Rule::sgd, 0.5), std::pair(Rule::adagrad, 0.1), std::pair(Rule::adam, 0.01)}) {
    CAPTURE(static_cast<int>(rule));
    dist::ShardedEmbedding table(group, count, size, {.deviation = 0.1, .seed = seed});
    std::unique_ptr<optim::Optimiser> optimiser = optimiser_of(rule, table.shard(), rate);
    PlainTable plain{count, size, whole_table(group, table)};
    std::mt19937_64 random(seed);
    for (int step = 0; step < steps; ++step) {
      // Few rows are frequent. Each rank has indices of its own, the last one none in some steps; all ranks know all.
      std::map<std::int64_t, std::vector<double>> gradients;
      std::vector<std::int64_t> own;
      std::vector<double> own_factors;
      double items = 0;
      for (int rank = 0; rank < group.size(); ++rank) {
        std::int64_t indices = rank > 0 && rank == group.size() - 1 && step % 3 == 0 ? 0 : 40;
        for (std::int64_t i = 0; i < indices; ++i, ++items) {
          auto row = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(i % 2 ? 7 : count));
          double factor = std::uniform_real_distribution<>(-1, 1)(random);
          gradients[row].resize(static_cast<std::size_t>(size));
          for (std::int64_t k = 0; k < size; ++k)
            gradients[row][static_cast<std::size_t>(k)] += factor * static_cast<double>(k + 1);
          if (rank != group.rank()) continue;
          own.push_back(row);
          own_factors.push_back(factor);
        }
      }
      for (auto& [row, gradient] : gradients)
        for (double& value : gradient) value /= items;
      {
        // The loss of an index is factor · Σ_k (k + 1) x_k, over two look-ups.
        Tape tape;
        std::int64_t half = std::ssize(own) / 2, rest = std::ssize(own) - half;
        Tensor ids = tensor(own), weights = reshape(to(arange(1, size + 1), f32), {1, size});
        Tensor factors = reshape(to(tensor(own_factors), f32), {std::ssize(own), 1});
        Tensor x = concat({table(slice(ids, 0, 0, half)), table(slice(ids, 0, half, half + rest))});
        CHECK(x.shape() == Shape{std::ssize(own), size});
        if (!own.empty()) tape.backward(sum(x * weights * factors));
      }
      table.reduce_gradients(items);
      optimiser->step();
      optimiser->zero_grad();
      plain.step(rule, rate, gradients);
    }
    std::vector<double> found = whole_table(group, table);
    REQUIRE(found.size() == plain.values.size());
    double worst = 0;
    for (std::size_t i = 0; i < found.size(); ++i) worst = std::max(worst, std::abs(found[i] - plain.values[i]));
    CHECK(worst < 1e-4);
  }
}

TEST_CASE("each row belongs to one rank, the ranks have equal shares, and looking rows up gives them") {
  dist::Group group;
  for (std::int64_t count : {1, 2, 7, 1000, 65536}) {
    CAPTURE(count);
    dist::ShardedEmbedding table(group, count, 3, {.seed = 5});
    CHECK(std::abs(table.shard().size(0) * group.size() - count) < group.size());
    std::vector<std::int64_t> all = group.all_gatherv(table.rows()).to_vector<std::int64_t>();
    CHECK(std::ssize(all) == count);
    CHECK(std::ssize(std::set<std::int64_t>(all.begin(), all.end())) == count);
    std::vector<double> expected = whole_table(group, table);
    CHECK(to(table(arange(count)), f64).to_vector<double>() == expected);
    // Frequent rows, those with small indices, are everywhere.
    if (count < 1000) continue;
    std::vector<std::int64_t> own = table.rows().to_vector<std::int64_t>();
    auto frequent = std::ranges::count_if(own, [](std::int64_t row) { return row < 200; });
    CHECK(std::abs(static_cast<double>(frequent) - 200.0 / group.size()) < 40);
  }
}

TEST_CASE("initial values do not depend on the number of ranks") {
  dist::Group group;
  dist::ShardedEmbedding table(group, 100, 4, {.dtype = f64, .seed = 9});
  // The values of one rank, which any number of ranks must give.
  std::vector<double> row = to(table(tensor({42})), f64).to_vector<double>();
  CHECK(row[0] == Approx(0.856400055356931));
  CHECK(row[3] == Approx(-0.977080768555891));
}

TEST_CASE("a saved table is loaded on any number of ranks, and only the latest save stays") {
  dist::Group group;
  SharedFolder folder(group);
  dist::ShardedEmbedding table(group, 333, 5, {.seed = 2});
  std::vector<double> expected = whole_table(group, table);
  Tensor beside = to(table.rows(), f64) * 2;
  for (int save = 0; save < 3; ++save) table.save(folder.file("table"), std::vector<NamedTensor>{{"twice", beside}});
  CHECK(folder.count() == static_cast<std::size_t>(group.size()) + 1);
  group.barrier();
  dist::ShardedEmbedding other(group, 333, 5, {.deviation = 0, .seed = 2});
  std::vector<NamedTensor> loaded = other.load(folder.file("table"));
  CHECK(whole_table(group, other) == expected);
  REQUIRE(loaded.size() == 1);
  CHECK(loaded[0].tensor.to_vector<double>() == beside.to_vector<double>());
  // Files as five ranks would have saved them.
  if (group.rank() == 0) {
    for (std::int64_t rank = 0; rank < 5; ++rank) {
      std::vector<std::int64_t> rows = detail::RowShares(333, 5, 2).rows_of(rank);
      Tensor values = index_select(to(tensor(expected, {333, 5}), f32), 0, tensor(rows));
      io::save(folder.file("five.1." + std::to_string(rank) + "-of-5.safetensors"),
               std::vector<NamedTensor>{{"table", values}, {"twice", to(tensor(rows), f64) * 2}});
    }
    io::save(folder.file("five.safetensors"), std::vector<NamedTensor>{{"index", to(tensor({1, 5, 333, 2}), i64)}});
  }
  group.barrier();
  dist::ShardedEmbedding of_five(group, 333, 5, {.deviation = 0, .seed = 2});
  loaded = of_five.load(folder.file("five"));
  CHECK(whole_table(group, of_five) == expected);
  REQUIRE(loaded.size() == 1);
  CHECK(loaded[0].tensor.to_vector<double>() == beside.to_vector<double>());
  dist::ShardedEmbedding wrong(group, 333, 5, {.seed = 3});
  CHECK_THAT(error_of<Error>([&] { wrong.load(folder.file("table")); }),
             contains("with seed 2, not of 333 with seed 3"));
  dist::ShardedEmbedding narrow(group, 333, 4, {.seed = 2});
  CHECK_THAT(error_of<Error>([&] { narrow.load(folder.file("table")); }), contains("has no table of"));
  group.barrier();
}

TEST_CASE("a table's files may be removed as soon as one rank has loaded them") {
  dist::Group group;
  SharedFolder folder(group);
  dist::ShardedEmbedding table(group, 50, 3, {.seed = 4});
  table.save(folder.file("table"));
  // The other ranks come later.
  if (group.rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  dist::ShardedEmbedding other(group, 50, 3, {.deviation = 0, .seed = 4});
  CHECK(error_of<Error>([&] { other.load(folder.file("table")); }).empty());
  if (group.rank() == 0) {
    for (std::int64_t rank = 0; rank < group.size(); ++rank)
      std::filesystem::remove(folder.file(fmt::format("table.1.{}-of-{}.safetensors", rank, group.size())));
    std::filesystem::remove(folder.file("table.safetensors"));
    CHECK(folder.count() == 0);
  }
  CHECK(whole_table(group, other) == whole_table(group, table));
}

TEST_CASE("what a sharded table cannot do is an error that names the line") {
  dist::Group group;
  dist::ShardedEmbedding table(group, 10, 2);
  CHECK_THAT(error_of<IndexError>([&] {
               table(tensor({3, 10}));
             }),
             contains("index 10 is out of range") && contains("sharded_embedding_test.cpp"));
  CHECK_THAT(error_of<DTypeError>([&] { table(tensor({1.0f})); }), contains("i32 or i64"));
  CHECK_THAT(error_of<Error>([&] { table.reduce_gradients(0); }), contains("the count is 0"));
  CHECK_THAT(error_of<ShapeError>([&] { dist::ShardedEmbedding(group, 0, 2); }), contains("no elements"));
  CHECK_THAT(error_of<ShapeError>([&] {
               table.save("x", std::vector<NamedTensor>{{"other", zeros({100})}});
             }),
             contains("no row for each"));
}

TEST_CASE("a table's files take the place of links, and an index with senseless numbers is refused") {
  dist::Group group;
  SharedFolder folder(group);
  dist::ShardedEmbedding table(group, 10, 2);
  std::string share = fmt::format("table.1.{}-of-{}.safetensors", group.rank(), group.size());
  if (group.rank() == 0) {
    reel_test::put_bytes(folder.file("precious"), "kept");
    std::filesystem::create_symlink("none", folder.file("table.safetensors"));
  }
  group.barrier();
  std::filesystem::create_symlink("precious", folder.file(share));
  table.save(folder.file("table"));
  CHECK_FALSE(std::filesystem::is_symlink(folder.file(share)));
  CHECK_FALSE(std::filesystem::is_symlink(folder.file("table.safetensors")));
  CHECK(reel_test::bytes_of(folder.file("precious")) == "kept");
  table.load(folder.file("table"));
  constexpr std::int64_t huge = std::int64_t{1} << 60, most = std::numeric_limits<std::int64_t>::max();
  for (std::vector<std::int64_t> numbers :
       {std::vector<std::int64_t>{1, huge, 10, 0}, {1, 0, 10, 0}, {most, 1, 10, 0}, {-1, 1, 10, 0}}) {
    group.barrier();
    if (group.rank() == 0)
      io::save(folder.file("table.safetensors"), std::vector<NamedTensor>{{"index", tensor(numbers)}});
    group.barrier();
    CHECK_THAT(error_of<io::FileError>([&] { table.load(folder.file("table")); }),
               contains("is not the index of a sharded table"));
  }
  group.barrier();
}
