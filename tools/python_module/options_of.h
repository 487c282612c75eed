#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "values.h"

namespace reel::python {

/// The fields of a struct of options: `names`, and `read(i, place, options)`, which reads the one of that index.
/// generate.py writes one for each struct of options of reel::nn and reel::optim.
template <class Options>
struct Fields;

/// Options from keyword arguments. Throws: ArgumentError for a name that is no field, and for values of other types.
template <class Options>
Options read_options(const char* function, const nanobind::kwargs& arguments, Location where) {
  Options options{};
  for (auto [key, value] : arguments) {
    std::string name = nanobind::cast<std::string>(key), known;
    bool found = false;
    std::size_t i = 0;
    for (const char* field : Fields<Options>::names) {
      known += (known.empty() ? "" : ", ") + std::string(field);
      if (name == field) {
        if (!value.is_none()) Fields<Options>::read(i, Place{value.ptr(), function, field, where}, options);
        found = true;
      }
      ++i;
    }
    if (!found)
      throw ArgumentError(std::string(function) + ": there is no option " + name + "; the options are " + known, where);
  }
  return options;
}

}  // namespace reel::python
