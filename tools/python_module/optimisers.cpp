#include <reel/optim.h>
#include <reel/python.h>

#include "options.h"
#include "options_of.h"
#include "parts.h"

namespace nb = nanobind;

namespace reel::python {
namespace {

using optim::Optimiser;

// An optimiser whose constructor takes parameters and the fields of its options as keywords.
template <class Made, class Options>
void optimiser(nb::module_& m, const char* name) {
  nb::class_<Made, Optimiser>(m, name).def(
      "__init__",
      [name](Made* made, const nb::object& parameters, const nb::kwargs& options) {
        Location where = caller_location();
        std::vector<Tensor> list;
        read_value(Place{parameters.ptr(), name, "parameters", where}, list);
        std::construct_at(made, std::move(list), read_options<Options>(name, options, where), where);
      },
      nb::arg("parameters"), nb::arg("options"));
}

nb::dict state_of(const Optimiser& self) {
  nb::dict state;
  for (const auto& [name, tensor] : self.state(caller_location())) state[name.c_str()] = nb::steal(to_python(tensor));
  return state;
}

void load_state(Optimiser& self, const nb::dict& state) {
  Location where = caller_location();
  std::vector<NamedTensor> tensors;
  for (auto [name, value] : state) {
    NamedTensor& entry = tensors.emplace_back();
    entry.name = nb::cast<std::string>(name);
    read_value(Place{value.ptr(), "load_state_dict", "an entry", where}, entry.tensor);
  }
  self.load_state(tensors, where);
}

}  // namespace

void add_optimisers(nb::module_& m) {
  nb::class_<Optimiser>(m, "Optimiser", "Updates parameters from their accumulated gradients.")
      .def("step",
           [](Optimiser& self) {
             Location where = caller_location();
             nb::gil_scoped_release released;
             self.step(where);
           })
      .def("zero_grad", &Optimiser::zero_grad)
      .def_prop_rw(
          "learning_rate", [](const Optimiser& self) { return self.learning_rate(0, caller_location()); },
          [](Optimiser& self, double rate) { self.set_learning_rate(rate, caller_location()); })
      .def("state_dict", state_of)
      .def("load_state_dict", load_state, nb::arg("state"));
  optimiser<optim::SGD, optim::SGDOptions>(m, "SGD");
  optimiser<optim::Adam, optim::AdamOptions>(m, "Adam");
  optimiser<optim::AdamW, optim::AdamWOptions>(m, "AdamW");
  optimiser<optim::Adadelta, optim::AdadeltaOptions>(m, "Adadelta");
  optimiser<optim::Adagrad, optim::AdagradOptions>(m, "Adagrad");
  optimiser<optim::Adamax, optim::AdamaxOptions>(m, "Adamax");
  optimiser<optim::Lion, optim::LionOptions>(m, "Lion");
  optimiser<optim::NAdam, optim::NAdamOptions>(m, "NAdam");
  optimiser<optim::RAdam, optim::RAdamOptions>(m, "RAdam");
  optimiser<optim::RMSprop, optim::RMSpropOptions>(m, "RMSprop");
  optimiser<optim::Rprop, optim::RpropOptions>(m, "Rprop");
  m.def(
      "clip_grad_norm",
      [](const nb::object& parameters, double most) {
        Location where = caller_location();
        std::vector<Tensor> list;
        read_value(Place{parameters.ptr(), "clip_grad_norm", "parameters", where}, list);
        return optim::clip_grad_norm(list, most, where);
      },
      nb::arg("parameters"), nb::arg("max_norm"),
      "Scales gradients so that their norm is at most max_norm; the norm before.");
}

}  // namespace reel::python
