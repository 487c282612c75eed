#include <reel/no_record.h>
#include <reel/ops/shape.h>
#include <reel/tensor.h>

#include <memory>
#include <mutex>
#include <utility>

#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../core/storage.h"
#include "../ops/shape/batch.h"
#include "../record/tape_list.h"
#include "row_gradient.h"

namespace reel {

using namespace detail;

Tensor Tensor::requires_grad(bool wanted, Location where) const {
  return with_memory_error("requires_grad", where, [&] {
    Body& b = body(where);
    check_floating("requires_grad", *this, where);
    wait_for(*this, where);
    wait_for_all(detail::context());
    const TapeList& tapes = *detail::context().tapes;
    if (tapes.is_live(b) && !tapes.is_leaf(b))
      fail<TapeError>(
          "requires_grad", where,
          "{} was computed at {} on an open tape and is no parameter; use tape.watch, or stop_gradient first",
          describe(*this), to_string(made_at()));
    // Uses of a parameter while it is frozen are meant to be constant.
    if (wanted && !b.leaf) tapes.check_unused("requires_grad", *this, 0, where);
    if (wanted) leave_group("requires_grad", *this, where);
    if (wanted && !b.leaf) b.leaf = std::make_unique<Leaf>().release();
    if (wanted) b.marks &= static_cast<std::uint8_t>(~Body::single_block);
    if (wanted) b.storage->become_parameter();
    b.requires_grad = wanted;
    return *this;
  });
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
    wait_for(own, where);
  }
  RowGradient none;
  std::lock_guard lock(gradient_mutex());
  std::swap(leaf->gradient, own);
  std::swap(leaf->row_gradient, none);
}

}  // namespace reel
