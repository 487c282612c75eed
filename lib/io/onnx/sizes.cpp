#include "sizes.h"

#include <algorithm>

#include <fmt/format.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/shape.h>

#include "../../core/fail.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

constexpr std::size_t most_axes = 4;

std::string axis_name(const Input& input, int axis) {
  auto place = static_cast<std::size_t>(axis);
  return place < input.axes.size() ? input.axes[place] : std::string();
}

}  // namespace

bool is_constant(const Numbers& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [&](std::int64_t number) { return number == numbers.front(); });
}

NamedAxes::NamedAxes(const std::vector<Input>& inputs, const char* function, Location where) {
  std::vector<std::int64_t> given;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = inputs[i];
    if (input.axes.size() > static_cast<std::size_t>(input.example.rank()))
      fail<Error>(function, where, "the input '{}' {} has fewer axes than the {} that are named", input.name,
                  describe(input.example), input.axes.size());
    for (int axis = 0; axis < input.example.rank(); ++axis) {
      std::string name = axis_name(input, axis);
      if (name.empty()) continue;
      std::size_t known = index_of(name);
      std::int64_t size = input.example.size(axis);
      if (size < 1)
        fail<Error>(function, where, "the axis '{}' of the input '{}' {} has no elements: give an example with some",
                    name, input.name, describe(input.example));
      if (known == names_.size()) {
        names_.push_back(name);
        places_.emplace_back(i, axis);
        given.push_back(size);
      } else if (given[known] != size) {
        fail<Error>(function, where, "the axis '{}' has size {} in one example and {} in that of '{}'", name,
                    given[known], size, input.name);
      }
    }
  }
  if (names_.size() > most_axes)
    fail<Error>(function, where, "{} named axes are more than {}", names_.size(), most_axes);
  // A size of 1 would take other ways through broadcasting ops; equal sizes of two axes would, too.
  std::vector<std::int64_t> low;
  for (std::int64_t size : given) {
    size = std::max<std::int64_t>(size, 2);
    while (std::find(low.begin(), low.end(), size) != low.end()) size += 7;
    low.push_back(size);
  }
  for (unsigned choice = 0; choice < 1u << names_.size(); ++choice) {
    std::vector<std::int64_t>& sizes = sizes_.emplace_back(low);
    for (std::size_t axis = 0; axis < sizes.size(); ++axis)
      if (choice >> axis & 1) sizes[axis] += static_cast<std::int64_t>(axis) + 1;
  }
  if (names_.empty()) sizes_.emplace_back();
  if (names_.empty()) return;
  for (std::int64_t farther : {3, 8}) {
    std::vector<std::int64_t>& sizes = sizes_.emplace_back(low);
    for (std::size_t axis = 0; axis < sizes.size(); ++axis)
      sizes[axis] += farther + 3 * static_cast<std::int64_t>(axis);
  }
}

std::size_t NamedAxes::index_of(const std::string& name) const {
  return static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
}

Tensor NamedAxes::example(const Input& input, std::size_t run) const {
  Tensor example = input.example;
  for (int axis = 0; axis < example.rank(); ++axis) {
    std::string name = axis_name(input, axis);
    if (name.empty()) continue;
    std::vector<std::int64_t> places;
    std::int64_t size = sizes_[run][index_of(name)], own = input.example.size(axis);
    for (std::int64_t i = 0; i < size; ++i) places.push_back(i % own);
    DeviceGuard here(example.device());
    example = index_select(example, axis, tensor(places));
  }
  // Other elements in every run, so that what the program computes from them outside of ops differs. Integers stay, as
  // their order may matter.
  if (is_floating(example.dtype()) && example.numel() > 0 && run > 0) {
    auto shift = static_cast<std::int64_t>(run);
    double factor = 1 - static_cast<double>(run) / 512;
    example = reshape(roll(reshape(example, {-1}), shift, 0) * factor, example.shape());
  }
  return example;
}

std::string NamedAxes::sizes_text(std::size_t run) const {
  if (names_.empty()) return run == 0 ? "the examples" : "the examples with slightly other elements";
  std::string text;
  for (std::size_t axis = 0; axis < names_.size(); ++axis)
    text += fmt::format("{}{} = {}", axis > 0 ? ", " : "", names_[axis], sizes_[run][axis]);
  return text;
}

std::optional<std::vector<Term>> NamedAxes::fit(const Numbers& numbers) const {
  std::size_t corners = std::size_t{1} << names_.size();
  // By divided differences along one axis after the other: of a polynomial without squares they are its factors at the
  // smaller sizes, from which those at 0 follow.
  std::vector<std::int64_t> factors(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(corners));
  for (std::size_t axis = 0; axis < names_.size(); ++axis) {
    std::int64_t low = sizes_[0][axis], step = sizes_[std::size_t{1} << axis][axis] - low;
    for (std::size_t choice = 0; choice < corners; ++choice) {
      if (choice >> axis & 1) continue;
      std::int64_t& first = factors[choice];
      std::int64_t& second = factors[choice | std::size_t{1} << axis];
      if ((second - first) % step != 0) return std::nullopt;
      second = (second - first) / step;
      first -= second * low;
    }
  }
  std::vector<Term> terms;
  for (unsigned axes = 0; axes < corners; ++axes)
    if (factors[axes] != 0) terms.push_back({factors[axes], axes});
  for (std::size_t run = 0; run < sizes_.size(); ++run) {
    std::int64_t sum = 0;
    for (const Term& term : terms) {
      std::int64_t product = term.factor;
      for (std::size_t axis = 0; axis < names_.size(); ++axis)
        if (term.axes >> axis & 1) product *= sizes_[run][axis];
      sum += product;
    }
    if (sum != numbers[run]) return std::nullopt;
  }
  return terms;
}

}  // namespace reel::io::onnx
