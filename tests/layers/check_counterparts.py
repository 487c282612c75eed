#!/usr/bin/env python3
"""Fails if a family of kernels goes by different names on the CPU, on a GPU, in the library's headers and in the tests.

A kernel file of one device has its counterpart on the other: a file of the same name, or one whose name continues it, as
convolution_data.cpp does convolution.cu.

Usage: check_counterparts.py ROOT
"""

import sys
from pathlib import Path

# Files without a counterpart, and why.
ONLY_CPU = {
    "block_loop": "the loop over contiguous blocks that the elementwise kernels share; cuda/device has that of a GPU",
    "element_summary": "a recording copies what is on a GPU to the CPU",
    "instruction_set": "calls what fills the slots of one instruction set",
    "onednn": "cuda/libraries has the libraries of a GPU",
    "onednn_product": "cuda/libraries has the libraries of a GPU",
    "rows": "the rows that index and embedding read and write",
}
ONLY_CUDA = {
    "concat": "in copy on the CPU",
    "convert": "in copy on the CPU",
    "fingerprint": "tells whether a constant in device memory is still what it was",
    "indexed_sums": "in rows on the CPU, where the order of a sum is that of a loop",
    "randperm": "in random on the CPU; sorts by the sort kernel",
}
# Headers of lib/kernels that are no family of kernels.
NO_FAMILIES = {
    "activation": "the table of activation functions, which are in the lists of elementwise kernels",
    "element_summary": "what the CPU's kernel of that name returns, for recordings",
    "elementwise": "the lists from which each device makes its elementwise kernels",
    "kernel_table": "holds the tables of the families",
}
# Headers of lib/kernels that are no family of ops.
NO_OPS = {
    "element_summary": "no op calls it; tests/debug has the tests of recordings",
    "kernel_table": "holds the tables of the families",
    "optimise": "optimisers have no ops; tests/optim has their tests",
}
# Headers of include/reel/ops without a file or folder in lib/ops.
NO_FUNCTIONS = {"layout": "an enumeration that ops take"}


def stems(root, folders, suffixes):
    return {path.stem for folder in folders for path in (root / folder).rglob("*") if path.suffix in suffixes}


def has_counterpart(name, others):
    return any(other == name or other.startswith(name + "_") or name.startswith(other + "_") for other in others)


def check_devices(root, errors):
    cpu = stems(root, ["lib/cpu/simd", "lib/cpu/plain", "lib/cpu/onednn"], {".cpp"})
    cuda = stems(root, ["cuda/kernels"], {".cu", ".cpp"})
    for own, others, alone, device in ((cpu, cuda, ONLY_CPU, "lib/cpu"), (cuda, cpu, ONLY_CUDA, "cuda/kernels")):
        for name in sorted(own):
            if has_counterpart(name, others) == (name in alone):
                fault = "has a counterpart, and is listed as without one" if name in alone else "has no counterpart of its name"
                errors.append(f"{device}: {name} {fault}")
        errors += [f"check_counterparts.py names {name}, which is not in {device}" for name in sorted(alone.keys() - own)]
    return cpu, cuda


def check_families(root, cpu, cuda, errors):
    ops = stems(root, ["lib/ops"], {".cpp"}) | {path.name for path in (root / "lib/ops").iterdir() if path.is_dir()}
    families = {path.stem for path in (root / "lib/kernels").glob("*.h")}
    for name in sorted(families):
        if (root / f"tests/ops/table/rows_{name}.cpp").exists() == (name in NO_OPS):
            errors.append(f"lib/kernels/{name}.h: a family of ops has the rows tests/ops/table/rows_{name}.cpp")
        if name not in NO_FAMILIES and not (has_counterpart(name, cpu) and has_counterpart(name, cuda)):
            errors.append(f"lib/kernels/{name}.h: no kernels of this name in lib/cpu and cuda/kernels")
    headers = {path.stem for path in (root / "include/reel/ops").glob("*.h")}
    errors += [f"include/reel/ops/{name}.h: lib/ops has no file or folder of this name"
               for name in sorted(headers - ops - NO_FUNCTIONS.keys())]
    return len(families) + len(headers)


def main(root):
    errors = []
    cpu, cuda = check_devices(root, errors)
    families = check_families(root, cpu, cuda, errors)
    for error in errors:
        print(error)
    print(f"{len(cpu)} kernel files for the CPU, {len(cuda)} for a GPU, {families} headers: {len(errors)} errors")
    return 1 if errors or not cpu or not cuda or not families else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
