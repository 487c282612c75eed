#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "cudnn_backend.h"
#include "cudnn_library.h"
#include "device.h"
#include "streams.h"

// cuDNN's graphs: the library that is installed makes the descriptors, asks its heuristics, and plans, for the GPU that is
// described to it; only the execution is the stand-in's.
// Source: NVIDIA's cuDNN documentation, "Deviceless Ahead-of-time Compilation".

using namespace reel_test::stand_in;

namespace {

// The attributes set in a descriptor, and the descriptors to which it refers.
struct Seen {
  cudnnBackendDescriptorType_t kind{};
  std::vector<std::shared_ptr<Seen>> others;
  std::vector<std::int64_t> dims, strides, identities;
  std::vector<void*> pointers;
  std::int64_t identity = 0, alignment = 1, workspace_bytes = 0;
  cudnnDataType_t type{};
  bool is_virtual = false, was_asked = false, is_planned = false;
  void* workspace = nullptr;
};

std::unordered_map<void*, std::shared_ptr<Seen>>& all() {
  static auto& made = *new std::unordered_map<void*, std::shared_ptr<Seen>>;
  return made;
}

// Graphs whose plans were asked for; the descriptors are gone when the list is read.
std::vector<std::shared_ptr<Seen>>& graphs() {
  static auto& made = *new std::vector<std::shared_ptr<Seen>>;
  return made;
}

std::shared_ptr<Seen> seen(cudnnBackendDescriptor_t descriptor) {
  auto& found = all()[descriptor];
  if (!found) found = std::make_shared<Seen>();
  return found;
}

template <class T>
std::vector<T> values(const void* elements, std::int64_t number) {
  const T* first = static_cast<const T*>(elements);
  return std::vector<T>(first, first + number);
}

void record_attribute(Seen& made, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                      std::int64_t number, const void* elements) {
  switch (name) {
    case CUDNN_ATTR_TENSOR_DIMENSIONS: made.dims = values<std::int64_t>(elements, number); return;
    case CUDNN_ATTR_TENSOR_STRIDES: made.strides = values<std::int64_t>(elements, number); return;
    case CUDNN_ATTR_TENSOR_UNIQUE_ID: made.identity = values<std::int64_t>(elements, 1)[0]; return;
    case CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT: made.alignment = values<std::int64_t>(elements, 1)[0]; return;
    case CUDNN_ATTR_TENSOR_DATA_TYPE: made.type = values<cudnnDataType_t>(elements, 1)[0]; return;
    case CUDNN_ATTR_TENSOR_IS_VIRTUAL: made.is_virtual = values<bool>(elements, 1)[0]; return;
    case CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS: made.pointers = values<void*>(elements, number); return;
    case CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS: made.identities = values<std::int64_t>(elements, number); return;
    case CUDNN_ATTR_VARIANT_PACK_WORKSPACE: made.workspace = values<void*>(elements, 1)[0]; return;
    default: break;
  }
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) return;
  for (cudnnBackendDescriptor_t other : values<cudnnBackendDescriptor_t>(elements, number))
    made.others.push_back(seen(other));
}

Seen* first_of(const Seen& from, cudnnBackendDescriptorType_t kind) {
  for (const auto& other : from.others) {
    if (other->kind == kind) return other.get();
    if (Seen* found = first_of(*other, kind)) return found;
  }
  return nullptr;
}

void find_tensors(const Seen& from, std::unordered_map<std::int64_t, const Seen*>& tensors) {
  for (const auto& other : from.others) {
    if (other->kind == CUDNN_BACKEND_TENSOR_DESCRIPTOR) tensors[other->identity] = other.get();
    find_tensors(*other, tensors);
  }
}

std::size_t size_of(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_DOUBLE: return 8;
    case CUDNN_DATA_FLOAT: return 4;
    default: return 2;
  }
}

std::size_t bytes_of(const Seen& tensor) {
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < tensor.dims.size(); ++axis) last += (tensor.dims[axis] - 1) * tensor.strides[axis];
  return static_cast<std::size_t>(last + 1) * size_of(tensor.type);
}

// The description of the GPU, as the library reads it.
cudnnBackendDescriptor_t device_properties() {
  static cudnnBackendDescriptor_t made = [] {
    std::string text = description_for_cudnn();
    cudnnBackendDescriptor_t properties = nullptr;
    auto create = real_cudnn<decltype(cudnnBackendCreateDescriptor)>("cudnnBackendCreateDescriptor");
    auto set = real_cudnn<decltype(cudnnBackendSetAttribute)>("cudnnBackendSetAttribute");
    auto finalise = real_cudnn<decltype(cudnnBackendFinalize)>("cudnnBackendFinalize");
    bool described = create(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &properties) == CUDNN_STATUS_SUCCESS &&
                     set(properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                         static_cast<std::int64_t>(text.size()), text.data()) == CUDNN_STATUS_SUCCESS &&
                     finalise(properties) == CUDNN_STATUS_SUCCESS;
    if (!described) violation("cuDNN does not take the description of {}", description().name);
    return properties;
  }();
  return made;
}

void give_device(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name) {
  cudnnBackendDescriptor_t properties = device_properties();
  real_cudnn<decltype(cudnnBackendSetAttribute)>("cudnnBackendSetAttribute")(
      descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, static_cast<const void*>(&properties));
}

std::string text_of(const Seen& graph) {
  std::string text;
  for (const auto& operation : graph.others) {
    text += fmt::format("operation {} of", static_cast<int>(operation->kind));
    for (const auto& tensor : operation->others)
      if (tensor->kind == CUDNN_BACKEND_TENSOR_DESCRIPTOR)
        text += fmt::format(" ({}) of type {}", fmt::join(tensor->dims, ", "), static_cast<int>(tensor->type));
    text += "; ";
  }
  return text;
}

void check_pack(CUstream_st& stream, const Seen& plan, const Seen& pack) {
  std::unordered_map<std::int64_t, const Seen*> tensors;
  find_tensors(plan, tensors);
  for (const auto& [identity, tensor] : tensors) {
    auto place = std::find(pack.identities.begin(), pack.identities.end(), identity);
    if (tensor->is_virtual) continue;
    if (place == pack.identities.end()) {
      violation("cuDNN: tensor {} of a graph has no address", identity);
      continue;
    }
    const void* data = pack.pointers.at(static_cast<std::size_t>(place - pack.identities.begin()));
    if (reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(tensor->alignment) != 0)
      violation("cuDNN: a tensor is not aligned to {} bytes, as its graph says", tensor->alignment);
    use_extent(stream, data, bytes_of(*tensor), "a tensor of cuDNN");
  }
  if (plan.workspace_bytes > 0)
    use_extent(stream, pack.workspace, static_cast<std::size_t>(plan.workspace_bytes), "the workspace of cuDNN");
}

}  // namespace

namespace reel_test::stand_in {

Plans take_plans() {
  std::lock_guard lock(mutex());
  Plans plans;
  for (const auto& graph : graphs()) {
    ++plans.asked;
    if (!graph->is_planned)
      (graph->others.size() > 1 ? plans.without_fusion : plans.without).push_back(text_of(*graph));
  }
  graphs().clear();
  return plans;
}

}  // namespace reel_test::stand_in

#pragma GCC visibility push(default)
extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  count("cudnnCreate");
  *handle = new cudnnContext{current_device()};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  std::unique_ptr<cudnnContext> freed(handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (stream->device != handle->device) {
    violation("cuDNN: a handle of device {} gets a stream of device {}", handle->device, stream->device);
    return CUDNN_STATUS_BAD_PARAM;
  }
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind, cudnnBackendDescriptor_t* descriptor) {
  static auto real = real_cudnn<decltype(cudnnBackendCreateDescriptor)>("cudnnBackendCreateDescriptor");
  cudnnStatus_t status = real(kind, descriptor);
  std::lock_guard lock(mutex());
  if (status == CUDNN_STATUS_SUCCESS) {
    all().erase(*descriptor);
    seen(*descriptor)->kind = kind;
  }
  return status;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  static auto real = real_cudnn<decltype(cudnnBackendDestroyDescriptor)>("cudnnBackendDestroyDescriptor");
  {
    std::lock_guard lock(mutex());
    all().erase(descriptor);
  }
  return real(descriptor);
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t number, const void* elements) {
  static auto real = real_cudnn<decltype(cudnnBackendSetAttribute)>("cudnnBackendSetAttribute");
  {
    std::lock_guard lock(mutex());
    record_attribute(*seen(descriptor), name, type, number, elements);
  }
  if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE) return CUDNN_STATUS_SUCCESS;
  return real(descriptor, name, type, number, elements);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  static auto real = real_cudnn<decltype(cudnnBackendFinalize)>("cudnnBackendFinalize");
  std::shared_ptr<Seen> made;
  {
    std::lock_guard lock(mutex());
    made = seen(descriptor);
    if (made->kind == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) {
      give_device(descriptor, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
      for (const auto& graph : made->others)
        if (!std::exchange(graph->was_asked, true)) graphs().push_back(graph);
    } else if (made->kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
      count("cuDNN plan");
      give_device(descriptor, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
    }
  }
  cudnnStatus_t status = real(descriptor);
  std::lock_guard lock(mutex());
  if (status != CUDNN_STATUS_SUCCESS || made->kind != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) return status;
  if (Seen* graph = first_of(*made, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)) graph->is_planned = true;
  return status;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t most, std::int64_t* number,
                                       void* elements) {
  static auto real = real_cudnn<decltype(cudnnBackendGetAttribute)>("cudnnBackendGetAttribute");
  cudnnStatus_t status = real(descriptor, name, type, most, number, elements);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  std::lock_guard lock(mutex());
  std::shared_ptr<Seen> made = seen(descriptor);
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) made->workspace_bytes = *static_cast<std::int64_t*>(elements);
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && elements)
    for (cudnnBackendDescriptor_t found : values<cudnnBackendDescriptor_t>(elements, *number))
      seen(found)->others = made->others;
  return status;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  count("cudnnBackendExecute");
  std::lock_guard lock(mutex());
  CUstream_st* queued = queue_work(handle->stream, "cudnnBackendExecute");
  if (!queued) return CUDNN_STATUS_EXECUTION_FAILED;
  check_pack(*queued, *seen(plan), *seen(pack));
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
