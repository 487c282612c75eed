#!/usr/bin/env python3
"""Fails if a public op or layer takes an operand in another way than "Arg or Tensor" of lib/README.md says: each operand
of an op is a `const Arg&`, unless it may be left out, and so is the first tensor of a layer.

Usage: check_operands.py ROOT
"""

import re
import sys
from pathlib import Path

COMMENT = re.compile(r"//[^\n]*")
DETAIL = re.compile(r"namespace detail \{.*?\}  // namespace detail", re.DOTALL)
# The operands of a function at the margin that returns a tensor or a struct of tensors; of a layer's call.
OP = re.compile(r"^(?:inline )?(?:[A-Z]\w*|std::vector<Tensor>) (\w+)\(((?:[^;{]|\{\})*)\)(?:;| \{)", re.MULTILINE)
CALL = re.compile(r"^  \w[\w:<>]* operator\(\)\(((?:[^;{]|\{\})*)\) const(?:;| \{)", re.MULTILINE)
TENSOR = re.compile(r"const Tensor& (\w+)(?! = \{\})")
# Operands that may be undefined: no state is a state of zeros.
MAY_BE_UNDEFINED = {("gru", "h"), ("rnn", "h")}


def declarations(header):
    return COMMENT.sub("", DETAIL.sub("", header.read_text()))


def main(root):
    errors, count = [], 0
    for header in sorted((root / "include/reel/ops").glob("*.h")):
        for name, operands in OP.findall(declarations(header)):
            count += 1
            errors += [f"{header.relative_to(root)}: {name} takes {operand} as a Tensor, not as an Arg"
                       for operand in TENSOR.findall(operands) if (name, operand) not in MAY_BE_UNDEFINED]
    for header in sorted((root / "include/reel/nn").glob("*.h")):
        for operands in CALL.findall(declarations(header)):
            count += 1
            if operands.startswith("const Tensor&"):
                errors.append(f"{header.relative_to(root)}: the first operand of ({' '.join(operands.split())}) is no Arg")
    for error in errors:
        print(error)
    print(f"{count} functions and layers: {len(errors)} errors")
    return 1 if errors or count < 400 else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
