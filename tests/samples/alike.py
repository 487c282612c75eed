#!/usr/bin/env python3
"""alike.py COMMAND…: prints the same on a device as on the CPU, but for times and the last places of numbers."""

import re
import subprocess
import sys

NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]\d+)?")


def lines(device):
    result = subprocess.run(sys.argv[1:] + ["--device", device], capture_output=True, text=True)
    if result.returncode == 1 and re.search("there is no (CUDA device|cuda:0)", result.stderr):
        print(result.stderr.strip())
        sys.exit(77)
    if result.returncode != 0:
        sys.exit(f"on {device} it exits with {result.returncode}: {result.stderr}")
    # Progress is shown by time.
    shown = [line for line in result.stdout.splitlines() if not line.endswith(" left")]
    return [re.sub(r" +[0-9.]+ s( |$)", " ", line) for line in shown]


here, there = lines("cpu"), lines("cuda:0")
if len(here) != len(there):
    sys.exit(f"{len(here)} lines on the CPU, {len(there)} on the device")
for a, b in zip(here, there):
    # A thousandth: rounding errors of 1e-7 that some hundred steps of training have spread.
    apart = [abs(float(x) - float(y)) > 1e-3 * max(1, abs(float(x))) for x, y in zip(NUMBER.findall(a), NUMBER.findall(b))]
    if NUMBER.sub("#", a) != NUMBER.sub("#", b) or any(apart):
        sys.exit(f"on the CPU:    {a}\non the device: {b}")
