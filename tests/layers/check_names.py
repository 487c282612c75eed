#!/usr/bin/env python3
"""Fails if two of the namespaces reel, reel::nn and reel::optim declare one name, or a public header includes what it
should not.

Programs open several of these namespaces, where a type that two of them have is ambiguous; <stack>, <any> and
<valarray> bring names that clash with those of ops; and the others cost each program compile time: <chrono> alone took
5 % of that of reel/reel.h.

Usage: check_names.py ROOT
"""

import collections
import re
import sys
from pathlib import Path

NAMESPACES = {"reel", "reel::nn", "reel::optim"}
NAMESPACE = re.compile(r"^namespace ([\w:]+?)(?:::inline \w+)? \{")
# Declarations at the margin: types, aliases, concepts, and functions with their return type before the name.
TYPE = re.compile(r"^(?:struct|class|enum class|concept|using) (?:\[\[nodiscard\]\] )?(\w+)(?! *;)")
FUNCTION = re.compile(r"^(?:\[\[nodiscard\]\] |inline |constexpr )*[\w:<>,]+(?: [\w:<>,]+)*[ *&]+(\w+)\(")
REFUSED = re.compile(r"#include <(stack|any|valarray|chrono|filesystem|fstream|future|iostream|random|regex|sstream|thread)>")


def names_of(text):
    """Yields (namespace, name) for what a header declares at namespace level; a forward declaration does not count."""
    namespace = None
    for line in text.splitlines():
        if found := NAMESPACE.match(line):
            namespace = found.group(1)
        elif line.startswith("}  // namespace"):
            namespace = None
        elif found := TYPE.match(line) or FUNCTION.match(line):
            if namespace in NAMESPACES and not line.startswith(("friend", "return", "template", "extern")) \
                    and not re.match(r"^(struct|class) \w+;", line):
                yield namespace, found.group(1)


def main(root):
    declared, errors = collections.defaultdict(lambda: collections.defaultdict(set)), []
    for header in sorted((root / "include/reel").rglob("*.h")):
        text, name = header.read_text(), header.relative_to(root)
        errors += [f"{name} includes <{refused}>" for refused in REFUSED.findall(text)]
        for namespace, declaration in names_of(text):
            declared[declaration][namespace].add(str(name))
    for declaration, places in sorted(declared.items()):
        if len(places) > 1:
            files = ", ".join(sorted(file for some in places.values() for file in some))
            errors.append(f"{declaration} is declared in {' and '.join(sorted(places))}: {files}")
    for error in errors:
        print(error)
    print(f"{len(declared)} names of {len(NAMESPACES)} namespaces: {len(errors)} errors")
    return 1 if errors or len(declared) < 500 else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
