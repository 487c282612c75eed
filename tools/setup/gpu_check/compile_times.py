"""How long each .cu file compiles on one processor: with many processors the longest decides how long a build takes."""

import json
import os
import resource
import shlex
import subprocess
import tempfile
from pathlib import Path

MOST = 60  # s of processor time


def commands_of(build):
    """Of each kernel's file: its command, without ccache."""
    targets = json.loads(subprocess.check_output(["meson", "introspect", "--targets", build]))
    found = {}
    for name in (name for target in targets for name in target["filename"] if name.endswith(".cu.o")):
        name = os.path.relpath(name, build)
        output = subprocess.check_output(["ninja", "-C", build, "-t", "commands", name], text=True)
        words = shlex.split(next(line for line in output.splitlines() if name in line))
        source = next(word for word in words if word.endswith(".cu"))
        found[Path(source).name] = words[1:] if Path(words[0]).name == "ccache" else words
    return found


def compile_once(build, words):
    """Returns (whether it compiles, seconds of processor time, bytes of the object)."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "kernel.o"
        words = list(words)
        words[words.index("-o") + 1] = str(target)
        words[words.index("-MF") + 1] = str(Path(folder) / "kernel.d")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        status = subprocess.run(words, cwd=build, check=False).returncode
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return status == 0, seconds, target.stat().st_size if target.is_file() else 0


def main(check):
    """`check`: the Check of main.py, which configures the build. Returns the exit status."""
    check.begin()
    if not (check.unpack() and check.configure()):
        return 1
    names = check.arguments.compile_times
    wanted = {name if name.endswith(".cu") else name + ".cu" for name in names}
    commands = commands_of(check.build)
    if unknown := sorted(wanted - commands.keys()):
        print(f"there is no {', '.join(unknown)}")
        return 2
    well, total = True, 0
    for name in sorted(wanted or commands):
        compiles, seconds, size = compile_once(check.build, commands[name])
        is_short = seconds <= MOST
        well, total = well and compiles and is_short, total + seconds
        verdict = "" if compiles and is_short else f"  more than {MOST} s" if compiles else "  FAILED"
        print(f"{seconds:7.1f} s  {size / 1e6:5.1f} MB  {name}{verdict}", flush=True)
    print(f"{total:7.1f} s in all, each alone on one processor, at -O3 for {check.architectures()}"
          f"{'' if well else f': one fails, or takes longer than {MOST} s'}")
    return 0 if well else 1
