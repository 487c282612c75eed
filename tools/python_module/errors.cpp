#include "errors.h"

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include <reel/io/weights.h>

namespace nb = nanobind;

namespace reel::python {
namespace {

// The exception classes, one for each of reel's; they live as long as the interpreter.
PyObject *error, *argument_error, *shape_error, *dtype_error, *index_error, *device_error, *tape_error, *memory_error,
    *file_error, *misfit_error, *internal_error;

PyObject* make(nb::module_& m, const char* name, PyObject* base, PyObject* second = nullptr) {
  nb::object bases = second ? nb::object(nb::make_tuple(nb::handle(base), nb::handle(second))) : nb::borrow(base);
  PyObject* type = PyErr_NewException(("reel." + std::string(name)).c_str(), bases.ptr(), nullptr);
  if (!type) throw nb::python_error();
  m.attr(name) = nb::handle(type);
  return type;
}

void raise(PyObject* type, const Error& failed) noexcept {
  try {
    nb::object made = nb::handle(type)(failed.what());
    Location where = failed.where();
    made.attr("file") = where.file ? nb::object(nb::str(where.file)) : nb::none();
    made.attr("line") = where.line;
    PyErr_SetObject(type, made.ptr());
  } catch (nb::python_error& failure) {
    failure.restore();
  }
}

// From the derived classes to the base classes.
void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const ArgumentError& failed) {
    raise(argument_error, failed);
  } catch (const ShapeError& failed) {
    raise(shape_error, failed);
  } catch (const DTypeError& failed) {
    raise(dtype_error, failed);
  } catch (const IndexError& failed) {
    raise(index_error, failed);
  } catch (const DeviceError& failed) {
    raise(device_error, failed);
  } catch (const TapeError& failed) {
    raise(tape_error, failed);
  } catch (const MemoryError& failed) {
    raise(memory_error, failed);
  } catch (const io::FileError& failed) {
    raise(file_error, failed);
  } catch (const io::MisfitError& failed) {
    raise(misfit_error, failed);
  } catch (const Error& failed) {
    raise(error, failed);
  } catch (const InternalError& failed) {
    PyErr_SetString(internal_error, failed.what());
  }
}

}  // namespace

void add_errors(nb::module_& m) {
  error = make(m, "Error", PyExc_RuntimeError);
  argument_error = make(m, "ArgumentError", error, PyExc_TypeError);
  shape_error = make(m, "ShapeError", error, PyExc_ValueError);
  dtype_error = make(m, "DTypeError", error, PyExc_TypeError);
  index_error = make(m, "IndexError", error, PyExc_IndexError);
  device_error = make(m, "DeviceError", error);
  tape_error = make(m, "TapeError", error);
  memory_error = make(m, "MemoryError", error, PyExc_MemoryError);
  file_error = make(m, "FileError", error, PyExc_OSError);
  misfit_error = make(m, "MisfitError", error, PyExc_ValueError);
  internal_error = make(m, "InternalError", error);
  nb::register_exception_translator(translate);
}

PyObject* raise_current() noexcept {
  try {
    throw;
  } catch (nb::python_error& failed) {
    failed.restore();
  } catch (const nb::builtin_exception& failed) {
    bool of_index = failed.type() == nb::exception_type::index_error;
    PyErr_SetString(of_index ? PyExc_IndexError : PyExc_BufferError, failed.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const Error&) {
    translate(std::current_exception(), nullptr);
  } catch (const InternalError&) {
    translate(std::current_exception(), nullptr);
  } catch (const std::exception& failed) {
    PyErr_SetString(PyExc_RuntimeError, failed.what());
  }
  return nullptr;
}

}  // namespace reel::python
