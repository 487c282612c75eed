#include "../libraries/library_layer.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "../../lib/kernels/formulas/recurrent.h"
#include "device_access.h"
#include "stream.h"

// Emulates cuDNN: weights by rows of gates, two biases, and a reserve that the backward pass destroys. It supports
// layers of even size only, so that tests reach the step-by-step kernels with the others.

namespace reel::detail::inline REEL_TARGET {
namespace {

template <RecurrentCell cell, class T>
class EmulatedLayer final : public LibraryLayer {
 public:
  explicit EmulatedLayer(const LibraryLayerForm& form) : form_(form), size_(form.size), width_(form.width) {
    for (std::int64_t count : form.counts) rows_ += count;
    layout.input_weights = 8;  // weights need not be at the beginning
    layout.state_weights = layout.input_weights + gates * size_ * width_;
    layout.input_bias = layout.state_weights + gates * size_ * size_ + 4;
    layout.state_bias = layout.input_bias + gates * size_;
    weight_bytes = static_cast<std::size_t>(layout.state_bias + gates * size_) * sizeof(T);
    work_bytes = static_cast<std::size_t>(rows_ * 2 * gates * size_) * sizeof(T);
    if (form.differentiable)
      reserve_bytes = static_cast<std::size_t>(rows_ * (work + 2 + 2 * gates) * size_) * sizeof(T);
  }

  void forward(const LibraryLayerForward& given) override {
    give_to_stream(current_stream(), [layer = *this, given] { layer.run_forward(given); });
  }
  void backward(const LibraryLayerBackward& given) override {
    give_to_stream(current_stream(), [layer = *this, given] { layer.run_backward(given); });
  }

 private:
  static constexpr int gates = form_of(cell).gates, work = form_of(cell).work;

  void run_forward(const LibraryLayerForward& given) const {
    DeviceAccess access;
    Weights weights(*this, given.weights);
    std::vector<T> scratch(static_cast<std::size_t>(rows_ * (work + 2 + 2 * gates) * size_));
    Reserve kept(*this, form_.differentiable ? given.reserve : scratch.data());
    auto* y = static_cast<T*>(given.y);
    copy(given.h, given.h_0, form_.batch);
    if (given.c) copy(given.c, given.c_0, form_.batch);
    std::int64_t row = 0;
    for (std::int64_t count : form_.counts)
      for (std::int64_t example = 0; example < count; ++example, ++row) {
        T* h = static_cast<T*>(given.h) + example * size_;
        T* c = given.c ? static_cast<T*>(given.c) + example * size_ : nullptr;
        T *p = kept.dp + row * gates * size_, *q = kept.dq + row * gates * size_;
        product(p, weights.input, weights.input_bias, static_cast<const T*>(given.x) + row * width_, width_);
        product(q, weights.state, weights.state_bias, h, size_);
        for (std::int64_t j = 0; j < size_; ++j) {
          kept.before[row * size_ + j] = h[j];
          formulas::Cell<cell>::forward(formulas::CellRow<T>{.p = p,
                                                             .q = q,
                                                             .bias = nullptr,
                                                             .before = c ? c : kept.before + row * size_,
                                                             .h = y + row * size_,
                                                             .work = kept.work + row * work * size_,
                                                             .c = kept.c + row * size_,
                                                             .units = size_,
                                                             .size = size_,
                                                             .q_stride = size_},
                                        formulas::Unit<T>{j});
        }
        copy(h, y + row * size_, 1);
        if (c) copy(c, kept.c + row * size_, 1);
      }
  }

  void run_backward(const LibraryLayerBackward& given) const {
    DeviceAccess access;
    Weights weights(*this, given.weights);
    Reserve kept(*this, given.reserve);
    copy(given.dh_0, given.dh, form_.batch);
    if (given.dc_0) copy(given.dc_0, given.dc, form_.batch);
    std::int64_t first = rows_;
    for (std::size_t t = form_.counts.size(); t-- > 0;) {
      std::int64_t before = t > 0 ? first - form_.counts[t] - form_.counts[t - 1] : 0;
      first -= form_.counts[t];
      for (std::int64_t example = 0; example < form_.counts[t]; ++example)
        go_back(given, weights, kept, first + example, example,
                t > 0 ? kept.c + (before + example) * size_
                      : static_cast<const T*>(given.c_0) + (given.c_0 ? example * size_ : 0));
    }
    if (given.dweights) add_weights(given, kept);
    std::fill_n(static_cast<T*>(given.reserve), reserve_bytes / sizeof(T), std::numeric_limits<T>::quiet_NaN());
  }

  struct Weights {
    const T *input, *state, *input_bias, *state_bias;
    Weights(const EmulatedLayer& layer, const void* first)
        : input(static_cast<const T*>(first) + layer.layout.input_weights),
          state(static_cast<const T*>(first) + layer.layout.state_weights),
          input_bias(static_cast<const T*>(first) + layer.layout.input_bias),
          state_bias(static_cast<const T*>(first) + layer.layout.state_bias) {}
  };
  struct Reserve {
    T *work, *c, *before, *dp, *dq;
    Reserve(const EmulatedLayer& layer, void* first)
        : work(static_cast<T*>(first)),
          c(work + layer.rows_ * EmulatedLayer::work * layer.size_),
          before(c + layer.rows_ * layer.size_),
          dp(before + layer.rows_ * layer.size_),
          dq(dp + layer.rows_ * gates * layer.size_) {}
  };

  void copy(void* to, const void* from, std::int64_t rows) const {
    std::copy_n(static_cast<const T*>(from), rows * size_, static_cast<T*>(to));
  }
  void product(T* out, const T* weights, const T* bias, const T* x, std::int64_t depth) const {
    for (std::int64_t j = 0; j < gates * size_; ++j) {
      T sum = bias[j];
      for (std::int64_t k = 0; k < depth; ++k) sum += weights[j * depth + k] * x[k];
      out[j] = sum;
    }
  }
  void product_back(T* out, const T* weights, const T* d, std::int64_t depth, bool adds) const {
    for (std::int64_t k = 0; k < depth; ++k) {
      T sum = adds ? out[k] : T(0);
      for (std::int64_t j = 0; j < gates * size_; ++j) sum += weights[j * depth + k] * d[j];
      out[k] = sum;
    }
  }

  void go_back(const LibraryLayerBackward& given, const Weights& weights, const Reserve& kept, std::int64_t row,
               std::int64_t example, const T* c_before) const {
    T* dh = static_cast<T*>(given.dh_0) + example * size_;
    T* dc = given.dc_0 ? static_cast<T*>(given.dc_0) + example * size_ : nullptr;
    T *dp = kept.dp + row * gates * size_, *dq = kept.dq + row * gates * size_;
    constexpr bool lstm = cell == RecurrentCell::lstm;
    for (std::int64_t j = 0; j < size_; ++j)
      formulas::Cell<cell>::backward(
          formulas::CellGradientRow<T>{
              .dh = static_cast<const T*>(given.dy) + row * size_,
              .more_dh = dh,
              .dc = dc,
              .work = kept.work + row * work * size_,
              .before = lstm ? c_before : kept.before + row * size_,
              .after = lstm ? kept.c + row * size_ : static_cast<const T*>(given.y) + row * size_,
              .dp = dp,
              .dq = dq,
              .d_before = lstm ? dc : dh,
              .units = size_,
              .size = size_},
          formulas::Unit<T>{j});
    if (cell != RecurrentCell::gru) std::copy_n(dp, gates * size_, dq);
    product_back(dh, weights.state, dq, size_, cell == RecurrentCell::gru);
    product_back(static_cast<T*>(given.dx) + row * width_, weights.input, dp, width_, false);
  }

  void add_weights(const LibraryLayerBackward& given, const Reserve& kept) const {
    auto* first = static_cast<T*>(given.dweights);
    for (std::int64_t row = 0; row < rows_; ++row)
      for (std::int64_t j = 0; j < gates * size_; ++j) {
        T dp = kept.dp[row * gates * size_ + j], dq = kept.dq[row * gates * size_ + j];
        for (std::int64_t k = 0; k < width_; ++k)
          first[layout.input_weights + j * width_ + k] += dp * static_cast<const T*>(given.x)[row * width_ + k];
        for (std::int64_t k = 0; k < size_; ++k)
          first[layout.state_weights + j * size_ + k] += dq * kept.before[row * size_ + k];
        first[layout.input_bias + j] += dp;
        first[layout.state_bias + j] += dq;
      }
  }

  LibraryLayerForm form_;
  std::int64_t size_, width_, rows_ = 0;
};

template <class T>
std::unique_ptr<LibraryLayer> make_layer(const LibraryLayerForm& form) {
  switch (form.cell) {
    case RecurrentCell::lstm: return std::make_unique<EmulatedLayer<RecurrentCell::lstm, T>>(form);
    case RecurrentCell::gru: return std::make_unique<EmulatedLayer<RecurrentCell::gru, T>>(form);
    case RecurrentCell::rnn_tanh: return std::make_unique<EmulatedLayer<RecurrentCell::rnn_tanh, T>>(form);
    default: return {};
  }
}

}  // namespace

std::unique_ptr<LibraryLayer> make_library_layer(const LibraryLayerForm& form) {
  if (form.size % 2 != 0) return {};
  return form.dtype == DType::f64 ? make_layer<double>(form) : make_layer<float>(form);
}

}  // namespace reel::detail::inline REEL_TARGET
