#include <reel/io/dlpack.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>
#include <reel/shape.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "../core/context.h"
#include "../core/dtype_dispatch.h"
#include "guard.h"
#include "handles.h"

namespace reel::detail {

const Tensor& tensor_of(const reel_tensor* handle) { return given(handle, "the tensor")->value; }

std::unique_ptr<reel_tensor> handle_of(const Tensor& value) {
  Location unknown;
  Tensor here = value.device() == cpu ? value : to(Arg(value, unknown), cpu);
  wait_for(here, unknown);
  return std::make_unique<reel_tensor>(reel_tensor{here.is_contiguous() ? here : contiguous(Arg(here, unknown))});
}

namespace {

static_assert(
    static_cast<int>(REEL_F32) == static_cast<int>(f32) && static_cast<int>(REEL_F64) == static_cast<int>(f64) &&
    static_cast<int>(REEL_BF16) == static_cast<int>(bf16) && static_cast<int>(REEL_F16) == static_cast<int>(f16) &&
    static_cast<int>(REEL_I32) == static_cast<int>(i32) && static_cast<int>(REEL_I64) == static_cast<int>(i64) &&
    static_cast<int>(REEL_U8) == static_cast<int>(u8) && static_cast<int>(REEL_BOOL) == static_cast<int>(boolean) &&
    static_cast<int>(REEL_I8) == static_cast<int>(i8) && static_cast<int>(REEL_I16) == static_cast<int>(i16) &&
    REEL_MAX_RANK == max_rank);

DType dtype_of_c(int32_t dtype) {
  if (dtype < 0 || dtype >= dtype_count) refuse(REEL_DTYPE_ERROR, "there is no dtype {}", dtype);
  return static_cast<DType>(dtype);
}

Shape shape_of_c(int32_t rank, const int64_t* sizes) {
  if (rank < 0 || rank > max_rank) refuse(REEL_SHAPE_ERROR, "a tensor has from 0 to {} axes, not {}", max_rank, rank);
  if (rank > 0) given(sizes, "sizes");
  return Shape(std::span(sizes, static_cast<std::size_t>(rank)), Location());
}

// The elements that a caller gives.
struct Elements {
  DType dtype;
  Shape shape;
  const void* data;
};

std::size_t bytes_of(const Shape& shape, DType dtype) {
  std::size_t bytes = size_of(dtype);
  for (std::int64_t size : shape) {
    if (size < 0) refuse(REEL_SHAPE_ERROR, "the shape {} has a negative size", to_string(shape));
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(size), &bytes))
      refuse(REEL_SHAPE_ERROR, "the shape {} has more elements than memory can hold", to_string(shape));
  }
  return bytes;
}

Elements checked_elements(int32_t dtype, int32_t rank, const int64_t* sizes, const void* data, size_t bytes) {
  Elements elements{dtype_of_c(dtype), shape_of_c(rank, sizes), data};
  std::size_t needed = bytes_of(elements.shape, elements.dtype);
  if (bytes != needed)
    refuse(REEL_ARGUMENT_ERROR, "the elements of {} {} have {} bytes, not {}", to_string(elements.shape),
           name_of(elements.dtype), needed, bytes);
  if (bytes > 0) given(data, "data");
  if (elements.dtype == boolean) {
    const auto* first = static_cast<const unsigned char*>(data);
    const auto* last = first + bytes;
    if (const auto* wrong = std::find_if(first, last, [](unsigned char byte) { return byte > 1; }); wrong != last)
      refuse(REEL_ARGUMENT_ERROR, "element {} of bool is {}, and neither 0 nor 1", wrong - first, int{*wrong});
  }
  return elements;
}

// Memory of the caller, which DLPack's deleter releases.
struct Wrapped {
  io::DLManagedTensor managed{};
  Shape shape;
  void (*release)(void* owner) = nullptr;
  void* owner = nullptr;

  static void drop(io::DLManagedTensor* self) {
    std::unique_ptr<Wrapped> own(static_cast<Wrapped*>(self->manager_ctx));
    if (own->release) own->release(own->owner);
  }
};

io::DLDataType dlpack_type_of(DType dtype) {
  return {static_cast<std::uint8_t>(number_kind(dtype)), static_cast<std::uint8_t>(8 * size_of(dtype)), 1};
}

}  // namespace
}  // namespace reel::detail

using namespace reel;
using namespace reel::detail;

reel_status reel_tensor_create(int32_t dtype, int32_t rank, const int64_t* sizes, const void* data, size_t bytes,
                               reel_tensor** result) {
  return guarded(__func__, [&] {
    given(result, "result");
    Elements elements = checked_elements(dtype, rank, sizes, data, bytes);
    auto count = static_cast<std::size_t>(elements.shape.numel());
    Tensor copied = copy_in(data, count, elements.dtype, elements.shape, Location());
    *result = std::make_unique<reel_tensor>(reel_tensor{std::move(copied)}).release();
  });
}

reel_status reel_tensor_wrap(int32_t dtype, int32_t rank, const int64_t* sizes, void* data, size_t bytes,
                             void (*release)(void* owner), void* owner, reel_tensor** result) {
  return guarded(__func__, [&] {
    given(result, "result");
    Elements elements = checked_elements(dtype, rank, sizes, data, bytes);
    auto wrapped = std::make_unique<Wrapped>();
    wrapped->shape = elements.shape;
    wrapped->owner = owner;
    wrapped->managed = {.dl_tensor = {.data = data,
                                      .device = {.device_type = 1, .device_id = 0},
                                      .ndim = rank,
                                      .dtype = dlpack_type_of(elements.dtype),
                                      .shape = wrapped->shape.begin(),
                                      .strides = nullptr,
                                      .byte_offset = 0},
                        .manager_ctx = wrapped.get(),
                        .deleter = &Wrapped::drop};
    // Before the tensor takes the memory over, so that nothing can fail afterwards.
    auto handle = std::make_unique<reel_tensor>();
    handle->value = io::from_dlpack(&wrapped->managed, Location());
    wrapped.release()->release = release;
    *result = handle.release();
  });
}

void reel_tensor_free(reel_tensor* tensor) { std::unique_ptr<reel_tensor> freed(tensor); }

int32_t reel_tensor_rank(const reel_tensor* tensor) {
  return guarded_value(__func__, int32_t{-1}, [&] { return int32_t{tensor_of(tensor).rank()}; });
}

int64_t reel_tensor_size(const reel_tensor* tensor, int32_t axis) {
  return guarded_value(__func__, int64_t{-1}, [&] { return tensor_of(tensor).size(axis, Location()); });
}

int64_t reel_tensor_numel(const reel_tensor* tensor) {
  return guarded_value(__func__, int64_t{-1}, [&] { return tensor_of(tensor).numel(); });
}

int32_t reel_tensor_dtype(const reel_tensor* tensor) {
  return guarded_value(__func__, int32_t{-1}, [&] { return static_cast<int32_t>(tensor_of(tensor).dtype()); });
}

size_t reel_tensor_bytes(const reel_tensor* tensor) {
  return guarded_value(__func__, size_t{0}, [&] {
    const Tensor& x = tensor_of(tensor);
    return static_cast<std::size_t>(x.numel()) * size_of(x.dtype());
  });
}

const void* reel_tensor_data(const reel_tensor* tensor) {
  return guarded_value(__func__, static_cast<const void*>(nullptr),
                       [&] { return static_cast<const void*>(tensor_of(tensor).body().data); });
}

reel_status reel_tensor_copy_out(const reel_tensor* tensor, void* buffer, size_t bytes) {
  return guarded(__func__, [&] {
    const Tensor& x = tensor_of(tensor);
    std::size_t needed = static_cast<std::size_t>(x.numel()) * size_of(x.dtype());
    if (bytes != needed)
      refuse(REEL_ARGUMENT_ERROR, "the elements of {} {} have {} bytes, not {}", to_string(x.shape()),
             name_of(x.dtype()), needed, bytes);
    if (bytes > 0) std::memcpy(given(buffer, "buffer"), x.body().data, bytes);
  });
}

reel_status reel_tensor_convert(const reel_tensor* tensor, int32_t dtype, reel_tensor** result) {
  return guarded(__func__, [&] {
    given(result, "result");
    *result = handle_of(to(Arg(tensor_of(tensor), Location()), dtype_of_c(dtype))).release();
  });
}

reel_status reel_tensor_reshape(const reel_tensor* tensor, int32_t rank, const int64_t* sizes, reel_tensor** result) {
  return guarded(__func__, [&] {
    given(result, "result");
    *result = handle_of(reshape(Arg(tensor_of(tensor), Location()), shape_of_c(rank, sizes))).release();
  });
}

reel_status reel_tensor_rows(const reel_tensor* tensor, int64_t begin, int64_t end, reel_tensor** result) {
  return guarded(__func__, [&] {
    given(result, "result");
    const Tensor& x = tensor_of(tensor);
    if (x.rank() == 0) refuse(REEL_SHAPE_ERROR, "a tensor of rank 0 has no rows");
    if (begin < 0 || begin > end || end > x.shape()[0])
      refuse(REEL_INDEX_ERROR, "there are no rows from {} to {} in {} {}", begin, end, to_string(x.shape()),
             name_of(x.dtype()));
    *result = handle_of(slice(Arg(x, Location()), 0, begin, end)).release();
  });
}

reel_status reel_tensor_concat(const reel_tensor* const* tensors, size_t count, int32_t axis, reel_tensor** result) {
  return guarded(__func__, [&] {
    given(result, "result");
    if (count == 0) refuse(REEL_ARGUMENT_ERROR, "there are no tensors to join");
    given(tensors, "tensors");
    std::vector<Tensor> parts;
    for (const reel_tensor* part : std::span(tensors, count)) parts.push_back(tensor_of(part));
    *result = handle_of(concat(parts, axis, Location())).release();
  });
}
