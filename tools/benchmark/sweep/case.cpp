#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "core/storage.h"
#include "sweep.h"

namespace reel_bench {

namespace {

// The numbers of "2,3".
reel::Shape list_of(const std::string& text) {
  reel::Shape numbers;
  std::istringstream stream(text);
  for (std::string number; std::getline(stream, number, ',');) numbers.push_back(std::stoll(number));
  return numbers;
}

reel::DType dtype_named(const std::string& name) {
  for (int i = 0; i < reel::dtype_count; ++i)
    if (name == name_of(static_cast<reel::DType>(i))) return static_cast<reel::DType>(i);
  throw std::invalid_argument(fmt::format("there is no dtype {}", name));
}

}  // namespace

std::string to_string(const Case& one) {
  std::string line = one.op;
  for (const Operand& x : one.operands) {
    line += fmt::format(" {}({})", name_of(x.dtype), fmt::join(x.shape, ","));
    if (x.strides != reel::detail::contiguous_strides(x.shape)) line += fmt::format(":({})", fmt::join(x.strides, ","));
    if (x.offset != 0) line += fmt::format("+{}", x.offset);
  }
  for (const NamedAttribute& attribute : named_attributes)
    if (one.attributes.*attribute.number != Attributes::unset)
      line += fmt::format(" {}={}", attribute.name, one.attributes.*attribute.number);
  if (!one.attributes.axes.empty()) line += fmt::format(" axes=({})", fmt::join(one.attributes.axes, ","));
  return one.gradient ? line + " gradient" : line;
}

Case parse_case(const std::string& line) {
  static const std::regex operand(R"((\w+)\(([\d,]*)\)(:\(([\d,]*)\))?(\+(\d+))?)"), number(R"((\w+)=(-?\d+))"),
      axes(R"(axes=\(([\d,]+)\))");
  std::istringstream words(line);
  Case one;
  words >> one.op;
  for (std::string word; words >> word;) {
    std::smatch found;
    if (word == "gradient") {
      one.gradient = true;
    } else if (std::regex_match(word, found, axes)) {
      one.attributes.axes = list_of(found[1]);
    } else if (std::regex_match(word, found, operand)) {
      Operand x{dtype_named(found[1]), list_of(found[2]), list_of(found[4])};
      if (!found[3].matched) x.strides = reel::detail::contiguous_strides(x.shape);
      if (x.strides.rank() != x.shape.rank()) throw std::invalid_argument(word + " has not as many strides as sizes");
      if (found[6].matched) x.offset = std::stoll(found[6]);
      one.operands.push_back(x);
    } else {
      bool matched = std::regex_match(word, found, number);
      auto named = std::find_if(std::begin(named_attributes), std::end(named_attributes),
                                [&](const NamedAttribute& each) { return matched && each.name == found[1].str(); });
      if (named == std::end(named_attributes)) throw std::invalid_argument(word + " is no part of a case");
      one.attributes.*named->number = std::stoll(found[2]);
    }
  }
  return one;
}

}  // namespace reel_bench
