#pragma once

#include <nanobind/nanobind.h>

#include <reel/tensor.h>

namespace reel::python {

// The contents of the module, one function for each concept.

/// Adds DType, Device and Generator.
void add_types(nanobind::module_& m);
/// Adds the class Tensor, and sets `tensor_type`.
void add_tensor(nanobind::module_& m);
/// Adds from_dlpack, from_buffer, and the methods of Tensor by which other libraries share its elements.
void add_sharing(nanobind::module_& m, nanobind::class_<Tensor>& tensor);
/// Adds `tensor`, which copies lists and buffers.
void add_literals(nanobind::module_& m);
/// Adds Tape and NoRecord.
void add_tape(nanobind::module_& m);
/// Adds Module and the layers to the submodule nn.
void add_modules(nanobind::module_& nn);
/// Adds Optimiser and those derived from it to the submodule optim.
void add_optimisers(nanobind::module_& optim);
/// Adds save, load and load_into.
void add_files(nanobind::module_& m);

/// x[key]. Throws: IndexError, ShapeError, ArgumentError.
PyObject* get_item(PyObject* self, PyObject* key) noexcept;
/// x[key] = value.
int set_item(PyObject* self, PyObject* key, PyObject* value) noexcept;
/// The buffer protocol of Tensor.
int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept;
void release_buffer(PyObject* self, Py_buffer* view) noexcept;
/// A tensor over the memory of an object with the buffer protocol, which lives as long as the tensor. Memory that is
/// read-only must be meant to be copied only.
Tensor from_buffer(nanobind::handle object, Location where, bool takes_read_only = false);

}  // namespace reel::python
