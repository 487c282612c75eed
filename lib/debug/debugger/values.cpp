#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include <reel/no_record.h>
#include <reel/ops/index.h>
#include <reel/ops/shape.h>

#include "../../core/dtype_dispatch.h"
#include "../../core/printable.h"
#include "../element_index.h"
#include "../recording/zero_units.h"
#include "state.h"

namespace reel::debug {

namespace {

const Tensor& kept_values(const Debugger::State& state, TensorId id) {
  const RecordedTensor& tensor = state.tensor(id);
  if (!tensor.values.defined())
    refuse_command("the values of %{}:{}, {}, were not kept; record with .value_elements of at least {}", id.op,
                   id.output, form_of(tensor), tensor.shape.numel());
  return tensor.values;
}

std::string trimmed(std::string_view text) {
  std::size_t start = text.find_first_not_of(' ');
  return start == std::string_view::npos ? std::string()
                                         : std::string(text.substr(start, text.find_last_not_of(' ') - start + 1));
}

// A bound of a range, clamped to [0, size] as NumPy's are.
std::int64_t bound_of(const std::string& word, std::int64_t size, std::int64_t missing) {
  if (word.empty()) return missing;
  std::int64_t bound = integer_of(word, "the bound of a range", std::numeric_limits<std::int64_t>::min());
  return std::clamp(bound < 0 ? bound + size : bound, std::int64_t{0}, size);
}

// Applies "0:3, -1" to a tensor, an axis after the other.
Tensor part_of(Tensor x, std::string_view text) {
  int axis = 0;
  while (!text.empty()) {
    std::size_t comma = text.find(',');
    std::string word = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    if (axis >= x.rank()) refuse_command("there are more indices than axes of {}", to_string(x.shape()));
    std::int64_t size = x.size(axis);
    std::size_t colon = word.find(':');
    if (colon == std::string::npos) {
      std::int64_t index = integer_of(word, "an index", std::numeric_limits<std::int64_t>::min());
      if (index < -size || index >= size)
        refuse_command("index {} is out of range for axis {} of size {}", index, axis, size);
      x = select(x, axis, index);
      continue;
    }
    std::int64_t begin = bound_of(trimmed(word.substr(0, colon)), size, 0);
    std::int64_t end = bound_of(trimmed(word.substr(colon + 1)), size, size);
    x = slice(x, axis, begin, std::max(begin, end));
    ++axis;
  }
  return x;
}

std::vector<double> numbers_of(const Tensor& x) {
  std::vector<double> numbers;
  Tensor flat = contiguous(x);
  detail::with_type(flat.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* data = flat.data<T>();
    for (std::int64_t i = 0; i < flat.numel(); ++i) numbers.push_back(static_cast<double>(data[i]));
  });
  return numbers;
}

void print_histogram(Debugger::State& state, const Tensor& x) {
  std::vector<double> numbers = numbers_of(x);
  std::erase_if(numbers, [](double number) { return !std::isfinite(number); });
  if (numbers.empty()) {
    state.print("no finite element\n");
    return;
  }
  auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
  constexpr std::size_t bins = 10;
  double start = *low, width = (*high - *low) / bins;
  std::vector<std::size_t> counts(width > 0 ? bins : 1);
  for (double number : numbers)
    ++counts[width > 0 ? std::min(bins - 1, static_cast<std::size_t>((number - start) / width)) : 0];
  std::size_t most = *std::max_element(counts.begin(), counts.end());
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    auto index = static_cast<double>(i);
    rows.push_back({fmt::format("[{:.4g}, {:.4g}{}", start + index * width, start + (index + 1) * width,
                                i + 1 == counts.size() ? "]" : ")"),
                    fmt::format("{}", counts[i]),
                    bar_of(static_cast<double>(counts[i]) / static_cast<double>(most), 40)});
  }
  state.print("{}", table_of(rows, state.options.width));
}

}  // namespace

void print_tensor(Debugger::State& state, const Words& words) {
  bool only_statistics = false, histogram = false;
  std::string name;
  for (const std::string& word : words)
    if (word == "-s")
      only_statistics = true;
    else if (word == "-h")
      histogram = true;
    else
      name += (name.empty() ? "" : " ") + word;  // "%3[0, 1]" has a space
  TensorReference asked;
  if (name.empty())
    asked.id.op = state.op_of({}).id;
  else
    asked = state.reference(name);
  const RecordedTensor& tensor = state.tensor(asked.id);
  state.print("%{}:{} {}: {}\n", asked.id.op, asked.id.output, form_of(tensor), statistics_text(tensor));
  if (!tensor.zero_units.empty())
    state.print(
        "zero in all examples: {} of {} units: {}{}\n", tensor.zero_units.size(), tensor.shape[unit_axis(tensor.shape)],
        fmt::join(std::span(tensor.zero_units).first(std::min<std::size_t>(tensor.zero_units.size(), 20)), ", "),
        tensor.zero_units.size() > 20 ? ", …" : "");
  if (only_statistics) return;
  NoRecord pause;
  Tensor part = part_of(kept_values(state, asked.id), asked.part);
  if (histogram) return print_histogram(state, part);
  state.print("{}\n", to_string(part));
}

void compare_tensors(Debugger::State& state, const Words& words) {
  if (words.size() != 2) refuse_command("diff takes two tensors, such as %12 %40");
  TensorId a = state.reference(words[0]).id, b = state.reference(words[1]).id;
  const RecordedTensor &x = state.tensor(a), &y = state.tensor(b);
  state.print("%{}:{} {}: {}\n%{}:{} {}: {}\n", a.op, a.output, form_of(x), statistics_text(x), b.op, b.output,
              form_of(y), statistics_text(y));
  if (x.shape != y.shape) {
    state.print("The shapes differ.\n");
    return;
  }
  if (x.fingerprint != 0 && x.fingerprint == y.fingerprint) {
    state.print("The values are equal.\n");
    return;
  }
  if (!x.values.defined() || !y.values.defined()) {
    state.print("{}\n", x.fingerprint != 0 && y.fingerprint != 0 ? "The values differ; they were not kept."
                                                                 : "Neither fingerprints nor values were kept.");
    return;
  }
  std::vector<double> p = numbers_of(x.values), q = numbers_of(y.values);
  std::size_t count = 0, at = 0;
  double largest = -1;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] == q[i] || (std::isnan(p[i]) && std::isnan(q[i]))) continue;
    ++count;
    double difference = std::isnan(p[i] - q[i]) ? std::numeric_limits<double>::infinity() : std::abs(p[i] - q[i]);
    if (difference > largest) {
      largest = difference;
      at = i;
    }
  }
  if (count == 0)
    state.print("The values are equal.\n");
  else
    state.print("{} of {} elements differ, the most by {:.4g} at {}: {:.6g} and {:.6g}\n", count, p.size(), largest,
                index_of(static_cast<std::int64_t>(at), x.shape), p[at], q[at]);
}

}  // namespace reel::debug
