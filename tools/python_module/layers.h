#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include <reel/python.h>

#include "options.h"
#include "options_of.h"

namespace reel::python {

/// The options of a layer that has none.
struct NoOptions {};
template <>
struct Fields<NoOptions> {
  static constexpr std::array<const char*, 0> names{};
  static void read(std::size_t, const Place&, NoOptions&) {}
};

/// Makes a layer in memory that Python has allocated.
template <class Layer, class Options, class... Arguments>
void construct(Layer* made, const Options& options, Location where, const Arguments&... arguments) {
  if constexpr (std::is_same_v<Options, NoOptions>)
    std::construct_at(made, arguments...);
  else if constexpr (std::is_constructible_v<Layer, Arguments..., Options, Location>)
    std::construct_at(made, arguments..., options, where);
  else
    std::construct_at(made, arguments..., options);
}

template <class T>
T read_parameter(const char* layer, const char* name, const nanobind::object& value, Location where) {
  auto initial = [] {
    if constexpr (std::is_default_constructible_v<T>)
      return T{};
    else
      return T(0);
  };
  T result = initial();
  read_value(Place{value.ptr(), layer, name, where}, result);
  return result;
}

template <class>
using ObjectFor = const nanobind::object&;

/// The function that constructs a layer: its parameters have the given names.
template <class Layer, class Options, class... Parameters, std::size_t... i>
auto constructor(const char* name, std::array<const char*, sizeof...(Parameters)> names, std::index_sequence<i...>) {
  return [name, names](nanobind::pointer_and_handle<Layer> made, ObjectFor<Parameters>... given,
                       const nanobind::kwargs& options) {
    Location where = caller_location();
    construct(made.p, read_options<Options>(name, options, where), where,
              read_parameter<Parameters>(name, names[i], given, where)...);
    // A layer may draw from it later, too.
    if (options.contains("generator")) nanobind::keep_alive_obj(made.h, nanobind::object(options["generator"]));
  };
}

/// Makes a layer of C++ a class of Python: its constructor takes Parameters… under the given names, then the fields of
/// Options as keywords. Its call is defined by the caller.
template <class Layer, class Options, class... Parameters, class... Names>
  requires(sizeof...(Names) == sizeof...(Parameters))
nanobind::class_<Layer, nn::Module> layer_class(nanobind::module_& m, const char* name, Names... names) {
  nanobind::class_<Layer, nn::Module> made(m, name);
  std::array<const char*, sizeof...(Parameters)> listed{names...};
  made.def("__init__",
           constructor<Layer, Options, Parameters...>(name, listed, std::index_sequence_for<Parameters...>()),
           nanobind::arg(names)..., nanobind::arg("options"));
  return made;
}

/// Runs a layer without Python's global lock; its ops report the line of the caller.
template <class F>
auto run_layer(Location where, F f) {
  nanobind::gil_scoped_release released;
  CallerScope caller(where);
  return f();
}

/// A layer that is called with one tensor and returns one.
template <class Layer, class Options, class... Parameters, class... Names>
void layer(nanobind::module_& m, const char* name, Names... names) {
  layer_class<Layer, Options, Parameters...>(m, name, names...)
      .def(
          "__call__",
          [name](const Layer& self, const nanobind::object& x) {
            Location where = caller_location();
            Arg input = read_arg({x.ptr(), name, "the input", where});
            return nanobind::steal(to_python(run_layer(where, [&] { return self(input); })));
          },
          nanobind::arg("x"));
}

/// The tensor of an optional argument; undefined for None.
inline Tensor optional_tensor(const nanobind::object& value, const char* function, const char* name, Location where) {
  Tensor result;
  if (!value.is_none()) read_value(Place{value.ptr(), function, name, where}, result);
  return result;
}

/// Adds layers that are called with tensors.
void add_layers(nanobind::module_& m);
/// Adds layers and cells with a state.
void add_recurrent_layers(nanobind::module_& m);

}  // namespace reel::python
