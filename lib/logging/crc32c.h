#pragma once

#include <cstdint>
#include <string_view>

namespace reel::logging {

/// The cyclic redundancy check CRC-32C (polynomial 0x1EDC6F41, reflected). Source: RFC 3720, appendix B.4.
std::uint32_t crc32c(std::string_view bytes);

/// The check of a part of a record: ((c >> 15) | (c << 17)) + 0xa282ead8 for c = `crc32c(bytes)`.
/// Source: TensorFlow, "TFRecords format details".
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace reel::logging
