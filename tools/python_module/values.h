#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <reel/nn/initialise.h>
#include <reel/ops.h>
#include <reel/ops/stop_gradient.h>

#include "errors.h"

namespace reel::python {

/// A Python argument, and what it is called in which function, for errors.
struct Place {
  PyObject* value;
  const char* function;
  const char* name;
  Location where;
};

/// Throws: ArgumentError, saying what the argument must be.
[[noreturn]] void refuse(const Place& place, std::string_view wanted);

/// The Python class Tensor; set when the module is imported.
inline PyTypeObject* tensor_type = nullptr;

/// The tensor of a Python object; null if it is none.
inline const Tensor* as_tensor(PyObject* value) {
  if (Py_TYPE(value) != tensor_type && !PyType_IsSubtype(Py_TYPE(value), tensor_type)) return nullptr;
  return nanobind::inst_ptr<Tensor>(value);
}
/// True for a plain number, which is Python's or, through __index__ or __float__, another library's scalar.
bool is_number(PyObject* value);
/// A tensor or a plain number as an operand. Throws: ArgumentError for other values.
Arg read_arg(const Place& place);

// Each reads one type. Throws: ArgumentError for values that are not of it.
void read_value(const Place& place, bool& result);
void read_value(const Place& place, int& result);
void read_value(const Place& place, std::int64_t& result);
void read_value(const Place& place, std::size_t& result);
void read_value(const Place& place, double& result);
void read_value(const Place& place, std::string_view& result);
void read_value(const Place& place, Axes& result);
void read_value(const Place& place, Shape& result);
void read_value(const Place& place, AxisNumbers& result);
void read_value(const Place& place, ConvolutionPadding& result);
void read_value(const Place& place, RowsAndColumns& result);
void read_value(const Place& place, DType& result);
void read_value(const Place& place, Device& result);
void read_value(const Place& place, Tensor& result);
void read_value(const Place& place, Generator*& result);
void read_value(const Place& place, PadWidth& result);
void read_value(const Place& place, std::vector<std::int64_t>& result);
void read_value(const Place& place, nn::Initialiser& result);

template <class T>
void read_value(const Place& place, std::optional<T>& result) {
  T value{};
  read_value(place, value);
  result = value;
}

/// The items of a list or tuple. Throws: ArgumentError for other values.
std::vector<nanobind::object> read_items(const Place& place, std::string_view wanted);

template <class T>
void read_value(const Place& place, std::vector<T>& result) {
  for (const nanobind::object& item : read_items(place, "a list")) {
    T value{};
    read_value(Place{item.ptr(), place.function, place.name, place.where}, value);
    result.push_back(std::move(value));
  }
}

/// The enumerator of a name. Throws: ArgumentError, with all names.
template <class Enum>
Enum read_name(const Place& place, std::initializer_list<std::pair<std::string_view, Enum>> names) {
  std::string wanted;
  std::string_view name;
  if (PyUnicode_Check(place.value)) read_value(place, name);
  for (const auto& [known, value] : names) {
    if (known == name) return value;
    wanted += (wanted.empty() ? "'" : ", '") + std::string(known) + "'";
  }
  refuse(place, "one of " + wanted);
}

/// Reads a struct of tensors from a tuple or list.
class RecordReader {
 public:
  /// Throws: ArgumentError unless the value has between `least` and `most` items.
  RecordReader(const Place& place, std::size_t least, std::size_t most);
  /// Item i; undefined where it is None or missing. Throws: ArgumentError if it is no Tensor.
  Tensor tensor(std::size_t i) const;
  /// Reads item i, unless it is None or missing. Throws: ArgumentError if it is no T.
  template <class T>
  void read(std::size_t i, std::optional<T>& result) const {
    if (i < items_.size() && !items_[i].is_none())
      read_value(Place{items_[i].ptr(), place_.function, place_.name, place_.where}, result);
  }

 private:
  Place place_;
  std::vector<nanobind::object> items_;
};

/// Calls on fewer elements than this keep Python's global lock: releasing it costs some 25 ns, and getting it back from
/// another thread up to 5 ms.
inline constexpr std::int64_t elements_without_lock = 1 << 14;

/// The arguments of a call, by the parameters of the overload; those that are not given are null.
class Values {
 public:
  Values(const char* function, const char* const* names, PyObject* const* values, Location where)
      : function_(function), names_(names), values_(values), where_(where) {}

  bool given(int i) const { return values_[i] && values_[i] != Py_None; }
  Place place(int i) const { return {values_[i], function_, names_[i], where_}; }

  Arg arg(int i) const {
    if (const Tensor* tensor = as_tensor(values_[i])) {
      if (tensor->defined()) elements_ += tensor->numel();
      return Arg(*tensor, where_);
    }
    return read_arg(place(i));
  }
  template <class Number>
  Arg arg_or(int i, Number number) const {
    return given(i) ? arg(i) : Arg(number, where_.file, where_.line);
  }
  const Tensor& tensor(int i) const;
  template <class T>
  T get(int i) const {
    T value = initial<T>();
    read_value(place(i), value);
    return value;
  }
  template <class T>
  T get_or(int i, T value) const {
    if (given(i)) read_value(place(i), value);
    return value;
  }
  template <class T>
  void read(int i, T& value) const {
    if (given(i)) read_value(place(i), value);
  }

  /// f(), without Python's global lock if it is called on many elements.
  template <class F>
  auto run(F f) const {
    if (elements_ < elements_without_lock) return f();
    nanobind::gil_scoped_release released;
    return f();
  }

 private:
  template <class T>
  static T initial() {
    if constexpr (std::is_constructible_v<T, int> && !std::is_default_constructible_v<T>)
      return T(0);
    else
      return T{};
  }

  const char* function_;
  const char* const* names_;
  PyObject* const* values_;
  Location where_;
  mutable std::int64_t elements_ = 0;
};

/// A Python Tensor with the given handle; None if that is undefined.
PyObject* to_python(Tensor tensor);
PyObject* to_python(const std::vector<Tensor>& tensors);
inline PyObject* to_python(bool value) { return PyBool_FromLong(value); }

/// A class of named tuples. Its name and those of its fields are string constants.
PyTypeObject* make_record_type(const char* name, std::initializer_list<const char*> fields);
PyObject* make_record(PyTypeObject* type, std::initializer_list<Tensor> items);

}  // namespace reel::python
