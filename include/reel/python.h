#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <reel/error.h>
#include <reel/nn/module.h>

/// \file
/// Models written in C++ as classes of Python, in an extension module of one's own that is compiled with nanobind and
/// linked with reel. `reel.h` does not include this header. tools/python_module/README.md has an example.

namespace reel::python {

/// The line of Python code that called the running function, as `Location` of an op; empty outside of Python. The name
/// of the file is kept for as long as the program runs, and the lines of the last thousand call sites are remembered.
/// The caller holds Python's global lock.
inline Location caller_location() {
  struct Site {
    PyCodeObject* code = nullptr;
    int instruction = 0;
    Location location;
  };
  static constinit Site sites[1024];
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) return {};
  PyCodeObject* code = PyFrame_GetCode(frame);
  int instruction = PyFrame_GetLasti(frame);
  Site& site =
      sites[(reinterpret_cast<std::uintptr_t>(code) / 16 + static_cast<std::uintptr_t>(instruction) / 2) % 1024];
  if (site.code == code && site.instruction == instruction) {
    Py_DECREF(code);
    return site.location;
  }
  // Tensors and tapes refer to the name for longer than the code may exist.
  static auto& files = *new std::unordered_set<std::string>();
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (!file) PyErr_Clear();
  Location location{files.emplace(file ? file : "unknown file").first->c_str(), PyFrame_GetLineNumber(frame)};
  PyCodeObject* before = site.code;
  site = {code, instruction, location};  // the site keeps the code, so that no other one gets its address
  Py_XDECREF(before);
  return location;
}

/// An argument of a model's call that is a tensor or a number.
/// Throws: nanobind::type_error for other values.
inline Arg to_arg(nanobind::handle value, Location where) {
  const Tensor* tensor = nullptr;
  if (nanobind::try_cast(value, tensor) && tensor) return Arg(*tensor, where);
  if (PyBool_Check(value.ptr())) return Arg(value.ptr() == Py_True, where.file, where.line);
  if (PyLong_Check(value.ptr())) return Arg(nanobind::cast<std::int64_t>(value), where.file, where.line);
  if (PyFloat_Check(value.ptr())) return Arg(PyFloat_AS_DOUBLE(value.ptr()), where.file, where.line);
  throw nanobind::type_error("a model was called with an argument that is neither a Tensor nor a number");
}

namespace detail {

// The type that Python passes for a parameter of the given type of a model's call.
template <class Parameter>
using Passed =
    std::conditional_t<std::is_same_v<std::decay_t<Parameter>, Arg>, nanobind::object, std::decay_t<Parameter>>;

template <class Parameter>
decltype(auto) converted(const Passed<Parameter>& value, [[maybe_unused]] Location where) {
  if constexpr (std::is_same_v<std::decay_t<Parameter>, Arg>)
    return to_arg(value, where);
  else
    return (value);
}

// Structs of tensors, such as an LSTM's results, become tuples.
template <class Result>
nanobind::object result_to_python(Result&& result) {
  if constexpr (std::is_same_v<std::decay_t<Result>, Tensor>) {
    return nanobind::cast(std::forward<Result>(result));
  } else if constexpr (requires { tensors_of(result); }) {
    nanobind::list items;
    for (Tensor* tensor : tensors_of(result))
      items.append(tensor->defined() ? nanobind::cast(*tensor) : nanobind::none());
    return nanobind::tuple(items);
  } else {
    return nanobind::cast(std::forward<Result>(result));
  }
}

// Defines __call__ for f, whose last parameter may be a Location, which Python does not pass.
template <class Class, class Call, class Model, class Result, class... Parameters>
void define_call(Class& made, Call f, Result (Model::*)(Parameters...) const) {
  using All = std::tuple<Parameters...>;
  constexpr std::size_t count = sizeof...(Parameters);
  constexpr bool located = [] {
    if constexpr (count == 0)
      return false;
    else
      return std::is_same_v<std::decay_t<std::tuple_element_t<count - 1, All>>, Location>;
  }();
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    made.def("__call__", [f](const Model& model, Passed<std::tuple_element_t<i, All>>... values) {
      Location where = caller_location();
      auto result = [&]<class... Converted>(const Converted&... converted) {
        nanobind::gil_scoped_release released;
        CallerScope caller(where);
        if constexpr (located)
          return (model.*f)(converted..., where);
        else
          return (model.*f)(converted...);
      }(converted<std::tuple_element_t<i, All>>(values, where)...);
      return result_to_python(std::move(result));
    });
  }(std::make_index_sequence<count - (located ? 1 : 0)>());
}

inline nanobind::arg named(const char* name) { return nanobind::arg(name); }
inline const nanobind::arg_v& named(const nanobind::arg_v& argument) { return argument; }

}  // namespace detail

/// Makes the C++ model `Model`, a `nn::Module`, a class `name` of Python, whose constructor takes `Parameters…` under
/// the given names, one for each: a string, or `nanobind::arg("dropout") = 0.1` for one with a default. Objects of the
/// class are called as the model's `operator()` is, and have what `reel.nn.Module` has: parameters, state_dict, train,
/// save. Errors of reel arrive as exceptions of `reel`. `scope` is the module of the extension; `import reel` is done
/// here. An `operator()` that is overloaded is bound by hand, with `.def("__call__", …)` on the class that is returned.
/// Throws: nanobind::python_error if the Python package reel cannot be imported.
template <class Model, class... Parameters, class... Names>
  requires(sizeof...(Names) == sizeof...(Parameters))
nanobind::class_<Model, nn::Module> module(nanobind::handle scope, const char* name, const Names&... parameter_names) {
  nanobind::module_::import_("reel");
  nanobind::class_<Model, nn::Module> made(scope, name, nanobind::dynamic_attr());
  made.def(nanobind::init<Parameters...>(), detail::named(parameter_names)...);
  if constexpr (requires { &Model::operator(); }) detail::define_call(made, &Model::operator(), &Model::operator());
  return made;
}

}  // namespace reel::python
