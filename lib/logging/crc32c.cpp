#include "crc32c.h"

#include <array>
#include <cstddef>

namespace reel::logging {

namespace {

constexpr std::size_t crc_tables = 8;
using CrcTables = std::array<std::array<std::uint32_t, 256>, crc_tables>;

// Table k has the check of a byte that is followed by k zero bytes, so that eight bytes need no loop over bits.
constexpr CrcTables make_crc_tables() {
  CrcTables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0x82f63b78u : 0);
    tables[0][byte] = value;
  }
  for (std::size_t k = 1; k < crc_tables; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = tables[k - 1][byte] >> 8 ^ tables[0][tables[k - 1][byte] & 255];
  return tables;
}

constexpr CrcTables tables_of_crc = make_crc_tables();

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  const CrcTables& tables = tables_of_crc;
  auto byte = [&](std::size_t i) { return std::uint32_t{static_cast<unsigned char>(bytes[i])}; };
  std::uint32_t value = ~0u;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    value ^= byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
    value = tables[7][value & 255] ^ tables[6][value >> 8 & 255] ^ tables[5][value >> 16 & 255] ^
            tables[4][value >> 24] ^ tables[3][byte(4)] ^ tables[2][byte(5)] ^ tables[1][byte(6)] ^ tables[0][byte(7)];
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) value = value >> 8 ^ tables[0][(value ^ byte(i)) & 255];
  return ~value;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  std::uint32_t check = crc32c(bytes);
  return (check >> 15 | check << 17) + 0xa282ead8u;
}

}  // namespace reel::logging
