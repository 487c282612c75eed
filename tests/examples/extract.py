"""Writes the examples in the doc comments of the public headers to a folder, one file each, for tests to include.

An example is an indented block of a /// comment in which a line ends in ';', '{' or '}', before a comment of its own;
equations have no such line. Example 2 of include/reel/nn/module.h is nn_module_2.h."""
import pathlib
import re
import sys


def blocks(lines):
    """Yields the first line's number, from 1, and the lines of each indented block; blank lines within belong to it."""
    start, block = 0, []
    for number, line in enumerate(lines + [""], 1):
        indented = re.match(r"\s*///     (.*)$", line)
        if indented:
            start = start or number
            block.append(indented[1])
        elif block and re.match(r"\s*///$", line):
            block.append("")
        elif block:
            yield start, "\n".join(block).rstrip().split("\n")
            start, block = 0, []


def is_example(block):
    return any(re.search(r"[;{}]$", re.sub(r"\s*//.*", "", line)) for line in block)


def included(tests):
    """The examples that the tests include."""
    text = "".join(source.read_text(encoding="utf-8") for source in sorted(tests.rglob("*_test.cpp")))
    return set(re.findall(r'^#include "examples/(.*)"$', text, re.MULTILINE))


def main():
    root, folder, depfile, *outputs = map(pathlib.Path, sys.argv[1:])
    headers = sorted((root / "include/reel").rglob("*.h"))
    found = {}
    for header in headers:
        path = header.relative_to(root / "include")
        name = "_".join(path.relative_to("reel").with_suffix("").parts)
        examples = [block for block in blocks(header.read_text(encoding="utf-8").split("\n")) if is_example(block[1])]
        for index, (line, example) in enumerate(examples, 1):
            found[f"{name}_{index}.h"] = "\n".join([f'#line {line} "{path}"', *example, ""])
    wanted = {output.name for output in outputs}
    for name in sorted(found.keys() ^ wanted):
        where = "tests/examples/meson.build" if name in found else "the public headers"
        sys.exit(f"{where} lacks the example {name}")
    for name in sorted(wanted - included(root / "tests")):
        sys.exit(f"no test includes the example {name}")
    for name in wanted:
        (folder / name).write_text(found[name], encoding="utf-8")
    depfile.write_text(f"{outputs[0]}: {' '.join(map(str, headers))}\n", encoding="utf-8")


main()
