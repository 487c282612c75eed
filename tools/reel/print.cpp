#include "print.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/printable.h"
#include "debug/debugger/state.h"

void print_text(std::string_view text, std::FILE* to) { fmt::print(to, "{}", reel::detail::printable_lines(text)); }

void print_json(const nlohmann::json& json, int indent) {
  print("{}\n", json.dump(indent, ' ', true, nlohmann::json::error_handler_t::replace));
}

void print_table(const std::vector<std::vector<std::string>>& rows, const std::vector<std::size_t>& numeric) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], reel::debug::width_of(row[i]));
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::string padding(widths[i] - reel::debug::width_of(row[i]), ' ');
      bool right = std::ranges::find(numeric, i) != numeric.end();
      line += right ? padding + row[i] : i + 1 < row.size() ? row[i] + padding : row[i];
      if (i + 1 < row.size()) line += "  ";
    }
    print("{}\n", line);
  }
}
