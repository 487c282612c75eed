#pragma once

#include <span>
#include <string>

#include <reel/io/safetensors.h>

namespace reel::io {

/// Saves as `save` does, under names that the library has made. `own_names`: as of AtomicFile.
void save(const std::string& path, int own_names, std::span<const NamedTensor> tensors, const Metadata& metadata,
          Location where);

/// Loads a file of a name that the library has made: one of the safetensors format alone, and no link.
/// Throws: as `load`.
Contents load_own(const std::string& path, Location where);

}  // namespace reel::io
