#include "fused_layer.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include <reel/error.h>

#include "../../lib/core/context.h"
#include "../../lib/core/device/device_module.h"
#include "../../lib/core/recent_cache.h"
#include "../../lib/core/tensor_float.h"
#include "../../lib/kernels/kernel_table.h"
#include "../device/device.h"
#include "../kernels/rows/recurrent_weights.h"
#include "../runtime/of_queue.h"
#include "library_layer.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// The layers whose examples have one length are cached by this key, most recently used first.
struct Key {
  std::int64_t cell, dtype, differentiable, width, size, batch, steps, tf32;
};
constexpr std::size_t kept_layers = 32;

struct Library {
  RecentCache<Key, std::unique_ptr<LibraryLayer>> layers{kept_layers};
};

const std::int64_t* counts_of(const FusedLayer& form) { return form.counts.as<std::int64_t>(); }

// cuDNN's limit.
constexpr std::int64_t most_steps = 65535;

// A single step is as fast on its own. The library computes steps in forward order: for examples of one length they can
// be reversed. relu is not run by the library, because it need not keep NaN.
bool may_be_fused(const FusedLayer& form) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  std::int64_t steps = form.counts.numel;
  return form.cell != RecurrentCell::rnn_relu && steps >= 2 && steps <= most_steps && form.width > 0 &&
         counts_of(form)[form.reverse ? steps - 1 : 0] == form.batch && form.size <= most / 4 && form.width <= most &&
         form.batch <= most / steps / std::max(4 * form.size, form.width);
}

bool is_rectangle(const FusedLayer& form) { return counts_of(form)[form.counts.numel - 1] == form.batch; }

std::unique_ptr<LibraryLayer> make(const FusedLayer& form, bool tf32) {
  const std::int64_t* counts = counts_of(form);
  return make_library_layer({form.cell,
                             form.dtype,
                             form.differentiable,
                             tf32,
                             form.width,
                             form.size,
                             form.batch,
                             {counts, counts + form.counts.numel}});
}

// The library's layer; it is cached, or owned by `holder`. Null if there is none.
LibraryLayer* find(const FusedLayer& form, bool tf32, std::unique_ptr<LibraryLayer>& holder) {
  if (!is_rectangle(form)) return (holder = make(form, tf32)).get();
  Key key{static_cast<std::int64_t>(form.cell),
          static_cast<std::int64_t>(form.dtype),
          form.differentiable,
          form.width,
          form.size,
          form.batch,
          form.counts.numel,
          tf32};
  return of_current_queue<Library>().layers.find(key, [&] { return make(form, tf32); }).get();
}

std::size_t rounded_up(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// A matrix in device memory.
class Matrix {
 public:
  Matrix(void* data, DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
         std::int64_t column_stride)
      : dims_{rows, columns}, strides_{row_stride, column_stride}, data_(data), dtype_(dtype) {}
  View view() const {
    return {data_, dims_, strides_, dims_[0] * dims_[1], 2, dtype_, strides_[0] == dims_[1] && strides_[1] == 1};
  }

 private:
  std::int64_t dims_[2], strides_[2];
  void* data_;
  DType dtype_;
};

void copy(const Matrix& to, const Matrix& from) { device_module().kernels().copy(to.view(), from.view()); }

// The rows of a layer in the library's order of steps: in place, or reversed in a buffer.
class Rows {
 public:
  Rows(const FusedLayer& form, const View& given)
      : given_(given),
        steps_(form.counts.numel),
        width_(given.numel / steps_),
        reversed_(form.reverse ? std::make_unique<Scratch>(static_cast<std::size_t>(given.numel) * size_of(given.dtype))
                               : nullptr) {}

  void* data() const { return reversed_ ? reversed_->as<void>() : given_.data; }
  const void* read() const {
    if (reversed_) copy(rows(1), rows(-1));
    return data();
  }
  void write() const {
    if (reversed_) copy(rows(-1), rows(1));
  }

 private:
  // `direction` 1: in the library's order; −1: in the given order, from the last step to the first.
  Matrix rows(std::int64_t direction) const {
    if (direction > 0) return {data(), given_.dtype, steps_, width_, width_, 1};
    auto last = static_cast<std::int64_t>(size_of(given_.dtype)) * width_ * (steps_ - 1);
    return {given_.as<char>() + last, given_.dtype, steps_, width_, -width_, 1};
  }

  const View& given_;
  std::int64_t steps_, width_;
  std::unique_ptr<Scratch> reversed_;
};

// A gradient uses the TF32 setting of its forward pass, whatever is allowed by then: an odd size of `kept` marks it.
bool kept_with_tf32(const View& kept) { return kept.numel % 2 != 0; }

LibraryLayer& found(LibraryLayer* layer) {
  if (!layer) throw InternalError("a layer that was there a moment ago is not");
  return *layer;
}

}  // namespace

bool fused_layer_sizes(const FusedLayer& form, FusedLayerSizes& sizes) {
  if (!may_be_fused(form)) return false;
  std::unique_ptr<LibraryLayer> holder;
  bool tf32 = form.dtype == DType::f32 && may_use_tf32();
  const LibraryLayer* layer = find(form, tf32, holder);
  if (!layer) return false;
  sizes = {.weights = static_cast<std::int64_t>(rounded_up(layer->weight_bytes)),
           .kept = static_cast<std::int64_t>(rounded_up(layer->reserve_bytes)) + tf32,
           .layout = layer->layout};
  return true;
}

// `kept` holds the library's reserve.
void run_fused_layer(const FusedLayerForward& layer) {
  std::unique_ptr<LibraryLayer> holder;
  LibraryLayer& library = found(find(layer.form, kept_with_tf32(layer.kept), holder));
  Scratch work(library.work_bytes);
  Rows x(layer.form, layer.x), y(layer.form, layer.y);
  library.forward({.x = x.read(),
                   .h_0 = layer.h_0.data,
                   .c_0 = layer.c_0.data,
                   .weights = layer.packed.data,
                   .y = y.data(),
                   .h = layer.h.data,
                   .c = layer.c.data,
                   .work = work.as<void>(),
                   .reserve = library.reserve_bytes > 0 ? layer.kept.data : nullptr});
  y.write();
}

void run_fused_layer_gradient(const FusedLayerBackward& layer) {
  std::unique_ptr<LibraryLayer> holder;
  LibraryLayer& library = found(find(layer.form, kept_with_tf32(layer.kept), holder));
  bool wants_weights = layer.dW_x.numel > 0;
  // The library overwrites its reserve, which a tape that is not consumed may read again.
  bool copies = !layer.overwrites_kept;
  Scratch work(library.work_bytes), copied(copies ? library.reserve_bytes : 0),
      dweights(wants_weights ? library.weight_bytes : 0);
  if (copies) copy_on_device(copied.as<void>(), layer.kept.data, library.reserve_bytes);
  if (wants_weights) fill_with_zeros(dweights.as<void>(), library.weight_bytes);
  Rows x(layer.form, layer.x), y(layer.form, layer.y), dx(layer.form, layer.dx), dy(layer.form, layer.dy);
  library.backward({.x = x.read(),
                    .y = y.read(),
                    .dy = dy.read(),
                    .h_0 = layer.h_0.data,
                    .dh = layer.dh.data,
                    .c_0 = layer.c_0.data,
                    .dc = layer.dc.data,
                    .weights = layer.packed.data,
                    .dx = dx.data(),
                    .dh_0 = layer.dh_0.data,
                    .dc_0 = layer.dc_0.data,
                    .work = work.as<void>(),
                    .reserve = copies ? copied.as<void>() : layer.kept.data,
                    .dweights = wants_weights ? dweights.as<void>() : nullptr});
  dx.write();
  if (!wants_weights) return;
  View packed = layer.packed;
  packed.data = dweights.as<void>();
  unpack_layer_weights({.cell = layer.form.cell,
                        .layout = library.layout,
                        .packed = packed,
                        .W_x = layer.dW_x,
                        .W_h = layer.dW_h,
                        .bias = layer.dbias});
}

}  // namespace reel::detail::inline REEL_TARGET
