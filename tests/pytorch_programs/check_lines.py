#!/usr/bin/env python3
"""Fails if a model in this folder takes more than 1.15 times as many lines with reel as its PyTorch program.

Usage: check_lines.py

NAME.cpp is compared with NAME.py. Lines that are blank, or only comments or docstrings, are not counted; a line with
only a brace is.
"""

import re
import sys
from pathlib import Path

MOST = 1.15
DOCSTRING = re.compile(r'^ *"""(?:.|\n)*?"""\n', re.M)


def count(path, comment):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        text = DOCSTRING.sub("", text)
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith(comment))


def main():
    programs = sorted(Path(__file__).resolve().parent.glob("*.cpp"))
    if not programs:
        sys.exit("there are no programs to compare")
    print(f"{'':10}{'reel':>6}{'PyTorch':>9}{'ratio':>7}")
    too_long = []
    for program in programs:
        ours, theirs = count(program, "//"), count(program.with_suffix(".py"), "#")
        print(f"{program.stem:10}{ours:6}{theirs:9}{ours / theirs:7.2f}")
        if ours > MOST * theirs:
            too_long.append(program.stem)
    if too_long:
        sys.exit(f"longer than {MOST} times their PyTorch program: {', '.join(too_long)}")


if __name__ == "__main__":
    main()
