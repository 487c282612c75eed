#include <functional>

#include "catch.h"
#include "cuda/gpu.h"

namespace reel_test {

using namespace reel;

TEST_CASE("values survive the way to a device and back, in every dtype and layout") {
  if (lacks_device()) return;
  for (DType dtype : {f32, f64, bf16, f16, i32, i64, u8, boolean, i8, i16})
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3, 4}, Shape{0, 2}}) {
      CAPTURE(name_of(dtype), to_string(shape));
      Tensor x = to(arange(shape.numel()), dtype).numel() == 0 ? zeros(shape, {.dtype = dtype})
                                                               : reshape(to(arange(shape.numel()), dtype), shape);
      Tensor there = to(x, gpu);
      CHECK(there.device() == gpu);
      CHECK(there.shape() == shape);
      CHECK(to_string(to(there, cpu)) == to_string(x));
      CHECK(to_string(to(to(transpose(x.rank() > 1 ? x : reshape(x, {1, -1})), gpu), cpu)) ==
            to_string(transpose(x.rank() > 1 ? x : reshape(x, {1, -1}))));
    }
}

TEST_CASE("elements of a device are read by item, to_vector and printing, not by pointer") {
  if (lacks_device()) return;
  Tensor x = to(tensor({1.5f, 2.5f}), gpu);
  CHECK(x.to_vector<float>() == std::vector<float>{1.5f, 2.5f});
  CHECK(to(tensor({7.0f}), gpu).item<float>() == 7);
  CHECK(to_string(x) == to_string(tensor({1.5f, 2.5f})));
  CHECK_THROWS_AS(x.data<float>(), DeviceError);
  CHECK_THROWS_AS(x.write<float>(), DeviceError);
}

TEST_CASE("what is made under a DeviceGuard lies on its device") {
  if (lacks_device()) return;
  {
    DeviceGuard guard(gpu);
    CHECK(default_device() == gpu);
    CHECK(tensor({1.0f}).device() == gpu);
    {
      DeviceGuard inner(cpu);
      CHECK(tensor({1.0f}).device() == cpu);
    }
    CHECK(default_device() == gpu);
  }
  CHECK(default_device() == cpu);
}

TEST_CASE("the gradient of a copy flows back to the device that the values came from") {
  if (lacks_device()) return;
  Tensor x = tensor({1.0f, 2.0f});
  Tape tape;
  tape.watch(x);
  Tensor y = to(to(x, gpu), cpu);
  Tensor gradient = tape.gradient(y, x, {.seed = tensor({3.0f, 4.0f})});
  CHECK(gradient.device() == cpu);
  CHECK(gradient.to_vector<float>() == std::vector<float>{3, 4});
}

TEST_CASE("the same seed draws the same integers, masks and uniform numbers on a device, to the bit") {
  if (lacks_device()) return;
  using Draw = std::function<Tensor(Device, Generator*)>;
  const std::pair<const char*, Draw> draws[] = {
      {"rand",
       [](Device device, Generator* generator) { return rand({1000}, {.device = device, .generator = generator}); }},
      {"rand of f64",
       [](Device device, Generator* generator) {
         return rand({1000}, {.dtype = f64, .device = device, .generator = generator});
       }},
      {"rand of bf16",
       [](Device device, Generator* generator) {
         return rand({1000}, {.dtype = bf16, .device = device, .generator = generator});
       }},
      {"randint",
       [](Device device, Generator* generator) {
         return randint(-5, std::int64_t{1} << 40, {1000}, {.device = device, .generator = generator});
       }},
      {"randperm",
       [](Device device, Generator* generator) { return randperm(1000, {.device = device, .generator = generator}); }},
      {"bernoulli",
       [](Device device, Generator* generator) {
         return bernoulli(0.3, {1000}, {.device = device, .generator = generator});
       }},
      {"dropout",
       [](Device device, Generator* generator) {
         return dropout(ones({1000}, {.device = device}), {.probability = 0.4, .generator = generator});
       }},
      {"multinomial",
       [](Device device, Generator* generator) {
         Tensor p = reshape(arange(1, 21, 1, {.dtype = f32, .device = device}), {1, 20});
         return multinomial(p, 10, {.generator = generator});
       }},
  };
  for (const auto& [name, draw] : draws) {
    CAPTURE(name);
    Generator here(42), there(42);
    for (int call = 0; call < 3; ++call) {
      CAPTURE(call);
      Tensor found = to(draw(gpu, &there), cpu), expected = draw(cpu, &here);
      CHECK(all(found == expected).item<bool>());
    }
  }
}

TEST_CASE("operands on different devices are refused by name") {
  if (lacks_device()) return;
  CHECK_THROWS_WITH(add(tensor({1.0f}), to(tensor({1.0f}), gpu)), contains("different devices"));
}

}  // namespace reel_test
