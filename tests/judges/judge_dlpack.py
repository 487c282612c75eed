#!/usr/bin/env python3
"""Judges DLPack by NumPy: both sides have one address, see each other's writes, and release what they hold.

Usage: judge_dlpack.py LIBRARY
"""

import gc
import sys

import numpy

from shared_tensors import DTYPES, Library

SHAPES = [(), (5,), (0, 3), (2, 3), (2, 1, 4)]


def check_from_reel(library, dtype, shape, versioned):
    made = library.make(dtype, shape)
    made.versioned = versioned
    array = numpy.from_dlpack(made)
    wanted = numpy.arange(numpy.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    assert array.shape == shape and array.dtype == wanted.dtype and (array == wanted).all(), (array, wanted)
    assert wanted.size == 0 or array.ctypes.data == made.address()
    if wanted.size and dtype != "bool":
        made.increase()
        assert (array == wanted + 1).all()
    made.drop()
    assert wanted.size == 0 or dtype == "bool" or (array == wanted + 1).all()


def check_to_reel(library, dtype, shape, versioned):
    array = numpy.arange(numpy.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    taken = library.take(array, versioned)
    assert array.size == 0 or taken.address() == array.ctypes.data
    assert taken.values(shape) == array.astype("float64").ravel().tolist()
    references = sys.getrefcount(array)
    if array.size and dtype != "bool":
        before = array.copy()
        taken.increase()
        assert (array == before + 1).all()
    taken.drop()
    assert sys.getrefcount(array) == references - 1


def check_views(library):
    made = library.make("float32", (3, 4))
    wanted = numpy.arange(12, dtype="float32").reshape(3, 4)
    for name, view in (("transposed", wanted.T), ("flipped", wanted[::-1])):
        changed = made.changed(name)
        array = numpy.from_dlpack(changed)
        assert array.strides == view.strides and (array == view).all()
        assert array.ctypes.data == changed.address()
        changed.drop()
    for view in (wanted.T, wanted[::-1, 1::2], wanted[1:1]):
        taken = library.take(view)
        assert taken.values(view.shape) == view.ravel().tolist()
        taken.drop()
    made.drop()


def main():
    library = Library(sys.argv[1])
    live = library.live()
    for dtype in set(DTYPES) - {"bfloat16"}:  # NumPy has none
        for shape in SHAPES:
            for versioned in (False, True):
                check_from_reel(library, dtype, shape, versioned)
                check_to_reel(library, dtype, shape, versioned)
    check_views(library)
    array = numpy.arange(3.0)
    array.flags.writeable = False
    assert library.take(array, True) is None, "a read-only array was taken"
    assert library.take(numpy.arange(3, dtype="uint16")) is None, "an array of uint16 was taken"
    gc.collect()
    assert library.live() == live, "tensors are left"


if __name__ == "__main__":
    main()
