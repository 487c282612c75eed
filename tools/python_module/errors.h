#pragma once

#include <nanobind/nanobind.h>

#include <reel/error.h>

namespace reel::python {

/// An argument of a type or a name that a function does not take.
class ArgumentError : public Error {
  using Error::Error;
};

/// Adds the exception classes to the module, and has nanobind raise them for reel's errors, in this extension and in all
/// others.
void add_errors(nanobind::module_& m);

/// Sets Python's exception for the C++ exception that is being handled; returns null.
PyObject* raise_current() noexcept;

}  // namespace reel::python
