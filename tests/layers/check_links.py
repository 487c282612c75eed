#!/usr/bin/env python3
"""Fails if code of the library calls a layer above its own.

A header of a lower layer may declare what a higher one defines, so that includes alone do not show it. The objects do: of each
undefined symbol some definition must be in the object's own layer or below. The layers are listed in lib/README.md, and so are
the calls that point up nevertheless.

Usage: check_links.py ROOT BUILD
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from check_layers import Check

INCLUDED = re.compile(r'^#include "(.+\.cpp)"$', re.MULTILINE)
ROW = re.compile(r"^\| (`.*`) \| `([a-z_]+)` \| (`.*`) \|", re.MULTILINE)


def read_links(readme):
    """The calls that point up: {(layer, other layer): names}."""
    links = defaultdict(set)
    for layers, other, names in ROW.findall(readme.read_text().split("<!-- links -->")[1]):
        for layer in re.findall(r"`([^`]+)`", layers):
            links[layer, other] |= set(re.findall(r"`([^`]+)`", names))
    return links


def objects_of(root, build):
    """The objects of the library in a build directory, with the sources of each, relative to the root."""
    found = {}
    for command in json.loads((build / "compile_commands.json").read_text()):
        source, target = (build / command["file"]).resolve(), command["output"]
        if not target.startswith("lib/") or not target.endswith(".o") or not (build / target).is_file():
            continue
        if source.is_relative_to(root / "lib"):
            found[target] = [str(source.relative_to(root))]
        elif source.suffix == ".cpp":  # files that are compiled together, a part of one, or the text of the pages
            included = [root / "lib" / name for name in INCLUDED.findall(source.read_text())]
            found[target] = [str(name.relative_to(root)) for name in included] or ["lib/page/" + source.name]
    return found


def symbols_of(build, objects):
    """The objects that define each symbol, and those that use one that they do not define."""
    defined, used = defaultdict(set), defaultdict(set)
    listing = subprocess.run(["nm", "-AP", *objects], cwd=build, check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        place, symbol, kind, *_ = line.split()
        if kind == "U":
            used[symbol].add(place.rstrip(":"))
        elif kind in "TDBRVWu":
            defined[symbol].add(place.rstrip(":"))
    return defined, used


class CheckLinks(Check):
    def __init__(self, root, build):
        super().__init__(root)
        self.build = build
        self.objects = objects_of(root, build)
        self.links = read_links(root / "lib/README.md")
        self.layer = {name: self.layer_of_object(name, sources) for name, sources in self.objects.items()}

    def layer_of_object(self, name, sources):
        layers = {self.layer_of(source) for source in sources}
        if len(layers) != 1:
            self.errors.append(f"{name} is compiled of files of the layers {', '.join(sorted(map(str, layers)))}")
        return layers.pop()

    def upward(self):
        """(layer, other layer, symbol) of each call that points up."""
        defined, used = symbols_of(self.build, list(self.objects))
        found = set()
        for symbol, users in used.items():
            definitions = {self.layer[place] for place in defined[symbol]}
            for layer in {self.layer[user] for user in users}:
                if definitions and not any(layer == other or self.may_include(layer, other) for other in definitions):
                    found.add((layer, min(definitions), symbol))
        return sorted(found)

    def run(self):
        found = self.upward()
        symbols = "\n".join(symbol for _, _, symbol in found)
        names = subprocess.run(["c++filt"], input=symbols, check=True, capture_output=True, text=True).stdout.split("\n")
        used = set()
        for (layer, other, _), name in zip(found, names):
            called = name.split("(")[0].removeprefix("reel::").removeprefix("detail::")
            listed = {link for link in self.links[layer, other] if called == link or called.startswith(link) and link.endswith("::")}
            used |= {(layer, other, link) for link in listed}
            if not listed:
                self.errors.append(f"{layer} calls {name}, which {other} defines")
        for (layer, other), links in self.links.items():
            self.errors += [f"lib/README.md lists calls of {link} from {layer} to {other}, and there are none"
                            for link in sorted(links) if (layer, other, link) not in used]
        for error in self.errors:
            print(error)
        print(f"{len(self.objects)} objects, {len(found)} calls that point up, {len(self.errors)} errors")
        return 1 if self.errors or not self.objects else 0


if __name__ == "__main__":
    sys.exit(CheckLinks(*(Path(argument).resolve() for argument in sys.argv[1:])).run())
