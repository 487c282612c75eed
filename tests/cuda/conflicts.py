#!/usr/bin/env python3
"""conflicts.py PROGRAM: the thread sanitizer reports those of the program's kernels that are called conflicts, and no other."""

import os
import subprocess
import sys

SANITIZER = 66  # how a program ends whose accesses conflict

names = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout.splitlines()
faults = 0 if len(names) >= 7 else 1
for name in names:
    done = subprocess.run([sys.argv[1], name], capture_output=True, text=True, check=False,
                          env={**os.environ, "TSAN_OPTIONS": f"exitcode={SANITIZER}"})
    wanted = SANITIZER if name.startswith("conflict") else 0
    if done.returncode != wanted or ("data race" in done.stderr) != bool(wanted):
        print(f"{name}: exit status {done.returncode}, wanted {wanted}\n{done.stderr[:3000]}")
        faults += 1
sys.exit(faults > 0)
