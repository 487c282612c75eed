#include <reel/cuda.h>
#include <reel/python.h>
#include <reel/random.h>
#include <reel/version.h>

#include "parts.h"
#include "values.h"

namespace nb = nanobind;

namespace reel::python {

void add_types(nb::module_& m) {
  nb::enum_<DType> dtype(m, "DType", "The type of a tensor's elements.");
  for (int i = 0; i < dtype_count; ++i) {
    auto value = static_cast<DType>(i);
    const char* name = value == DType::boolean ? "boolean" : name_of(value);
    dtype.value(name, value);
    m.attr(name) = nb::cast(value);
  }
  nb::class_<Device>(m, "Device", "Where elements are: a CPU or a GPU.")
      .def(
          "__init__",
          [](Device* made, const nb::object& name) {
            Device device;
            read_value(Place{name.ptr(), "Device", "name", caller_location()}, device);
            std::construct_at(made, device);
          },
          nb::arg("name"))
      .def("__eq__", [](Device a, Device b) { return a == b; })
      .def("__eq__", [](Device a, const std::string& b) { return to_string(a) == b; })
      .def("__hash__", [](Device a) { return static_cast<int>(a.type) * 256 + a.index; })
      .def("__str__", [](Device a) { return to_string(a); })
      .def("__repr__", [](Device a) { return "reel.Device('" + to_string(a) + "')"; });
  nb::class_<Generator>(m, "Generator", "A sequence of random numbers.")
      .def(nb::init<std::uint64_t>(), nb::arg("seed") = 0)
      .def_prop_ro("seed", &Generator::seed)
      .def_prop_rw("calls", &Generator::calls, &Generator::set_calls);
  m.def("manual_seed", &manual_seed, nb::arg("seed"), "Restarts this thread's random numbers.");
  m.def("cuda_is_available", &cuda::is_available);
  m.def(
      "live_tensors", [] { return memory_statistics().live_tensors; }, "Tensors of this thread that are in use.");
  m.attr("__version__") = version.string;
}

}  // namespace reel::python
