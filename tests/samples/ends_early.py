#!/usr/bin/env python3
"""ends_early.py COMMAND…: passes if COMMAND, ended by SIGTERM after its first line, saves weights that it can load."""

import os
import signal
import subprocess
import sys
import tempfile

COMMAND = sys.argv[1:]


def heed_signals():
    # A shell that starts jobs in the background lets them ignore signals, and programs leave it at that.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


with tempfile.TemporaryDirectory() as folder:
    weights = os.path.join(folder, "weights.safetensors")
    options = dict(zip(COMMAND[1::2], COMMAND[2::2])) | {"--epochs": "100000", "--save": weights}
    endless = COMMAND[:1] + [word for option in options.items() for word in option]
    process = subprocess.Popen(endless, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_signals)
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    said = said.strip()
    if process.returncode != 143:
        sys.exit(f"exit status {process.returncode}, wanted 143; it says: {said}")
    if f"interrupted by SIGTERM; the best weights so far are in '{weights}'" not in said or "\n" in said:
        sys.exit(f"wanted one line that names the weights, found: {said}")
    options |= {"--epochs": "0", "--load": weights}
    del options["--save"]
    done = subprocess.run(COMMAND[:1] + [word for option in options.items() for word in option], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"what was saved cannot be loaded: {done.stderr}")
