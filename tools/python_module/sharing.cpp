#include <reel/io/dlpack.h>
#include <reel/python.h>

#include <memory>

#include "parts.h"
#include "values.h"

namespace nb = nanobind;

namespace reel::python {
namespace {

constexpr const char* plain_name = "dltensor";
constexpr const char* versioned_name = "dltensor_versioned";

// Releases a tensor that no one has taken from its capsule: a taker renames the capsule.
template <class Managed>
void release_capsule(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed->deleter) managed->deleter(managed);
}
void release_plain(PyObject* capsule) { release_capsule<io::DLManagedTensor>(capsule, plain_name); }
void release_versioned(PyObject* capsule) { release_capsule<io::DLManagedTensorVersioned>(capsule, versioned_name); }

template <class Owner>
nb::object capsule_of(Owner owner, const char* name, PyCapsule_Destructor release) {
  nb::object capsule = nb::steal(PyCapsule_New(owner.get(), name, release));
  if (!capsule.is_valid()) throw nb::python_error();
  owner.release();
  return capsule;
}

std::pair<int, int> dlpack_device(const Tensor& x) {
  Device device = x.device();
  return device == cpu ? std::pair(1, 0) : std::pair(2, static_cast<int>(device.index));
}

// Source: Python array API standard 2023.12, array.__dlpack__.
nb::object to_dlpack(const Tensor& self, const nb::object& stream, const nb::object& max_version,
                     const nb::object& dl_device, const nb::object& copied) {
  Location where = caller_location();
  if (self.device() == cpu && !stream.is_none())
    throw ArgumentError("__dlpack__: a tensor on the CPU has no stream, but stream is given", where);
  if (!dl_device.is_none()) {
    auto [type, index] = dlpack_device(self);
    if (!dl_device.equal(nb::make_tuple(type, index)))
      throw nb::buffer_error("__dlpack__: the tensor is on another device; call to() first");
  }
  Tensor x = !copied.is_none() && nb::cast<bool>(copied) ? copy(Arg(stop_gradient(Arg(self, where)), where)) : self;
  bool versioned = !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
  if (versioned) return capsule_of(io::to_dlpack_versioned(x, false, where), versioned_name, release_versioned);
  return capsule_of(io::to_dlpack(x, where), plain_name, release_plain);
}

// A tensor of another library whose deleter runs with Python's global lock: a producer may release Python objects in it,
// and the last tensor over the elements may be dropped where the lock is released.
template <class Managed>
struct Locked {
  Managed own;
  Managed* taken;

  static void release(Managed* managed) {
    std::unique_ptr<Locked> self(static_cast<Locked*>(managed->manager_ctx));
    if (!Py_IsInitialized()) return;  // as the program ends, its memory goes without it
    nb::gil_scoped_acquire locked;
    if (self->taken->deleter) self->taken->deleter(self->taken);
  }
};

template <class Managed>
Tensor take(PyObject* capsule, const char* name, const char* used_name, Location where) {
  auto* taken = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (!taken) throw nb::python_error();
  auto locked = std::make_unique<Locked<Managed>>(Locked<Managed>{*taken, taken});
  locked->own.manager_ctx = locked.get();
  locked->own.deleter = Locked<Managed>::release;
  Tensor made = io::from_dlpack(&locked->own, where);
  locked.release();
  PyCapsule_SetName(capsule, used_name);
  return made;
}

nb::object capsule_from(const nb::object& source) {
  nb::object method = source.attr("__dlpack__");
  try {
    return method(nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error& failed) {
    if (!failed.matches(PyExc_TypeError)) throw;  // producers of before 2023 know no version
  }
  return method();
}

Tensor from_dlpack(const nb::object& source) {
  Location where = caller_location();
  nb::object capsule = source;
  if (!PyCapsule_CheckExact(source.ptr())) {
    if (!nb::hasattr(source, "__dlpack__"))
      refuse(Place{source.ptr(), "from_dlpack", "x", where}, "an object with __dlpack__, such as an array of NumPy");
    capsule = capsule_from(source);
  }
  if (PyCapsule_IsValid(capsule.ptr(), versioned_name))
    return take<io::DLManagedTensorVersioned>(capsule.ptr(), versioned_name, "used_dltensor_versioned", where);
  if (PyCapsule_IsValid(capsule.ptr(), plain_name))
    return take<io::DLManagedTensor>(capsule.ptr(), plain_name, "used_dltensor", where);
  throw ArgumentError("from_dlpack: the capsule holds no tensor, or one that was taken before", where);
}

nb::object to_numpy(const nb::object& self) { return nb::module_::import_("numpy").attr("asarray")(self); }

}  // namespace

void add_sharing(nb::module_& m, nb::class_<Tensor>& tensor) {
  tensor.def("__dlpack__", to_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
             nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none());
  tensor.def("__dlpack_device__", [](const Tensor& self) {
    auto [type, index] = dlpack_device(self);
    return nb::make_tuple(type, index);
  });
  tensor.def("numpy", to_numpy, "An array of NumPy over the elements.");
  m.def("from_dlpack", from_dlpack, nb::arg("x"), "A tensor over the elements of another library's, without a copy.");
  m.def(
      "from_buffer", [](const nb::object& x) { return from_buffer(x, caller_location()); }, nb::arg("x"),
      "A tensor over the memory of an object with the buffer protocol, without a copy.");
}

}  // namespace reel::python
