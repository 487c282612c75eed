#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <numeric>

#include "../runtime/driver.h"
#include "../runtime/of_queue.h"
#include "cudnn_handle.h"
#include "library_layer.h"

// Source: NVIDIA's cuDNN 9, API of cudnn_adv: cudnnSetRNNDescriptor_v8, cudnnRNNForward and related functions. Its
// gates have our order: i f g o of lstm, r z n of gru.

namespace reel::detail::inline REEL_TARGET {
namespace {

template <class T, cudnnStatus_t (*create)(T*), cudnnStatus_t (*destroy)(T)>
class Descriptor : Immovable {
 public:
  Descriptor() { check_cudnn(create(&made_), "the creation of a descriptor"); }
  ~Descriptor() { destroy(made_); }
  operator T() const { return made_; }

 private:
  T made_;
};

using DropoutDescriptor =
    Descriptor<cudnnDropoutDescriptor_t, cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor>;
using LayerDescriptor = Descriptor<cudnnRNNDescriptor_t, cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor>;
using RowsDescriptor =
    Descriptor<cudnnRNNDataDescriptor_t, cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor>;
using TensorDescriptor = Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;

struct Library {
  CudnnHandle handle;
};

cudnnHandle_t library_handle() { return of_current_queue<Library>().handle.on_stream(); }

// Persistent kernels report unsupported layers only when they are launched. After the first refusal they are not used
// any more.
std::atomic<bool> persists = true;

cudnnRNNMode_t mode_of(RecurrentCell cell) {
  switch (cell) {
    case RecurrentCell::lstm: return CUDNN_LSTM;
    case RecurrentCell::gru: return CUDNN_GRU;
    case RecurrentCell::rnn_tanh: return CUDNN_RNN_TANH;
    default: return CUDNN_RNN_RELU;
  }
}

int narrowed(std::int64_t number) { return static_cast<int>(number); }

class CudnnLayer final : public LibraryLayer {
 public:
  explicit CudnnLayer(const LibraryLayerForm& form)
      : form_(form),
        gates_(form_of(form.cell).gates),
        type_(form.dtype == DType::f64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT) {
    check_cudnn(cudnnSetDropoutDescriptor(dropout_, library_handle(), 0, nullptr, 0, 0), "cudnnSetDropoutDescriptor");
    // The number of steps of each example.
    std::vector<int> lengths(static_cast<std::size_t>(form.batch));
    for (std::int64_t count : form.counts)
      for (std::int64_t example = 0; example < count; ++example) ++lengths[static_cast<std::size_t>(example)];
    const int dims[] = {1, narrowed(form.batch), narrowed(form.size)};
    const int strides[] = {narrowed(form.batch * form.size), narrowed(form.size), 1};
    is_described_ = set_rows(x_, form.width, lengths) && set_rows(y_, form.size, lengths) &&
                    cudnnSetTensorNdDescriptor(state_, type_, 3, dims, strides) == CUDNN_STATUS_SUCCESS;
  }

  /// Returns true if the library supports the layer, and its weights have the expected layout.
  bool is_ready() {
    if (!is_described_ || !set_standard()) return false;
    if (!may_persist()) return true;
    std::array standard = weight_places();
    is_persistent_ = set(CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H) && weight_places() == standard;
    if (is_persistent_) return true;
    driver_forget_error();
    return set_standard();
  }

  void forward(const LibraryLayerForward& given) override {
    cudnnStatus_t status = run_forward(given);
    if (status == CUDNN_STATUS_SUCCESS) return;
    if (!is_persistent_) check_cudnn(status, "cudnnRNNForward");
    persists = false;
    driver_forget_error();
    if (!set_standard()) check_cudnn(status, "cudnnRNNForward");
    check_cudnn(run_forward(given), "cudnnRNNForward");
  }

  void backward(const LibraryLayerBackward& given) override {
    auto [status, call] = run_backward(given);
    if (status == CUDNN_STATUS_SUCCESS) return;
    if (!is_persistent_) check_cudnn(status, call);
    persists = false;
    driver_forget_error();
    if (!set_standard()) check_cudnn(status, call);
    // The persistent forward pass has saved other intermediate values than this algorithm needs.
    keep_again(given);
    Outcome outcome = run_backward(given);
    check_cudnn(outcome.status, outcome.call);
  }

 private:
  // True for small states, which stay in registers over all steps, forwards and backwards. There are no such kernels
  // for ragged batches.
  bool may_persist() const {
    std::int64_t most = form_.cell == RecurrentCell::rnn_tanh ? 256 : 128;
    return persists && form_.dtype == DType::f32 && form_.size <= most && form_.counts.back() == form_.batch;
  }
  std::array<std::int64_t, 5> weight_places() const {
    return {static_cast<std::int64_t>(weight_bytes), layout.input_weights, layout.state_weights, layout.input_bias,
            layout.state_bias};
  }
  bool set_standard() {
    is_persistent_ = false;
    return set(CUDNN_RNN_ALGO_STANDARD);
  }
  cudnnTensorDescriptor_t cell_state() const {
    return form_.cell == RecurrentCell::lstm ? static_cast<cudnnTensorDescriptor_t>(state_) : nullptr;
  }

  bool set_rows(const RowsDescriptor& rows, std::int64_t width, const std::vector<int>& lengths) const {
    return cudnnSetRNNDataDescriptor(rows, type_, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
                                     narrowed(std::ssize(form_.counts)), narrowed(form_.batch), narrowed(width),
                                     lengths.data(), nullptr) == CUDNN_STATUS_SUCCESS;
  }

  // The buffers are large enough for both algorithms.
  bool set(cudnnRNNAlgo_t algorithm) {
    std::size_t work = 0, reserve = 0;
    cudnnMathType_t math = form_.dtype == DType::f64 || form_.tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
    cudnnHandle_t handle = library_handle();
    auto mode = form_.differentiable ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
    bool is_set = cudnnSetRNNDescriptor_v8(layer_, algorithm, mode_of(form_.cell), CUDNN_RNN_DOUBLE_BIAS,
                                           CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, type_, type_, math,
                                           narrowed(form_.width), narrowed(form_.size), narrowed(form_.size), 1,
                                           dropout_, CUDNN_RNN_PADDED_IO_DISABLED) == CUDNN_STATUS_SUCCESS &&
                  cudnnGetRNNTempSpaceSizes(handle, layer_, mode, x_, &work,
                                            form_.differentiable ? &reserve : nullptr) == CUDNN_STATUS_SUCCESS &&
                  cudnnGetRNNWeightSpaceSize(handle, layer_, &weight_bytes) == CUDNN_STATUS_SUCCESS &&
                  find_weights(handle);
    work_bytes = std::max(work_bytes, work);
    reserve_bytes = std::max(reserve_bytes, reserve);
    return is_set;
  }

  bool find_weights(cudnnHandle_t handle) {
    Scratch space(weight_bytes);
    return find_blocks(handle, space, 0, form_.width, layout.input_weights, layout.input_bias) &&
           find_blocks(handle, space, gates_, form_.size, layout.state_weights, layout.state_bias);
  }

  // Finds the blocks of all gates, which must be contiguous and row-major.
  bool find_blocks(cudnnHandle_t handle, const Scratch& space, int first, std::int64_t width, std::int64_t& weights,
                   std::int64_t& bias) {
    for (int gate = 0; gate < gates_; ++gate) {
      TensorDescriptor matrix, vector;
      void *matrix_place = nullptr, *vector_place = nullptr;
      if (cudnnGetRNNWeightParams(handle, layer_, 0, weight_bytes, space.as<void>(), first + gate, matrix,
                                  &matrix_place, vector, &vector_place) != CUDNN_STATUS_SUCCESS ||
          !matrix_place || !vector_place)
        return false;
      std::int64_t own_weights = elements_before(space, matrix_place), own_bias = elements_before(space, vector_place);
      if (gate == 0) {
        weights = own_weights;
        bias = own_bias;
      }
      if (own_weights != weights + gate * form_.size * width || own_bias != bias + gate * form_.size ||
          !is_matrix(matrix, form_.size, width))
        return false;
    }
    return true;
  }

  std::int64_t elements_before(const Scratch& space, const void* place) const {
    return (static_cast<const char*>(place) - space.as<char>()) / (form_.dtype == DType::f64 ? 8 : 4);
  }

  static bool is_matrix(const TensorDescriptor& given, std::int64_t rows, std::int64_t columns) {
    cudnnDataType_t type;
    int rank = 0, dims[8] = {}, strides[8] = {};
    if (cudnnGetTensorNdDescriptor(given, 8, &type, &rank, dims, strides) != CUDNN_STATUS_SUCCESS || rank < 3)
      return false;
    return dims[1] == rows && dims[2] == columns && (rows == 1 || strides[1] == columns) &&
           (columns == 1 || strides[2] == 1);
  }

  cudnnStatus_t run_forward(const LibraryLayerForward& given) {
    auto mode = form_.differentiable ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
    return cudnnRNNForward(library_handle(), layer_, mode, nullptr, x_, given.x, y_, given.y, state_, given.h_0,
                           given.h, cell_state(), given.c_0, given.c, weight_bytes, given.weights, work_bytes,
                           given.work, reserve_bytes, given.reserve);
  }

  struct Outcome {
    cudnnStatus_t status;
    const char* call;
  };

  Outcome run_backward(const LibraryLayerBackward& given) {
    cudnnHandle_t handle = library_handle();
    cudnnStatus_t status =
        cudnnRNNBackwardData_v8(handle, layer_, nullptr, y_, given.y, given.dy, x_, given.dx, state_, given.h_0,
                                given.dh, given.dh_0, cell_state(), given.c_0, given.dc, given.dc_0, weight_bytes,
                                given.weights, work_bytes, given.work, reserve_bytes, given.reserve);
    if (status != CUDNN_STATUS_SUCCESS || !given.dweights) return {status, "cudnnRNNBackwardData_v8"};
    status = cudnnRNNBackwardWeights_v8(handle, layer_, CUDNN_WGRAD_MODE_ADD, nullptr, x_, given.x, state_, given.h_0,
                                        y_, given.y, weight_bytes, given.dweights, work_bytes, given.work,
                                        reserve_bytes, given.reserve);
    return {status, "cudnnRNNBackwardWeights_v8"};
  }

  // Runs the forward pass again for what it keeps; its results are dropped.
  void keep_again(const LibraryLayerBackward& given) {
    auto element = form_.dtype == DType::f64 ? std::size_t{8} : std::size_t{4};
    std::int64_t rows = std::accumulate(form_.counts.begin(), form_.counts.end(), std::int64_t{0});
    Scratch y(static_cast<std::size_t>(rows * form_.size) * element);
    LibraryLayerForward again{};
    again.x = given.x;
    again.h_0 = given.h_0;
    again.c_0 = given.c_0;
    again.weights = given.weights;
    again.y = y.as<void>();
    again.work = given.work;
    again.reserve = given.reserve;
    check_cudnn(run_forward(again), "cudnnRNNForward");
  }

  LibraryLayerForm form_;
  int gates_;
  cudnnDataType_t type_;
  bool is_described_ = false, is_persistent_ = false;
  DropoutDescriptor dropout_;
  LayerDescriptor layer_;
  RowsDescriptor x_, y_;
  TensorDescriptor state_;
};

}  // namespace

std::unique_ptr<LibraryLayer> make_library_layer(const LibraryLayerForm& form) {
  auto layer = std::make_unique<CudnnLayer>(form);
  if (layer->is_ready()) return layer;
  driver_forget_error();
  return {};
}

}  // namespace reel::detail::inline REEL_TARGET
