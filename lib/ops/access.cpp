#include <reel/cuda/kernel.h>
#include <reel/no_record.h>
#include <reel/tensor.h>

#include <ostream>

#include "../core/convert.h"
#include "../core/device/device_module.h"
#include "../core/dtype_dispatch.h"
#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../core/print.h"
#include "../core/storage.h"
#include "../record/tape_list.h"
#include "if_needed.h"
#include "shape/batch.h"

namespace reel {

using namespace detail;

namespace {

void check_on_cpu(const char* op, const Tensor& x, Location where) {
  if (x.device() != cpu)
    fail<DeviceError>(op, where,
                      "{} lies on {}, where the CPU cannot reach its elements; copy it with to(x, cpu), or pass "
                      "cuda::{} to a kernel of your own",
                      describe(x), to_string(x.device()), op);
}

void check_on_device(const char* op, const Tensor& x, Location where) {
  if (x.device() == cpu)
    fail<DeviceError>(op, where, "{} lies on the CPU; copy it with to(x, cuda::device())", describe(x));
}

void check_type(const char* op, const char* done, const Tensor& x, DType dtype, Location where) {
  if (x.body(where).dtype != dtype)
    fail<DTypeError>(op, where, "elements of {} cannot be {} as {}", describe(x), done, name_of(dtype));
}

// `how`: what to do instead.
void check_row_major(const char* op, const Tensor& x, const char* how, Location where) {
  if (!x.body(where).contiguous)
    fail<ShapeError>(op, where, "{} has gaps or another order (strides {}); {}", describe(x), to_string(x.strides()),
                     how);
}

// Marks a tensor as being overwritten until detail::end_write.
void begin_write(const char* op, const Tensor& x, Location where) {
  Body& b = x.body();
  check_row_major(op, x, "write to a contiguous copy", where);
  Context& context = detail::context();
  if (!b.requires_grad && context.tapes->is_live(b))
    fail<TapeError>(op, where,
                    "{}, {} at {}, is tracked by an open tape, whose gradients would be those of the old values; write "
                    "to a copy",
                    describe(x), context.tapes->is_leaf(b) ? "made" : "computed", to_string(x.made_at()));
  // The old elements can be read through the pointer.
  notify_of_reading(x, op, where);
  UseLog::forget(b);
  b.storage->writers.fetch_add(1, std::memory_order_relaxed);
  b.storage->overwritten(context.call_site(where));
}

void prepare_kernel_on(const Tensor& x, bool writes, Location where) {
  CallerScope caller(where);
  prepare_on_device(x.body(), writes);
}

const void* read_from(const char* op, const Tensor& x, Location where) {
  check_on_cpu(op, x, where);
  notify_of_reading(x, op, where);
  return x.body().data;
}

const void* read_on_device(const char* op, const Tensor& x, Location where) {
  check_on_device(op, x, where);
  notify_of_reading(x, op, where);
  prepare_kernel_on(x, false, where);
  return x.body().data;
}

}  // namespace

const void* Tensor::row_major(DType dtype, Location where) const {
  check_type("data", "read", *this, dtype, where);
  check_row_major("data", *this, "read contiguous(x), or strided_data", where);
  return read_from("data", *this, where);
}

const void* Tensor::readable(DType dtype, Location where) const {
  check_type("strided_data", "read", *this, dtype, where);
  return read_from("strided_data", *this, where);
}

// NOLINTNEXTLINE(readability-make-member-function-const): gives access to elements that will be written
void* Tensor::writable(DType dtype, Location where) {
  check_type("write", "written", *this, dtype, where);
  check_on_cpu("write", *this, where);
  leave_group("write", *this, where);
  begin_write("write", *this, where);
  return body().data;
}

const void* detail::row_major_on_device(const Tensor& x, DType dtype, Location where) {
  check_type("cuda::data", "read", x, dtype, where);
  check_row_major("cuda::data", x, "read contiguous(x), or cuda::strided_data", where);
  return read_on_device("cuda::data", x, where);
}

const void* detail::readable_on_device(const Tensor& x, DType dtype, Location where) {
  check_type("cuda::strided_data", "read", x, dtype, where);
  return read_on_device("cuda::strided_data", x, where);
}

void* detail::writable_on_device(Tensor& x, DType dtype, Location where) {
  check_type("cuda::write", "written", x, dtype, where);
  check_on_device("cuda::write", x, where);
  leave_group("cuda::write", x, where);
  prepare_kernel_on(x, true, where);
  begin_write("cuda::write", x, where);
  return x.body().data;
}

// Elements written since the guard was made are treated as another overwrite: an op may have read them in between.
void detail::end_write(const Tensor& tensor, Location where) noexcept {
  Storage& storage = *tensor.body().storage;
  storage.overwritten(where);
  storage.writers.fetch_sub(1, std::memory_order_relaxed);
}

template <class T>
T Tensor::only_element(Location where) const {
  if (body(where).numel != 1)
    fail<ShapeError>("item", where, "needs exactly one element, not {}; reduce it first, or use to_vector",
                     describe(*this));
  if (device() != cpu) {
    NoRecord pause;
    return to(Arg(*this, where), cpu).template item<T>(where);
  }
  notify_of_reading(*this, "item", where);
  const void* data = body().data;
  return with_type(dtype(),
                   [&]<class From>(std::type_identity<From>) { return convert<T>(*static_cast<const From*>(data)); });
}

template <class T>
std::vector<T> Tensor::copied_elements(Location where) const {
  return with_memory_error("to_vector", where, [&] {
    check_type("data", "read", *this, dtype_of<T>(), where);
    notify_of_reading(*this, "to_vector", where);
    NoRecord pause;
    Tensor here = to_if_needed(Arg(*this, where), cpu);
    Tensor packed = contiguous_if_needed(Arg(here, where));
    const T* first = static_cast<const T*>(packed.body().data);
    return std::vector<T>(first, first + packed.numel());
  });
}

#define REEL_INSTANTIATE(T)                           \
  template T Tensor::only_element<T>(Location) const; \
  template std::vector<T> Tensor::copied_elements<T>(Location) const;
REEL_INSTANTIATE(float)
REEL_INSTANTIATE(double)
REEL_INSTANTIATE(BFloat16)
REEL_INSTANTIATE(Float16)
REEL_INSTANTIATE(int)
REEL_INSTANTIATE(long)
REEL_INSTANTIATE(long long)
REEL_INSTANTIATE(unsigned char)
REEL_INSTANTIATE(signed char)
REEL_INSTANTIATE(short)
REEL_INSTANTIATE(bool)
#undef REEL_INSTANTIATE

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined() || tensor.device() == cpu) return print(tensor);
  NoRecord pause;
  return print(to_if_needed(tensor, cpu));
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_string(tensor); }

}  // namespace reel
