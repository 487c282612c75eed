#!/usr/bin/env python3
"""Fails if an op is not in the registry, or a name is in it twice.

Reads the sources of lib/ops and lib/autograd, so that ops that no test runs are seen too: each `OpInfo` constant must
be in a list of `RegisteredOp`, and each list in REEL_OP_LISTS of lib/ops/registry.h.

Usage: check_ops.py ROOT
"""

import collections
import re
import sys
from pathlib import Path

# Constants that are no ops of their own, and why.
NO_OPS = {
    "called_op": "a checkpoint, which debug::ops() does not list",
    "listed_op": "the entry of a checkpoint",
}
COMMENT = re.compile(r"//[^\n]*")
# A declaration of one or more constants at the margin, up to its semicolon; a function's name is followed by "(".
CONSTANTS = re.compile(r"^(?:constexpr|const) (?:OpInfo|InPlaceBinary) (?!\w+\()([^;]*);", re.MULTILINE)
# OpInfo a{…}, a = …, and a[] = …; further ones of a declaration end with _op, unlike what initialises the first.
NAME = re.compile(r"(\w+)(?:\[\])?\s*(?=[={])")
NEXT = re.compile(r",\s*(\w+_ops?)(?:\[\])?\s*=")
LIST = re.compile(r"^std::span<const RegisteredOp> (?:detail::)?(\w+)\(\) \{(.*?)^\}", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r'\.name = "(\w+)"(?:, \.info = &(\w+))?')
LISTED = re.compile(r"^ *LIST\(\w+, (\w+)\)", re.MULTILINE)


def main(root):
    constants, lists, names, registered = {}, set(), collections.Counter(), set()
    for path in sorted(file for folder in ("lib/ops", "lib/autograd") for file in (root / folder).rglob("*.cpp")):
        text = COMMENT.sub("", path.read_text())
        for declaration in CONSTANTS.findall(text):
            for name in [NAME.match(declaration).group(1), *NEXT.findall(declaration)]:
                constants[name] = path.relative_to(root)
        for name, entries in LIST.findall(text):
            lists.add(name)
            for op, constant in ENTRY.findall(entries):
                names[op] += 1
                registered.add(constant)
    listed = LISTED.findall((root / "lib/ops/registry.h").read_text())

    errors = [f"{constants[name]}: {name} is in no list of RegisteredOp"
              for name in sorted(constants.keys() - registered - NO_OPS.keys())]
    errors += [f"check_ops.py names {name}, which is no constant" for name in sorted(NO_OPS.keys() - constants.keys())]
    errors += [f"lib/ops/registry.h: REEL_OP_LISTS lacks {name}" for name in sorted(lists - set(listed))]
    errors += [f"lib/ops/registry.h: {name} is in REEL_OP_LISTS twice"
               for name, count in collections.Counter(listed).items() if count > 1]
    errors += [f"{name} is registered {count} times" for name, count in sorted(names.items()) if count > 1]
    for error in errors:
        print(error)
    print(f"{len(constants)} OpInfo constants, {len(names)} registered ops in {len(lists)} lists: {len(errors)} errors")
    return 1 if errors or not constants or not names else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
