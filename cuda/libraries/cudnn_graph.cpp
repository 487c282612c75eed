#include "cudnn_graph.h"

#include <algorithm>
#include <optional>

#include "../runtime/driver.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// The numerical notes of an engine; empty for engines that do not provide them.
std::optional<std::vector<cudnnBackendNumericalNote_t>> notes_of(const GraphDescriptor& configuration) {
  GraphDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t found = engine.get();
  std::int64_t count = 0;
  if (cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                               &count, &found) != CUDNN_STATUS_SUCCESS)
    return {};
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  if (cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes.data()) != CUDNN_STATUS_SUCCESS)
    return {};
  notes.resize(static_cast<std::size_t>(std::min<std::int64_t>(count, CUDNN_NUMERICAL_NOTE_TYPE_COUNT)));
  return notes;
}

bool is_allowed(const GraphDescriptor& configuration, const EngineLimits& limits) {
  auto notes = notes_of(configuration);
  if (!notes) return false;
  return std::none_of(notes->begin(), notes->end(), [&](cudnnBackendNumericalNote_t note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
      // A single infinity would make a whole image NaN, and large tiles lose digits.
      case CUDNN_NUMERICAL_NOTE_FFT:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13: return true;
      // Tensor cores compute f32 products in TF32.
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE: return limits.full_precision && !limits.tf32;
      // The note may mean a conversion to halves.
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS: return limits.full_precision;
      default: return false;
    }
  });
}

// The last digits of a NOT_SUPPORTED code give the reason.
bool is_refusal(cudnnStatus_t status) { return status / 1000 * 1000 == CUDNN_STATUS_NOT_SUPPORTED; }

std::vector<GraphDescriptor> configurations_for(const GraphDescriptor& graph, cudnnBackendHeurMode_t mode) {
  GraphDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  std::vector<GraphDescriptor> found;
  std::int64_t count = 0;
  if (!heuristic.finalise() ||
      cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                               nullptr) != CUDNN_STATUS_SUCCESS)
    return found;
  std::vector<cudnnBackendDescriptor_t> places;
  for (std::int64_t i = 0; i < count; ++i)
    places.push_back(found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  std::int64_t given = 0;
  if (count > 0)
    check_cudnn(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                         count, &given, places.data()),
                "cudnnBackendGetAttribute");
  while (static_cast<std::int64_t>(found.size()) > given) found.pop_back();
  return found;
}

}  // namespace

GraphPlan::GraphPlan(cudnnHandle_t handle, std::vector<GraphDescriptor> operations, std::vector<GraphDescriptor> others,
                     const EngineLimits& limits)
    : operations_(std::move(operations)), others_(std::move(others)) {
  GraphDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> all;
  for (const GraphDescriptor& operation : operations_) all.push_back(operation.get());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, all.data(),
            static_cast<std::int64_t>(all.size()));
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  if (!graph.finalise()) return;
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    if (!exists()) choose(graph, mode, limits);
  others_.push_back(std::move(graph));
}

void GraphPlan::choose(const GraphDescriptor& graph, cudnnBackendHeurMode_t mode, const EngineLimits& limits) {
  for (GraphDescriptor& configuration : configurations_for(graph, mode)) {
    if (!is_allowed(configuration, limits)) continue;
    GraphDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    if (!plan.finalise()) {
      driver_forget_error();
      continue;
    }
    std::int64_t count = 0, workspace = 0;
    check_cudnn(cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                         &count, &workspace),
                "cudnnBackendGetAttribute");
    if (workspace > limits.most_workspace) continue;
    workspace_ = workspace;
    plan_.push_back(std::move(configuration));
    plan_.push_back(std::move(plan));
    return;
  }
}

bool GraphPlan::run(cudnnHandle_t handle, const std::vector<std::int64_t>& identities,
                    const std::vector<void*>& pointers) {
  std::optional<Scratch> workspace;
  if (workspace_ > 0) workspace.emplace(static_cast<std::size_t>(workspace_));
  GraphDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  auto count = static_cast<std::int64_t>(pointers.size());
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers.data(), count);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, identities.data(), count);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace ? workspace->as<void>() : nullptr);
  if (!pack.finalise()) throw InternalError("cuDNN takes no such pointers");
  cudnnStatus_t status = cudnnBackendExecute(handle, plan_.back().get(), pack.get());
  if (is_refusal(status)) {
    driver_forget_error();
    plan_.clear();
    return false;
  }
  check_cudnn(status, "cudnnBackendExecute");
  return true;
}

}  // namespace reel::detail::inline REEL_TARGET
