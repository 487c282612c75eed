#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include <reel/tensor.h>

#include "../core/context.h"
#include "../core/op_error.h"
#include "../core/printable.h"
#include "../core/storage.h"

namespace reel::detail {

/// Calls f(index, gradient) for each parameter that has a gradient and is not frozen. Callers hold the gradients, so that
/// a backward pass of another thread makes new ones instead of adding to them in place.
/// Throws: Error for a parameter that its module has replaced.
template <class F>
void for_each_gradient(const char* optimiser, const std::vector<Tensor>& parameters, Location where, F f) {
  std::lock_guard lock(gradient_mutex());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Body& body = parameters[i].body();
    if (Location replaced_at = body.leaf->replaced_at; replaced_at.file)
      fail<Error>(optimiser, where,
                  "parameter {}, {}, is its module's no more: another tensor took its place at {}; make the optimiser "
                  "after that",
                  i, describe(parameters[i]), to_string(replaced_at));
    if (body.requires_grad && (body.leaf->gradient.defined() || body.leaf->row_gradient.defined())) f(i, *body.leaf);
  }
}

/// Throws: Error for a parameter with a gradient by rows.
[[noreturn]] inline void refuse_rows(const char* optimiser, std::size_t index, const Tensor& parameter,
                                     Location where) {
  fail<Error>(optimiser, where,
              "parameter {}, {}, has a gradient by rows, for which only SGD, Adagrad and Adam can leave the other "
              "rows alone; use one of them, or look rows up without row_gradient",
              index, describe(parameter));
}

/// While it lives, the storages of parameters are marked as being written.
class Writing : Immovable {
 public:
  /// `storages` must outlive this object.
  Writing(std::span<Storage* const> storages, Location where) noexcept
      : storages_(storages), where_(context().call_site(where)) {
    run_delayed(context());
    for (Storage* storage : storages_) {
      storage->writers.fetch_add(1, std::memory_order_relaxed);
      storage->overwritten(where_);
    }
  }
  ~Writing() {
    // Elements written meanwhile are treated as another overwrite: an op may have read them in between.
    for (Storage* storage : storages_) {
      storage->overwritten(where_);
      storage->writers.fetch_sub(1, std::memory_order_relaxed);
    }
  }

 private:
  std::span<Storage* const> storages_;
  Location where_;
};

}  // namespace reel::detail
