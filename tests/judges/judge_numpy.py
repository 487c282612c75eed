#!/usr/bin/env python3
"""Judges npy and npz files by NumPy: files of either side load in the other, with every dtype, order and many shapes.

Usage: judge_numpy.py CONVERT
"""

import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy
import safetensors

from converter import SHAPES, convert

NAMES = {"float32": "F32", "float64": "F64", "bfloat16": "BF16", "float16": "F16", "int32": "I32", "int64": "I64",
         "uint8": "U8", "int8": "I8", "int16": "I16", "bool": "BOOL"}


def random_arrays(seed):
    """Arrays of random bits by name."""
    generator, arrays = numpy.random.default_rng(seed), {}
    for dtype in NAMES:
        kind = numpy.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
        for shape in SHAPES:
            count = int(numpy.prod(shape))
            data = generator.integers(0, 2 if dtype == "bool" else 256, count * kind.itemsize, numpy.uint8)
            arrays[f"{dtype} {shape}"] = data.view(kind).reshape(shape)
    return arrays


def is_same(found, wanted):
    # NumPy's files know bfloat16 as two bytes without a meaning.
    if wanted.dtype == ml_dtypes.bfloat16 and found.dtype == numpy.dtype("V2"):
        found = found.view(ml_dtypes.bfloat16)
    return found.dtype == wanted.dtype and found.shape == wanted.shape and found.tobytes() == wanted.tobytes()


def read_safetensors(path):
    found = {}
    for name, one in safetensors.deserialize(path.read_bytes()):
        dtype = next(dtype for dtype, short in NAMES.items() if short == one["dtype"])
        kind = numpy.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
        found[name] = numpy.frombuffer(bytes(one["data"]), kind).reshape(one["shape"])
    return found


def variants(array):
    """The same numbers in other orders of axes and bytes."""
    yield array
    if array.ndim > 1:
        yield numpy.asfortranarray(array)
    if array.dtype.itemsize > 1 and array.dtype != ml_dtypes.bfloat16:
        yield array.astype(array.dtype.newbyteorder(">"))


def judge_arrays(program, folder, arrays):
    cases = [(name, array, variant) for name, array in arrays.items() for variant in variants(array)]
    lines = []
    for i, (_, _, variant) in enumerate(cases):
        numpy.save(folder / f"{i}.npy", variant)
        lines += [(folder / f"{i}.npy", folder / f"{i}.safetensors"), (folder / f"{i}.npy", folder / f"{i}_again.npy")]
    problems = [said for said in convert(program, lines) if said != "ok"]
    for i, (name, array, _) in enumerate(cases):
        if not problems and not is_same(read_safetensors(folder / f"{i}.safetensors")["array"], array):
            problems.append(f"{name} (case {i}) is read with other values")
        if not problems and not is_same(numpy.load(folder / f"{i}_again.npy"), array):
            problems.append(f"{name} (case {i}) is written with other values")
    return problems


def judge_archives(program, folder, arrays):
    numpy.savez(folder / "stored.npz", **arrays)
    numpy.savez_compressed(folder / "compressed.npz", **arrays)
    lines = [(folder / "stored.npz", folder / "ours.npz"), (folder / "compressed.npz", folder / "our_small.npz"),
             (folder / "compressed.npz", folder / "read.safetensors")]
    problems = [said for said in convert(program, lines) if said != "ok"]
    if problems:
        return problems
    found = {"read.safetensors": read_safetensors(folder / "read.safetensors")}
    found |= {name: dict(numpy.load(folder / name)) for name in ("ours.npz", "our_small.npz")}
    for where, theirs in found.items():
        if theirs.keys() != arrays.keys():
            problems.append(f"{where} has other names: {theirs.keys() ^ arrays.keys()}")
        problems += [f"{where} has other values of {name}" for name in arrays.keys() & theirs.keys()
                     if not is_same(theirs[name], arrays[name])]
    return problems


def judge_refusals(program, folder):
    refused = {"complex": numpy.ones(2, complex), "text": numpy.array(["a"]), "uint64": numpy.ones(2, numpy.uint64),
               "objects": numpy.array([None, {}], dtype=object), "date": numpy.array(["2020-01-01"], "datetime64[D]"),
               "records": numpy.zeros(2, [("a", "f4")])}
    for name, array in refused.items():
        numpy.save(folder / f"{name}.npy", array, allow_pickle=True)
    said = convert(program, [folder / f"{name}.npy" for name in refused])
    return [f"{name} is read" for name, line in zip(refused, said, strict=True) if not line.startswith("refused: ")]


def main():
    program, arrays = sys.argv[1], random_arrays(5)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        problems = judge_arrays(program, folder, arrays) + judge_archives(program, folder, arrays)
        problems += judge_refusals(program, folder)
    sys.exit("\n".join(problems[:20]) or 0)


if __name__ == "__main__":
    main()
