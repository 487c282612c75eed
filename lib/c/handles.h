#pragma once

#include <reel/c.h>
#include <reel/c/plugin.h>
#include <reel/io/safetensors.h>
#include <reel/tensor.h>

#include <memory>
#include <string>

/// The object that a handle of C points to. The tensor is on the CPU and contiguous.
struct reel_tensor {
  reel::Tensor value;
};

/// The contents of a file.
struct reel_weights {
  reel::io::Contents contents;
};

/// A model and what its plugin says of it.
struct reel_model {
  std::string name;
  std::unique_ptr<reel::PluginModel> model;
};

namespace reel::detail {

/// The tensor of a handle. Throws: Refusal if it is null.
const Tensor& tensor_of(const reel_tensor* handle);

/// A handle of a result, copied to the CPU and made contiguous where it is not. Throws: Error if it is undefined.
std::unique_ptr<reel_tensor> handle_of(const Tensor& value);

}  // namespace reel::detail
