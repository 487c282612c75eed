#pragma once

#include <vector>

#include "cudnn_handle.h"

// cuDNN's graph interface: descriptors are made, filled attribute by attribute, and finalised.

namespace reel::detail::inline REEL_TARGET {

/// A descriptor of any kind.
class GraphDescriptor {
 public:
  explicit GraphDescriptor(cudnnBackendDescriptorType_t kind) {
    check_cudnn(cudnnBackendCreateDescriptor(kind, &descriptor_), "cudnnBackendCreateDescriptor");
  }
  ~GraphDescriptor() {
    if (descriptor_) cudnnBackendDestroyDescriptor(descriptor_);
  }
  GraphDescriptor(GraphDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)), accepted_(other.accepted_) {}
  GraphDescriptor& operator=(GraphDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(accepted_, other.accepted_);
    return *this;
  }

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T* values, std::int64_t count) {
    accepted_ = cudnnBackendSetAttribute(descriptor_, name, type, count, values) == CUDNN_STATUS_SUCCESS && accepted_;
  }
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T value) {
    set(name, type, &value, 1);
  }
  void set(cudnnBackendAttributeName_t name, const GraphDescriptor& other) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.descriptor_);
  }
  void set(cudnnBackendAttributeName_t name, std::int64_t value) { set(name, CUDNN_TYPE_INT64, value); }

  /// Returns false if the library does not support what the descriptor describes.
  [[nodiscard]] bool finalise() { return accepted_ && cudnnBackendFinalize(descriptor_) == CUDNN_STATUS_SUCCESS; }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
  bool accepted_ = true;  // of all attributes
};

/// Limits of the engines that may run a graph.
struct EngineLimits {
  bool tf32;
  bool full_precision;  ///< for f32 or wider
  std::int64_t most_workspace;
};

/// A graph of operations with an engine that runs it: the first deterministic one, in the order of the library's
/// heuristics, that supports it within the limits.
class GraphPlan {
 public:
  /// Takes the finalised descriptors of the operations, and those to which they refer.
  GraphPlan(cudnnHandle_t handle, std::vector<GraphDescriptor> operations, std::vector<GraphDescriptor> others,
            const EngineLimits& limits);

  /// Returns false if no engine supports the graph.
  bool exists() const { return !plan_.empty(); }
  /// Queues the graph. `identities`: the ids of the tensors to which the pointers belong. Returns false if the engine
  /// does not support it after all; then the plan does not exist any more.
  [[nodiscard]] bool run(cudnnHandle_t handle, const std::vector<std::int64_t>& identities,
                         const std::vector<void*>& pointers);

 private:
  void choose(const GraphDescriptor& graph, cudnnBackendHeurMode_t mode, const EngineLimits& limits);

  std::vector<GraphDescriptor> operations_, others_, plan_;  // the plan is the last element, if there is one
  std::int64_t workspace_ = 0;
};

}  // namespace reel::detail::inline REEL_TARGET
