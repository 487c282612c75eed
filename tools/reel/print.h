#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json_fwd.hpp>

/// Prints text, which may hold names from files of any origin, without what a terminal would obey.
void print_text(std::string_view text, std::FILE* to = stdout);

/// Formats and prints text to standard output.
template <class... T>
void print(fmt::format_string<T...> form, T&&... values) {
  print_text(fmt::format(form, std::forward<T>(values)...));
}

/// Prints JSON to standard output, in ASCII. `indent`: the columns by which a level is indented; −1: all in one line.
void print_json(const nlohmann::json& json, int indent = 2);

/// Prints rows in columns that are as wide as their longest cell; the first row has the headings. `numeric`: the columns
/// that are aligned to the right.
void print_table(const std::vector<std::vector<std::string>>& rows, const std::vector<std::size_t>& numeric = {});
