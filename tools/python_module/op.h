#pragma once

#include <span>

#include "values.h"

namespace reel::python {

/// One way to call a function from Python: a row of the tables that generate.py writes.
struct Overload {
  static constexpr int most_parameters = 16;

  const char* function;
  /// The parameters, and after those the options, which are passed by name only; the rest are null.
  const char* names[most_parameters];
  /// How many may be passed by position, and how many must be passed.
  int positional, required;
  /// The values that each parameter takes, where several overloads fit by their names. t: a Tensor or a number; i: an
  /// integer; d: a number; b: a bool; s: an integer or a tuple of them; l: a list of integers; r: a list or tuple;
  /// y: a dtype; v: a device; *: any.
  const char* kinds;
  PyObject* (*call)(const Values& values, Location where);
};

// The tables, in the files ops_0.cpp to ops_3.cpp that generate.py writes.
std::span<const Overload> overloads_0();
std::span<const Overload> overloads_1();
std::span<const Overload> overloads_2();
std::span<const Overload> overloads_3();

/// Adds all functions to the module, and those whose first parameter is an operand to the class Tensor, as methods.
void add_ops(nanobind::module_& m);

}  // namespace reel::python
