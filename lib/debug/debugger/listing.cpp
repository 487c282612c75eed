#include <algorithm>
#include <regex>

#include "../../core/printable.h"
#include "state.h"

namespace reel::debug {

namespace {

// std::regex takes stack for each byte.
constexpr std::size_t most_searched_bytes = 4096;

// The arguments of `lt`.
struct Listing {
  const TensorFilter* filter = nullptr;
  std::optional<std::regex> name;
  std::string op, module, file;
  int line = 0;
  std::string sort = "id";
  bool reversed = false, all_kinds = false;
  std::size_t most = 40;
};

std::regex pattern_of(const std::string& word) {
  try {
    return std::regex(word);
  } catch (const std::regex_error& error) {
    refuse_command("{} is no regular expression: {}", detail::shown(word), error.what());
  }
}

void set_place(Listing& listing, const std::string& word) {
  std::size_t colon = word.rfind(':');
  listing.file = colon == std::string::npos ? "" : word.substr(0, colon);
  listing.line =
      static_cast<int>(integer_of(colon == std::string::npos ? word : word.substr(colon + 1), "the line", 1));
}

Listing parsed(const Debugger::State& state, const Words& words) {
  Listing listing;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& option = words[i];
    if (option == "-r") {
      listing.reversed = true;
      continue;
    }
    if (option == "-a") {
      listing.all_kinds = true;
      continue;
    }
    constexpr std::string_view with_value[] = {"-f", "-n", "-o", "-l", "-m", "-s", "-c"};
    if (std::find(std::begin(with_value), std::end(with_value), option) == std::end(with_value))
      refuse_command("lt has no option {}; `help lt` lists them", detail::shown(option));
    if (i + 1 == words.size()) refuse_command("{} needs a value", option);
    const std::string& value = words[++i];
    if (option == "-f") listing.filter = &state.filter(value);
    if (option == "-n") listing.name = pattern_of(value);
    if (option == "-o") listing.op = value;
    if (option == "-l") set_place(listing, value);
    if (option == "-m") listing.module = value;
    if (option == "-s") listing.sort = value;
    if (option == "-c") listing.most = static_cast<std::size_t>(integer_of(value, "the count", 1));
  }
  if (listing.sort != "id" && listing.sort != "time" && listing.sort != "size")
    refuse_command("-s is {}, but must be id, time or size", detail::shown(listing.sort));
  return listing;
}

bool is_chosen(const Listing& listing, const RecordedOp& op, const RecordedTensor& tensor) {
  bool listed_kind = op.kind == OpKind::forward || op.kind == OpKind::source || listing.all_kinds || listing.filter;
  return listed_kind && (!listing.filter || (*listing.filter)(op, tensor)) &&
         (listing.op.empty() || op.op == listing.op) &&
         (listing.line == 0 || (op.line == listing.line && op.file.ends_with(listing.file))) &&
         (listing.module.empty() || op.module.starts_with(listing.module)) &&
         (!listing.name || std::regex_search(std::string(tensor.name.substr(0, most_searched_bytes)), *listing.name));
}

struct Row {
  const RecordedOp* op;
  std::size_t output;
};

void sort(std::vector<Row>& rows, const Listing& listing) {
  if (listing.sort == "time")
    std::ranges::stable_sort(rows, std::greater(), [](const Row& row) { return row.op->duration; });
  if (listing.sort == "size")
    std::ranges::stable_sort(rows, std::greater(), [](const Row& row) { return row.op->outputs[row.output].bytes(); });
  if (listing.reversed) std::ranges::reverse(rows);
}

std::vector<std::string> cells_of(const Row& row) {
  const RecordedOp& op = *row.op;
  const RecordedTensor& tensor = op.outputs[row.output];
  std::string id = row.output == 0 ? fmt::format("%{}", op.id) : fmt::format("%{}:{}", op.id, row.output);
  std::string what(op.op);
  if (op.kind == OpKind::gradient) what = "gradient of " + what;
  if (op.kind == OpKind::backward) what += " (backward)";
  if (!tensor.name.empty()) what += fmt::format(" '{}'", tensor.name);
  return {id,
          what,
          form_of(tensor),
          text_of_bytes(tensor.bytes()),
          op.duration > 0 ? text_of_time(op.duration) : "",
          fmt::format("{}", op.step),
          std::string(op.module),
          op.location()};
}

}  // namespace

void list_tensors(Debugger::State& state, const Words& words) {
  Listing listing = parsed(state, words);
  std::vector<Row> rows;
  for (const RecordedOp& op : state.run.ops())
    for (std::size_t i = 0; i < op.outputs.size(); ++i)
      if (is_chosen(listing, op, op.outputs[i])) rows.push_back({&op, i});
  if (rows.empty()) {
    state.print("No tensor fits.\n");
    return;
  }
  sort(rows, listing);
  std::vector<std::vector<std::string>> cells{{"id", "op", "output", "size", "time", "step", "module", "location"}};
  for (std::size_t i = 0; i < std::min(rows.size(), listing.most); ++i) cells.push_back(cells_of(rows[i]));
  state.print("{}", table_of(cells, state.options.width));
  if (rows.size() > listing.most)
    state.print("… and {} more; `lt -c COUNT` shows as many as COUNT\n", rows.size() - listing.most);
}

}  // namespace reel::debug
