#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ops/table/row_checks.h"

// Lists the abilities of each op of the registry, as its rows of the op table show when they run, and what is missing:
// rows, tests of bad input.

namespace reel_test {

using namespace reel;

namespace {

using Names = std::set<std::string, std::less<>>;
using Lines = std::vector<std::string>;

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

void add_matches(Names& names, const std::string& text, const std::regex& expression) {
  for (auto found = std::sregex_iterator(text.begin(), text.end(), expression); found != std::sregex_iterator();
       ++found)
    names.insert((*found)[1]);
}

// The ops with which the messages of Bad rows start; if a file concatenates messages, all words in quotes. The
// sources are read, so that it does not matter which tests run.
Names names_with_bad_input(const std::filesystem::path& directory) {
  static const std::regex sentence(R"(\bBad\(\s*"(\w+))"), computed(R"(\bBad\(\s*[^"\s])"), word(R"#("(\w+)")#");
  Names names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.path().filename().string().ends_with("_test.cpp")) continue;
    std::string text = text_of(entry.path());
    add_matches(names, text, sentence);
    if (std::regex_search(text, computed)) add_matches(names, text, word);
  }
  return names;
}

// The results of an op's rows for one ability.
enum class Shown : std::uint8_t { nothing, yes, no };

const char* text_of(Shown shown) {
  switch (shown) {
    case Shown::yes: return "yes";
    case Shown::no: return "NO";
    default: return "–";
  }
}

struct Coverage {
  std::vector<const Row*> rows;
  Shown forward{}, gradient{}, second_order{}, wide{}, half{};
};
using Coverages = std::map<std::string, Coverage, std::less<>>;

Coverages rows_by_op() {
  Coverages coverages;
  for (const Row& row : table()) coverages[row.op].rows.push_back(&row);
  return coverages;
}

// Runs a check and records its outcome.
template <class Check>
void run_check(Shown& shown, const Row& row, std::string_view what, Lines& faults, Check check) {
  std::string fault;
  try {
    fault = check();
  } catch (const std::exception& error) {
    fault = error.what();
  }
  if (!fault.empty()) faults.push_back(fmt::format("{} of row {}: {}", what, row.name, fault));
  if (shown != Shown::no) shown = fault.empty() ? Shown::yes : Shown::no;
}

void run_rows(Coverage& coverage, Lines& faults) {
  for (const Row* row : coverage.rows) {
    for (DType dtype : row->dtypes) {
      Shown shown{};
      run_check(shown, *row, name_of(dtype), faults, [&] { return forward_fault(*row, dtype); });
      auto merge = [&](Shown& column) { column = std::max(column, shown); };
      merge(coverage.forward);
      if (dtype == f64) merge(coverage.wide);
      if (dtype == bf16) merge(coverage.half);
    }
    if (checks_gradient(*row))
      run_check(coverage.gradient, *row, "gradient", faults, [&] { return gradient_fault(*row); });
    if (checks_second_order(*row))
      run_check(coverage.second_order, *row, "second order", faults, [&] { return second_order_fault(*row); });
  }
  bool differentiable = std::any_of(coverage.rows.begin(), coverage.rows.end(),
                                    [](const Row* row) { return row->differentiable && !row->inputs.empty(); });
  auto require = [&](Shown& shown, const char* what) {
    if (!differentiable || shown != Shown::nothing) return;
    shown = Shown::no;
    faults.push_back(fmt::format("{}: no row is small enough for its {}", coverage.rows[0]->op, what));
  };
  require(coverage.gradient, "gradient");
  require(coverage.second_order, "second order");
}

bool has_empty_input(const Row& row) {
  return std::any_of(row.inputs.begin(), row.inputs.end(), [](const Input& input) { return input.shape.numel() == 0; });
}

// Returns true if a row runs when the first axis of its inputs has size 0.
bool answers_for_nothing(const Row& row) {
  std::vector<Tensor> inputs = draw_inputs(row, row.dtypes[0], table_seed);
  for (Tensor& input : inputs)
    if (input.rank() > 0) input = slice(input, 0, 0, 0);
  if (inputs.empty() || elements(inputs) != 0) return false;
  try {
    return row.run(inputs).numel() != 0;
  } catch (const std::exception&) {
    return false;
  }
}

bool lacks_empty_row(const std::vector<const Row*>& rows) {
  return std::none_of(rows.begin(), rows.end(), [](const Row* row) { return has_empty_input(*row); }) &&
         std::any_of(rows.begin(), rows.end(), [](const Row* row) { return answers_for_nothing(*row); });
}

// "–" is two bytes more than it is wide.
void print_line(std::string_view name, std::string_view family, std::string_view forward, std::string_view gradient,
                std::string_view second_order, std::string_view wide, std::string_view half, std::string_view batching,
                std::string_view cpu, std::string_view cuda) {
  fmt::print("{:<15} {:<12} {:<8} {:<9} {:<13} {:<4} {:<5} {:<12} {:<4} {}\n", name, family, forward, gradient,
             second_order, wide, half, batching, cpu, cuda);
}

void print_table(const std::vector<debug::OpDescription>& ops, const Coverages& coverages) {
  print_line("op", "family", "forward", "gradient", "second order", "f64", "bf16", "batching", "CPU", "CUDA");
  std::string internal;
  for (const debug::OpDescription& op : ops) {
    if (op.internal) {
      internal += fmt::format("{}{}", internal.empty() ? "" : " ", op.name);
      continue;
    }
    auto found = coverages.find(op.name);
    Coverage none;
    const Coverage& shown = found == coverages.end() ? none : found->second;
    print_line(op.name, op.family, text_of(shown.forward), text_of(shown.gradient), text_of(shown.second_order),
               text_of(shown.wide), text_of(shown.half), op.batching, text_of(shown.forward), "–");
  }
  fmt::print("\nReached through other ops only: {}\n\n", internal);
}

// Lists missing ops, rows and tests without running rows.
Lines missing(const std::vector<debug::OpDescription>& ops, const Coverages& coverages,
              const std::filesystem::path& directory) {
  Names bad = names_with_bad_input(directory), registered, all;
  Lines lines;
  for (const debug::OpDescription& op : ops) {
    std::string name(op.name);
    if (!all.insert(name).second) lines.push_back(name + ": stands in the registry twice");
    if (op.internal) continue;
    registered.insert(name);
    auto found = coverages.find(name);
    if (found == coverages.end())
      lines.push_back(name + ": has no row in the op table");
    else if (op.differentiable &&
             std::none_of(found->second.rows.begin(), found->second.rows.end(), std::mem_fn(&Row::differentiable)))
      lines.push_back(name + ": has a gradient, but no differentiable row");
    else if (op.family != "create" && op.family != "random" && lacks_empty_row(found->second.rows))
      lines.push_back(name + ": makes something of empty inputs, but no row has one");
    // The rows of elementwise ops are run on bad input by a test of the table.
    bool is_run_on_bad_input = op.batching == "elementwise" && op.family != "create";
    if (!is_run_on_bad_input && !bad.contains(name))
      lines.push_back(name + ": has no test of bad input: Bad(\"" + name + ": …\", …)");
  }
  for (const auto& [name, coverage] : coverages)
    if (!registered.contains(name))
      lines.push_back(fmt::format("{}: is no public op, but row {} is named so", name, coverage.rows[0]->name));
  return lines;
}

void print_names() {
  for (const debug::OpDescription& op : debug::ops())
    if (!op.internal) fmt::print("{}\n", op.name);
}

int run(const std::filesystem::path& directory, bool runs_rows) {
  std::vector<debug::OpDescription> ops = debug::ops();
  Coverages coverages = rows_by_op();
  Lines faults = missing(ops, coverages, directory);
  std::size_t gaps = faults.size();
  if (runs_rows) {
    for (auto& [name, coverage] : coverages) run_rows(coverage, faults);
    print_table(ops, coverages);
  }
  for (const std::string& fault : faults) fmt::print("{}\n", fault);
  fmt::print("{} ops, {} rows: {} missing, {} failed checks\n",
             std::count_if(ops.begin(), ops.end(), [](const auto& op) { return !op.internal; }), table().size(), gaps,
             faults.size() - gaps);
  return faults.empty() ? 0 : 1;
}

}  // namespace

}  // namespace reel_test

// op_coverage DIRECTORY [--presence]: the directory is tests/ops, with its folders; with --presence no row is run.
// op_coverage --names: prints the names of all ops.
int main(int count, char** arguments) {
  if (count < 2) return 2;
  if (std::string_view(arguments[1]) == "--names") {
    reel_test::print_names();
    return 0;
  }
  return reel_test::run(arguments[1], count < 3);
}
