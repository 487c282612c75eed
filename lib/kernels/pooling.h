#pragma once

#include "../core/target.h"
#include "kernel_table.h"

namespace reel::detail {

/// How a batch is pooled along its three spatial axes; missing axes come first and have size 1. An op attribute.
struct Pooling {
  std::int64_t size[3], results[3];
  std::int64_t window[3], stride[3], padding[3], dilation[3];
  /// 1: the windows divide x as evenly as possible; the four members above are ignored.
  std::int64_t adaptive;
  /// 1: averages include elements of the padding.
  std::int64_t counts_padding;
  std::int64_t channels_last;

  /// The elements of x in the window of result `o` along an axis: begin, begin + dilation, …; at least one.
  struct Span {
    std::int64_t begin, count;
  };
  REEL_HOST_DEVICE Span span(int axis, std::int64_t o) const {
    if (adaptive) {
      // From ⌊o size / results⌋ to ⌈(o + 1) size / results⌉, without products that overflow.
      std::int64_t whole = size[axis] / results[axis], rest = size[axis] % results[axis];
      std::int64_t begin = o * whole + o * rest / results[axis];
      std::int64_t end = (o + 1) * whole + ((o + 1) * rest + results[axis] - 1) / results[axis];
      return {begin, end - begin};
    }
    std::int64_t start = o * stride[axis] - padding[axis], step = dilation[axis];
    std::int64_t skipped = start < 0 ? (-start + step - 1) / step : 0, begin = start + skipped * step;
    std::int64_t fitting = begin < size[axis] ? (size[axis] - begin - 1) / step + 1 : 0;
    return {begin, fitting < window[axis] - skipped ? fitting : window[axis] - skipped};
  }
  REEL_HOST_DEVICE std::int64_t step(int axis) const { return adaptive ? 1 : dilation[axis]; }
  /// The divisor of an average along an axis.
  REEL_HOST_DEVICE std::int64_t divisor(int axis, std::int64_t o) const {
    if (!counts_padding) return span(axis, o).count;
    std::int64_t start = o * stride[axis] - padding[axis], left = size[axis] + padding[axis] - start;
    return left < window[axis] ? left : window[axis];
  }
};

/// Operands are contiguous unless a slot says otherwise. Indices are i64, and those of pooling count the elements of one channel of one example along the spatial
/// axes in row-major order.
struct PoolingKernels {
  /// The largest element of each window and its index, the first one if several are equal; NaN if the window has one.
  /// Empty `indices`: only the elements.
  void (*max)(const View& values, const View& indices, const View& x, const Pooling& pooling);
  /// dx[indices] += d, zeros elsewhere.
  void (*scatter)(const View& dx, const View& d, const View& indices, const Pooling& pooling);
  /// y = x[indices]
  void (*gather)(const View& y, const View& x, const View& indices, const Pooling& pooling);
  void (*average)(const View& y, const View& x, const Pooling& pooling);
  /// Each element of a window gets the result's d divided by its divisor.
  void (*average_gradient)(const View& dx, const View& d, const Pooling& pooling);
  /// The largest or smallest element up to each one along `axis`, and its index there, the last of equal ones; from the first
  /// NaN on, the last NaN. Any operand may be strided. Null: an op compares by itself.
  void (*running_extreme)(const View& values, const View& indices, const View& x, int axis, bool largest);
};

}  // namespace reel::detail
