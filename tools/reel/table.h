#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// Prints rows in columns that are as wide as their longest cell; the first row has the headings. `numeric`: the columns
/// that are aligned to the right.
void print_table(const std::vector<std::vector<std::string>>& rows, const std::vector<std::size_t>& numeric = {});

/// The number of bytes with a unit: "16.4 KB".
std::string text_of_bytes(std::uint64_t bytes);
