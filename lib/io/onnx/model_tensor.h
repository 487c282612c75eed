#pragma once

#include <string>

#include <reel/tensor.h>

#include "model.h"

namespace reel::io::onnx {

/// ONNX's element type for a dtype.
detail::OnnxType onnx_type(DType dtype);
/// The dtype of an element type; returns false if reel has none.
bool dtype_of(detail::OnnxType type, DType& dtype);

/// A copy of a tensor's elements.
detail::OnnxTensor onnx_tensor(const std::string& name, const Tensor& tensor);
/// A tensor on the CPU with the elements of an array, whose bytes fit its shape.
Tensor tensor_from(const detail::OnnxTensor& array, const char* function, Location where);
/// True if both have one shape, dtype and elements.
bool same_elements(const Tensor& a, const Tensor& b);

}  // namespace reel::io::onnx
