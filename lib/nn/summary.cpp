#include <reel/nn/summary.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include <fmt/format.h>

namespace reel::nn {

namespace {

constexpr std::size_t column_count = 4;
using Row = std::array<std::string, column_count>;

// The number with separators: "1,234,567".
std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

// The number with a unit: "1.23 M".
std::string shortened(double count) {
  static constexpr const char* units[] = {"", " k", " M", " G", " T", " P"};
  std::size_t unit = 0;
  while (count >= 1000 && unit + 1 < std::size(units)) {
    count /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f}", count) : fmt::format("{:.3g}{}", count, units[unit]);
}

// The tensors that a module owns directly: their names contain no dot.
std::vector<NamedTensor> own_parameters(const Module& module) {
  std::vector<NamedTensor> own = module.named_parameters();
  std::erase_if(own, [](const NamedTensor& named) { return named.name.find('.') != std::string::npos; });
  return own;
}

Row row_of(const std::string& name, const Module& module, std::unordered_set<const reel::detail::Body*>& seen) {
  std::string shapes;
  std::int64_t count = 0;
  for (const NamedTensor& named : own_parameters(module)) {
    bool is_new = seen.insert(&named.tensor.body()).second;
    if (is_new) count += named.tensor.numel();
    shapes += fmt::format("{}{} {}{}{}", shapes.empty() ? "" : ", ", named.name, to_string(named.tensor.shape()),
                          is_new ? "" : " (shared)", named.tensor.is_parameter() ? "" : " (frozen)");
  }
  auto depth = static_cast<std::size_t>(std::ranges::count(name, '.')) + (name.empty() ? 0 : 1);
  std::string last = name.substr(name.find_last_of('.') + 1);
  std::string label = name.empty() ? module.type_name() : last + ": " + module.type_name();
  double flops = module.last_flops();
  return {std::string(2 * depth, ' ') + label, shapes, count == 0 ? "" : grouped(count),
          flops == 0 ? "" : shortened(flops)};
}

std::string table_of(const std::vector<Row>& rows) {
  std::array<std::size_t, column_count> widths{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < column_count; ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string line(widths[0] + widths[1] + widths[2] + widths[3] + 6, '-'), text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    std::string cells = fmt::format("{:<{}}  {:<{}}  {:>{}}  {:>{}}", row[0], widths[0], row[1], widths[1], row[2],
                                    widths[2], row[3], widths[3]);
    text += cells.substr(0, cells.find_last_not_of(' ') + 1) + "\n";
    if (i == 0) text += line + "\n";
  }
  return text + line + "\n";
}

}  // namespace

std::string summary(const Module& model) {
  std::vector<Row> rows{{"module", "parameters", "numbers", "FLOPs of the last call"}};
  std::unordered_set<const reel::detail::Body*> seen;
  for (const auto& [name, module] : model.named_modules()) rows.push_back(row_of(name, *module, seen));
  std::int64_t numbers = 0, trained = 0, bytes = 0;
  for (const Tensor& parameter : model.parameters()) {
    numbers += parameter.numel();
    if (parameter.is_parameter()) trained += parameter.numel();
    bytes += parameter.numel() * static_cast<std::int64_t>(size_of(parameter.dtype()));
  }
  std::string size = shortened(static_cast<double>(bytes));
  return table_of(rows) +
         fmt::format("{} numbers in parameters, {} of them trained; {}{}B; {} FLOPs in the last call\n",
                     grouped(numbers), grouped(trained), size, size.back() >= 'A' ? "" : " ",
                     shortened(model.last_flops()));
}

}  // namespace reel::nn
