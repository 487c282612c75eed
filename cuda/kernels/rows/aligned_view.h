#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <reel/detail/immovable.h>
#include <reel/detail/view.h>

#include "../../device/device.h"
#include "../elementwise/copy.h"

namespace reel::detail::inline REEL_TARGET {

/// A view whose first element has an address at which a pack of `lanes` elements may begin: the given one, or a contiguous
/// copy of it.
class AlignedView : Immovable {
 public:
  AlignedView(const View& x, int lanes) : AlignedView(x, lanes, true) {}

  const View& view() const { return view_; }

 protected:
  AlignedView(const View& x, int lanes, bool is_read) : view_(x) {
    std::size_t bytes = std::min<std::size_t>(size_of(x.dtype) * static_cast<std::size_t>(lanes), 16);
    if (x.numel == 0 || reinterpret_cast<std::uintptr_t>(x.data) % bytes == 0) return;
    copy_.emplace(static_cast<std::size_t>(x.numel) * size_of(x.dtype));
    view_.data = copy_->as<void>();
    view_.strides = strides_;
    view_.contiguous = true;
    for (std::int64_t axis = x.rank, step = 1; axis-- > 0; step *= x.dims[axis]) strides_[axis] = step;
    if (is_read) move_elements(view_, x);
  }
  bool is_copy() const { return copy_.has_value(); }

 private:
  View view_;
  std::int64_t strides_[8];
  std::optional<Scratch> copy_;
};

/// An aligned view of a result, all of which is written.
class AlignedResult : public AlignedView {
 public:
  AlignedResult(const View& out, int lanes) : AlignedView(out, lanes, false), original_(out) {}

  /// Queued after the kernel that writes to the view.
  void finish() const {
    if (is_copy()) move_elements(original_, view());
  }

 private:
  const View& original_;
};

}  // namespace reel::detail::inline REEL_TARGET
