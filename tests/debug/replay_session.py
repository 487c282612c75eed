#!/usr/bin/env python3
"""Replays the terminal session in samples/README.md and fails if it prints something else; numbers, and how wide columns
are, may differ from processor to processor.

Usage: replay_session.py ROOT REEL SAMPLE [--write]

SAMPLE is the program that the session's `tools/run` command names. With --write the session's results are replaced by those
of this run.
"""

import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

MARK = "<!-- session -->"


def masked(text):
    """The text without what differs between processors."""
    text = re.sub(r"[-+]?\d[\d.,]*(e[-+]?\d+)?", "#", text)
    text = re.sub(r"# (ns|µs|ms|s)\b", "# s", text)
    text = re.sub(r"█+", "█", text)
    return [re.sub(r" +", " ", line).strip() for line in text.strip().split("\n")]


def replay(root, tool, sample, session, folder):
    """The session with the results of its commands."""
    lines = [line for line in session.split("\n") if line.startswith(("$ ", "(reel) "))]
    shown = []
    for line in lines:
        if line.startswith("$ tools/run "):
            arguments = shlex.split(line)[3:]
            subprocess.run([sample, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            shown.append(line)
        elif line.startswith("$ "):
            shown.append(line)
    commands = [line.removeprefix("(reel) ") for line in lines if line.startswith("(reel) ")]
    arguments = [word for command in commands for word in ("-c", command)]
    found = subprocess.run([tool, "debug", "run.reel", "--source", root, "--json", *arguments], cwd=folder, capture_output=True,
                           text=True, check=False)
    for result in json.loads(found.stdout):
        shown.append("(reel) " + result["command"])
        shown += result["output"].rstrip("\n").split("\n") if result["output"] else []
    return "\n".join(shown)


def main():
    root, tool, sample = (Path(argument).absolute() for argument in sys.argv[1:4])
    page = root / "samples/README.md"
    before, session, after = page.read_text().split(MARK)
    session = session.strip().removeprefix("```").removesuffix("```").strip("\n")
    with tempfile.TemporaryDirectory(prefix="reel_session_") as folder:
        found = replay(root, tool, sample, session, folder)
    if "--write" in sys.argv:
        page.write_text(f"{before}{MARK}\n```\n{found}\n```\n{MARK}{after}")
        return 0
    wanted, given = masked(session), masked(found)
    for number, (a, b) in enumerate(zip(wanted, given)):
        if a != b:
            print(f"line {number + 1} is\n  {b}\nbut samples/README.md has\n  {a}")
            return 1
    print(f"{len(wanted)} lines" if len(wanted) == len(given) else f"{len(given)} lines, but samples/README.md has {len(wanted)}")
    return 0 if len(wanted) == len(given) else 1


if __name__ == "__main__":
    sys.exit(main())
