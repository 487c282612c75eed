#include "cudnn_recurrent.h"

#include <memory>
#include <numeric>
#include <unordered_map>

#include "cudnn_library.h"
#include "streams.h"

// cuDNN's recurrent layers. The library that is installed checks the descriptors; what it computes for a handle, which needs
// a GPU, has the sizes and the order that its documentation gives.
// Source: NVIDIA's cuDNN documentation, cudnn_adv: cudnnSetRNNDescriptor_v8, cudnnGetRNNWeightParams, cudnnRNNForward.

using namespace reel_test::stand_in;

namespace {

struct Layer {
  cudnnRNNAlgo_t algorithm;
  cudnnRNNMode_t mode;
  cudnnDataType_t type;
  int width, size;

  int gates() const { return mode == CUDNN_LSTM ? 4 : mode == CUDNN_GRU ? 3 : 1; }
  std::size_t element() const { return type == CUDNN_DATA_DOUBLE ? 8 : 4; }
  std::size_t weights() const {
    auto h = static_cast<std::size_t>(size), g = static_cast<std::size_t>(gates());
    return g * h * (static_cast<std::size_t>(width) + h + 2) * element();
  }
};

struct Rows {
  cudnnDataType_t type;
  int batch, width;
  std::size_t rows;  // of all steps
  bool is_rectangle;
  std::size_t bytes() const { return rows * static_cast<std::size_t>(width) * (type == CUDNN_DATA_DOUBLE ? 8 : 4); }
};

std::unordered_map<const void*, Layer>& layers() {
  static auto& made = *new std::unordered_map<const void*, Layer>;
  return made;
}
std::unordered_map<const void*, Rows>& rows() {
  static auto& made = *new std::unordered_map<const void*, Rows>;
  return made;
}

bool forward_is_refused = false, backward_is_refused = false;

// Both algorithms keep the gates and the cells of each step; persistent kernels work in registers.
std::size_t work_of(const Layer& layer, const Rows& x) {
  return x.rows * static_cast<std::size_t>(layer.size * layer.gates()) * layer.element() + 4096;
}
std::size_t reserve_of(const Layer& layer, const Rows& x) {
  return x.rows * static_cast<std::size_t>(layer.size * (layer.gates() + 2)) * layer.element() + 4096;
}

cudnnStatus_t refusal(const Layer& layer, bool is_refused) {
  return is_refused && layer.algorithm == CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H ? CUDNN_STATUS_NOT_SUPPORTED
                                                                                : CUDNN_STATUS_SUCCESS;
}

struct Call {
  CUstream_st* stream;
  Layer layer;
  Rows x, y;
  std::size_t state_bytes() const {
    return static_cast<std::size_t>(x.batch) * static_cast<std::size_t>(layer.size) * layer.element();
  }
  void use(const void* address, std::size_t bytes, const char* what, bool may_be_null = false) const {
    if (address || !may_be_null) use_extent(*stream, address, bytes, what);
  }
};

// The checks that all calls share. The stream is null if the call was refused.
Call begin(const char* name, cudnnHandle_t handle, const void* layer, const void* x, const void* y, std::size_t weights,
           std::size_t work, std::size_t reserve) {
  count(name);
  Call call{queue_work(handle->stream, name), layers().at(layer), rows().at(x), rows().at(y)};
  if (call.x.rows != call.y.rows || call.x.batch != call.y.batch) violation("{}: x and y have different steps", name);
  if (call.x.width != call.layer.width || call.y.width != call.layer.size)
    violation("{}: x or y is not as wide as the layer says", name);
  if (weights != call.layer.weights()) violation("{}: the weights have {} bytes", name, weights);
  if (work < work_of(call.layer, call.x)) violation("{}: the workspace is too small", name);
  if (reserve != 0 && reserve < reserve_of(call.layer, call.x)) violation("{}: the reserve is too small", name);
  if (call.layer.algorithm == CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H && !call.x.is_rectangle)
    violation("{}: persistent kernels take no examples of several lengths", name);
  return call;
}

}  // namespace

namespace reel_test::stand_in {

void refuse_persistent(bool forward, bool backward) {
  std::lock_guard lock(mutex());
  forward_is_refused = forward;
  backward_is_refused = backward;
}

}  // namespace reel_test::stand_in

#pragma GCC visibility push(default)
extern "C" {

// These need a handle, or depend on one that does.
cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t, cudnnHandle_t, float share, void*, std::size_t,
                                        unsigned long long) {
  if (share != 0) violation("cuDNN: a recurrent layer drops elements");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t layer, cudnnRNNAlgo_t algorithm, cudnnRNNMode_t mode,
                                       cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction,
                                       cudnnRNNInputMode_t input, cudnnDataType_t type, cudnnDataType_t precision,
                                       cudnnMathType_t math, int width, int size, int projected, int count_of_layers,
                                       cudnnDropoutDescriptor_t dropout, unsigned flags) {
  static auto real = real_cudnn<decltype(cudnnSetRNNDescriptor_v8)>("cudnnSetRNNDescriptor_v8");
  cudnnStatus_t status = real(layer, algorithm, mode, bias, direction, input, type, precision, math, width, size,
                              projected, count_of_layers, dropout, flags);
  std::lock_guard lock(mutex());
  if (status != CUDNN_STATUS_SUCCESS)
    violation("cuDNN refuses a recurrent layer of mode {}, algorithm {}, sizes {} and {}", static_cast<int>(mode),
              static_cast<int>(algorithm), width, size);
  layers()[layer] = {algorithm, mode, type, width, size};
  return status;
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t made, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int steps, int batch, int width,
                                        const int lengths[], void* fill) {
  static auto real = real_cudnn<decltype(cudnnSetRNNDataDescriptor)>("cudnnSetRNNDataDescriptor");
  cudnnStatus_t status = real(made, type, layout, steps, batch, width, lengths, fill);
  std::lock_guard lock(mutex());
  if (status != CUDNN_STATUS_SUCCESS)
    violation("cuDNN refuses {} steps of {} examples of width {}", steps, batch, width);
  auto all = static_cast<std::size_t>(std::accumulate(lengths, lengths + batch, 0));
  rows()[made] = {type, batch, width, all, all == static_cast<std::size_t>(steps) * static_cast<std::size_t>(batch)};
  return status;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t, cudnnRNNDescriptor_t layer, cudnnForwardMode_t mode,
                                        cudnnRNNDataDescriptor_t x, std::size_t* work, std::size_t* reserve) {
  std::lock_guard lock(mutex());
  if (work) *work = work_of(layers().at(layer), rows().at(x));
  if (reserve) *reserve = mode == CUDNN_FWD_MODE_TRAINING ? reserve_of(layers().at(layer), rows().at(x)) : 0;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t, cudnnRNNDescriptor_t layer, std::size_t* bytes) {
  std::lock_guard lock(mutex());
  *bytes = layers().at(layer).weights();
  return CUDNN_STATUS_SUCCESS;
}

// All matrices come first, those of the input before those of the state; then their biases in the same order.
cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t, cudnnRNNDescriptor_t layer, int32_t, std::size_t,
                                      const void* space, int32_t number, cudnnTensorDescriptor_t matrix,
                                      void** matrix_address, cudnnTensorDescriptor_t bias, void** bias_address) {
  static auto set = real_cudnn<decltype(cudnnSetTensorNdDescriptor)>("cudnnSetTensorNdDescriptor");
  std::lock_guard lock(mutex());
  const Layer& made = layers().at(layer);
  int gates = made.gates(), columns = number < gates ? made.width : made.size;
  std::int64_t h = made.size,
               before = number < gates ? number * h * made.width : gates * h * made.width + (number - gates) * h * h,
               matrices = gates * h * (made.width + h);
  auto element = static_cast<std::int64_t>(made.element());
  auto address = reinterpret_cast<std::uintptr_t>(space);
  *matrix_address = reinterpret_cast<void*>(address + static_cast<std::uintptr_t>(before * element));
  *bias_address = reinterpret_cast<void*>(address + static_cast<std::uintptr_t>((matrices + number * h) * element));
  const int dims[] = {1, made.size, columns}, strides[] = {made.size * columns, columns, 1};
  const int bias_dims[] = {1, made.size, 1}, bias_strides[] = {made.size, 1, 1};
  cudnnStatus_t status = set(matrix, made.type, 3, dims, strides);
  return status == CUDNN_STATUS_SUCCESS ? set(bias, made.type, 3, bias_dims, bias_strides) : status;
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t layer, cudnnForwardMode_t mode, const int32_t*,
                              cudnnRNNDataDescriptor_t x_form, const void* x, cudnnRNNDataDescriptor_t y_form, void* y,
                              cudnnTensorDescriptor_t, const void* h_0, void* h, cudnnTensorDescriptor_t,
                              const void* c_0, void* c, std::size_t weight_bytes, const void* weights,
                              std::size_t work_bytes, void* work, std::size_t reserve_bytes, void* reserve) {
  std::lock_guard lock(mutex());
  Call call = begin("cudnnRNNForward", handle, layer, x_form, y_form, weight_bytes, work_bytes, reserve_bytes);
  if (!call.stream) return CUDNN_STATUS_EXECUTION_FAILED;
  if (cudnnStatus_t status = refusal(call.layer, forward_is_refused); status != CUDNN_STATUS_SUCCESS) return status;
  call.use(x, call.x.bytes(), "x of a recurrent layer");
  call.use(y, call.y.bytes(), "y of a recurrent layer");
  for (const void* state : {h_0, static_cast<const void*>(h), c_0, static_cast<const void*>(c)})
    call.use(state, call.state_bytes(), "the state of a recurrent layer", true);
  call.use(weights, weight_bytes, "the weights of a recurrent layer");
  call.use(work, work_bytes, "the workspace of a recurrent layer");
  if (mode == CUDNN_FWD_MODE_TRAINING)
    call.use(reserve, reserve_of(call.layer, call.x), "the reserve of a recurrent layer");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t layer, const int32_t*,
                                      cudnnRNNDataDescriptor_t y_form, const void* y, const void* dy,
                                      cudnnRNNDataDescriptor_t x_form, void* dx, cudnnTensorDescriptor_t,
                                      const void* h_0, const void* dh, void* dh_0, cudnnTensorDescriptor_t,
                                      const void* c_0, const void* dc, void* dc_0, std::size_t weight_bytes,
                                      const void* weights, std::size_t work_bytes, void* work,
                                      std::size_t reserve_bytes, void* reserve) {
  std::lock_guard lock(mutex());
  Call call = begin("cudnnRNNBackwardData_v8", handle, layer, x_form, y_form, weight_bytes, work_bytes, reserve_bytes);
  if (!call.stream) return CUDNN_STATUS_EXECUTION_FAILED;
  if (cudnnStatus_t status = refusal(call.layer, backward_is_refused); status != CUDNN_STATUS_SUCCESS) return status;
  call.use(y, call.y.bytes(), "y of a recurrent layer");
  call.use(dy, call.y.bytes(), "dy of a recurrent layer");
  call.use(dx, call.x.bytes(), "dx of a recurrent layer");
  for (const void* state : {h_0, dh, static_cast<const void*>(dh_0), c_0, dc, static_cast<const void*>(dc_0)})
    call.use(state, call.state_bytes(), "the state of a recurrent layer", true);
  call.use(weights, weight_bytes, "the weights of a recurrent layer");
  call.use(work, work_bytes, "the workspace of a recurrent layer");
  call.use(reserve, reserve_of(call.layer, call.x), "the reserve of a recurrent layer");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t layer, cudnnWgradMode_t mode,
                                         const int32_t*, cudnnRNNDataDescriptor_t x_form, const void* x,
                                         cudnnTensorDescriptor_t, const void* h_0, cudnnRNNDataDescriptor_t y_form,
                                         const void* y, std::size_t weight_bytes, void* dweights,
                                         std::size_t work_bytes, void* work, std::size_t reserve_bytes, void* reserve) {
  std::lock_guard lock(mutex());
  Call call =
      begin("cudnnRNNBackwardWeights_v8", handle, layer, x_form, y_form, weight_bytes, work_bytes, reserve_bytes);
  if (!call.stream) return CUDNN_STATUS_EXECUTION_FAILED;
  if (cudnnStatus_t status = refusal(call.layer, backward_is_refused); status != CUDNN_STATUS_SUCCESS) return status;
  if (mode != CUDNN_WGRAD_MODE_ADD) violation("cuDNN has no such mode for the gradients of weights");
  call.use(x, call.x.bytes(), "x of a recurrent layer");
  call.use(h_0, call.state_bytes(), "the state of a recurrent layer", true);
  call.use(y, call.y.bytes(), "y of a recurrent layer");
  call.use(dweights, weight_bytes, "the gradients of a recurrent layer's weights");
  call.use(work, work_bytes, "the workspace of a recurrent layer");
  call.use(reserve, reserve_of(call.layer, call.x), "the reserve of a recurrent layer");
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
