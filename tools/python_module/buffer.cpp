#include <reel/io/dlpack.h>
#include <reel/python.h>

#include <memory>
#include <string_view>

#include "parts.h"
#include "values.h"

namespace nb = nanobind;

namespace reel::python {
namespace {

// Data of a tensor's buffer that live as long as its consumer: the tensor's elements, and strides in bytes.
struct Exported {
  io::DLPackTensor tensor;
  Py_ssize_t shape[max_rank], strides[max_rank];
};

// Source: Python's module struct.
const char* format_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f";
    case DType::f64: return "d";
    case DType::f16: return "e";
    case DType::i32: return "i";
    case DType::i64: return "q";
    case DType::u8: return "B";
    case DType::i8: return "b";
    case DType::i16: return "h";
    case DType::boolean: return "?";
    default: return nullptr;
  }
}

// A buffer of another object while a tensor refers to it.
struct Imported {
  io::DLManagedTensor own = {};
  Py_buffer view = {};
  std::int64_t shape[max_rank], strides[max_rank];

  ~Imported() {
    if (!view.obj || !Py_IsInitialized()) return;
    nb::gil_scoped_acquire locked;
    PyBuffer_Release(&view);
  }
  static void release(io::DLManagedTensor* managed) {
    std::unique_ptr<Imported>(static_cast<Imported*>(managed->manager_ctx));
  }
};

// The element type of a format of native byte order; long has 64 bits here.
bool read_format(std::string_view format, Py_ssize_t bytes, io::DLDataType& type) {
  if (!format.empty() && (format[0] == '@' || format[0] == '=' || format[0] == '<')) format.remove_prefix(1);
  if (format.size() != 1) return false;
  std::uint8_t code;
  switch (format[0]) {
    case 'f':
    case 'd':
    case 'e': code = 2; break;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q': code = 0; break;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q': code = 1; break;
    case '?': code = 6; break;
    default: return false;
  }
  type = {code, static_cast<std::uint8_t>(8 * bytes), 1};
  return true;
}

int fill_view(PyObject* self, Py_buffer* view, int flags) {
  const Tensor& x = *nb::inst_ptr<Tensor>(self);
  Location where = caller_location();
  if (x.device() != cpu) throw nb::buffer_error("a tensor on a GPU has no buffer: call to(\"cpu\") first");
  const char* format = format_of(x.dtype());
  if (!format)
    throw nb::buffer_error(
        "a tensor of bf16 has no buffer, since no format of Python means bf16: call to(\"f32\") first");
  if (!(flags & PyBUF_STRIDES) && !x.is_contiguous())
    throw nb::buffer_error("the tensor is not contiguous: call contiguous() first");
  if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && x.rank() > 1)
    throw nb::buffer_error("the tensor is not in column-major order");
  if ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS && !x.is_contiguous())
    throw nb::buffer_error("the tensor is not contiguous: call contiguous() first");
  auto exported = std::make_unique<Exported>();
  exported->tensor = io::to_dlpack(x, where);
  const io::DLTensor& tensor = exported->tensor->dl_tensor;
  auto bytes = static_cast<Py_ssize_t>(size_of(x.dtype()));
  Shape shape = x.shape(), strides = x.strides();
  for (int axis = 0; axis < x.rank(); ++axis) {
    exported->shape[axis] = shape[axis];
    exported->strides[axis] = strides[axis] * bytes;
  }
  view->buf = static_cast<char*>(tensor.data) + tensor.byte_offset;
  view->len = x.numel() * bytes;
  view->itemsize = bytes;
  view->readonly = 0;
  view->ndim = x.rank();
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format) : nullptr;
  view->shape = flags & PyBUF_ND ? exported->shape : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? exported->strides : nullptr;
  view->suboffsets = nullptr;
  view->internal = exported.release();
  view->obj = Py_NewRef(self);
  return 0;
}

}  // namespace

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  try {
    return fill_view(self, view, flags);
  } catch (...) {
    raise_current();
  }
  return -1;
}

void release_buffer(PyObject*, Py_buffer* view) noexcept {
  std::unique_ptr<Exported>(static_cast<Exported*>(view->internal));
}

Tensor from_buffer(nb::handle object, Location where, bool takes_read_only) {
  auto imported = std::make_unique<Imported>();
  if (!PyObject_CheckBuffer(object.ptr()))
    refuse(Place{object.ptr(), "from_buffer", "x", where}, "an object with the buffer protocol");
  if (PyObject_GetBuffer(object.ptr(), &imported->view, PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0) throw nb::python_error();
  Py_buffer& view = imported->view;
  if (view.readonly && !takes_read_only)
    throw Error("from_buffer: the memory is read-only, but operations in place could write to it; tensor(x) copies it",
                where);
  io::DLDataType type;
  std::string_view format = view.format ? view.format : "B";
  if (!read_format(format, view.itemsize, type))
    throw DTypeError("from_buffer: elements of the format '" + std::string(format) + "' have no dtype here", where);
  if (view.ndim > max_rank)
    throw ShapeError("from_buffer: the buffer has " + std::to_string(view.ndim) + " axes, but a tensor has at most 8",
                     where);
  for (int axis = 0; axis < view.ndim; ++axis) {
    imported->shape[axis] = view.shape[axis];
    if (!view.strides) continue;
    if (view.strides[axis] % view.itemsize != 0)
      throw ShapeError("from_buffer: a stride is no multiple of the size of an element; tensor(x) copies it", where);
    imported->strides[axis] = view.strides[axis] / view.itemsize;
  }
  // The buffers of ctypes have no strides, although they were asked for.
  std::int64_t* strides = view.strides ? imported->strides : nullptr;
  imported->own.dl_tensor = {view.buf, {1, 0}, view.ndim, type, imported->shape, strides, 0};
  imported->own.manager_ctx = imported.get();
  imported->own.deleter = Imported::release;
  Tensor made = io::from_dlpack(&imported->own, where);
  static_cast<void>(imported.release());  // the tensor's
  return made;
}

}  // namespace reel::python
