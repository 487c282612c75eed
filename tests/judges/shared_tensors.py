"""Tensors of a library of reel's in Python, through DLPack; NumPy and PyTorch take them by `from_dlpack`."""

import ctypes
import math

NAMES = {False: b"dltensor", True: b"dltensor_versioned"}
# In the order of reel's DType, and as DLPack names kinds of elements: (code, bits).
DTYPES = {"float32": (2, 32), "float64": (2, 64), "bfloat16": (4, 16), "float16": (2, 16), "int32": (0, 32),
          "int64": (0, 64), "uint8": (1, 8), "bool": (6, 8), "int8": (0, 8), "int16": (0, 16)}

_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
# A capsule keeps the address of its name only.
_used = {versioned: b"used_" + name for versioned, name in NAMES.items()}


class Library:
    """The functions of the library, with the types of their arguments."""

    def __init__(self, path):
        self.functions = ctypes.CDLL(path)
        handle, integers = ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64)
        for name, result, arguments in (
                ("make", handle, [ctypes.c_int, integers, ctypes.c_int]), ("transposed", handle, [handle]),
                ("flipped", handle, [handle]), ("address", handle, [handle]), ("export", handle, [handle, ctypes.c_int]),
                ("import", handle, [handle, ctypes.c_int]),
                ("values", ctypes.c_bool, [handle, ctypes.POINTER(ctypes.c_double), ctypes.c_int64]),
                ("increase", ctypes.c_bool, [handle]), ("drop", None, [handle]),
                ("live_tensors", ctypes.c_int64, [])):
            function = getattr(self.functions, f"judge_{name}")
            function.restype, function.argtypes = result, arguments

    def call(self, name, *arguments):
        return getattr(self.functions, f"judge_{name}")(*arguments)

    def make(self, dtype, shape):
        handle = self.call("make", list(DTYPES).index(dtype), (ctypes.c_int64 * len(shape))(*shape), len(shape))
        return SharedTensor(self, handle)

    def take(self, exporter, versioned=False):
        """A tensor of reel over another library's elements."""
        capsule = exporter.__dlpack__(max_version=(1, 0)) if versioned else exporter.__dlpack__()
        handle = self.call("import", _pointer(capsule, NAMES[versioned]), versioned)
        if handle:
            _rename(capsule, _used[versioned])
        return SharedTensor(self, handle) if handle else None

    def live(self):
        return self.call("live_tensors")


class SharedTensor:
    """A tensor of reel, until `drop`."""

    def __init__(self, reel, handle, versioned=False):
        self.reel, self.handle, self.versioned = reel, handle, versioned

    def changed(self, name):
        return SharedTensor(self.reel, self.reel.call(name, self.handle))

    def address(self):
        return self.reel.call("address", self.handle)

    def values(self, shape):
        count = math.prod(shape)
        numbers = (ctypes.c_double * count)()
        assert self.reel.call("values", self.handle, numbers, count)
        return list(numbers)

    def increase(self):
        assert self.reel.call("increase", self.handle)

    def drop(self):
        self.reel.call("drop", self.handle)
        self.handle = None

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return _new(self.reel.call("export", self.handle, self.versioned), NAMES[self.versioned], None)

    def __dlpack_device__(self):
        return (1, 0)
