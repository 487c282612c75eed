#!/usr/bin/env python3
"""Judges ONNX files that reel writes by the packages onnx and onnxruntime.

Usage: judge_onnx.py PROGRAM

Every file is accepted by onnx.checker, has no node and no array that leads to no output, and onnxruntime computes from it what reel computed: within 1e-5 of the largest
element of a result, or of 1. PROGRAM writes the files, and calls with
other inputs than those at the export, whose sizes along named axes differ; it prints the problems that it finds itself.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import onnx
import onnxruntime

TOLERANCE = 1e-5


def calls_of(model):
    return sorted(model.parent.glob(f"{model.stem}.*.npz"))


def difference(wanted, found):
    if wanted.shape != found.shape or wanted.dtype != found.dtype:
        return f"{found.dtype} {found.shape} instead of {wanted.dtype} {wanted.shape}"
    if wanted.dtype.kind != "f":
        return "" if (wanted == found).all() else "other integers"
    a, b = wanted.astype("f8"), found.astype("f8")
    same = (a == b) | (numpy.isnan(a) & numpy.isnan(b))
    finite = numpy.isfinite(a)
    scale = max(1, abs(a[finite]).max(initial=0))
    with numpy.errstate(invalid="ignore"):
        far = ~same & ~(abs(a - b) <= TOLERANCE * scale)
    if not far.any():
        return ""
    return f"{b[far][0]} instead of {a[far][0]}, in {far.sum()} of {far.size} elements"


def unused(graph):
    """The names of nodes and arrays of which nothing in the graph, or in its bodies, reads a result."""
    read, found = set(), []

    def visit(graph):
        read.update(output.name for output in graph.output)
        for node in graph.node:
            read.update(node.input)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    visit(attribute.g)

    def compare(graph):
        found.extend(array.name for array in graph.initializer if array.name not in read)
        for node in graph.node:
            if not read.intersection(node.output):
                found.append(node.name)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    compare(attribute.g)

    visit(graph)
    compare(graph)
    return found


def judge(path):
    """Returns a problem of a model, if there is one, and the number of its calls."""
    onnx.checker.check_model(str(path), full_check=True)
    if names := unused(onnx.load(str(path)).graph):
        return f"nothing reads {', '.join(names)}", 0
    calls = [numpy.load(call) for call in calls_of(path)]
    # Many operators of onnxruntime refuse tensors without elements.
    calls = [call for call in calls if all(call[name].size for name in call.files)]
    if not calls:
        return "", 0
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    for i, arrays in enumerate(calls):
        known = {value.name for value in session.get_inputs()}
        given = {name[3:]: arrays[name] for name in arrays.files if name.startswith("in.") and name[3:] in known}
        for name, found in zip(names, session.run(names, given), strict=True):
            if text := difference(arrays["out." + name], found):
                return f"call {i}, {name}: {text}", len(calls)
    return "", len(calls)


def main():
    # Files in memory, where there are such: each is synchronised to the disk.
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        folder = Path(name)
        done = subprocess.run([sys.argv[1], name, *sys.argv[2:]], stdout=subprocess.PIPE, text=True, check=True)
        said = dict(line.split(" ", 2)[1:] for line in done.stdout.splitlines() if line.startswith("row "))
        problems = [line for line in done.stdout.splitlines() if line.startswith("problem ")]
        files, calls = sorted(folder.glob("*.onnx")), 0
        for path in files:
            try:
                problem, count = judge(path)
            except Exception as error:  # noqa: BLE001 - of whichever type the packages throw
                problem, count = str(error).strip().replace("\n", " ")[:300], 0
            calls += count
            if problem:
                problems.append(f"{said.get(path.stem, path.stem)}: {problem}")
    print(done.stdout.splitlines()[-1] if done.stdout else "")
    print(f"{len(files)} files, {calls} calls, {len(problems)} problems")
    if not files:
        problems.append("no file was written")
    sys.exit("\n".join(problems[:40]) or 0)


if __name__ == "__main__":
    main()
