#pragma once

#include <reel/c.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "catch.h"

namespace reel_test {

/// Frees a handle.
struct Freed {
  void operator()(reel_tensor* tensor) const { reel_tensor_free(tensor); }
  void operator()(reel_weights* weights) const { reel_weights_free(weights); }
  void operator()(reel_model* model) const { reel_model_free(model); }
};
using TensorHandle = std::unique_ptr<reel_tensor, Freed>;
using WeightsHandle = std::unique_ptr<reel_weights, Freed>;
using ModelHandle = std::unique_ptr<reel_model, Freed>;

/// A tensor of the given numbers.
template <class T>
TensorHandle tensor_of(reel_dtype dtype, const std::vector<std::int64_t>& sizes, const std::vector<T>& values) {
  reel_tensor* made = nullptr;
  REQUIRE(reel_tensor_create(dtype, static_cast<int>(sizes.size()), sizes.data(), values.data(),
                             values.size() * sizeof(T), &made) == REEL_OK);
  return TensorHandle(made);
}

/// The elements of a tensor.
template <class T>
std::vector<T> values_of(const TensorHandle& tensor) {
  std::vector<T> values(static_cast<std::size_t>(reel_tensor_numel(tensor.get())));
  REQUIRE(reel_tensor_copy_out(tensor.get(), values.data(), values.size() * sizeof(T)) == REEL_OK);
  return values;
}

/// The sizes of all axes.
inline std::vector<std::int64_t> sizes_of(const TensorHandle& tensor) {
  std::vector<std::int64_t> sizes;
  for (int axis = 0; axis < reel_tensor_rank(tensor.get()); ++axis)
    sizes.push_back(reel_tensor_size(tensor.get(), axis));
  return sizes;
}

/// The result of an op on tensors; null where it fails.
inline TensorHandle run_op(const char* name, const std::vector<const reel_tensor*>& operands) {
  reel_tensor* result = nullptr;
  reel_status status = reel_op_run(name, operands.data(), operands.size(), &result);
  CHECK((status == REEL_OK) == (result != nullptr));
  return TensorHandle(result);
}

/// Loads a model; null where it fails.
inline ModelHandle load_model(const std::string& plugin, const char* weights = nullptr) {
  reel_model* model = nullptr;
  reel_status status = reel_model_load(plugin.c_str(), weights, &model);
  CHECK((status == REEL_OK) == (model != nullptr));
  return ModelHandle(model);
}

/// The results of a model, which must have some.
inline std::vector<TensorHandle> run_model(const ModelHandle& model, const std::vector<const reel_tensor*>& inputs) {
  reel_tensor* results[8] = {};
  std::size_t count = 0;
  REQUIRE(reel_model_run(model.get(), inputs.data(), inputs.size(), results, 8, &count) == REEL_OK);
  std::vector<TensorHandle> handles;
  for (std::size_t i = 0; i < count; ++i) handles.emplace_back(results[i]);
  return handles;
}

}  // namespace reel_test
