#!/usr/bin/env python3
"""Fails if names or comments use a term of words.txt instead of the field's word.

Usage: check_words.py ROOT

Checks the paths of include, lib, cuda, tests, samples and tools, and the text of their files. In C, C++ and CUDA files it
skips string literals, so that error messages and the names of tests may use any word; so it does in scripts and build
files. Names in CamelCase are also checked word by word: LaneCount as "Lane Count".
"""

import fnmatch
import os
import re
import sys

DIRECTORIES = ("include", "lib", "cuda", "tests", "samples", "tools")
ENDINGS = (".h", ".c", ".cpp", ".cu", ".build", ".py", ".sh", ".md", ".txt", "")
SOURCES = (".h", ".c", ".cpp", ".cu")
MOST_EXEMPTIONS = 10
LIST = "tests/layers/words.txt"
# A comment is kept, because it may contain an odd number of quotes; so is a digit separator, as in 1'000.
SKIPPED = re.compile(r"""(//.*)|"(?:\\.|[^"\\])*"|(?<!\w)'(?:\\.|[^'\\])'""")
SKIPPED_IN_SCRIPTS = re.compile(r"""(#.*)|"(?:\\.|[^"\\])*"|'[^']*'""")
CAMEL_CASE = re.compile(r"\b[A-Za-z]*[a-z0-9][A-Z][A-Za-z0-9]*\b")
INNER_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def read_words(path):
    """Returns (expression, exempt globs) for each line that is neither empty nor a comment."""
    words = []
    with open(path, encoding="utf-8") as file:
        for line in file.read().splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            expression, *globs = line.split("\t")
            words.append((re.compile(expression), [glob for part in globs for glob in part.split()]))
    return words


def paths_under(root):
    for directory in DIRECTORIES:
        for folder, folders, files in os.walk(os.path.join(root, directory)):
            folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
            for name in sorted(files):
                path = os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")
                if path not in (LIST, "tests/layers/check_words.py") and os.path.splitext(name)[1] in ENDINGS:
                    yield path


def lines_of(root, path):
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            lines = file.read().splitlines()
    except UnicodeDecodeError:
        return []
    if path.endswith((".md", ".txt")):
        return lines
    skipped = SKIPPED if path.endswith(SOURCES) else SKIPPED_IN_SCRIPTS
    return [skipped.sub(lambda found: found.group(1) or '""', line) for line in lines]


def text_of(lines):
    """The lines, each followed by its CamelCase names with spaces between their words, and the line of each in `lines`."""
    rows, numbers = [], []
    for number, line in enumerate(lines):
        split = " | ".join(INNER_CAPITAL.sub(" ", name) for name in CAMEL_CASE.findall(line))
        rows += [line, split] if split else [line]
        numbers += [number] * (2 if split else 1)
    return "\n".join(rows), numbers


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    words = read_words(os.path.join(root, LIST))
    exemptions = sum(len(globs) for _, globs in words)
    if exemptions > MOST_EXEMPTIONS:
        sys.exit(f"{LIST} has {exemptions} exemptions; at most {MOST_EXEMPTIONS} are allowed")
    count = files = 0
    for path in paths_under(root):
        files += 1
        checked = [word for word, globs in words if not any(fnmatch.fnmatch(path, glob) for glob in globs)]
        lines = [path, *lines_of(root, path)]
        text, numbers = text_of(lines)
        for word in checked:
            for found in word.finditer(text):
                count += 1
                number = numbers[text.count("\n", 0, found.start())]
                print(f"{path}:{number}: {found.group()}: {lines[number].strip()}")
    if files == 0:
        sys.exit(f"{root} has no files to check")
    if count:
        sys.exit(f"{count} names or comments use another word than the field's; see {LIST}")


if __name__ == "__main__":
    main()
