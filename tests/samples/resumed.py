#!/usr/bin/env python3
"""resumed.py COMMAND…: passes if COMMAND, killed at several moments and resumed until it is done, prints the same last
line and saves the same weights as without."""

import os
import signal
import subprocess
import sys
import tempfile
import time

COMMAND = sys.argv[1:]
MOST_KILLS = 4


def run_whole(folder):
    weights = os.path.join(folder, "whole.safetensors")
    start = time.monotonic()
    done = subprocess.run(COMMAND + ["--save", weights], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"it exits with {done.returncode}: {done.stderr}")
    return done.stdout.splitlines()[-1], content(weights), time.monotonic() - start


def content(path):
    with open(path, "rb") as file:
        return file.read()


def run_killed(folder, seconds):
    """Kills it after a part of the time that it takes, with SIGTERM and SIGKILL by turns."""
    weights = os.path.join(folder, "killed.safetensors")
    command = COMMAND + ["--save", weights, "--checkpoint", os.path.join(folder, "run"), "--resume"]
    for kill in range(100):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            out, error = process.communicate(timeout=seconds / 3 if kill < MOST_KILLS else 60)
        except subprocess.TimeoutExpired:
            number = signal.SIGTERM if kill % 2 else signal.SIGKILL
            process.send_signal(number)
            process.communicate(timeout=60)
            # It may have come to its end before the signal; resumed, it then prints its last line again.
            if process.returncode not in (-number, 128 + number, 0):
                sys.exit(f"killed by {number} it exits with {process.returncode}")
            continue
        if process.returncode != 0:
            sys.exit(f"resumed after {kill} kills it exits with {process.returncode}: {error}")
        print(f"{kill} kills")
        return out.splitlines()[-1], content(weights)
    sys.exit("it does not end")


with tempfile.TemporaryDirectory() as parent:
    last, weights, seconds = run_whole(parent)
    last_killed, weights_killed = run_killed(parent, seconds)
    if last != last_killed:
        sys.exit(f"left alone: {last}\nkilled:     {last_killed}")
    if weights != weights_killed:
        sys.exit("the weights differ")
