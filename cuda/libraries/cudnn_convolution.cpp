#include <bit>
#include <memory>

#include "../../lib/core/recent_cache.h"
#include "../../lib/core/tensor_float.h"
#include "../device/images.h"
#include "../runtime/capture.h"
#include "../runtime/of_queue.h"
#include "cudnn_graph.h"
#include "library_convolution.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

constexpr std::int64_t most_workspace = std::int64_t{512} << 20;

enum class Kind : std::int64_t { forward, backward_data, backward_weights };

// The ids of the tensors in a graph.
constexpr std::int64_t image_identity = 1, filter_identity = 2, result_identity = 3, bias_identity = 4,
                       sum_identity = 5;

// The sizes of examples and channels, or of filters and their channels, and of two or three spatial axes.
struct Sizes {
  std::int64_t of[5];
};

// Everything that determines a plan.
struct Key {
  Kind kind;
  std::int64_t dtype, spatial, channels_last, tf32, has_bias;
  Sizes x, w, y;
  std::int64_t stride[3], dilation[3], before[3], after[3];
  std::int64_t alignments[4];  // of x, w, y and the bias
};

struct Library {
  CudnnHandle handle;
  RecentCache<Key, std::shared_ptr<GraphPlan>> plans{256};
};

cudnnDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return CUDNN_DATA_DOUBLE;
    case DType::bf16: return CUDNN_DATA_BFLOAT16;
    case DType::f16: return CUDNN_DATA_HALF;
    default: return CUDNN_DATA_FLOAT;
  }
}

Sizes sizes_of(const View& view, bool channels_last, std::int64_t spatial) {
  Images images(view, channels_last);
  Sizes sizes{{images.examples, images.channels}};
  for (std::int64_t i = 0; i < spatial; ++i) sizes.of[2 + i] = images.dims[3 - spatial + i];
  return sizes;
}

std::int64_t alignment_of(const View& view) {
  return std::int64_t{1} << std::countr_zero(reinterpret_cast<std::uintptr_t>(view.data) | 16);
}

bool find_key(Key& key, Kind kind, const View& x, const View& w, const View& y, const View* bias,
              const Convolution& c) {
  bool last = c.channels_last != 0;
  key.kind = kind;
  key.dtype = static_cast<std::int64_t>(x.dtype);
  key.spatial = x.rank == 5 ? 3 : 2;
  key.channels_last = last;
  key.tf32 = x.dtype == DType::f32 && may_use_tf32();
  key.has_bias = bias != nullptr;
  key.x = sizes_of(x, last, key.spatial);
  key.w = sizes_of(w, false, key.spatial);
  key.y = sizes_of(y, last, key.spatial);
  for (std::int64_t i = 0; i < key.spatial; ++i) {
    std::int64_t axis = 3 - key.spatial + i;
    key.stride[i] = c.stride[axis];
    key.dilation[i] = c.dilation[axis];
    key.before[i] = c.padding[axis];
    key.after[i] = padding_after(key.x.of[2 + i], key.w.of[2 + i], key.y.of[2 + i], c.stride[axis], c.dilation[axis],
                                 c.padding[axis]);
    if (key.after[i] < 0) return false;
  }
  key.alignments[0] = alignment_of(x);
  key.alignments[1] = alignment_of(w);
  key.alignments[2] = alignment_of(y);
  key.alignments[3] = bias ? alignment_of(*bias) : 0;
  return true;
}

// Builds the descriptors of a plan.
class Builder {
 public:
  explicit Builder(const Key& key) : key_(key) {}

  std::unique_ptr<GraphPlan> plan(cudnnHandle_t handle) {
    build();
    auto dtype = static_cast<DType>(key_.dtype);
    if (!supported_) operations_.clear();
    EngineLimits limits{key_.tf32 != 0, dtype == DType::f32 || dtype == DType::f64, most_workspace};
    if (operations_.empty()) return nullptr;
    auto made = std::make_unique<GraphPlan>(handle, std::move(operations_), std::move(others_), limits);
    return made->exists() ? std::move(made) : nullptr;
  }

 private:
  // Missing spatial axes may be anywhere in the memory's order of the axes: they have size 1.
  std::size_t tensor(std::int64_t identity, const Sizes& sizes, DType dtype, std::int64_t alignment,
                     bool is_virtual = false) {
    std::int64_t rank = 2 + key_.spatial, strides[5], step = 1;
    auto pass = [&](std::int64_t axis) {
      strides[axis] = step;
      step *= sizes.of[axis];
    };
    if (key_.channels_last != 0) pass(1);
    for (std::int64_t axis = rank; axis-- > 2;) pass(axis);
    if (key_.channels_last == 0) pass(1);
    pass(0);
    GraphDescriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type_of(dtype));
    made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, sizes.of, rank);
    made.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides, rank);
    made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, identity);
    made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
    if (is_virtual) made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
    return keep(std::move(made));
  }

  std::size_t keep(GraphDescriptor made) {
    supported_ = made.finalise() && supported_;
    others_.push_back(std::move(made));
    return others_.size() - 1;
  }

  std::size_t convolution() {
    bool wide = static_cast<DType>(key_.dtype) == DType::f64;
    GraphDescriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    made.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
    made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, key_.spatial);
    made.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, key_.dilation, key_.spatial);
    made.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, key_.stride, key_.spatial);
    made.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, key_.before, key_.spatial);
    made.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, key_.after, key_.spatial);
    return keep(std::move(made));
  }

  void add(GraphDescriptor operation) {
    supported_ = supported_ && operation.finalise();
    operations_.push_back(std::move(operation));
  }

  void set_factors(GraphDescriptor& operation, cudnnBackendAttributeName_t alpha,
                   cudnnBackendAttributeName_t beta) const {
    if (static_cast<DType>(key_.dtype) == DType::f64) {
      operation.set(alpha, CUDNN_TYPE_DOUBLE, 1.0);
      operation.set(beta, CUDNN_TYPE_DOUBLE, 0.0);
    } else {
      operation.set(alpha, CUDNN_TYPE_FLOAT, 1.0f);
      operation.set(beta, CUDNN_TYPE_FLOAT, 0.0f);
    }
  }

  // Adds: sum = result of the convolution + bias; the former is then not the result itself.
  void add_bias(std::size_t convolved, const Sizes& sizes, std::int64_t alignment) {
    auto dtype = static_cast<DType>(key_.dtype);
    std::size_t bias = tensor(bias_identity, {{1, sizes.of[1], 1, 1, 1}}, dtype, key_.alignments[3]);
    std::size_t sum = tensor(result_identity, sizes, dtype, alignment);
    GraphDescriptor addition(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    addition.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_ADD);
    addition.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    std::size_t kept = keep(std::move(addition));
    if (!supported_) return;
    GraphDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, others_[kept]);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, others_[convolved]);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, others_[bias]);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, others_[sum]);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT, 1.0f);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, CUDNN_TYPE_FLOAT, 1.0f);
    add(std::move(operation));
  }

  // The attribute names of an operation's kind.
  struct Names {
    cudnnBackendDescriptorType_t operation;
    cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
  };
  static Names names_of(Kind kind) {
    switch (kind) {
      case Kind::backward_data:
        return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
      case Kind::backward_weights:
        return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
      default:
        return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    }
  }

  void build() {
    // Ordered by role: result, images and filters.
    const std::int64_t identities[] = {key_.kind == Kind::backward_data ? result_identity : image_identity,
                                       key_.kind == Kind::backward_weights ? result_identity : filter_identity,
                                       key_.kind == Kind::forward            ? result_identity
                                       : key_.kind == Kind::backward_weights ? filter_identity
                                                                             : image_identity};
    const Sizes* sizes[] = {&key_.x, &key_.w, &key_.y};
    std::size_t tensors[3], convolved = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      // With a bias, the convolution's result is f32 until the bias is added.
      bool within = identities[i] == result_identity && key_.has_bias != 0;
      tensors[i] =
          tensor(within ? sum_identity : identities[i], *sizes[i], within ? DType::f32 : static_cast<DType>(key_.dtype),
                 within ? 16 : key_.alignments[i], within);
      if (identities[i] == result_identity) convolved = i;
    }
    std::size_t description = convolution();
    if (!supported_) return;
    Names names = names_of(key_.kind);
    GraphDescriptor operation(names.operation);
    operation.set(names.x, others_[tensors[0]]);
    operation.set(names.w, others_[tensors[1]]);
    operation.set(names.y, others_[tensors[2]]);
    operation.set(names.convolution, others_[description]);
    set_factors(operation, names.alpha, names.beta);
    add(std::move(operation));
    if (key_.has_bias != 0 && supported_) add_bias(tensors[convolved], *sizes[convolved], key_.alignments[convolved]);
  }

  const Key& key_;
  std::vector<GraphDescriptor> operations_, others_;
  bool supported_ = true;
};

// The bias is fused only for halves: engines that add a bias use tensor cores, which round f32.
bool takes_bias(const View& out, const View* bias) {
  return !bias || out.dtype == DType::f16 || out.dtype == DType::bf16;
}

bool run(const Key& key, void* out, void* images, void* filters, const View* bias) {
  auto& library = of_current_queue<Library>();
  cudnnHandle_t handle = library.handle.on_stream();
  const auto& plan = library.plans.find(key, [&] { return Builder(key).plan(handle); });
  if (!plan || !plan->exists()) return false;
  if (Capture* graph = current_queue().capture) graph->keep(plan);  // the cache may drop it before the graph ends
  std::vector<std::int64_t> identities{image_identity, filter_identity, result_identity};
  std::vector<void*> pointers{images, filters, out};
  if (bias) {
    identities.push_back(bias_identity);
    pointers.push_back(bias->data);
  }
  return plan->run(handle, identities, pointers);
}

}  // namespace

bool convolve_by_library(const View& out, const View& x, const View& w, const View* bias, const Convolution& c) {
  Key key{};
  return takes_bias(out, bias) && find_key(key, Kind::forward, x, w, out, bias, c) &&
         run(key, out.data, x.data, w.data, bias);
}

// cuDNN 9 has no engine, for any size, that adds a bias to a gradient by data; it takes up to a second to say so for each
// new size.
bool convolve_data_by_library(const View& out, const View& d, const View& w, const View* bias, const Convolution& c) {
  Key key{};
  return !bias && find_key(key, Kind::backward_data, out, w, d, nullptr, c) &&
         run(key, out.data, d.data, w.data, nullptr);
}

bool convolve_weights_by_library(const View& out, const View& x, const View& d, const Convolution& c) {
  Key key{};
  return find_key(key, Kind::backward_weights, x, out, d, nullptr, c) && run(key, out.data, x.data, d.data, nullptr);
}

}  // namespace reel::detail::inline REEL_TARGET
