#include "table.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "print.h"

namespace {

// The number of characters of UTF-8.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char byte) { return (byte & 0xC0) != 0x80; }));
}

}  // namespace

void print_table(const std::vector<std::vector<std::string>>& rows, const std::vector<std::size_t>& numeric) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::string padding(widths[i] - width_of(row[i]), ' ');
      bool right = std::ranges::find(numeric, i) != numeric.end();
      line += right ? padding + row[i] : i + 1 < row.size() ? row[i] + padding : row[i];
      if (i + 1 < row.size()) line += "  ";
    }
    print("{}\n", line);
  }
}

std::string text_of_bytes(std::uint64_t bytes) {
  constexpr const char* units[] = {"B", "KB", "MB", "GB", "TB"};
  auto number = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; number >= 1000 && unit + 1 < std::size(units); ++unit) number /= 1000;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", number, units[unit]);
}
