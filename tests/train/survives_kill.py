#!/usr/bin/env python3
"""survives_kill.py PROGRAM: runs of a small training that SIGKILL ends at random moments, and that are resumed until
they are done, end with the bits of an uninterrupted one. Half of them save in the background.

2 runs of 60 steps; with REEL_ENDURANCE=1 in the environment 200 of 400. The moments come from REEL_SEED, which is
printed."""

import os
import random
import subprocess
import sys
import tempfile
import time

PROGRAM = sys.argv[1]
RUNS, STEPS = (200, "400") if os.environ.get("REEL_ENDURANCE") == "1" else (2, "60")
SEED = int(os.environ.get("REEL_SEED", "1"))


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)


def killed_after(seconds, arguments):
    """Runs the program for at most that time. Returns its exit status, negative if it was killed, and what it printed."""
    process = subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
    if process.returncode > 0:
        sys.exit(f"it exits with {process.returncode}: {errors.decode()}")
    return process.returncode, output


def main():
    folder = tempfile.TemporaryDirectory()
    expected = os.path.join(folder.name, "expected")
    begin = time.monotonic()
    done = run(os.path.join(folder.name, "whole"), expected, STEPS)
    whole = time.monotonic() - begin
    if done.returncode != 0:
        sys.exit(done.stderr)
    with open(expected, "rb") as file:
        expected = file.read()
    print(f"seed {SEED}; an uninterrupted run takes {whole:.2f} s", flush=True)
    moments = random.Random(SEED)
    kills = checks = 0
    for number in range(RUNS):
        directory, weights = (os.path.join(folder.name, f"{kind}{number}") for kind in ("run", "weights"))
        arguments = [directory, weights, STEPS] + (["asynchronous"] if number % 2 else [])
        # Short lives and long ones; the longest so far is exceeded in the end, so that each run is done.
        longest, saved, status = whole * moments.uniform(0.1, 0.5), False, -9
        while status != 0:
            status, output = killed_after(moments.uniform(0.005, longest), arguments)
            longest *= 1.02
            if status == 0:
                break
            kills += 1
            saved = saved or b"saved" in output
            if saved:
                checks += 1
                check = run(directory, weights, STEPS, "check")
                if check.returncode != 0:
                    sys.exit(f"run {number}: after a kill no checkpoint can be restored: {check.stderr}")
        with open(weights, "rb") as file:
            if file.read() != expected:
                sys.exit(f"run {number}: the weights differ from those of the uninterrupted run")
    print(f"{RUNS} runs, {kills} kills, {checks} times a checkpoint was restored after one: all equal")


main()
