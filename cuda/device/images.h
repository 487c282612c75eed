#pragma once

#include <cstdint>

#include <reel/detail/view.h>

#include "../../lib/core/target.h"

namespace reel::detail::inline REEL_TARGET {

/// The strides of contiguous images whose channels are first or last in memory, for either order of the axes in the
/// view.
inline void find_image_strides(const View& view, bool channels_last, bool channels_last_in_memory,
                               std::int64_t (&strides)[8]) {
  int channel = channels_last ? view.rank - 1 : 1;
  std::int64_t step = 1;
  auto pass = [&](int axis) {
    strides[axis] = step;
    step *= view.dims[axis];
  };
  if (channels_last_in_memory) pass(channel);
  for (int axis = view.rank; axis-- > 1;)
    if (axis != channel) pass(axis);
  if (!channels_last_in_memory) pass(channel);
  pass(0);
}

/// The number of zeros after an image's end for which there are `results` results; −1 if there is none. Equal to
/// `before` if that gives as many results.
inline std::int64_t padding_after(std::int64_t size, std::int64_t window, std::int64_t results, std::int64_t stride,
                                  std::int64_t dilation, std::int64_t before) {
  std::int64_t extent = (window - 1) * dilation + 1;
  auto gives = [&](std::int64_t after) {
    std::int64_t room = size + before + after - extent;
    return room >= 0 && room / stride + 1 == results;
  };
  if (gives(before)) return before;
  std::int64_t lacking = (results - 1) * stride + extent - size - before, after = lacking > 0 ? lacking : 0;
  return gives(after) ? after : -1;
}

/// The indices of an element of images.
struct ImagePlace {
  std::int64_t example, channel, at[3];
};

/// Examples, channels and three spatial axes; missing axes come first, with size 1. Filters are images, too, each an
/// example.
struct Images {
  std::int64_t examples, channels, dims[3];
  std::int64_t example_stride, channel_stride, strides[3];

  Images(const View& view, bool channels_last)
      : examples(view.dims[0]), dims{1, 1, 1}, example_stride(view.strides[0]), strides{} {
    int spatial = view.rank - 2, channel = channels_last ? view.rank - 1 : 1, first = channels_last ? 1 : 2;
    channels = view.dims[channel];
    channel_stride = view.strides[channel];
    for (int i = 0; i < spatial; ++i) {
      dims[3 - spatial + i] = view.dims[first + i];
      strides[3 - spatial + i] = view.strides[first + i];
    }
  }

  /// The indices of element i in row-major order with the channels first.
  REEL_HOST_DEVICE ImagePlace place(std::int64_t i) const {
    ImagePlace found;
    for (int axis = 3; axis-- > 0;) split(found.at[axis], i, dims[axis]);
    split(found.channel, i, channels);
    found.example = i;
    return found;
  }
  /// The offset of the first element of a channel.
  REEL_HOST_DEVICE std::int64_t offset(std::int64_t example, std::int64_t channel) const {
    return example * example_stride + channel * channel_stride;
  }

 private:
  REEL_HOST_DEVICE static void split(std::int64_t& rest, std::int64_t& i, std::int64_t size) {
    rest = i % size;
    i /= size;
  }
};

}  // namespace reel::detail::inline REEL_TARGET
