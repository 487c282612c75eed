#!/usr/bin/env python3
"""Writes a source file that holds the texts of files, each as a constant of the file's name: `run_js` of run.js.

Usage: embed_text.py NAMESPACE HEADER OUTPUT FILE…
"""

import sys
from pathlib import Path


def literal(text):
    mark = "text"
    while f"){mark}\"" in text:
        mark += "_"
    return f'R"{mark}({text}){mark}"'


def main():
    namespace, header, output, *files = sys.argv[1:]
    lines = [f'#include "{header}"\n', f"namespace {namespace} {{\n"]
    for file in map(Path, files):
        text = file.read_bytes().decode()
        if "\0" in text or "\r" in text:
            sys.exit(f"embed_text.py: {file} holds NUL or a carriage return, which a literal cannot hold")
        lines.append(f"const std::string_view {file.name.replace('.', '_')} = {literal(text)};\n")
    lines.append(f"}}  // namespace {namespace}")
    Path(output).write_bytes("\n".join([*lines, ""]).encode())


if __name__ == "__main__":
    main()
