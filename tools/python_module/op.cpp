#include "op.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include <reel/python.h>

namespace nb = nanobind;

namespace reel::python {
namespace {

// A function and its overloads. It lives as long as the interpreter.
struct Op {
  std::string name, documentation;
  std::vector<const Overload*> overloads;
  std::vector<std::vector<PyObject*>> names;  // interned, of each overload
  PyMethodDef method;
};

// The arguments that Python passes: those by position, then those with a name.
struct Arguments {
  PyObject* const* values;
  Py_ssize_t positional;
  PyObject* names;  // a tuple; null: none
};

int index_of(const std::vector<PyObject*>& names, PyObject* name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<int>(i);
  // Names of calls are interned, unless they come from a dictionary.
  for (std::size_t i = 0; i < names.size(); ++i)
    if (PyUnicode_Compare(names[i], name) == 0) return static_cast<int>(i);
  return -1;
}

// Assigns the arguments to the parameters of an overload; false if their number or names do not fit.
bool assign(const Overload& overload, const std::vector<PyObject*>& names, const Arguments& given, PyObject** values) {
  if (given.positional > overload.positional) return false;
  for (Py_ssize_t i = 0; i < given.positional; ++i) values[i] = given.values[i];
  Py_ssize_t named = given.names ? PyTuple_GET_SIZE(given.names) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    int parameter = index_of(names, PyTuple_GET_ITEM(given.names, i));
    if (parameter < 0 || values[parameter]) return false;
    values[parameter] = given.values[given.positional + i];
  }
  for (int i = 0; i < overload.required; ++i)
    if (!values[i]) return false;
  return true;
}

bool is_kind(PyObject* value, char kind) {
  bool is_list = PyList_Check(value) || PyTuple_Check(value);
  switch (kind) {
    case 't': return as_tensor(value) || is_number(value);
    case 'i': return !PyBool_Check(value) && PyIndex_Check(value) && !as_tensor(value);
    case 'd': return !as_tensor(value) && is_number(value);
    case 'b': return PyBool_Check(value);
    case 's': return is_list || (PyIndex_Check(value) && !as_tensor(value));
    case 'l':
    case 'r': return is_list;
    case 'y':
      return nb::isinstance<DType>(nb::handle(value)) ||
             (PyUnicode_Check(value) && !PyUnicode_Tailmatch(value, nb::str("c").ptr(), 0, 1, -1));
    case 'v': return nb::isinstance<Device>(nb::handle(value)) || PyUnicode_Check(value);
    default: return true;
  }
}

bool fits(const Overload& overload, PyObject* const* values) {
  for (int i = 0; i < overload.positional; ++i)
    if (values[i] && (values[i] != Py_None || i < overload.required) && !is_kind(values[i], overload.kinds[i]))
      return false;
  return true;
}

std::string signature(const Overload& overload) {
  std::string text = std::string(overload.function) + "(";
  for (int i = 0; i < Overload::most_parameters && overload.names[i]; ++i) {
    if (i > 0) text += ", ";
    if (i == overload.positional) text += "*, ";
    text += overload.names[i];
    if (i >= overload.required) text += "=…";
  }
  return text + ")";
}

[[noreturn]] void refuse_call(const Op& op, const Arguments& given, Location where) {
  std::string text = op.name + ": called with (";
  Py_ssize_t named = given.names ? PyTuple_GET_SIZE(given.names) : 0;
  for (Py_ssize_t i = 0; i < given.positional + named; ++i) {
    if (i > 0) text += ", ";
    if (i >= given.positional)
      text += nb::cast<std::string>(nb::handle(PyTuple_GET_ITEM(given.names, i - given.positional))) + "=";
    text += Py_TYPE(given.values[i])->tp_name;
  }
  text += "), but is ";
  for (std::size_t i = 0; i < op.overloads.size(); ++i) text += (i > 0 ? " or " : "") + signature(*op.overloads[i]);
  throw ArgumentError(text, where);
}

PyObject* call_op(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  const Op& op = *static_cast<const Op*>(PyCapsule_GetPointer(self, nullptr));
  try {
    Location where = caller_location();
    Arguments given{values, count, names};
    for (std::size_t i = 0; i < op.overloads.size(); ++i) {
      const Overload& overload = *op.overloads[i];
      PyObject* assigned[Overload::most_parameters] = {};
      if (!assign(overload, op.names[i], given, assigned)) continue;
      if (op.overloads.size() > 1 && !fits(overload, assigned)) continue;
      return overload.call(Values(overload.function, overload.names, assigned, where), where);
    }
    refuse_call(op, given, where);
  } catch (...) {
    return raise_current();
  }
}

PyCFunction as_function(PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

void add_overload(std::map<std::string, Op*>& ops, const Overload& overload) {
  Op*& op = ops[overload.function];
  if (!op) {
    op = std::make_unique<Op>().release();
    op->name = overload.function;
  }
  op->overloads.push_back(&overload);
  std::vector<PyObject*>& names = op->names.emplace_back();
  for (int i = 0; i < Overload::most_parameters && overload.names[i]; ++i)
    names.push_back(PyUnicode_InternFromString(overload.names[i]));
  if (!op->documentation.empty()) op->documentation += "\n";
  op->documentation += signature(overload);
}

}  // namespace

void add_ops(nb::module_& m) {
  std::map<std::string, Op*> ops;
  for (std::span<const Overload> table : {overloads_0(), overloads_1(), overloads_2(), overloads_3()})
    for (const Overload& overload : table) add_overload(ops, overload);
  nb::handle type(reinterpret_cast<PyObject*>(tensor_type));
  nb::list list;
  for (auto& [name, op] : ops) {
    op->method = {op->name.c_str(), as_function(call_op), METH_FASTCALL | METH_KEYWORDS, op->documentation.c_str()};
    nb::object self = nb::steal(PyCapsule_New(op, nullptr, nullptr));
    nb::object function = nb::steal(PyCFunction_NewEx(&op->method, self.ptr(), nb::str("reel").ptr()));
    if (!function.is_valid()) throw nb::python_error();
    m.attr(name.c_str()) = function;
    list.append(name);
    bool on_operand = std::ranges::any_of(op->overloads, [](const Overload* one) { return one->kinds[0] == 't'; });
    if (on_operand && !nb::hasattr(type, name.c_str()))
      type.attr(name.c_str()) = nb::steal(PyInstanceMethod_New(function.ptr()));
  }
  m.attr("op_names") = nb::tuple(list);
}

}  // namespace reel::python
