#pragma once

#include <string>
#include <vector>

#include <reel/io/safetensors.h>

#include "pickle_machine.h"

namespace reel::io {

/// A tensor in a pickle.
struct PickledTensor {
  std::string name;  ///< the keys and indices that lead to it, joined by dots
  const PickleNode* tensor;
};

/// The tensors that a pickle describes, and the texts and numbers beside them.
struct PickledTensors {
  std::vector<PickledTensor> tensors;
  Metadata words;
};

/// Finds all tensors that a value of a pickle contains. `pickle_bytes` bounds the length of their names.
/// Throws: std::runtime_error with a predicate about the file: "has a pickle that …".
PickledTensors tensors_in(const PickleValue& value, std::size_t pickle_bytes);

}  // namespace reel::io
