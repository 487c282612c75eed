#!/usr/bin/env python3
"""check_debugger.py gdb|lldb ROOT PROGRAM LIBRARY SOURCE: what the debugger prints of the program's variables, in the process and
in a core file of it. Exits with 77 where there is no such debugger, or it may not follow a process."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77

debugger, root, program, library, source = sys.argv[1:]


def skip(reason):
    print(reason)
    sys.exit(SKIPPED)


def find_lldb():
    """The command of lldb, with the folders of its Python module in PYTHONPATH, where Debian's lldb-14 doesn't look."""
    found = shutil.which("lldb") or max(filter(re.compile(r"/lldb-[0-9]+$").search, glob.glob("/usr/bin/lldb-*")), default=None)
    modules = glob.glob(os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(found or "/"))), "lib/python3*/dist-packages/lldb/embedded_interpreter.py"))
    if modules:
        folders = [os.path.dirname(os.path.dirname(modules[0])), "/usr/lib/python3/dist-packages", os.environ.get("PYTHONPATH", "")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    return found


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=250,
                          env={**os.environ, "LC_ALL": "C.UTF-8", "DEBUGINFOD_URLS": ""})
    return done.stdout.decode("utf-8", "replace")


def line_of(text):
    with open(source, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


def at(text):
    return r"tests/debuggers/program\.cpp:{}".format(line_of(text))


def tensor(form, made, rest):
    return re.escape(form) + ", made at " + at(made) + re.escape(rest)


GONE = r"no tensor at 0x[0-9a-f]+: freed, overwritten or not made yet \(.*\)"
MATRIX = tensor("f32 (2, 3) on cpu", "Tensor matrix", ": [[1, 2, 3], [4, 5, 6]]; min 1, max 6, mean 3.5")
NUMBER = r"-?[0-9.e-]+"
VALUES = r"\[({0}, )+…\]; min {0}, max {0}, mean {0}".format(NUMBER)
MODEL = "Classifier : nn::Module"
WANTED = {
    "undefined": "undefined tensor",
    "matrix": MATRIX,
    "transposed": tensor("f32 (3, 2) on cpu", "Tensor transposed", ": [[1, 4], [2, 5], [3, 6]]; min 1, max 6, mean 3.5"),
    "flipped": tensor("f32 (2, 3) on cpu", "Tensor flipped", ": [[3, 2, 1], [6, 5, 4]]; min 1, max 6, mean 3.5"),
    "odd": tensor("f32 (5,) on cpu", "Tensor odd", ": [0, nan, -inf, 2, nan]; min 0, max 2, mean 1, 2 NaN, 1 Inf"),
    "whole": tensor("i64 (3,) on cpu", "Tensor whole", ": [1, -2, 3]; min -2, max 3, mean 0.666667"),
    "logical": tensor("bool (2,) on cpu", "Tensor logical", ": [true, false]"),
    "half": tensor("f16 (2,) on cpu", "Tensor half", ": [0.5, -1.5]; min -1.5, max 0.5, mean -0.5"),
    "brain": tensor("bf16 (2,) on cpu", "Tensor brain", ": [0.5, -1.5]; min -1.5, max 0.5, mean -0.5"),
    "scalar": tensor("f64 () on cpu", "Tensor scalar", ": 2.5"),
    "empty": tensor("f32 (0, 3) on cpu", "Tensor empty", ": []"),
    "large": tensor("f32 (1000, 1000) on cpu", "Tensor large", ": [" + "0, " * 16 + "…]"),
    "weight": tensor("f32 (2,) on cpu, parameter with a gradient", "Tensor weight", ": [1, 1]; min 1, max 1, mean 1"),
    "shape": r"\(2, 3\)",
    "no_axes": r"\(\)",
    "number": "3",
    "*handles.gone": GONE,
    "*handles.wild": GONE,
    "model.scale": tensor('f32 (2,) on cpu, parameter "scale"', MODEL, ": [1, 1]; min 1, max 1, mean 1").replace(
        at(MODEL), r"tests/debuggers/program\.cpp:[0-9]+"),
}
TAPE = r"Tape, open, 28 entries" + r".*\[20\] = add → f32 \(\) at {0}.*\[27\] = add → f32 \(\) at {0}".format(at("loss + 1.0"))
PART = r"f32 \({}\) on cpu, parameter \"{}\", made at tests/debuggers/program\.cpp:[0-9]+: .*"
MODULE = (r"Classifier, 4 parameters of 26 numbers.*hidden = Linear, 2 parameters of 16 numbers.*hidden\.weight = "
          + PART.format("3, 4", "weight") + r"hidden\.bias = " + PART.format("4,", "bias") + r"output = Linear, 1 parameter of 8 "
          + r"numbers.*output\.weight = " + PART.format("4, 2", "weight") + r"scale = " + PART.format("2,", "scale")
          + r"mean = buffer f32 \(3,\) on cpu, made at .*: \[0, 0, 0\]")


def check(text, what):
    """What the debugger has printed between marks."""
    failures = 0
    found = dict(re.findall(r"^<<(.*?)>>\n(.*?)(?=^<<)", text, re.MULTILINE | re.DOTALL))
    wanted = {**WANTED, "tape": TAPE, "model": MODULE}
    for name, pattern in wanted.items():
        printed = found.get(name, "nothing").strip()
        whole = printed.split(" = ", 1)[-1] if name not in ("tape", "model") else printed
        matches = re.search(pattern, printed, re.DOTALL) if name in ("tape", "model") else re.fullmatch(pattern, whole)
        if not matches:
            failures += 1
            print("{}: {} prints\n  {}\nwanted\n  {}".format(what, name, printed, pattern))
    if "Traceback" in text or "Python Exception" in text:
        failures += 1
        print("{}: a script failed".format(what))
    if failures:
        print(text[-6000:])
        sys.exit(1)


def gdb_commands():
    for name in [*WANTED, "tape", "model"]:
        yield "echo <<{}>>\\n".format(name)
        yield "print {}".format(name)
    yield "echo <<end>>\\n"


def with_gdb(folder):
    if "here" not in run("gdb", "-nx", "-batch", "-ex", "python print('here')"):
        skip("this gdb has no Python")
    core = os.path.join(folder, "core")
    # The library's own script is what is found: the one beside it in the build.
    start = ["gdb", "-nx", "-batch", "-iex", "add-auto-load-safe-path " + os.path.dirname(library), "-ex", "set width 0"]
    stop = ["break stop", "run", "up"]
    commands = [*stop, *gdb_commands(), "generate-core-file " + core]
    live = run(*start, *sum((["-ex", command] for command in commands), []), program)
    if re.search("ptrace: Operation not permitted|Cannot PTRACE|Could not trace", live):
        skip("gdb may not follow a process here")
    check(live, "a process")
    again = ["up", *gdb_commands()]
    check(run(*start, *sum((["-ex", command] for command in again), []), program, core), "a core file")
    corrupt = os.path.join(os.path.dirname(source), "corrupt.py")
    printed = run(*start, *sum((["-ex", command] for command in [*stop, "source " + corrupt]), []), program)
    done = re.search(r"overwritten ([0-9]+) times, the slowest value in ([0-9.]+) s", printed)
    if not done or int(done.group(1)) < 300 or float(done.group(2)) > 20 or re.search("Python Exception|Traceback|failed with", printed):
        print("of overwritten memory gdb prints\n" + printed[-6000:])
        sys.exit(1)
    # Printers never run anything in the program: they work before it starts, too.
    before = run(*start, "-ex", "print sizeof(reel::Tensor)", program)
    if "= 8" not in before:
        print(before)
        sys.exit(1)


def with_lldb(folder):
    lldb = find_lldb()
    if not lldb:
        skip("there is no lldb here")
    core = os.path.join(folder, "core")
    commands = ["command script import " + os.path.join(root, "tools/gdb/reel_lldb.py"), "breakpoint set --name stop", "run", "up"]
    shown = []
    for name in [*WANTED, "tape"]:
        shown += ["script print('<<{}>>')".format(name), "frame variable {}".format(name)]
    shown += ["script print('<<model>>')", "reel-module model", "script print('<<end>>')"]
    live = run(lldb, "--batch", "--no-lldbinit", *sum((["-o", command] for command in commands + shown), []), program)
    if "run_one_line" in live or "script interpreter" in live:
        skip("this lldb has no Python")
    if re.search("process launch failed|personality set failed|Operation not permitted", live):
        skip("lldb may not follow a process here")
    check(re.sub(r"^\(lldb\).*\n", "", live, flags=re.MULTILINE), "a process")
    # This lldb writes no core files of Linux.
    if shutil.which("gdb"):
        run("gdb", "-nx", "-batch", "-ex", "break stop", "-ex", "run", "-ex", "generate-core-file " + core, program)
    if os.path.exists(core):
        text = run(lldb, "--batch", "--no-lldbinit", "-c", core, *sum((["-o", c] for c in commands[:1] + ["up"] + shown), []), program)
        check(re.sub(r"^\(lldb\).*\n", "", text, flags=re.MULTILINE), "a core file")


if debugger == "gdb" and not shutil.which("gdb"):
    skip("there is no gdb here")
with tempfile.TemporaryDirectory() as place:
    {"gdb": with_gdb, "lldb": with_lldb}[debugger](place)
