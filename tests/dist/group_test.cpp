#include <reel/dist/group.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>
#include <string>

#include <reel/ops.h>
#include <reel/tape.h>

#include "catch.h"
#include "ranks.h"

using namespace reel;
using namespace reel_test;

namespace {

// Equal on each rank.
std::vector<std::int64_t> random_counts(std::mt19937_64& random, int size, std::int64_t most) {
  std::vector<std::int64_t> counts;
  for (int i = 0; i < size; ++i)
    counts.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1)));
  return counts;
}

}  // namespace

TEST_CASE("a group has the ranks that were started, or this process alone") {
  dist::Group group;
  const char* started = std::getenv("OMPI_COMM_WORLD_SIZE");
  CHECK(group.size() == (started ? std::atoi(started) : 1));
  CHECK(group.rank() >= 0);
  CHECK(group.rank() < group.size());
  group.barrier();
}

TEST_CASE("an all-reduce gives the sum, minimum or maximum over the ranks, in every dtype") {
  dist::Group group;
  double n = group.size(), r = group.rank();
  for (DType dtype : {f32, f64, f16, bf16, i32, i64, u8, i8, i16}) {
    for (std::int64_t elements : {0, 1, 3, 1000, 70001}) {
      CAPTURE(name_of(dtype), elements);
      auto reduced = [&](dist::Reduction reduction) {
        Tensor x = full({elements}, r + 1, {.dtype = dtype});
        group.all_reduce(x, reduction);
        return x;
      };
      auto all = [&](const Tensor& x, double value) { return elements == 0 || all_equal(x, value); };
      CHECK(all(reduced(dist::Reduction::sum), n * (n + 1) / 2));
      CHECK(all(reduced(dist::Reduction::min), 1));
      CHECK(all(reduced(dist::Reduction::max), n));
    }
  }
}

TEST_CASE("reductions that run at once give the sums of each") {
  dist::Group group;
  std::vector<Tensor> all;
  std::vector<dist::PendingReduction> pending;
  for (int i = 0; i < 20; ++i) {
    all.push_back(full({1000 * i + 1}, i * (group.rank() + 1), {.dtype = i % 2 ? f32 : f64}));
    pending.push_back(group.start_all_reduce(all.back()));
  }
  for (std::size_t i = pending.size(); i-- > 0;) {
    pending[i].test();
    pending[i].wait();
    CHECK(pending[i].test());
    CHECK(all_equal(all[i], static_cast<double>(i) * group.size() * (group.size() + 1) / 2));
  }
}

TEST_CASE("buffers are reduced again and again, whatever each rank waits for first") {
  dist::Group group;
  double n = group.size(), r = group.rank();
  std::vector<Tensor> buffers;
  for (std::int64_t elements : {0, 1, 1000, 70001, 5000}) {
    buffers.push_back(group.reduction_buffer(elements, f32));
    buffers.push_back(group.reduction_buffer(elements, f64));
  }
  for (int round = 0; round < 30; ++round) {
    std::vector<Tensor> plain;
    std::vector<dist::PendingReduction> pending;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      fill_(buffers[i], (r + 1) * (round + static_cast<double>(i)));
      pending.push_back(group.start_all_reduce(buffers[i]));
      plain.push_back(full({3000}, r + round));
      pending.push_back(group.start_all_reduce(plain.back()));
    }
    if ((group.rank() + round) % 2 == 0) std::ranges::reverse(pending);
    if (group.rank() % 3 == 1) pending[static_cast<std::size_t>(round) % pending.size()].test();
    for (dist::PendingReduction& one : pending) one.wait();
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      CHECK((buffers[i].numel() == 0 || all_equal(buffers[i], n * (n + 1) / 2 * (round + static_cast<double>(i)))));
      CHECK(all_equal(plain[i], n * (n - 1) / 2 + n * round));
    }
  }
  Tensor part = slice(buffers[7], 0, 10, 20), before = copy(buffers[7]);
  group.all_reduce(part);
  CHECK(all_equal(part, n * before.to_vector<double>()[0]));
  buffers.clear();
  Tensor another = group.reduction_buffer(70001);
  CHECK(all_equal(another, 0));
  CHECK_THAT(error_of<DTypeError>([&] { group.reduction_buffer(3, i64); }), contains("i64 cannot be reduced"));
  CHECK_THAT(error_of<ShapeError>([&] { group.reduction_buffer(-1); }), contains("-1 elements"));
}

TEST_CASE("a tensor that a tape keeps cannot be exchanged in place unnoticed") {
  dist::Group group;
  if (group.size() == 1) return;  // nothing is overwritten
  Tensor w = ones({3}).requires_grad();
  const std::function<void(Tensor&)> exchanges[] = {
      [&](Tensor& x) { group.all_reduce(x); },
      [&](Tensor& x) { group.start_all_reduce(x).wait(); },
      [&](Tensor& x) { group.broadcast(x); },
  };
  for (bool is_buffer : {false, true})
    for (DType dtype : {f32, f64, bf16})
      for (const auto& exchange : exchanges) {
        if (dtype == bf16 && (is_buffer || &exchange == &exchanges[1])) continue;
        Tensor x = is_buffer ? group.reduction_buffer(3, dtype) : full({3}, 2, {.dtype = dtype});
        Tape tape;
        Tensor loss = sum(to(w, dtype) * x);
        exchange(x);
        CHECK_THAT(error_of<TapeError>([&] { tape.backward(loss); }), contains("was overwritten at"));
      }
}

TEST_CASE("sums of rounding numbers have equal bits on all ranks") {
  dist::Group group;
  std::mt19937_64 random(printed_seed() + static_cast<std::uint64_t>(group.rank()));
  std::vector<float> values(100003);
  for (float& value : values) value = std::normal_distribution<float>()(random);
  Tensor x = tensor(values), y = tensor(values);
  group.all_reduce(x);
  group.start_all_reduce(y).wait();
  Tensor z = group.reduction_buffer(std::ssize(values));
  copy_(z, tensor(values));
  group.start_all_reduce(z).wait();
  for (const Tensor& sum : {x, y, z}) {
    Tensor of_first = copy(sum);
    group.broadcast(of_first);
    CHECK(of_first.to_vector<float>() == sum.to_vector<float>());
  }
}

TEST_CASE("a broadcast gives every rank the elements or the text of one") {
  dist::Group group;
  for (int root = 0; root < group.size(); ++root) {
    Tensor x = full({3, 5}, group.rank() == root ? 7 : group.rank(), {.dtype = i64});
    group.broadcast(x, root);
    CHECK(all_equal(x, 7));
    std::string text = group.rank() == root ? "of the root, " + std::string(1000, 'x') : "another";
    group.broadcast(text, root);
    CHECK(text == "of the root, " + std::string(1000, 'x'));
  }
  std::string empty = group.rank() == 0 ? "" : "something";
  group.broadcast(empty);
  CHECK(empty.empty());
}

TEST_CASE("rows of different numbers are gathered in the order of the ranks") {
  dist::Group group;
  std::mt19937_64 random(printed_seed());
  for (int round = 0; round < 20; ++round) {
    std::vector<std::int64_t> counts = random_counts(random, group.size(), 5);
    std::vector<double> expected;
    std::int64_t rows = 0;
    for (int rank = 0; rank < group.size(); ++rank) {
      rows += counts[static_cast<std::size_t>(rank)];
      expected.insert(expected.end(), static_cast<std::size_t>(3 * counts[static_cast<std::size_t>(rank)]), rank);
    }
    Tensor own = full({counts[static_cast<std::size_t>(group.rank())], 3}, group.rank(), {.dtype = f64});
    Tensor all = group.all_gatherv(own);
    CHECK(all.shape() == Shape{rows, 3});
    CHECK(all.to_vector<double>() == expected);
  }
  CHECK(group.all_gatherv(zeros({2, 0})).shape() == Shape{2 * group.size(), 0});
}

TEST_CASE("each rank receives the rows that the others have for it") {
  dist::Group group;
  std::mt19937_64 random(printed_seed());
  auto size = static_cast<std::size_t>(group.size()), rank = static_cast<std::size_t>(group.rank());
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<std::int64_t>> counts;
    for (std::size_t i = 0; i < size; ++i) counts.push_back(random_counts(random, group.size(), 4));
    // Each row says from whom and to whom it goes.
    std::vector<std::int64_t> sent, expected, received_counts;
    for (std::size_t to = 0; to < size; ++to)
      for (std::int64_t i = 0; i < counts[rank][to]; ++i)
        sent.insert(sent.end(), {static_cast<std::int64_t>(rank), static_cast<std::int64_t>(to)});
    for (std::size_t from = 0; from < size; ++from) {
      received_counts.push_back(counts[from][rank]);
      for (std::int64_t i = 0; i < counts[from][rank]; ++i)
        expected.insert(expected.end(), {static_cast<std::int64_t>(from), static_cast<std::int64_t>(rank)});
    }
    dist::Exchanged received = group.alltoallv(tensor(sent, {std::ssize(sent) / 2, 2}), counts[rank]);
    CHECK(received.counts == received_counts);
    CHECK(received.rows.to_vector<std::int64_t>() == expected);
  }
}

TEST_CASE("a process alone that aborts ends with its status, and says why") {
  if (dist::Group().size() > 1) return;  // a child would end the other ranks
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::cout.flush();
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    dist::Group().abort("no more data", 7);
  }
  close(ends[1]);
  std::string said;
  char bytes[256];
  for (ssize_t count; (count = read(ends[0], bytes, sizeof bytes)) > 0;)
    said.append(bytes, static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));
  CHECK(said == "rank 0 of 1: no more data\n");
}

TEST_CASE("what cannot be exchanged is refused with the line of the caller") {
  dist::Group group;
  Tensor flags = zeros({3}, {.dtype = DType::boolean}), undefined;
  CHECK_THAT(error_of<DTypeError>([&] { group.all_reduce(flags); }), contains("bool") && contains("group_test.cpp"));
  CHECK_THAT(error_of<Error>([&] { group.broadcast(flags, group.size()); }), contains("there is no rank"));
  CHECK_THAT(error_of<Error>([&] { group.all_reduce(undefined); }), contains("undefined"));
  Tensor across = transpose(zeros({2, 3}));
  CHECK_THAT(error_of<ShapeError>([&] { group.all_reduce(across); }), contains("not contiguous"));
  CHECK_THAT(error_of<ShapeError>([&] { group.all_gatherv(zeros({})); }), contains("has no rows"));
  CHECK_THAT(error_of<ShapeError>([&] { group.alltoallv(zeros({3}), {}); }), contains("counts"));
}
