#!/usr/bin/env python3
"""served.py COMMAND…: passes if COMMAND with --serve, which waits for its page, ends at the first SIGINT and saves its weights."""

import os
import signal
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as folder:
    weights = os.path.join(folder, "weights.safetensors")
    # A shell that starts jobs in the background lets them ignore signals, and programs leave it at that.
    process = subprocess.Popen(sys.argv[1:] + ["--serve", "--save", weights], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    line = " "
    while line and "the program waits there" not in line:
        line = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    try:
        _, said = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        sys.exit("it goes on waiting after the first SIGINT")
    if process.returncode != 130:
        sys.exit(f"exit status {process.returncode}, wanted 130; it says: {said}")
    if "interrupted by SIGINT" not in said or not os.path.exists(weights):
        sys.exit(f"wanted a sentence that names the signal, and saved weights; found: {said}")
