#!/usr/bin/env python3
"""Fails if an op is not in the registry, or a name is in it twice.

Reads the sources of lib/ops and lib/autograd, so that ops that no test runs are seen too: each `OpInfo` constant must
be in an `OpList`, and each list in lib/ops/registry.cpp.

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
LIST = re.compile(r"^OpList (?:detail::)?(\w+)\(\) \{(.*?)^\}", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"&(\w+(?:\[\d+\])?)")
LISTED = re.compile(r"\b(\w+_ops)\(\)")
# The names of a family and of the op that an alias runs.
FAMILY_OR_ALIASED = re.compile(r'(?<=family\()\s*"\w+"|(?<=\{)("\w+"), "\w+"(?=\}[,}])')
STRING = re.compile(r'"(\w+)"')


def main(root):
    constants, lists, registered = {}, set(), collections.Counter()
    for path in sorted(file for folder in ("lib/ops", "lib/autograd") for file in (root / folder).rglob("*.cpp")):
        text = COMMENT.sub("", path.read_text())
        for declaration in CONSTANTS.findall(text):
            for name in [NAME.match(declaration).group(1), *NEXT.findall(declaration)]:
                constants[name] = path.relative_to(root)
        for name, entries in LIST.findall(text):
            lists.add(name)
            registered.update(ENTRY.findall(entries))
    registry = (root / "lib/ops/registry.cpp").read_text()
    table = registry[registry.index("families[]"):registry.index("return families")]
    listed = LISTED.findall(table)
    composed = STRING.findall(FAMILY_OR_ALIASED.sub(r"\1", table))

    listed_constants = {name.split("[")[0] for name in registered}
    errors = [f"{constants[name]}: {name} is in no OpList"
              for name in sorted(constants.keys() - listed_constants - NO_OPS.keys())]
    errors += [f"check_ops.py names {name}, which is no constant" for name in sorted(NO_OPS.keys() - constants.keys())]
    errors += [f"lib/ops/registry.cpp lacks {name}" for name in sorted(lists - set(listed))]
    counts = collections.Counter(listed + composed) + registered
    errors += [f"{name} is registered {count} times" for name, count in sorted(counts.items()) if count > 1]
    for error in errors:
        print(error)
    print(f"{len(constants)} OpInfo constants, {len(registered)} registered ops in {len(lists)} lists, {len(composed)} "
          f"composed ones: {len(errors)} errors")
    return 1 if errors or not constants or not registered or not composed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
