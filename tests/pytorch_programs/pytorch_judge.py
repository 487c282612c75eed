#!/usr/bin/env python3
"""Runs the models of this folder with PyTorch; fails if one does not learn, or if the tagger of reel, with the weights
that PyTorch's has saved, does not give the same tags.

Usage: pytorch_judge.py TAGGER, the program
"""

import subprocess
import sys
import tempfile
from pathlib import Path


def run(name, *command):
    """Returns a sentence if the command fails, and else nothing."""
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(f"{name}: {ended.stdout.strip()}")
    return [f"{name} ended with status {ended.returncode}"] if ended.returncode else []


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for program in sorted(Path(__file__).resolve().parent.glob("*.cpp")):
            script = program.with_suffix(".py")
            problems += run(script.name, sys.executable, "-B", script, *([folder] if program.stem == "tagger" else []))
        problems += run("tagger with PyTorch's weights", sys.argv[1], folder)
    sys.exit("\n".join(problems) or 0)


if __name__ == "__main__":
    main()
