#include <reel/python.h>

#include <string>

#include "parts.h"
#include "values.h"

namespace nb = nanobind;

namespace reel::python {
namespace {

using Binary = Tensor (*)(const Arg& a, const Arg& b);
using Unary = Tensor (*)(const Arg& x);

bool is_operand(PyObject* value) { return as_tensor(value) || is_number(value); }

Arg operand(PyObject* value, const char* function, std::int64_t& elements, Location where) {
  if (const Tensor* tensor = as_tensor(value)) {
    elements += tensor->numel();
    return Arg(*tensor, where);
  }
  return read_arg({value, function, "an operand", where});
}

template <class F>
PyObject* run(std::int64_t elements, F f) {
  if (elements < elements_without_lock) return to_python(f());
  Tensor result = [&] {
    nb::gil_scoped_release released;
    return f();
  }();
  return to_python(std::move(result));
}

template <Binary op>
PyObject* binary(PyObject* a, PyObject* b) noexcept {
  if (!is_operand(a) || !is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
  try {
    Location where = caller_location();
    std::int64_t elements = 0;
    Arg left = operand(a, "operator", elements, where), right = operand(b, "operator", elements, where);
    return run(elements, [&] { return op(left, right); });
  } catch (...) {
    return raise_current();
  }
}

PyObject* power(PyObject* a, PyObject* b, PyObject*) noexcept { return binary<pow>(a, b); }

template <Unary op>
PyObject* unary(PyObject* x) noexcept {
  try {
    Location where = caller_location();
    std::int64_t elements = 0;
    Arg value = operand(x, "operator", elements, where);
    return run(elements, [&] { return op(value); });
  } catch (...) {
    return raise_current();
  }
}

// Operators such as +=, which overwrite the elements.
template <Tensor (*op)(const Destination& x, const Arg& y)>
PyObject* in_place(PyObject* x, PyObject* y) noexcept {
  if (!is_operand(y)) Py_RETURN_NOTIMPLEMENTED;
  try {
    Location where = caller_location();
    std::int64_t elements = 0;
    Arg value = operand(y, "operator", elements, where);
    op(Destination(*as_tensor(x), where), value);
    return Py_NewRef(x);
  } catch (...) {
    return raise_current();
  }
}

PyObject* compare(PyObject* a, PyObject* b, int op) noexcept {
  switch (op) {
    case Py_EQ: return binary<equal>(a, b);
    case Py_NE: return binary<not_equal>(a, b);
    case Py_LT: return binary<less>(a, b);
    case Py_LE: return binary<less_equal>(a, b);
    case Py_GT: return binary<greater>(a, b);
    default: return binary<greater_equal>(a, b);
  }
}

// The hash of the Python object: == compares elements, so equal tensors are no equal keys.
Py_hash_t hash(PyObject* self) noexcept { return static_cast<Py_hash_t>(reinterpret_cast<std::uintptr_t>(self) >> 4); }

const Tensor& self_tensor(PyObject* self) { return *nb::inst_ptr<Tensor>(self); }

nb::object item_of(const Tensor& x, Location where) {
  if (x.dtype() == DType::boolean) return nb::bool_(x.item<bool>(where));
  if (is_floating(x.dtype())) return nb::float_(x.item<double>(where));
  return nb::int_(x.item<std::int64_t>(where));
}

template <class F>
PyObject* guarded(F f) noexcept {
  try {
    return f().release().ptr();
  } catch (...) {
    return raise_current();
  }
}

PyObject* as_float(PyObject* self) noexcept {
  return guarded([&] { return nb::object(nb::float_(self_tensor(self).item<double>(caller_location()))); });
}
PyObject* as_integer(PyObject* self) noexcept {
  return guarded([&] { return nb::object(nb::int_(self_tensor(self).item<std::int64_t>(caller_location()))); });
}
PyObject* as_index(PyObject* self) noexcept {
  return guarded([&] {
    const Tensor& x = self_tensor(self);
    if (is_floating(x.dtype()) || x.dtype() == DType::boolean)
      throw DTypeError(
          "a tensor of " + std::string(name_of(x.dtype())) + " is no index; it must be of an integer dtype",
          caller_location());
    return nb::object(nb::int_(x.item<std::int64_t>(caller_location())));
  });
}
int as_bool(PyObject* self) noexcept {
  try {
    return self_tensor(self).item<double>(caller_location()) != 0;
  } catch (...) {
    raise_current();
    return -1;
  }
}

Py_ssize_t length(PyObject* self) noexcept {
  try {
    return self_tensor(self).size(0, caller_location());
  } catch (...) {
    raise_current();
    return -1;
  }
}

// The sequence protocol, by which `for row in x` ends.
PyObject* row(PyObject* self, Py_ssize_t i) noexcept {
  return guarded([&] {
    const Tensor& x = self_tensor(self);
    Location where = caller_location();
    if (i < 0 || i >= x.size(0, where)) throw nb::index_error("the index is beyond the tensor's first axis");
    return nb::steal(to_python(select(Arg(x, where), 0, i)));
  });
}

template <class F>
void* slot(F* f) {
  return reinterpret_cast<void*>(f);
}

nb::object tuple_of(const Shape& shape) {
  nb::list sizes;
  for (std::int64_t size : shape) sizes.append(size);
  return nb::tuple(sizes);
}

// The elements from `offset` on, as lists nested by the axes from `axis` on.
nb::object nested(const Tensor& flat, const Shape& shape, int axis, std::int64_t offset, std::int64_t count) {
  if (axis == shape.rank()) return item_of(select(flat, 0, offset), {});
  nb::list list;
  std::int64_t each = shape[axis] == 0 ? 0 : count / shape[axis];
  for (std::int64_t i = 0; i < shape[axis]; ++i) list.append(nested(flat, shape, axis + 1, offset + i * each, each));
  return nb::object(list);
}

std::string represented(const Tensor& x) {
  if (!x.defined()) return "tensor(undefined)";
  std::string text = "tensor(" + to_string(x) + ", dtype=" + name_of(x.dtype());
  if (!(x.device() == cpu)) text += ", device='" + to_string(x.device()) + "'";
  return text + (x.is_parameter() ? ", requires_grad=True)" : ")");
}

void add_properties(nb::class_<Tensor>& tensor) {
  tensor.def_prop_ro(
      "shape", [](const Tensor& x) { return tuple_of(x.shape()); }, "The sizes of all axes.");
  tensor.def_prop_ro(
      "strides", [](const Tensor& x) { return tuple_of(x.strides()); },
      "Elements from one index to the next, per axis.");
  tensor.def_prop_ro("dtype", [](const Tensor& x) { return x.dtype(); });
  tensor.def_prop_ro("device", [](const Tensor& x) { return x.device(); });
  tensor.def_prop_ro(
      "ndim", [](const Tensor& x) { return x.rank(); }, "The number of axes.");
  tensor.def_prop_ro(
      "T", [](const Tensor& x) { return transpose(Arg(x, caller_location())); }, "The last two axes exchanged.");
  tensor.def_prop_rw(
      "requires_grad", [](const Tensor& x) { return x.is_parameter(); },
      [](const Tensor& x, bool wanted) { x.requires_grad(wanted, caller_location()); },
      "Whether it is a parameter, whose gradient a backward pass adds to grad.");
  tensor.def_prop_rw(
      "grad", [](const Tensor& x) { return nb::steal(to_python(x.grad())); },
      [](const Tensor& x, const Tensor* gradient) { x.set_grad(gradient ? *gradient : Tensor(), caller_location()); },
      nb::for_setter(nb::arg("gradient").none()), "The accumulated gradient; None: there is none.");
  tensor.def_prop_ro(
      "made_at", [](const Tensor& x) { return to_string(x.made_at()); }, "The line that made it.");
}

void add_methods(nb::class_<Tensor>& tensor) {
  tensor.def(
      "size", [](const Tensor& x, int axis) { return x.size(axis, caller_location()); }, nb::arg("axis"));
  tensor.def(
      "numel", [](const Tensor& x) { return x.numel(); }, "The number of elements.");
  tensor.def("is_contiguous", [](const Tensor& x) { return x.is_contiguous(); });
  tensor.def(
      "item", [](const Tensor& x) { return item_of(x, caller_location()); }, "The only element as a number.");
  tensor.def("tolist", [](const Tensor& x) {
    Tensor values = stop_gradient(x);
    return nested(reshape(values, {-1}), x.shape(), 0, 0, x.numel());
  });
  tensor.def(
      "data_ptr",
      [](Tensor& values) {
        switch (values.dtype()) {
          case DType::f32: return reinterpret_cast<std::uintptr_t>(values.strided_data<float>());
          case DType::f64: return reinterpret_cast<std::uintptr_t>(values.strided_data<double>());
          case DType::bf16: return reinterpret_cast<std::uintptr_t>(values.strided_data<BFloat16>());
          case DType::f16: return reinterpret_cast<std::uintptr_t>(values.strided_data<Float16>());
          case DType::i32: return reinterpret_cast<std::uintptr_t>(values.strided_data<std::int32_t>());
          case DType::i64: return reinterpret_cast<std::uintptr_t>(values.strided_data<std::int64_t>());
          case DType::u8: return reinterpret_cast<std::uintptr_t>(values.strided_data<unsigned char>());
          case DType::i8: return reinterpret_cast<std::uintptr_t>(values.strided_data<std::int8_t>());
          case DType::i16: return reinterpret_cast<std::uintptr_t>(values.strided_data<std::int16_t>());
          case DType::boolean: break;
        }
        return reinterpret_cast<std::uintptr_t>(values.strided_data<bool>());
      },
      "The address of the first element.");
  tensor.def("__repr__", represented);
  tensor.def("__str__", [](const Tensor& x) { return to_string(x); });
  // NumPy's operators leave x + array to Tensor, which refuses it, instead of calling this for each element.
  tensor.attr("__array_ufunc__") = nb::none();
}

}  // namespace

void add_tensor(nb::module_& m) {
  static const PyType_Slot slots[] = {{Py_nb_add, slot(binary<add>)},
                                      {Py_nb_subtract, slot(binary<sub>)},
                                      {Py_nb_multiply, slot(binary<mul>)},
                                      {Py_nb_true_divide, slot(binary<div>)},
                                      {Py_nb_floor_divide, slot(binary<floor_divide>)},
                                      {Py_nb_remainder, slot(binary<mod>)},
                                      {Py_nb_power, slot(power)},
                                      {Py_nb_matrix_multiply, slot(binary<matmul>)},
                                      {Py_nb_and, slot(binary<bitwise_and>)},
                                      {Py_nb_or, slot(binary<bitwise_or>)},
                                      {Py_nb_xor, slot(binary<bitwise_xor>)},
                                      {Py_nb_lshift, slot(binary<bitwise_left_shift>)},
                                      {Py_nb_rshift, slot(binary<bitwise_right_shift>)},
                                      {Py_nb_negative, slot(unary<neg>)},
                                      {Py_nb_absolute, slot(unary<abs>)},
                                      {Py_nb_invert, slot(unary<bitwise_not>)},
                                      {Py_nb_inplace_add, slot(in_place<add_>)},
                                      {Py_nb_inplace_subtract, slot(in_place<sub_>)},
                                      {Py_nb_inplace_multiply, slot(in_place<mul_>)},
                                      {Py_nb_inplace_true_divide, slot(in_place<div_>)},
                                      {Py_nb_float, slot(as_float)},
                                      {Py_nb_int, slot(as_integer)},
                                      {Py_nb_index, slot(as_index)},
                                      {Py_nb_bool, slot(as_bool)},
                                      {Py_tp_richcompare, slot(compare)},
                                      {Py_tp_hash, slot(hash)},
                                      {Py_mp_subscript, slot(get_item)},
                                      {Py_mp_ass_subscript, slot(set_item)},
                                      {Py_mp_length, slot(length)},
                                      {Py_sq_item, slot(row)},
                                      {Py_sq_length, slot(length)},
                                      {Py_bf_getbuffer, slot(get_buffer)},
                                      {Py_bf_releasebuffer, slot(release_buffer)},
                                      {0, nullptr}};
  nb::class_<Tensor> tensor(m, "Tensor", nb::type_slots(slots), nb::is_weak_referenceable(),
                            "An array of numbers on a device. Objects share the elements of the tensors of C++.");
  tensor_type = reinterpret_cast<PyTypeObject*>(tensor.ptr());
  add_properties(tensor);
  add_methods(tensor);
  add_sharing(m, tensor);
}

}  // namespace reel::python
