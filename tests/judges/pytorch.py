#!/usr/bin/env python3
"""Judges files of torch.save, files of tensors and DLPack by PyTorch.

Usage: pytorch.py CONVERT LIBRARY
"""

import gc
import math
import sys
import tempfile
from pathlib import Path

import torch

from converter import DTYPES, SHAPES, convert, differences
from shared_tensors import DTYPES as SHARED_DTYPES, Library

TORCH = {"F32": torch.float32, "F64": torch.float64, "BF16": torch.bfloat16, "F16": torch.float16, "I32": torch.int32,
         "I64": torch.int64, "U8": torch.uint8, "I8": torch.int8,
         "I16": torch.int16, "BOOL": torch.bool}


def random_tensors():
    """One tensor of each dtype and shape, with random bits; some are views."""
    tensors = {}
    for dtype, size in DTYPES.items():
        for shape in SHAPES:
            high = 2 if dtype == "BOOL" else 256
            data = torch.randint(0, high, (math.prod(shape) * size,), dtype=torch.uint8)
            x = data.view(TORCH[dtype]).reshape(shape)
            name = f"{dtype}.{'x'.join(map(str, shape)) or 'scalar'}"
            tensors[name] = x
            if len(shape) == 2:
                tensors[name + "_transposed"] = x.t()
                tensors[name + "_part"] = x[:, 1:]
                tensors[name + "_expanded"] = x[0, 0].expand(3, 2)
    return tensors


def described(tensors):
    # The bits of a tensor: a view of bytes cannot be made of one without elements or axes.
    def bits(x):
        return bytes(x.contiguous().reshape(-1).view(torch.uint8).tolist()) if x.numel() else b""
    names = {dtype: name for name, dtype in TORCH.items()}
    return {name: (names[x.dtype], tuple(x.shape), bits(x)) for name, x in tensors.items()}


def read_safetensors(path):
    """What a file of safetensors has: Debian has no package of that name."""
    import json
    import struct
    data = path.read_bytes()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:end])
    header.pop("__metadata__", None)
    return {name: (one["dtype"], tuple(one["shape"]), data[end + one["data_offsets"][0]:end + one["data_offsets"][1]])
            for name, one in header.items()}


def judge_files(program, folder):
    tensors = random_tensors()
    problems = []
    values = {"": tensors, "nested.": {"nested": tensors}, "0.": [tensors], "1.1.": (None, [0, tensors])}
    for protocol in (2, 4):
        for prefix, value in values.items():
            torch.save(value, folder / "theirs.pt", pickle_protocol=protocol)
            lines = convert(program, [(folder / "theirs.pt", folder / "ours.safetensors")])
            if lines != ["ok"]:
                problems += lines
                continue
            wanted = {prefix + name: found for name, found in described(tensors).items()}
            problems += differences(wanted, read_safetensors(folder / "ours.safetensors"))
    for value in (torch.nn.Linear(2, 2), torch.zeros(2, dtype=torch.complex64), {"x": {1, 2}}, torch.complex(*torch.ones(2, 3))):
        torch.save(value, folder / "refused.pt")
        if not convert(program, [folder / "refused.pt"])[0].startswith("refused: "):
            problems.append(f"{value} was not refused")
    return problems


def check_sharing(library):
    live = library.live()
    for dtype in SHARED_DTYPES:
        made = library.make(dtype, (2, 3))
        theirs = torch.utils.dlpack.from_dlpack(made.__dlpack__()) if dtype != "bool" else None
        if theirs is not None:
            assert theirs.data_ptr() == made.address() and theirs.dtype == getattr(torch, dtype)
            made.increase()
            assert theirs.double().flatten().tolist() == [1, 2, 3, 4, 5, 6]
        made.drop()
        if dtype == "bool":  # PyTorch 1.13 passes none on
            continue
        x = torch.arange(6).to(getattr(torch, dtype)).reshape(2, 3).t()
        taken = library.take(x)
        assert taken.address() == x.data_ptr()
        assert taken.values((3, 2)) == [0, 3, 1, 4, 2, 5]
        taken.drop()
        del theirs
    gc.collect()
    assert library.live() == live, "tensors are left"


def main():
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as name:
        problems = judge_files(sys.argv[1], Path(name))
    check_sharing(Library(sys.argv[2]))
    sys.exit("\n".join(problems[:20]) or 0)


if __name__ == "__main__":
    main()
