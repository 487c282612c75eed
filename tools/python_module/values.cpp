#include "values.h"

#include <memory>

namespace nb = nanobind;

namespace reel::python {
namespace {

std::string described(PyObject* value) {
  std::string text = nb::cast<std::string>(nb::str(nb::repr(nb::handle(value))));
  if (text.size() > 40) text = text.substr(0, 37) + "…";
  return std::string(Py_TYPE(value)->tp_name) + " " + text;
}

// Refuses what raised a Python exception while it was read, and passes on what the program's own code raised.
[[noreturn]] void refuse_raised(const Place& place, std::string_view wanted) {
  if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_OverflowError))
    throw nb::python_error();
  PyErr_Clear();
  refuse(place, wanted);
}

std::int64_t read_integer(const Place& place, std::string_view wanted) {
  if (PyBool_Check(place.value)) refuse(place, wanted);
  nb::object number = nb::steal(PyNumber_Index(place.value));
  if (!number.is_valid()) refuse_raised(place, wanted);
  std::int64_t result = PyLong_AsLongLong(number.ptr());
  if (result == -1 && PyErr_Occurred()) refuse_raised(place, wanted);
  return result;
}

bool is_sequence(PyObject* value) { return PyList_Check(value) || PyTuple_Check(value); }

// A number for all axes, or one for each.
Shape read_numbers(const Place& place, std::string_view wanted) {
  if (!is_sequence(place.value)) return Shape{read_integer(place, wanted)};
  Shape result;
  for (const nb::object& item : read_items(place, wanted))
    result.push_back(read_integer(Place{item.ptr(), place.function, place.name, place.where}, wanted), place.where);
  return result;
}

}  // namespace

void refuse(const Place& place, std::string_view wanted) {
  throw ArgumentError(std::string(place.function) + ": " + place.name + " must be " + std::string(wanted) +
                          ", but is " + described(place.value),
                      place.where);
}

bool is_number(PyObject* value) {
  if (PyFloat_Check(value) || PyLong_Check(value)) return true;
  PyNumberMethods* methods = Py_TYPE(value)->tp_as_number;
  // An array is a number by these, too, and is refused: it would be read without its shape.
  bool converts = methods && (methods->nb_index || methods->nb_float);
  if (!converts) return false;
  if (!PyObject_HasAttrString(value, "shape")) return true;
  nb::object shape = nb::steal(PyObject_GetAttrString(value, "shape"));
  return PyTuple_Check(shape.ptr()) && PyTuple_GET_SIZE(shape.ptr()) == 0 &&
         !PyObject_HasAttrString(value, "__setitem__");
}

Arg read_arg(const Place& place) {
  PyObject* value = place.value;
  Location where = place.where;
  if (const Tensor* tensor = as_tensor(value)) return Arg(*tensor, where);
  if (PyBool_Check(value)) return Arg(value == Py_True, where.file, where.line);
  if (PyFloat_Check(value)) return Arg(PyFloat_AS_DOUBLE(value), where.file, where.line);
  if (!is_number(value)) refuse(place, "a Tensor or a number");
  if (PyIndex_Check(value)) return Arg(read_integer(place, "an integer of 64 bits"), where.file, where.line);
  double number = PyFloat_AsDouble(value);
  if (number == -1 && PyErr_Occurred()) throw nb::python_error();
  return Arg(number, where.file, where.line);
}

void read_value(const Place& place, bool& result) {
  if (place.value != Py_True && place.value != Py_False) refuse(place, "True or False");
  result = place.value == Py_True;
}
void read_value(const Place& place, std::int64_t& result) { result = read_integer(place, "an integer of 64 bits"); }
void read_value(const Place& place, int& result) {
  std::int64_t number = read_integer(place, "an integer");
  if (number != static_cast<int>(number)) refuse(place, "an integer of 32 bits");
  result = static_cast<int>(number);
}
void read_value(const Place& place, std::size_t& result) {
  std::int64_t number = read_integer(place, "an integer");
  if (number < 0) refuse(place, "an integer of at least 0");
  result = static_cast<std::size_t>(number);
}
void read_value(const Place& place, double& result) {
  if (PyBool_Check(place.value) || !is_number(place.value)) refuse(place, "a number");
  result = PyFloat_AsDouble(place.value);
  if (result == -1 && PyErr_Occurred()) refuse_raised(place, "a number");
}
void read_value(const Place& place, std::string_view& result) {
  if (!PyUnicode_Check(place.value)) refuse(place, "a string");
  Py_ssize_t size;
  const char* text = PyUnicode_AsUTF8AndSize(place.value, &size);
  if (!text) throw nb::python_error();
  result = {text, static_cast<std::size_t>(size)};
}
void read_value(const Place& place, Axes& result) { result = read_numbers(place, "an integer or a tuple of them"); }
void read_value(const Place& place, Shape& result) { result = read_numbers(place, "an integer or a tuple of them"); }
void read_value(const Place& place, AxisNumbers& result) {
  if (!is_sequence(place.value)) {
    result = read_integer(place, "an integer or a tuple of them");
    return;
  }
  Shape numbers = read_numbers(place, "an integer or a tuple of them");
  switch (numbers.rank()) {
    case 1: result = AxisNumbers({numbers[0]}, place.where); return;
    case 2: result = AxisNumbers({numbers[0], numbers[1]}, place.where); return;
    case 3: result = AxisNumbers({numbers[0], numbers[1], numbers[2]}, place.where); return;
    default: refuse(place, "an integer or a tuple of one to three");
  }
}
void read_value(const Place& place, ConvolutionPadding& result) {
  if (PyUnicode_Check(place.value)) {
    result = read_name<Padding>(place, {{"valid", Padding::valid}, {"same", Padding::same}});
    return;
  }
  AxisNumbers numbers = 0;
  read_value(place, numbers);
  result = numbers;
}
void read_value(const Place& place, RowsAndColumns& result) {
  Shape numbers = read_numbers(place, "an integer or two");
  if (numbers.rank() == 0 || numbers.rank() > 2) refuse(place, "an integer or two");
  result = RowsAndColumns(numbers[0], numbers[-1]);
}
void read_value(const Place& place, DType& result) {
  if (nb::try_cast(nb::handle(place.value), result)) return;
  result = read_name<DType>(place, {{"f32", DType::f32},
                                    {"f64", DType::f64},
                                    {"bf16", DType::bf16},
                                    {"f16", DType::f16},
                                    {"i32", DType::i32},
                                    {"i64", DType::i64},
                                    {"u8", DType::u8},
                                    {"bool", DType::boolean},
                                    {"i8", DType::i8},
                                    {"i16", DType::i16}});
}
void read_value(const Place& place, Device& result) {
  if (nb::try_cast(nb::handle(place.value), result)) return;
  std::string_view name;
  read_value(place, name);
  constexpr std::string_view gpu = "cuda";
  if (name == "cpu") {
    result = cpu;
  } else if (name == gpu) {
    result = {Device::Type::cuda, 0};
  } else if (name.size() == 6 && name.starts_with("cuda:") && name[5] >= '0' && name[5] <= '9') {
    result = {Device::Type::cuda, static_cast<std::uint8_t>(name[5] - '0')};
  } else {
    refuse(place, "'cpu', 'cuda' or 'cuda:0' to 'cuda:9'");
  }
}
void read_value(const Place& place, Tensor& result) {
  const Tensor* tensor = as_tensor(place.value);
  if (!tensor) refuse(place, "a Tensor");
  result = *tensor;
}
void read_value(const Place& place, Generator*& result) {
  if (!nb::try_cast(nb::handle(place.value), result) || !result) refuse(place, "a reel.Generator");
}
void read_value(const Place& place, PadWidth& result) {
  Shape numbers = read_numbers(place, "pairs of integers");
  if (numbers.rank() != 2) refuse(place, "pairs of integers");
  result = {numbers[0], numbers[1]};
}
void read_value(const Place& place, std::vector<std::int64_t>& result) {
  for (const nb::object& item : read_items(place, "a list of integers"))
    result.push_back(read_integer(Place{item.ptr(), place.function, place.name, place.where}, "a list of integers"));
}
void read_value(const Place& place, nn::Initialiser& result) {
  if (!PyCallable_Check(place.value)) refuse(place, "a function of a shape that returns a Tensor");
  // A module may drop it where this thread does not hold the lock.
  auto drop = [](PyObject* function) {
    nb::gil_scoped_acquire locked;
    Py_DECREF(function);
  };
  std::shared_ptr<PyObject> function(Py_NewRef(place.value), drop);
  result = [function, place](const Shape& shape, const RandomOptions&) {
    nb::gil_scoped_acquire locked;
    nb::list sizes;
    for (std::int64_t size : shape) sizes.append(size);
    nb::object made = nb::handle(function.get())(nb::tuple(sizes));
    Tensor tensor;
    read_value(Place{made.ptr(), place.function, place.name, place.where}, tensor);
    return tensor;
  };
}

std::vector<nb::object> read_items(const Place& place, std::string_view wanted) {
  if (!is_sequence(place.value)) refuse(place, wanted);
  std::vector<nb::object> items;
  Py_ssize_t count = PySequence_Fast_GET_SIZE(place.value);
  for (Py_ssize_t i = 0; i < count && i < PySequence_Fast_GET_SIZE(place.value); ++i)
    items.push_back(nb::borrow(PySequence_Fast_GET_ITEM(place.value, i)));
  return items;
}

RecordReader::RecordReader(const Place& place, std::size_t least, std::size_t most)
    : place_(place), items_(read_items(place, "a tuple of tensors")) {
  if (items_.size() < least || items_.size() > most)
    refuse(place,
           "a tuple of " + (least == most ? "" : std::to_string(least) + " to ") + std::to_string(most) + " tensors");
}

Tensor RecordReader::tensor(std::size_t i) const {
  Tensor result;
  if (i < items_.size() && !items_[i].is_none())
    read_value(Place{items_[i].ptr(), place_.function, place_.name, place_.where}, result);
  return result;
}

const Tensor& Values::tensor(int i) const {
  const Tensor* tensor = as_tensor(values_[i]);
  if (!tensor) refuse(place(i), "a Tensor");
  if (tensor->defined()) elements_ += tensor->numel();
  return *tensor;
}

PyObject* to_python(Tensor tensor) {
  if (!tensor.defined()) Py_RETURN_NONE;
  nb::object made = nb::inst_alloc(nb::handle(reinterpret_cast<PyObject*>(tensor_type)));
  std::construct_at(nb::inst_ptr<Tensor>(made), std::move(tensor));
  nb::inst_mark_ready(made);
  return made.release().ptr();
}

PyObject* to_python(const std::vector<Tensor>& tensors) {
  nb::list list;
  for (const Tensor& tensor : tensors) list.append(nb::steal(to_python(tensor)));
  return list.release().ptr();
}

PyTypeObject* make_record_type(const char* name, std::initializer_list<const char*> fields) {
  std::vector<PyStructSequence_Field> list;
  for (const char* field : fields) list.push_back({field, nullptr});
  list.push_back({nullptr, nullptr});
  PyStructSequence_Desc description{name, nullptr, list.data(), static_cast<int>(fields.size())};
  PyTypeObject* type = PyStructSequence_NewType(&description);
  if (!type) throw nb::python_error();
  return type;
}

PyObject* make_record(PyTypeObject* type, std::initializer_list<Tensor> items) {
  nb::object record = nb::steal(PyStructSequence_New(type));
  if (!record.is_valid()) throw nb::python_error();
  Py_ssize_t i = 0;
  for (const Tensor& item : items) PyStructSequence_SetItem(record.ptr(), i++, to_python(item));
  return record.release().ptr();
}

}  // namespace reel::python
