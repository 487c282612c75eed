#!/usr/bin/env python3
"""Runs the models of this folder with PyTorch; fails if one does not learn.

Usage: pytorch_twins.py
"""

import subprocess
import sys
from pathlib import Path


def main():
    problems = []
    for program in sorted(Path(__file__).resolve().parent.glob("*.cpp")):
        script = program.with_suffix(".py")
        run = subprocess.run([sys.executable, "-B", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             check=False)
        print(f"{script.stem}: {run.stdout.strip()}")
        if run.returncode:
            problems.append(f"{script.stem} ended with status {run.returncode}")
    sys.exit("\n".join(problems) or 0)


if __name__ == "__main__":
    main()
