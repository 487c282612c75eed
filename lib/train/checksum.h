#pragma once

#include <span>
#include <string>

#include <reel/io/safetensors.h>

namespace reel::detail {

/// The metadata key of a snapshot's checksums.
constexpr const char* checksums_key = "checksums";

/// Checksums of tensors, each of its name, dtype, shape and elements, and of the other metadata: 16 hexadecimal digits
/// each, with spaces between them. Any change of up to eight neighbouring bytes changes them; others go unnoticed once
/// in about 10¹⁹ cases. The tensors are on the CPU.
std::string checksums_of(std::span<const NamedTensor> tensors, const io::Metadata& metadata);

/// The damage in the contents of a file, as a predicate: "has a damaged tensor 'w'"; empty if there is none.
std::string damage_of(const io::Contents& contents);

}  // namespace reel::detail
