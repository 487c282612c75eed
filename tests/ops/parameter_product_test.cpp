#include <thread>

#include "ops/table/table.h"

#include "catch.h"
#include "cpu/simd/products/packed_parameters.h"

// Products with parameters, whose packed copies are cached until the parameters change.

namespace reel_test {

using namespace reel;

namespace {

Tensor drawn(const Shape& shape, DType dtype, std::uint64_t seed) {
  Generator generator(seed);
  return to(randn(shape, {.generator = &generator}), dtype);
}

// Multiplies until the packed copy of w is used, and compares with a copy of w, which is no parameter.
void check_product(const Tensor& x, const Tensor& w) {
  Tensor expected = matmul(x, w.strides()[1] == 1 ? copy(w) : transpose(copy(transpose(w))));
  for (int time = 0; time < 6; ++time) CHECK(same_bits(matmul(x, w), expected));
}

void check_products(const Tensor& w) {
  for (std::int64_t rows : {1, 3, 7, 9, 33, 60}) {
    CAPTURE(rows);
    check_product(drawn({rows, w.size(0)}, w.dtype(), 7), w);
    check_product(drawn({rows, w.size(1)}, w.dtype(), 8), transpose(w));
  }
}

}  // namespace

TEST_CASE("a product by a parameter has the same bits whether it was packed or not") {
  const Shape shapes[] = {{16, 16}, {70, 33}, {128, 512}, {300, 450}, {257, 65}, {600, 1030}, {1, 100}, {100, 1}};
  for (const Shape& shape : shapes)
    for (DType dtype : floating_dtypes) {
      CAPTURE(to_string(shape), name_of(dtype));
      check_products(drawn(shape, dtype, 1).requires_grad());
    }
}

TEST_CASE("a product of bf16 has the same bits whether its parameter was packed or not, from any place in memory") {
  const Shape shapes[] = {{64, 64}, {96, 70}, {37, 515}, {300, 130}, {1030, 65}, {2100, 200}, {64, 1100}};
  for (const Shape& shape : shapes) {
    CAPTURE(to_string(shape));
    Tensor all = drawn({shape[0] + 1, shape[1] + 1}, bf16, 1).requires_grad();
    for (const Tensor& w : {drawn(shape, bf16, 2).requires_grad(), slice(slice(all, 0, 1), 1, 1)})
      for (std::int64_t rows : {4, 16, 65, 200}) {
        CAPTURE(rows);
        Tensor x = drawn({rows, shape[0]}, bf16, 7), y = drawn({rows, shape[1]}, bf16, 8);
        check_product(x, w);
        check_product(y, transpose(w));
        // Rows in another layout.
        for (const Tensor& other : {transpose(copy(transpose(x))), slice(concat({x, x}, 1), 1, shape[0])})
          CHECK(same_bits(matmul(other, w), matmul(x, w)));
      }
  }
}

TEST_CASE("a parameter that was overwritten is packed anew") {
  Tensor w = drawn({70, 90}, f32, 1).requires_grad();
  check_products(w);
  SECTION("through a guard") { w.write<float>()[5] = 3; }
  SECTION("in place") {
    NoRecord pause;
    mul_(w, 2);
  }
  SECTION("through a view") {
    NoRecord pause;
    fill_(slice(w, 0, 3, 9), 1);
  }
  SECTION("by an optimiser") {
    optim::SGD sgd({w}, {.learning_rate = 0.5});
    Tape tape;
    tape.backward(sum(matmul(ones({3, 70}), w)));
    sgd.step();
  }
  check_products(w);
}

TEST_CASE("who listens to an op that overwrites a parameter multiplies by its new values") {
  Tensor w = drawn({300, 450}, f32, 1).requires_grad(), x = drawn({8, 300}, f32, 2);
  check_product(x, w);
  NoRecord pause;
  int heard = 0;
  debug::Listen listen([&](const debug::OpEvent& event) {
    if (std::string_view(event.op) != "mul_") return;
    ++heard;
    CHECK(same_bits(matmul(x, w), matmul(x, copy(w))));
  });
  mul_(w, 2.0);
  CHECK(heard == 1);
}

TEST_CASE("a parameter is not packed while it is being written") {
  Tensor w = drawn({70, 90}, f32, 1).requires_grad(), x = drawn({20, 70}, f32, 2);
  auto values = w.write<float>();
  for (int time = 0; time < 4; ++time) {
    values[17] = static_cast<float>(time);
    CHECK(same_bits(matmul(x, w), matmul(x, copy(w))));
  }
}

TEST_CASE("several parts of one parameter are packed apart") {
  Tensor all = drawn({2, 130, 130}, f32, 1).requires_grad();
  for (int time = 0; time < 3; ++time)
    for (const Tensor& part : std::vector<Tensor>{all(0), all(1), slice(all(0), 1, 5, 70), slice(all(1), 0, 5, 70)})
      check_products(part);
}

TEST_CASE("a parameter in the memory of one that was freed is packed anew") {
  for (int round = 0; round < 20; ++round)
    check_products(drawn({64, 96}, f32, static_cast<std::uint64_t>(round)).requires_grad());
}

TEST_CASE("parameters that are packed leave no tensor behind") {
  MemoryStatistics before = memory_statistics();
  check_products(drawn({64, 96}, f32, 1).requires_grad());
  MemoryStatistics after = memory_statistics();
  CHECK(after.live_tensors == before.live_tensors);
  CHECK(after.live_storages == before.live_storages);
  CHECK(after.live_bytes == before.live_bytes);
}

TEST_CASE("threads may multiply by one parameter") {
  Tensor w = drawn({128, 200}, f32, 1).requires_grad(), x = drawn({30, 128}, f32, 2), expected = matmul(x, copy(w));
  bool same[4] = {};
  std::vector<std::thread> threads;
  for (bool& found : same)
    threads.emplace_back([&] {
      found = true;
      for (int time = 0; time < 5; ++time) found &= same_bits(matmul(x, w), expected);
    });
  for (std::thread& thread : threads) thread.join();
  for (bool found : same) CHECK(found);
}

TEST_CASE("what is kept of parameters is packed at the second use, and bounded") {
  detail::PackedParameters kept;
  auto key = [](std::uint32_t number, std::uint32_t version) {
    return detail::PackedParameters::Key{{number, version}, nullptr, 4, 4, 4, 1, {}};
  };
  int packed = 0;
  auto find = [&](std::uint32_t number, std::uint32_t version, std::int64_t size) {
    return kept.find<float>(key(number, version), 1, size, [&](float* to) {
      ++packed;
      to[0] = static_cast<float>(number);
    });
  };
  CHECK(find(1, 0, 16) == nullptr);
  REQUIRE(find(1, 0, 16) != nullptr);
  CHECK(*find(1, 0, 16) == 1);
  CHECK(packed == 1);
  CHECK(find(1, 1, 16) == nullptr);
  CHECK(find(1, 1, 16) != nullptr);
  CHECK(packed == 2);
  CHECK(kept.bytes() == 64);

  const std::int64_t large = detail::PackedParameters::most_bytes / 16;
  for (std::uint32_t number = 2; number < 40; ++number) {
    find(number, 0, large);
    const float* found = find(number, 0, large);
    REQUIRE(found != nullptr);
    CHECK(*found == static_cast<float>(number));
    CHECK(kept.bytes() <= detail::PackedParameters::most_bytes);
  }
  find(50, 0, 16 * large);
  CHECK(find(50, 0, 16 * large) == nullptr);  // too much
}

}  // namespace reel_test
