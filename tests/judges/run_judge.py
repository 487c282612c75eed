#!/usr/bin/env python3
"""Runs a judge, a script that compares reel's files with what other libraries make of them.

Usage: run_judge.py [--requirements=NAME] JUDGE FOLDER ARGUMENT…

The first call makes a virtual environment in FOLDER and installs requirements.txt, or NAME, into it; JUDGE runs there
with the arguments. Exits with status 77, after a line that says why, where the packages cannot be installed because their
registry cannot be reached. A judge of PyTorch runs with the system's Python and its package python3-torch, and only if
the environment variable REEL_JUDGES contains "pytorch".
"""

import fcntl
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

SKIPPED = 77
SYSTEM_PYTHON = "/usr/bin/python3"
UNREACHABLE = re.compile(r"connection|resolution|resolve|timed? ?out|network|from versions: none|HTTP error|SSL", re.I)


def skip(reason):
    print(reason)
    sys.exit(SKIPPED)


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def install(folder, requirements):
    made = run(sys.executable, "-m", "venv", "--clear", folder)
    if made.returncode:
        skip(f"Python makes no virtual environment: {made.stdout.strip().splitlines()[-1:]}")
    pip = run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--only-binary",
              ":all:", "--retries", "1", "--timeout", "20", "--disable-pip-version-check", "-r", requirements)
    if pip.returncode and UNREACHABLE.search(pip.stdout):
        skip(f"the packages of tests/judges/{requirements.name} cannot be downloaded")
    if pip.returncode:
        sys.exit(pip.stdout)


def environment(folder, requirements):
    """Returns the Python of a virtual environment with the requirements, which the first of several processes makes."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    stamp = folder / "installed"
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
            stamp.unlink(missing_ok=True)
            install(folder / "environment", requirements)
            stamp.write_text(wanted, encoding="utf-8")
    return folder / "environment" / "bin" / "python"


def main():
    words, requirements = sys.argv[1:], "requirements.txt"
    if words and words[0].startswith("--requirements="):
        requirements = words.pop(0).partition("=")[2]
    if len(words) < 2:
        sys.exit(__doc__)
    judge, folder, arguments = Path(words[0]).resolve(), Path(words[1]).resolve(), words[2:]
    if judge.stem.startswith("pytorch"):
        if "pytorch" not in os.environ.get("REEL_JUDGES", ""):
            skip("PyTorch's judge is run by tools/test --judges=pytorch")
        python = SYSTEM_PYTHON
    else:
        python = environment(folder, judge.parent / requirements)
    os.execv(python, [str(python), str(judge), *arguments])


if __name__ == "__main__":
    main()
