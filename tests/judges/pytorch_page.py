#!/usr/bin/env python3
"""Checks the page include/reel/from-pytorch.md by PyTorch: its names exist, and its expressions have the values that the
page gives.

Usage: pytorch_page.py PAGE
"""

import re
import sys
import warnings
from pathlib import Path

import torch
import torch.utils.checkpoint
import torch.utils.data

# Imported by no other part of PyTorch, and not in every build.
NEEDS_PACKAGES = {"torch.utils.tensorboard.SummaryWriter"}
# Names that are newer than version 1.13, the one of Debian 12.
NEWER = {"torch.func.functional_call", "torch.func.vmap", "torch.set_default_device"}
CODE = re.compile(r"`([^`]+)`")
CLAIM = re.compile(r"`([^`]+)` (?:is (.+)|throws (\w+))$")


def rows_of(text, heading):
    section = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")]
            for line in section.splitlines() if line.startswith("|")][2:]


def exists(name):
    found = {"torch": torch, "Tensor": torch.Tensor}.get(name.split(".")[0])
    for part in name.split(".")[1:]:
        if found is None or not hasattr(found, part):
            return False
        found = getattr(found, part)
    return found is not None


def check_names(rows):
    missing = []
    for cell, *_ in rows:
        for name in CODE.findall(cell):
            if not re.fullmatch(r"(torch|Tensor)(\.\w+)+", name) or name in NEEDS_PACKAGES:
                continue
            if not exists(name) and not (name in NEWER and torch.__version__.startswith("1.")):
                missing.append(f"PyTorch {torch.__version__} has no {name}")
    return missing


def value_of(expression):
    try:
        found = eval(expression, {"torch": torch})
    except Exception as error:
        return type(error).__name__
    return torch.as_tensor(found).double().flatten().tolist()


def check_claims(rows):
    wrong, count = [], 0
    for _, cell, *_ in rows:
        claim = CLAIM.match(cell)
        if not claim:
            continue
        count += 1
        expression, value, error = claim.groups()
        found = value_of(expression)
        if error:
            fits = found == error
        else:
            wanted = torch.as_tensor(eval(value, {"nan": float("nan")})).double().flatten().tolist()
            fits = isinstance(found, list) and len(found) == len(wanted) and all(
                a == b or a != a and b != b or abs(a - b) < 1e-5 for a, b in zip(found, wanted))
        if not fits:
            wrong.append(f"{expression} is {found}, not {error or value}")
    if count < 10:
        wrong.append(f"only {count} claims were found")
    return wrong


def main():
    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    text = Path(sys.argv[1]).read_text()
    sys.exit("\n".join(check_names(rows_of(text, "Names")) + check_claims(rows_of(text, "Differences"))) or 0)


if __name__ == "__main__":
    main()
