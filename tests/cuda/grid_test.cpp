#include "../../cuda/device/grid.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "../../cuda/device/offsets.h"
#include "../../cuda/device/packed_row.h"
#include "../../cuda/device/split.h"
#include "catch.h"

// The index arithmetic of kernels, which needs no device.

namespace reel_test {

using namespace reel::detail;

TEST_CASE("the threads of a flat grid do each piece of work once") {
  for (int multiprocessors : {1, 2, 132})
    for (std::int64_t count : {1, 2, 255, 256, 257, 16384, 16385, 40000, 1200000}) {
      CAPTURE(multiprocessors, count);
      Grid grid = flat_grid(count, multiprocessors);
      REQUIRE(grid.blocks >= 1);
      REQUIRE(grid.blocks <= static_cast<unsigned>(multiprocessors) * blocks_per_multiprocessor);
      std::vector<int> done(static_cast<std::size_t>(count), 0);
      for (unsigned block = 0; block < grid.blocks; ++block)
        for (unsigned thread = 0; thread < grid.threads; ++thread)
          run_flat({block, thread, grid.blocks, grid.threads}, count,
                   [&](std::int64_t i) { ++done[static_cast<std::size_t>(i)]; });
      bool once = true;
      for (int times : done) once &= times == 1;
      CHECK(once);
    }
}

TEST_CASE("a flat grid counts beyond 32 bits") {
  std::int64_t count = (std::int64_t{1} << 33) + 5;
  Grid grid = flat_grid(count, 132);
  std::int64_t last = -1;
  // The last thread, which has the largest stride.
  run_flat({grid.blocks - 1, grid.threads - 1, grid.blocks, grid.threads}, count, [&](std::int64_t i) { last = i; });
  std::int64_t step = std::int64_t{grid.blocks} * grid.threads;
  CHECK(last == step - 1 + (count - step) / step * step);
}

TEST_CASE("groups have a whole number of warps, and as many as a block may") {
  for (std::int64_t length : {0, 1, 512, 513, 2048, 5000, 100000}) {
    int threads = threads_for_row(length);
    CHECK(threads % warp_size == 0);
    CHECK(threads <= most_threads);
    for (std::int64_t groups : {1, 3, 4, 5, 2000000}) {
      Grid grid = group_grid(groups, threads);
      CHECK(grid.threads <= static_cast<unsigned>(most_threads));
      CHECK(grid.blocks >= 1);
      std::int64_t at_once = std::int64_t{grid.blocks} * (threads == warp_size ? warps_per_block : 1);
      CHECK((at_once >= groups || grid.blocks == 1u << 20));
    }
  }
}

TEST_CASE(
    "the threads of a group use each pack of a row once in every pass, and load it once if the row is one chunk") {
  auto check = [](auto loop_of, int lanes) {
    for (int threads : {32, 128, 512})
      for (std::int64_t packs : {0, 1, 31, 32, 33, 128, 129, 1000, 5000})
        for (std::int64_t begin : {0, 3}) {
          CAPTURE(lanes, threads, packs, begin);
          auto loop = loop_of(begin, begin + packs, threads);
          // The registers of a thread: one pack for each k.
          std::vector<std::vector<std::int64_t>> kept(static_cast<std::size_t>(threads),
                                                      std::vector<std::int64_t>(8, -1));
          for (int pass : {0, 1, 2, 3}) {
            std::vector<int> loads(static_cast<std::size_t>(begin + packs)), uses = loads;
            bool right = true;
            for (int thread = 0; thread < threads; ++thread) {
              auto& own = kept[static_cast<std::size_t>(thread)];
              loop.run(
                  pass, thread,
                  [&](int k, std::int64_t p) {
                    own[static_cast<std::size_t>(k)] = p;
                    ++loads[static_cast<std::size_t>(p)];
                  },
                  [&](int k, std::int64_t p) {
                    right &= own[static_cast<std::size_t>(k)] == p;
                    ++uses[static_cast<std::size_t>(p)];
                  });
            }
            CHECK(right);
            CHECK(std::count(uses.begin() + begin, uses.end(), 1) == packs);
            bool one_chunk = packs <= std::int64_t{threads} * packs_at_once(lanes);
            std::int64_t loaded = std::count(loads.begin() + begin, loads.end(), 1);
            CHECK((pass == 0 ? loaded == packs : one_chunk ? loaded == 0 : loaded < packs));
          }
        }
  };
  check([](std::int64_t begin, std::int64_t end, int threads) { return PackLoop<4>(begin, end, threads); }, 4);
  check([](std::int64_t begin, std::int64_t end, int threads) { return PackLoop<1>(begin, end, threads); }, 1);
}

TEST_CASE("a Divisor divides as the processor does") {
  std::mt19937_64 random(4);
  std::vector<std::uint32_t> numbers{0,   1,     2,     3,     5,          7,          255,        256,       257,
                                     641, 65535, 65536, 65537, 0x3fffffff, 0x40000000, 0x7ffffffe, 0x7fffffff};
  for (int i = 0; i < 200; ++i) numbers.push_back(static_cast<std::uint32_t>(random() >> (33 + i % 31)));
  for (std::uint32_t divisor : numbers) {
    if (divisor == 0) continue;
    Divisor by(divisor);
    for (std::uint32_t n : numbers) {
      if (by.quotient(n) != n / divisor) FAIL(n << " / " << divisor << " gives " << by.quotient(n));
      // Around multiples, where an error of 1 changes the quotient.
      std::uint64_t multiple = std::uint64_t{n} / divisor * divisor;
      for (std::uint64_t near : {multiple, multiple + divisor - 1})
        if (near < 0x80000000u && by.quotient(static_cast<std::uint32_t>(near)) != near / divisor)
          FAIL(near << " / " << divisor);
    }
  }
}

TEST_CASE("Offsets are computed in 32 bits if the number of elements and all offsets have 31 bits") {
  auto is_narrow = [](std::vector<std::int64_t> dims, std::vector<std::int64_t> strides) {
    View view{nullptr, dims.data(), strides.data(), 1, static_cast<int>(dims.size()), reel::f32, false};
    return Offsets<1>(Iteration<1>({&view})).is_narrow();
  };
  constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
  CHECK(is_narrow({}, {}));
  CHECK(is_narrow({3, 5}, {7, 1}));
  CHECK(is_narrow({most}, {1}));
  CHECK(!is_narrow({most + 1}, {1}));
  CHECK(is_narrow({2}, {most}));
  CHECK(is_narrow({2}, {-most}));
  CHECK(!is_narrow({2}, {most + 1}));
  CHECK(!is_narrow({2, 2}, {most, 1}));
  CHECK(!is_narrow({2, 2}, {most, -1}));
  CHECK(!is_narrow({1 << 20, 1 << 20}, {0, 0}));
  CHECK(!is_narrow({3, 3}, {std::int64_t{1} << 60, std::int64_t{1} << 60}));
  CHECK(is_narrow({0, 3}, {std::int64_t{1} << 40, 1}));
}

TEST_CASE("a Split divides as the processor does, in 32 bits and beyond") {
  std::mt19937_64 random(6);
  for (std::int64_t divisor : {1, 2, 3, 7, 640, 65537, 0x7fffffff})
    for (std::int64_t limit : {std::int64_t{1000}, std::int64_t{0x7fffffff}, std::int64_t{1} << 40}) {
      reel::detail::Split split(divisor, limit);
      for (int i = 0; i < 1000; ++i) {
        auto n = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
        auto [whole, rest] = split(n);
        if (whole != n / divisor || rest != n % divisor) FAIL(n << " / " << divisor << " gives " << whole);
      }
    }
}

TEST_CASE("Offsets find the elements of views that are strided and broadcast") {
  struct Form {
    std::vector<std::int64_t> dims, strides;
    View view() const {
      std::int64_t numel = 1;
      for (std::int64_t dim : dims) numel *= dim;
      return {nullptr, dims.data(), strides.data(), numel, static_cast<int>(dims.size()), reel::f32, false};
    }
  };
  const Form forms[][2] = {
      {{{2, 3, 4}, {12, 4, 1}}, {{2, 3, 4}, {1, 2, 6}}},
      {{{2, 3, 4}, {12, 4, 1}}, {{3, 1}, {5, 7}}},
      {{{5, 1, 2}, {2, 2, 1}}, {{1, 1, 2}, {0, 0, -1}}},
      {{{}, {}}, {{}, {}}},
      {{{70000, 40000}, {40000, 1}}, {{40000}, {3}}},  // more elements than 32 bits count
      {{{30000, 2}, {2, 1}}, {{30000, 2}, {71583, -1}}},
      {{{30000, 2}, {2, 1}}, {{30000, 2}, {71585, 1}}},  // offsets beyond 2³¹, of few elements
      {{{30000, 2}, {2, 1}}, {{30000, 2}, {-71590, 5}}},
  };
  for (const auto& form : forms) {
    View a = form[0].view(), b = form[1].view();
    Offsets<2> offsets{Iteration<2>({&a, &b})};
    std::int64_t step = a.numel > 1000 ? a.numel / 997 : 1;
    for (std::int64_t i = 0; i < a.numel; i += step) {
      std::int64_t rest = i, expected[2] = {0, 0};
      for (int axis = a.rank; axis-- > 0; rest /= a.dims[axis]) {
        std::int64_t at = rest % a.dims[axis];
        expected[0] += at * a.strides[axis];
        int own = axis - (a.rank - b.rank);
        if (own >= 0 && b.dims[own] != 1) expected[1] += at * b.strides[own];
      }
      std::int64_t found[2];
      offsets.find(i, found);
      if (found[0] != expected[0] || found[1] != expected[1])
        FAIL("element " << i << " lies at " << found[0] << ", " << found[1]);
    }
  }
}

}  // namespace reel_test
