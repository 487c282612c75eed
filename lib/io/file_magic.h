#pragma once

#include <string>

#include <reel/location.h>

namespace reel::io {

/// Formats of files of weights that `load_into` knows by their first bytes.
enum class WeightsFormat { safetensors, torch_save, hdf5 };

/// The format that a file's first bytes say; safetensors if they say nothing. Throws: FileError if it cannot be read.
WeightsFormat format_of_file(const std::string& path, Location where);

}  // namespace reel::io
