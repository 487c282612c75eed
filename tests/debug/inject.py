#!/usr/bin/env python3
"""Puts a NaN into the output of each op of a sample's first training step, one after another, and checks that the script
`run until has_inf_or_nan` of `reel debug` names the op, its module and its line.

Usage: inject.py REEL LIBRARY PROGRAM ARGUMENT…

LIBRARY is that of inject.cpp. 50 ops are chosen evenly; with REEL_ENDURANCE in the environment all.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def run(library, index, program, recording):
    environment = dict(os.environ, LD_PRELOAD=str(library), REEL_INJECT_OP=str(index))
    found = subprocess.run([*program, "--record", str(recording)], env=environment, capture_output=True, text=True, timeout=120, check=False)
    # A loss that is NaN ends the sample with a sentence.
    if found.returncode < 0 or (found.returncode and index < 0):
        sys.exit(f"the sample failed: {found}")
    return found.stderr


def debug(tool, recording, *commands):
    words = [str(tool), "debug", str(recording)]
    for command in commands:
        words += ["-c", command]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False).stdout


def main():
    tool, library, *program = sys.argv[1:]
    tool, library, program[0] = Path(tool).absolute(), Path(library).absolute(), str(Path(program[0]).absolute())
    with tempfile.TemporaryDirectory(prefix="reel_inject_") as name:
        clean, recording = Path(name) / "clean.reel", Path(name) / "run.reel"
        count = int(re.search(r"ops (\d+)", run(library, -1, program, clean)).group(1))
        chosen = range(count) if "REEL_ENDURANCE" in os.environ else sorted({count * k // 50 for k in range(50)})
        missed, with_module = [], 0
        for index in chosen:
            injected = re.search(r"injected (\S+) at (\S+)", run(library, index, program, recording))
            found = debug(tool, recording, "run until has_inf_or_nan")
            named = re.search(r"stopped, has_inf_or_nan: (%\d+) (\S+)(?: within a gradient)?(?: '.*?')? at (\S+?)(?: in (\S+))?, step 0", found)
            clean_op = debug(tool, clean, f"ni {named.group(1)}").split("\n")[0] if named else ""
            module = re.search(r" in (\S+), step 0", clean_op)
            right = named and injected and named.group(2, 3) == injected.group(1, 2) and named.group(4) == (module.group(1) if module else None)
            with_module += bool(right and named.group(4))
            if not right:
                missed.append((index, injected and injected.group(0), found.split("\n")[0]))
        print(f"{len(chosen) - len(missed)} of {len(chosen)} ops named, {with_module} of them within a module; the step has {count}")
        for one in missed[:10]:
            print("missed", *one)
        return 1 if missed or with_module == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
