#include <reel/tensor.h>

#include <reel/ops.h>

#include <memory>
#include <new>

#include "../ops/if_needed.h"
#include "../ops/registry.h"
#include "../tape/row_gradient.h"
#include "../tape/tape_list.h"
#include "convert.h"
#include "dispatch.h"
#include "memory_error.h"
#include "op_error.h"
#include "storage.h"

namespace reel {

using namespace detail;

namespace {

void check_on_cpu(const char* op, const Tensor& x, Location where) {
  if (x.device() != cpu)
    fail<DeviceError>(op, where, "{} lies on {}, where the CPU cannot reach its elements; copy it with to(x, cpu)",
                      describe(x), to_string(x.device()));
}

}  // namespace

void Tensor::throw_undefined(Location where) {
  fail<Error>("tensor", where, "it is undefined: it was never given a value");
}

Shape Tensor::shape() const {
  const Body& b = body();
  return Shape({b.dims, static_cast<std::size_t>(b.rank)});
}

Shape Tensor::strides() const {
  const Body& b = body();
  return Shape({b.strides, static_cast<std::size_t>(b.rank)});
}

std::int64_t Tensor::size(int axis, Location where) const {
  return body(where).dims[check_axis("size", axis, *this, where)];
}

const void* Tensor::readable(DType dtype, Location where) const {
  const Body& b = body(where);
  if (b.dtype != dtype)
    fail<DTypeError>("data", where, "elements of {} cannot be read as {}", describe(*this), name_of(dtype));
  check_on_cpu("data", *this, where);
  return b.data;
}

void* Tensor::writable(DType dtype, Location where) {
  Body& b = body(where);
  if (b.dtype != dtype)
    fail<DTypeError>("write", where, "elements of {} cannot be written as {}", describe(*this), name_of(dtype));
  check_on_cpu("write", *this, where);
  if (!b.contiguous)
    fail<ShapeError>("write", where, "{} has gaps or another order (strides {}); write to a contiguous copy",
                     describe(*this), to_string(strides()));
  Context& context = detail::context();
  if (!b.requires_grad && context.tapes->is_live(b))
    fail<TapeError>("write", where,
                    "{}, {} at {}, is tracked by an open tape, whose gradients would be those of the old values; write "
                    "to a copy",
                    describe(*this), context.tapes->is_leaf(b) ? "made" : "computed", to_string(made_at()));
  UseLog::forget(b);
  b.storage->writers.fetch_add(1, std::memory_order_relaxed);
  b.storage->overwritten(context.resolve(where));
  return b.data;
}

// What was written since the guard was made counts as an overwrite of its own: somebody may have read in between.
void detail::end_write(const Tensor& tensor, Location where) noexcept {
  Storage& storage = *tensor.body().storage;
  storage.overwritten(where);
  storage.writers.fetch_sub(1, std::memory_order_relaxed);
}

template <Element T>
T Tensor::item(Location where) const {
  if (body(where).numel != 1)
    fail<ShapeError>("item", where, "needs exactly one element, not {}; reduce it first, or use to_vector",
                     describe(*this));
  if (device() != cpu) {
    NoRecord pause;
    return to(Arg(*this, where), cpu).template item<T>(where);
  }
  const void* data = body().data;
  return with_type(dtype(),
                   [&]<class From>(std::type_identity<From>) { return convert<T>(*static_cast<const From*>(data)); });
}

template <Element T>
std::vector<T> Tensor::to_vector(Location where) const try {
  NoRecord pause;
  Tensor here = to_if_needed(Arg(*this, where), cpu);
  static_cast<void>(here.readable(dtype_of<T>(), where));
  Tensor packed = contiguous_if_needed(Arg(here, where));
  const T* first = static_cast<const T*>(packed.body().data);
  return std::vector<T>(first, first + packed.numel());
} catch (const std::bad_alloc&) {
  fail_for_memory("to_vector", where);
}

#define REEL_INSTANTIATE(T)                   \
  template T Tensor::item<T>(Location) const; \
  template std::vector<T> Tensor::to_vector<T>(Location) const;
REEL_INSTANTIATE(float)
REEL_INSTANTIATE(double)
REEL_INSTANTIATE(BFloat16)
REEL_INSTANTIATE(Float16)
REEL_INSTANTIATE(int)
REEL_INSTANTIATE(long)
REEL_INSTANTIATE(long long)
REEL_INSTANTIATE(unsigned char)
REEL_INSTANTIATE(bool)
#undef REEL_INSTANTIATE

Tensor Tensor::requires_grad(bool wanted, Location where) const try {
  Body& b = body(where);
  check_floating("requires_grad", *this, where);
  const TapeList& tapes = *detail::context().tapes;
  if (tapes.is_live(b) && !tapes.is_leaf(b))
    fail<TapeError>("requires_grad", where,
                    "{} was computed at {} on an open tape and is no parameter; use tape.watch, or stop_gradient first",
                    describe(*this), to_string(made_at()));
  // What a frozen parameter was used for meanwhile is meant to be constant.
  if (wanted && !b.leaf) tapes.check_unused("requires_grad", *this, 0, where);
  if (wanted && !b.leaf) b.leaf = std::make_unique<Leaf>().release();
  if (wanted) b.single_block = false;
  if (wanted) b.storage->become_parameter();
  b.requires_grad = wanted;
  return *this;
} catch (const std::bad_alloc&) {
  fail_for_memory("requires_grad", where);
}

Tensor Tensor::grad() const {
  Leaf* leaf = body().leaf;
  if (!leaf) return {};
  LeafGradient found;
  {
    std::lock_guard lock(gradient_mutex());
    found = *leaf;
  }
  if (!found.row_gradient.defined()) return found.gradient;
  NoRecord pause;
  return dense(found.row_gradient, shape());
}

RowGradient Tensor::row_grad() const {
  Leaf* leaf = body().leaf;
  if (!leaf) return {};
  std::lock_guard lock(gradient_mutex());
  return leaf->row_gradient;
}

void Tensor::set_grad(const Tensor& gradient, Location where) const {
  Leaf* leaf = body(where).leaf;
  if (!leaf)
    fail<TapeError>("set_grad", where, "{} is no parameter; call requires_grad() on it first", describe(*this));
  if (gradient.defined()) {
    if (gradient.shape() != shape())
      fail<ShapeError>("set_grad", where, "a gradient of {} does not fit the parameter {}; it must have its shape",
                       describe(gradient), describe(*this));
    if (gradient.dtype() != dtype())
      fail<DTypeError>("set_grad", where, "a gradient of {} does not fit the parameter {}; convert it with to(x, {})",
                       describe(gradient), describe(*this), name_of(dtype()));
  }
  Tensor own;
  if (gradient.defined()) {
    NoRecord pause;
    own = copy(Arg(gradient, where));
  }
  RowGradient none;
  std::lock_guard lock(gradient_mutex());
  std::swap(leaf->gradient, own);
  std::swap(leaf->row_gradient, none);
}

std::span<const RegisteredOp> detail::access_ops() {
  static constexpr RegisteredOp ops[] = {{.name = "item"}, {.name = "data"}, {.name = "write"}};
  return ops;
}

}  // namespace reel
