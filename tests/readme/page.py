#!/usr/bin/env python3
"""The programs of the tutorial's pages.

page.py program PAGE SOURCE: writes the C++ blocks of a Markdown page, which together are one program, to a file.
page.py run PAGE PROGRAM: runs the commands of its console blocks, lines that begin with '$ ', in an empty folder in which ./model is
PROGRAM. Passes if they print what follows each of them: "…" is any text, and numbers with a point may differ by 2 % or
by one unit of their last digit, since processors round differently."""

import os
import re
import subprocess
import sys
import tempfile

NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


def blocks(page, language):
    with open(page, encoding="utf-8") as file:
        return re.findall(rf"^```{language}\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)


def write_program(page, source):
    with open(source, "w", encoding="utf-8") as file:
        file.write('#line 1 "model.cpp"\n' + "\n".join(blocks(page, "cpp")))


def are_equal(wanted, found):
    if wanted == found:
        return True
    digits = len(wanted.split("e")[0].split(".")[1])
    unit = 0 if "e" in wanted else 1.01 * 10 ** -digits
    return abs(float(wanted) - float(found)) <= max(unit, 0.02 * abs(float(wanted)))


def matches(wanted, found):
    """True if a line that was printed is the one that the page shows."""
    pattern = NUMBER.sub("NUMBER", wanted)
    pattern = re.escape(pattern).replace("NUMBER", f"({NUMBER.pattern})").replace("…", ".*")
    match = re.fullmatch(pattern, found)
    return match is not None and all(map(are_equal, NUMBER.findall(wanted), match.groups()))


def commands(page):
    """Yields each command with the lines that it prints."""
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.rstrip("\n").split("\n")
            yield command, lines


def run(page, program):
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(program, os.path.join(folder, "model"))
        for command, wanted in commands(page):
            count += 1
            done = subprocess.run(["bash", "-c", command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            found = done.stdout.rstrip("\n").split("\n") if done.stdout else []
            for line in range(max(len(wanted), len(found))):
                if line >= len(wanted) or line >= len(found) or not matches(wanted[line], found[line]):
                    sys.exit(f"{page}: '{command}' prints in line {line + 1} other than the page has:\n" + done.stdout + done.stderr)
            if done.returncode != 0:
                sys.exit(f"{page}: '{command}' exits with {done.returncode}: {done.stderr}")
    if count == 0:
        sys.exit(f"{page} has no command")


mode, page, argument = sys.argv[1:]
{"program": write_program, "run": run}[mode](page, argument)
