#include "core/foreign_memory.h"

#include <reel/reel.h>

#include <thread>
#include <vector>

#include "catch.h"

using namespace reel;

namespace {

struct Array {
  std::vector<float> values{0, 1, 2, 3, 4, 5};
  int releases = 0;
  Tensor held;  // dropped by the release

  Tensor as_tensor(const Shape& shape, const Shape& strides, std::int64_t first = 0) {
    detail::ForeignMemory memory{
        .data = values.data(), .bytes = values.size() * sizeof(float), .owner = this, .release = [](void* owner) {
          auto& array = *static_cast<Array*>(owner);
          ++array.releases;
          array.held.reset();
        }};
    return detail::adopt_memory(memory, values.data() + first, shape, strides, f32, "test", Location::here());
  }
};

}  // namespace

TEST_CASE("a tensor over foreign memory reads and writes it, and releases it once with its last view") {
  Array array;
  Tensor transposed;
  {
    Tensor x = array.as_tensor({2, 3}, {3, 1});
    CHECK(x.is_contiguous());
    CHECK(x.data<float>() == array.values.data());
    x.write<float>()[1] = 10;
    transposed = transpose(x);
  }
  CHECK(array.releases == 0);
  CHECK(array.values[1] == 10);
  CHECK(transposed.to_vector<float>() == std::vector<float>{0, 3, 10, 4, 2, 5});
  transposed.reset();
  CHECK(array.releases == 1);
}

TEST_CASE("foreign memory with strides of any sign is read in the order that they give") {
  Array array;
  Tensor x = array.as_tensor({2, 2}, {3, -2}, 2);
  CHECK_FALSE(x.is_contiguous());
  CHECK((x + 0).to_vector<float>() == std::vector<float>{2, 0, 5, 3});
}

TEST_CASE("a tape keeps foreign memory until the gradient has read it") {
  Array array;
  Tensor w = ones({6}).requires_grad();
  Tape tape;
  Tensor loss = sum(w * array.as_tensor({6}, {1}));
  CHECK(array.releases == 0);
  tape.backward(loss);
  CHECK(array.releases == 1);
  CHECK(w.grad().to_vector<float>() == array.values);
}

TEST_CASE("foreign memory is released on another thread, and may hold a tensor of a third") {
  Array array;
  std::thread([&] { array.held = ones({1000}).requires_grad(); }).join();
  Tensor x = array.as_tensor({6}, {1});
  x.requires_grad();
  std::thread([moved = std::move(x)]() mutable { moved.reset(); }).join();
  CHECK(array.releases == 1);
}

TEST_CASE("foreign memory of no elements may have no address") {
  Array array;
  array.values.clear();
  Tensor x = array.as_tensor({0, 3}, {3, 1});
  CHECK(sum(x).item() == 0);
  x.reset();
  CHECK(array.releases == 1);
}
