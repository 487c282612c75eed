#include "print.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "core/printable.h"
#include "debug/debugger/state.h"

void print_text(std::string_view text, std::FILE* to) { fmt::print(to, "{}", reel::detail::printable_lines(text)); }

void print_json(const nlohmann::json& json, int indent) {
  print("{}\n", json.dump(indent, ' ', true, nlohmann::json::error_handler_t::replace));
}

void print_table(const std::vector<std::vector<std::string>>& rows, const std::vector<std::size_t>& numeric) {
  print_text(reel::debug::table_of(rows, std::numeric_limits<int>::max(), numeric));
}
