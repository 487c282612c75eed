#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <reel/tensor.h>

namespace reel::logging {

/// Writes the files of TensorBoard's embedding projector for one tag: vectors, labels and pictures as tab-separated text
/// and PNG, and their entry in the folder's projector_config.pbtxt. Source: TensorBoard's projector_config.proto.
/// Throws: as Writer::embedding.
void write_embedding(const std::string& directory, std::string_view tag, const Tensor& matrix,
                     const std::vector<std::string>& labels, const Tensor& sprite, Location where);

}  // namespace reel::logging
