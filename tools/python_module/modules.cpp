#include <reel/io/weights.h>
#include <reel/python.h>

#include <string>
#include <vector>

#include "layers.h"
#include "parts.h"
#include "values.h"

namespace nb = nanobind;

namespace reel::python {
namespace {

nb::dict dictionary_of(const std::vector<NamedTensor>& tensors) {
  nb::dict result;
  for (const auto& [name, tensor] : tensors) result[name.c_str()] = nb::steal(to_python(tensor));
  return result;
}

std::vector<NamedTensor> state_of(const nn::Module& module) {
  std::vector<NamedTensor> state = module.named_parameters();
  for (NamedTensor& buffer : module.named_buffers()) state.push_back(std::move(buffer));
  return state;
}

void load_state(nn::Module& module, const nb::dict& state, bool strict) {
  Location where = caller_location();
  std::vector<NamedTensor> tensors;
  for (auto [name, value] : state) {
    NamedTensor& entry = tensors.emplace_back();
    entry.name = nb::cast<std::string>(name);
    read_value(Place{value.ptr(), "load_state_dict", "an entry", where}, entry.tensor);
  }
  io::load_into(module, tensors, {.strict = strict}, where);
}

// Makes a tensor that is a parameter one of the module's, under the name of the attribute.
nb::object registered(nn::Module& module, const std::string& name, const Tensor& value, Location where) {
  nb::object made = nb::inst_alloc(nb::type<nn::Parameter>());
  std::construct_at(nb::inst_ptr<nn::Parameter>(made), module, name, value, where);
  nb::inst_mark_ready(made);
  return made;
}

void put(const nb::handle& self, const nb::str& name, const nb::handle& value) {
  if (PyObject_GenericSetAttr(self.ptr(), name.ptr(), value.ptr()) != 0) throw nb::python_error();
}

// A module that is an attribute of another one is a part of it, as members are in C++; a tensor that is a parameter, too.
void set_attribute(const nb::handle& self, const nb::str& name, const nb::object& value) {
  Location where = caller_location();
  auto& module = nb::cast<nn::Module&>(self);
  nb::object dictionary = self.attr("__dict__");
  nb::object before = dictionary.attr("get")(name);
  const Tensor* tensor = as_tensor(value.ptr());
  if (tensor && nb::isinstance<nn::Parameter>(before)) {
    nb::cast<nn::Parameter&>(before) = *tensor;
    return;
  }
  if (nb::isinstance<nn::Module>(value) && !before.is(value)) {
    if (nb::isinstance<nn::Module>(before)) dictionary.attr("pop")(name);  // it leaves, unless it is used elsewhere
    before = nb::none();
    nb::cast<nn::Module&>(value).join(module, nb::cast<std::string>(name), where);
  } else if (tensor && tensor->is_parameter() && !nb::isinstance<nn::Parameter>(value)) {
    put(self, name, registered(module, nb::cast<std::string>(name), *tensor, where));
    return;
  }
  put(self, name, value);
}

// A parameter or buffer of a layer of C++, such as linear.weight.
nb::object get_attribute(const nn::Module& module, const std::string& name) {
  for (const NamedTensor& entry : state_of(module))
    if (entry.name == name) return nb::steal(to_python(entry.tensor));
  throw nb::attribute_error(("the module has no attribute, parameter or buffer " + name).c_str());
}

nb::object convert(const nb::object& self, const nb::object& target) {
  Location where = caller_location();
  auto& module = nb::cast<nn::Module&>(self);
  Device device;
  if (nb::try_cast(target, device) ||
      (PyUnicode_Check(target.ptr()) && nb::cast<std::string>(target).starts_with("c"))) {
    read_value(Place{target.ptr(), "Module.to", "the device", where}, device);
    module.to(device, where);
  } else {
    DType dtype;
    read_value(Place{target.ptr(), "Module.to", "the dtype or device", where}, dtype);
    module.to(dtype, where);
  }
  return self;
}

nb::object passed_over(const io::PassedOver& names) { return nb::make_tuple(names.missing, names.unexpected); }

}  // namespace

void add_modules(nb::module_& m) {
  [[maybe_unused]] nb::class_<nn::Parameter, Tensor> parameter(m, "Parameter",
                                                               "A tensor that is a parameter of a module.");
  nb::class_<nn::Module>(
      m, "Module", nb::dynamic_attr(), nb::is_weak_referenceable(),
      "A part of a model that owns parameters. A class derived from it assigns modules and parameters to "
      "attributes, which makes them parts of it, and defines __call__.")
      .def(nb::init<>())
      .def("__setattr__", set_attribute)
      .def("__getattr__", get_attribute)
      .def("named_parameters", [](const nn::Module& self) { return dictionary_of(self.named_parameters()); })
      .def("named_buffers", [](const nn::Module& self) { return dictionary_of(self.named_buffers()); })
      .def(
          "state_dict", [](const nn::Module& self) { return dictionary_of(state_of(self)); },
          "The parameters and buffers, which are not copied, by name.")
      .def("load_state_dict", load_state, nb::arg("state"), nb::kw_only(), nb::arg("strict") = true)
      .def("parameters", [](const nn::Module& self) { return nb::steal(to_python(self.parameters())); })
      .def("parameter_count", &nn::Module::parameter_count)
      .def("zero_grad", &nn::Module::zero_grad)
      .def(
          "train", [](nn::Module& self, bool training) { self.train(training); }, nb::arg("training") = true)
      .def("eval", &nn::Module::eval)
      .def_prop_ro("training", &nn::Module::is_training)
      .def(
          "freeze",
          [](const nn::Module& self, const std::string& pattern) {
            return self.freeze(pattern, true, caller_location());
          },
          nb::arg("pattern"))
      .def(
          "unfreeze",
          [](const nn::Module& self, const std::string& pattern) { return self.unfreeze(pattern, caller_location()); },
          nb::arg("pattern"))
      .def("to", convert, nb::arg("dtype_or_device"))
      .def(
          "save",
          [](const nn::Module& self, const std::string& path) {
            io::save(path, self, io::Metadata{}, caller_location());
          },
          nb::arg("path"), "Writes the parameters and buffers as a safetensors file.")
      .def(
          "load",
          [](nn::Module& self, const std::string& path, bool strict) {
            return passed_over(io::load_into(self, path, {.strict = strict}, caller_location()));
          },
          nb::arg("path"), nb::kw_only(), nb::arg("strict") = true,
          "Reads a file of weights into the parameters and buffers; the names that only one of both has.");
  add_layers(m);
  add_recurrent_layers(m);
}

void add_files(nb::module_& m) {
  m.def(
      "save",
      [](const std::string& path, const nb::dict& tensors) {
        Location where = caller_location();
        std::vector<NamedTensor> list;
        for (auto [name, value] : tensors) {
          NamedTensor& entry = list.emplace_back();
          entry.name = nb::cast<std::string>(name);
          read_value(Place{value.ptr(), "save", "an entry", where}, entry.tensor);
        }
        io::save(path, list, {}, where);
      },
      nb::arg("path"), nb::arg("tensors"), "Writes tensors, by name, as a safetensors file.");
  m.def(
      "load", [](const std::string& path) { return dictionary_of(io::load(path, caller_location()).tensors); },
      nb::arg("path"), "The tensors of a safetensors file, by name.");
}

}  // namespace reel::python
