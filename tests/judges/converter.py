"""The program `convert` and tensors as the judges compare them: (dtype, shape, bytes) by name."""

import math
import random
import subprocess

# Names of dtypes in safetensors, and the size of an element in bytes.
DTYPES = {"F32": 4, "F64": 8, "BF16": 2, "F16": 2, "I32": 4, "I64": 8, "U8": 1, "BOOL": 1}
SHAPES = [(), (0,), (1,), (5,), (2, 3), (2, 0, 4), (1, 2, 1, 3), (2,) * 8]


def convert(program, lines):
    """Returns a line of the program's output for each input file, or pair of input and output file."""
    text = "".join("\t".join(map(str, line)) + "\n" if isinstance(line, tuple) else f"{line}\n" for line in lines)
    done = subprocess.run([program], input=text, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def random_tensors(seed):
    """One tensor of each dtype and shape, with random bits."""
    generator = random.Random(seed)
    tensors = {}
    for dtype, size in DTYPES.items():
        for shape in SHAPES:
            count = math.prod(shape)
            data = bytes(generator.randrange(2) for _ in range(count)) if dtype == "BOOL" else generator.randbytes(count * size)
            tensors[f"{dtype}.{'x'.join(map(str, shape)) or 'scalar'}"] = (dtype, shape, data)
    return tensors


def differences(wanted, found):
    """Returns a line for each tensor that differs."""
    lines = [f"{name} is missing" for name in wanted.keys() - found.keys()]
    lines += [f"{name} is unexpected" for name in found.keys() - wanted.keys()]
    for name in wanted.keys() & found.keys():
        if wanted[name] != found[name]:
            lines.append(f"{name} is {found[name][:2]} and has {'other' if wanted[name][2] != found[name][2] else 'equal'} "
                         f"bytes, not {wanted[name][:2]}")
    return lines
