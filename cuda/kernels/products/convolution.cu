#include <optional>

#include "../../../lib/core/dtype_dispatch.h"
#include "../../device/element.h"
#include "../../device/images.h"
#include "../../device/launch.h"
#include "../../libraries/library_convolution.h"
#include "../../runtime/cuda_kernels.h"
#include "../elementwise/copy.h"

// Convolutions that the library does not support are tried with the channels first and, if that is not supported
// either, summed by definition, an element of the result by a thread or a group.

namespace reel::detail::inline REEL_TARGET {
namespace {

struct Tap {
  std::int64_t at[3];
};

// Calls f(tap, offset of the filter's element).
template <class F>
REEL_DEVICE void for_each_tap(const Images& w, const F& f) {
  for (std::int64_t d = 0; d < w.dims[0]; ++d)
    for (std::int64_t h = 0; h < w.dims[1]; ++h)
      for (std::int64_t v = 0; v < w.dims[2]; ++v)
        f(Tap{{d, h, v}}, d * w.strides[0] + h * w.strides[1] + v * w.strides[2]);
}

// Returns true if element o of y depends on one of x through a tap, and finds its offset from the channel's first.
REEL_DEVICE inline bool find_seen(const Images& x, const Convolution& c, const std::int64_t (&o)[3], const Tap& tap,
                                  std::int64_t& offset) {
  offset = 0;
  for (int axis = 0; axis < 3; ++axis) {
    std::int64_t at = o[axis] * c.stride[axis] + tap.at[axis] * c.dilation[axis] - c.padding[axis];
    if (at < 0 || at >= x.dims[axis]) return false;
    offset += at * x.strides[axis];
  }
  return true;
}

// Returns true if element p of x contributes to one of y through a tap, and finds its offset.
REEL_DEVICE inline bool find_seeing(const Images& y, const Convolution& c, const std::int64_t (&p)[3], const Tap& tap,
                                    std::int64_t& offset) {
  offset = 0;
  for (int axis = 0; axis < 3; ++axis) {
    std::int64_t reach = p[axis] + c.padding[axis] - tap.at[axis] * c.dilation[axis];
    if (reach < 0 || reach % c.stride[axis] != 0 || reach / c.stride[axis] >= y.dims[axis]) return false;
    offset += reach / c.stride[axis] * y.strides[axis];
  }
  return true;
}

template <class T>
struct ConvolveForward {
  T* out;
  const T *x, *w, *bias;
  Images y_images, x_images, filters;
  Convolution c;

  REEL_DEVICE void operator()(std::int64_t i) const {
    ImagePlace place = y_images.place(i);
    std::int64_t filters_per_group = filters.examples / c.groups;
    std::int64_t first = place.channel / filters_per_group * filters.channels;
    const T* image = x + x_images.offset(place.example, first);
    const T* filter = w + place.channel * filters.example_stride;
    Wide<T> sum = bias ? loaded(bias[place.channel]) : Wide<T>(0);
    for_each_tap(filters, [&](const Tap& tap, std::int64_t of_filter) {
      std::int64_t of_image;
      if (!find_seen(x_images, c, place.at, tap, of_image)) return;
      for (std::int64_t k = 0; k < filters.channels; ++k)
        sum += loaded(image[of_image + k * x_images.channel_stride]) *
               loaded(filter[of_filter + k * filters.channel_stride]);
    });
    out[i] = stored<T>(sum);
  }
};

template <class T>
struct ConvolveData {
  T* out;
  const T *d, *w, *bias;
  Images x_images, y_images, filters;
  Convolution c;

  REEL_DEVICE void operator()(std::int64_t i) const {
    ImagePlace place = x_images.place(i);
    std::int64_t filters_per_group = filters.examples / c.groups;
    std::int64_t first = place.channel / filters.channels * filters_per_group;
    const T* image = d + y_images.offset(place.example, first);
    const T* filter = w + filters.offset(first, place.channel % filters.channels);
    Wide<T> sum = bias ? loaded(bias[place.channel]) : Wide<T>(0);
    for_each_tap(filters, [&](const Tap& tap, std::int64_t of_filter) {
      std::int64_t of_image;
      if (!find_seeing(y_images, c, place.at, tap, of_image)) return;
      for (std::int64_t k = 0; k < filters_per_group; ++k)
        sum += loaded(image[of_image + k * y_images.channel_stride]) *
               loaded(filter[of_filter + k * filters.example_stride]);
    });
    out[i] = stored<T>(sum);
  }
};

// One element of the filters' gradient, computed by a group.
template <class T>
struct ConvolveWeights {
  T* out;
  const T *x, *d;
  Images filters, x_images, y_images;
  Convolution c;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    ImagePlace place = filters.place(group.index());
    std::int64_t filters_per_group = filters.examples / c.groups;
    std::int64_t channel = place.example / filters_per_group * filters.channels + place.channel;
    std::int64_t positions = y_images.dims[0] * y_images.dims[1] * y_images.dims[2];
    Tap tap{{place.at[0], place.at[1], place.at[2]}};
    auto partial = group.template per_thread<Wide<T>>();
    group.each([&](int thread) {
      Wide<T> sum = 0;
      for (std::int64_t i = thread; i < y_images.examples * positions; i += group.size()) {
        std::int64_t example = i / positions, rest = i % positions, of_image;
        std::int64_t o[3] = {rest / (y_images.dims[1] * y_images.dims[2]), rest / y_images.dims[2] % y_images.dims[1],
                             rest % y_images.dims[2]};
        if (!find_seen(x_images, c, o, tap, of_image)) continue;
        std::int64_t of_gradient = o[0] * y_images.strides[0] + o[1] * y_images.strides[1] + o[2] * y_images.strides[2];
        sum += loaded(x[x_images.offset(example, channel) + of_image]) *
               loaded(d[y_images.offset(example, place.example) + of_gradient]);
      }
      partial[thread] = sum;
    });
    Wide<T> sum = group.reduce(partial, [](Wide<T> left, Wide<T> right) { return left + right; });
    group.each([&](int thread) {
      if (thread == 0) out[group.index()] = stored<T>(sum);
    });
  }
};

template <class T>
struct AddBias {
  T* out;
  const T* bias;
  std::int64_t channels, inner;

  REEL_DEVICE void operator()(std::int64_t i) const {
    out[i] = stored<T>(loaded(out[i]) + loaded(bias[i / inner % channels]));
  }
};

void add_bias(const View& out, const View& bias, const Convolution& c) {
  std::int64_t inner = 1;
  if (!c.channels_last)
    for (int axis = 2; axis < out.rank; ++axis) inner *= out.dims[axis];
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_each(out.numel, AddBias<T>{out.as<T>(), bias.as<T>(), bias.numel, inner});
  });
}

// A contiguous operand with its channels first or last in memory: the operand itself, or a copy.
class Laid : Immovable {
 public:
  Laid(const View& x, bool channels_last, bool channels_last_in_memory) : view_(x) {
    find_image_strides(x, channels_last, channels_last_in_memory, strides_);
    bool fits = true;
    for (int axis = 0; axis < x.rank; ++axis) fits = fits && (x.dims[axis] == 1 || x.strides[axis] == strides_[axis]);
    view_.strides = strides_;
    view_.contiguous = channels_last == channels_last_in_memory;
    if (fits || x.numel == 0) return;
    copy_.emplace(static_cast<std::size_t>(x.numel) * size_of(x.dtype));
    view_.data = copy_->as<void>();
    original_ = &x;
  }

  /// For an operand: fills the copy, and returns the view to read.
  const View& filled() {
    if (original_) move_elements(view_, *original_);
    return view_;
  }
  /// For a result: the view to write; `give` copies it to the result.
  const View& view() const { return view_; }
  void give() {
    if (original_) move_elements(*original_, view_);
  }

 private:
  View view_;
  std::int64_t strides_[8];
  const View* original_ = nullptr;
  std::optional<Scratch> copy_;
};

// A view of images with the channels axis first, for any layout in memory.
struct ChannelsFirst : private Immovable {
  std::int64_t dims[8], strides[8];
  View view;

  explicit ChannelsFirst(const View& x) : view(x) {
    for (int axis = 0; axis < x.rank; ++axis) {
      int from = axis == 0 ? 0 : axis == 1 ? x.rank - 1 : axis - 1;
      dims[axis] = x.dims[from];
      strides[axis] = x.strides[from];
    }
    view.dims = dims;
    view.strides = strides;
    view.contiguous = false;
  }
};

Convolution with_channels_first(Convolution c) {
  c.channels_last = 0;
  return c;
}

// Contiguous numbers: the given ones, or a copy.
class Numbers : Immovable {
 public:
  explicit Numbers(const View* given) {
    if (!given) return;
    view_ = *given;
    view_.strides = &step_;
    if (given->strides[0] == 1 || given->numel < 2) return;
    copy_.emplace(static_cast<std::size_t>(given->numel) * size_of(given->dtype));
    view_.data = copy_->as<void>();
    view_.contiguous = true;
    move_elements(view_, *given);
  }

  /// Null if there are none.
  const View* view() const { return view_.data ? &view_ : nullptr; }

 private:
  View view_{};
  std::int64_t step_ = 1;
  std::optional<Scratch> copy_;
};

using LibraryCall = bool (*)(const View&, const View&, const View&, const View*, const Convolution&);

// Runs the library's kernel with the bias or, if it does not support that, adds the bias afterwards.
bool run_library(LibraryCall call, const View& out, const View& images, const View& w, const View* bias,
                 const Convolution& c) {
  if (call(out, images, w, bias, c)) return true;
  if (!bias || !call(out, images, w, nullptr, c)) return false;
  add_bias(out, *bias, c);
  return true;
}

template <template <class> class Direct>
void convolve(LibraryCall call, const View& out, const View& given, const View& given_w, const View* bias,
              const Convolution& c) {
  if (out.numel == 0) return;
  bool last = c.channels_last != 0;
  Laid images(given, last, last), filters(given_w, false, last);
  const View &x = images.filled(), &w = filters.filled();
  if (x.numel != 0 && w.numel != 0 && run_library(call, out, x, w, bias, c)) return;
  if (last) {
    ChannelsFirst first_x(given), first_out(out);
    Laid result(first_out.view, false, false);
    convolve<Direct>(call, result.view(), first_x.view, given_w, bias, with_channels_first(c));
    return result.give();
  }
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_each(out.numel, Direct<T>{out.as<T>(), x.as<T>(), w.as<T>(), bias ? bias->as<T>() : nullptr, Images(out, false),
                                  Images(x, false), Images(w, false), c});
  });
}

void forward(const View& out, const View& x, const View& w, const View* bias, const Convolution& c) {
  convolve<ConvolveForward>(convolve_by_library, out, x, w, Numbers(bias).view(), c);
}

void backward_data(const View& out, const View& d, const View& w, const View* bias, const Convolution& c) {
  convolve<ConvolveData>(convolve_data_by_library, out, d, w, Numbers(bias).view(), c);
}

void backward_weights(const View& out, const View& given_x, const View& given_d, const Convolution& c) {
  if (out.numel == 0) return;
  bool last = c.channels_last != 0;
  Laid images(given_x, last, last), gradients(given_d, last, last), filters(out, false, last);
  const View &x = images.filled(), &d = gradients.filled(), &w = filters.view();
  if (x.numel != 0 && d.numel != 0 && convolve_weights_by_library(w, x, d, c)) return filters.give();
  if (last) {
    ChannelsFirst first_x(given_x), first_d(given_d);
    return backward_weights(out, first_x.view, first_d.view, with_channels_first(c));
  }
  std::int64_t products = d.numel / out.dims[0];
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_group(out.numel, threads_for_row(products), 0,
                   ConvolveWeights<T>{out.as<T>(), x.as<T>(), d.as<T>(), Images(out, false), Images(x, false),
                                      Images(d, false), c});
  });
}

}  // namespace

void fill_convolution(KernelTable& table) {
  static constexpr ConvolutionKernels kernels{
      .forward = forward, .backward_data = backward_data, .backward_weights = backward_weights};
  table.convolution = &kernels;
}

}  // namespace reel::detail::inline REEL_TARGET
