#pragma once

#include <cstdint>

#include <reel/detail/immovable.h>
#include <reel/detail/view.h>

#include "../../lib/core/target.h"

namespace reel::detail::inline REEL_TARGET {

/// A view of contiguous f32 elements.
class PlainView : Immovable {
 public:
  PlainView(const float* data, std::int64_t count)
      : count_(count), view_{const_cast<float*>(data), &count_, &step_, count, 1, DType::f32, true} {}
  const View& operator*() const { return view_; }

 private:
  static constexpr std::int64_t step_ = 1;
  std::int64_t count_;
  View view_;
};

}  // namespace reel::detail::inline REEL_TARGET
