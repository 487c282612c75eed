#include "print.h"

#include <string>

#include <nlohmann/json.hpp>

#include "core/printable.h"

void print_text(std::string_view text, std::FILE* to) { fmt::print(to, "{}", reel::detail::printable_lines(text)); }

void print_json(const nlohmann::json& json, int indent) {
  print("{}\n", json.dump(indent, ' ', true, nlohmann::json::error_handler_t::replace));
}
