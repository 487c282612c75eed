#!/usr/bin/env python3
"""Checks which ranges a profile begins and ends, as a library in the place of NVIDIA's profilers prints them.

Usage: read_ranges.py PROGRAM
"""

import re
import subprocess
import sys

WANTED = [
    r"exp at tests/cuda/nvtx_ranges\.cpp:\d+",
    r"sum at tests/cuda/nvtx_ranges\.cpp:\d+",
    r"gradient of sum at tests/cuda/nvtx_ranges\.cpp:\d+",
    r"gradient of exp at tests/cuda/nvtx_ranges\.cpp:\d+",
    r"  mul at tests/cuda/nvtx_ranges\.cpp:\d+",  # within the gradient
    r"done",  # and nothing of what runs behind the profile
]

found = subprocess.run(sys.argv[1], capture_output=True, text=True, timeout=60)
lines = iter(found.stdout.splitlines())
missing = [wanted for wanted in WANTED if not any(re.fullmatch(wanted, line) for line in lines)]
wrong = [line for line in found.stdout.splitlines() if "has not begun" in line or "tanh" in line]
print(found.stdout, found.stderr)
if missing or wrong or found.returncode != 0:
    print(f"missing, in this order: {missing}; wrong: {wrong}; status {found.returncode}")
    sys.exit(1)
