#include <reel/io/dlpack.h>
#include <reel/reel.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

// An array of another library: six floats, and the number of times that they were released.
template <class Managed>
struct Foreign {
  std::vector<float> values{0, 1, 2, 3, 4, 5};
  std::vector<std::int64_t> sizes{2, 3}, strides{3, 1};
  int released = 0;
  Managed managed{};

  Foreign() {
    managed.dl_tensor = {.data = values.data(),
                         .device = {1, 0},
                         .ndim = 2,
                         .dtype = {2, 32, 1},
                         .shape = sizes.data(),
                         .strides = strides.data(),
                         .byte_offset = 0};
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Foreign*>(self->manager_ctx)->released; };
    if constexpr (requires { managed.version; }) managed.version = {1, 2};
  }
};
using Array = Foreign<io::DLManagedTensor>;
using VersionedArray = Foreign<io::DLManagedTensorVersioned>;

template <class E>
std::string refusal(Array& array) {
  std::string said = error_of<E>([&] { io::from_dlpack(&array.managed); });
  CHECK_THAT(said, contains("io::from_dlpack: ") && contains("dlpack_test.cpp:"));
  CHECK(array.released == 0);
  return said;
}

}  // namespace

TEST_CASE("a tensor in DLPack has the address, shape, strides and type of the one it was made of") {
  struct Type {
    DType dtype;
    int code, bits;
  };
  for (Type type : {Type{f32, 2, 32}, Type{f64, 2, 64}, Type{bf16, 4, 16}, Type{f16, 2, 16}, Type{i32, 0, 32},
                    Type{i64, 0, 64}, Type{u8, 1, 8}, Type{boolean, 6, 8}, Type{i8, 0, 8}, Type{i16, 0, 16}}) {
    Tensor x = transpose(slice(ones({4, 3}, {.dtype = type.dtype}), 0, 1, 3));
    io::DLPackTensor made = io::to_dlpack(x);
    const io::DLTensor& described = made->dl_tensor;
    CHECK(static_cast<char*>(described.data) + described.byte_offset == x.body().data);
    CHECK(described.device.device_type == 1);
    CHECK(described.ndim == 2);
    CHECK(described.shape[0] == 3);
    CHECK(described.shape[1] == 2);
    CHECK(described.strides[0] == 1);
    CHECK(described.strides[1] == 3);
    CHECK(int{described.dtype.code} == type.code);
    CHECK(int{described.dtype.bits} == type.bits);
    CHECK(described.dtype.lanes == 1);
  }
  CHECK(io::to_dlpack(zeros({}))->dl_tensor.ndim == 0);
}

TEST_CASE("the elements live as long as either side, and each deleter runs once") {
  MemoryStatistics before = memory_statistics();
  io::DLPackTensor made;
  {
    Tensor x = full({2, 3}, 7);
    made = io::to_dlpack(x);
  }
  CHECK(static_cast<float*>(made->dl_tensor.data)[5] == 7);
  io::DLManagedTensor* released = made.release();
  std::thread([&] { released->deleter(released); }).join();
  CHECK(memory_statistics().live_tensors == before.live_tensors);
}

TEST_CASE("an array of another library is a tensor over its elements until the last view is gone") {
  auto array = std::make_unique<Array>();
  Tensor view;
  {
    Tensor x = io::from_dlpack(&array->managed);
    CHECK(x.data<float>() == array->values.data());
    CHECK(x.shape() == Shape{2, 3});
    view = transpose(x);
    x.write<float>()[0] = 9;
    array->values[1] = 8;
  }
  CHECK(array->released == 0);
  CHECK(view.to_vector<float>() == std::vector<float>{9, 3, 8, 4, 2, 5});
  std::thread([moved = std::move(view)]() mutable { moved.reset(); }).join();
  CHECK(array->released == 1);
}

TEST_CASE("offsets, strides of any sign, missing strides and missing deleters are as DLPack means them") {
  Array array;
  array.strides = {3, -1};
  array.managed.dl_tensor.byte_offset = 2 * sizeof(float);
  CHECK((io::from_dlpack(&array.managed) + 0).to_vector<float>() == std::vector<float>{2, 1, 0, 5, 4, 3});
  array.managed.dl_tensor.strides = nullptr;
  array.managed.dl_tensor.byte_offset = 0;
  array.managed.deleter = nullptr;
  CHECK(io::from_dlpack(&array.managed).to_vector<float>() == array.values);
  array.managed.dl_tensor.ndim = 0;
  array.managed.dl_tensor.shape = nullptr;
  CHECK(io::from_dlpack(&array.managed).item() == 0);
}

TEST_CASE("the structs of DLPack 1.0 have flags that are kept") {
  VersionedArray array;
  CHECK(io::from_dlpack(&array.managed).to_vector<float>() == array.values);
  CHECK(array.released == 1);
  array.managed.flags = 1;
  CHECK_THAT(error_of<Error>([&] { io::from_dlpack(&array.managed); }), contains("takes no read-only tensor"));
  array.managed.flags = 0;
  array.managed.version = {2, 0};
  CHECK_THAT(error_of<Error>([&] { io::from_dlpack(&array.managed); }), contains("reads DLPack 1.x, not 2.0"));
  CHECK(array.released == 1);
  io::DLPackTensorVersioned made = io::to_dlpack_versioned(ones({3}), true);
  CHECK(made->version.major == 1);
  CHECK(made->flags == 1);
}

TEST_CASE("a tensor that comes back keeps its storage, whose overwrites the tape sees") {
  Tensor x = ones({3}).requires_grad(), y = io::from_dlpack(io::to_dlpack(x * 1).release());
  Tensor values = full({3}, 2);
  Tape tape;
  Tensor loss = sum(x * values);
  Tensor same = io::from_dlpack(io::to_dlpack(values).release());
  fill_(same, 5);
  CHECK_THAT(error_of<TapeError>([&] { tape.backward(loss); }), contains("dlpack_test.cpp:"));
  CHECK(y.to_vector<float>() == std::vector<float>{1, 1, 1});
}

TEST_CASE("a tape keeps an array of another library for its gradient; what it tracks itself is refused") {
  Array array;
  Tensor w = ones({2, 3}).requires_grad();
  {
    Tape tape;
    Tensor h = w * io::from_dlpack(&array.managed), loss = sum(h);
    CHECK_THAT(error_of<TapeError>([&] { io::to_dlpack(h); }), contains("pass stop_gradient(x)"));
    CHECK(io::to_dlpack(stop_gradient(h))->dl_tensor.data == h.body().data);
    CHECK(io::to_dlpack(w)->dl_tensor.data == w.body().data);
    CHECK(array.released == 0);
    tape.backward(loss);
  }
  CHECK(array.released == 1);
  CHECK(w.grad().to_vector<float>() == array.values);
}

TEST_CASE("what a tensor cannot be is refused, and stays the caller's") {
  Array array;
  io::DLTensor& given = array.managed.dl_tensor;
  const io::DLTensor good = given;
  given.dtype = {2, 8, 1};
  CHECK_THAT(refusal<DTypeError>(array), contains("elements of the kind float with 8 bits"));
  given.dtype = {5, 64, 1};
  CHECK_THAT(refusal<DTypeError>(array), contains("complex"));
  given.dtype = {2, 32, 4};
  CHECK_THAT(refusal<DTypeError>(array), contains("4 lanes"));
  for (int kind : {7, 77}) {
    given.dtype = {static_cast<std::uint8_t>(kind), 32, 1};
    CHECK_THAT(refusal<DTypeError>(array), contains("the kind " + std::to_string(kind) + " "));
  }
  given = good;
  given.device = {10, 0};
  CHECK_THAT(refusal<DeviceError>(array), contains("DLPack's type 10"));
  given.device = {2, 300};
  CHECK_THAT(refusal<DeviceError>(array), contains("no cuda:300"));
  given = good;
  given.ndim = 9;
  CHECK_THAT(refusal<ShapeError>(array), contains("at most 8 axes, not 9"));
  given.ndim = -1;
  CHECK_THAT(refusal<ShapeError>(array), contains("not -1"));
  given = good;
  array.sizes = {2, -3};
  CHECK_THAT(refusal<ShapeError>(array), contains("which no tensor can have"));
  array.sizes = {INT64_MAX, INT64_MAX};
  CHECK_THAT(refusal<ShapeError>(array), contains("which no tensor can have"));
  array.sizes = {2, 3};
  array.strides = {INT64_MAX, INT64_MAX};
  CHECK_THAT(refusal<ShapeError>(array), contains("lead out of any memory"));
  array.strides = {3, 1};
  given.byte_offset = 1;
  CHECK_THAT(refusal<ShapeError>(array), contains("no multiple of their 4 bytes"));
  given = good;
  given.data = nullptr;
  CHECK_THAT(refusal<Error>(array), contains("6 elements at a null pointer"));
  given = good;
  given.shape = nullptr;
  CHECK_THAT(refusal<Error>(array), contains("without its sizes"));
  CHECK_THROWS_AS(io::from_dlpack(static_cast<io::DLManagedTensor*>(nullptr)), Error);
}

TEST_CASE("an empty array may have no address, and is released at once with its tensor") {
  Array array;
  array.sizes = {0, 3};
  array.managed.dl_tensor.data = nullptr;
  CHECK(sum(io::from_dlpack(&array.managed)).item() == 0);
  CHECK(array.released == 1);
}
