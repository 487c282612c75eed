#!/usr/bin/env python3
"""Fails if a file of the library includes one of a layer above its own, or a folder holds more files than one looks through.

The layers are listed in lib/README.md, and drawn there with the folders of other libraries, which lib/meson.build has.

Usage: check_layers.py ROOT
"""

import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<(reel/[^>]+)>)', re.MULTILINE)
ROW = re.compile(r"^\| `([a-z_]+)` \|[^|]*\|([^|]*)\|", re.MULTILINE)
SUFFIXES = {".h", ".cpp", ".cu", ".in"}
MOST_FILES = 40  # directly in a folder
DEBUG_FOLDERS = re.compile(r"^debug_folders = \[(.*?)\]", re.MULTILINE | re.DOTALL)


def read_layers(readme):
    """The layers from the bottom up, and which of them each public header that has no folder belongs to."""
    layers, headers = [], {}
    table = readme.read_text().split("<!-- layers -->")[1]
    for name, public in ROW.findall(table):
        layers.append(name)
        for header in re.findall(r"`([a-z_/]+\.h)`", public):
            headers["include/reel/" + header] = name
    return layers, headers


def read_figure(readme):
    """The layers that the figure shows, from the bottom up, and the folders that it shows of libreel_debug."""
    layers, folders = [], []
    for line in readme.read_text().split("<!-- figure -->")[1].splitlines():
        words = re.findall(r"(?<!\S)[a-z_]+(?!\S)", line)
        layers[:0] = words[:1]
        if "libreel_debug.so" in line:
            folders += [f"{words[0]}/{folder}" for folder in words[1:]]
    return layers, folders


class Check:
    def __init__(self, root):
        self.root = root
        self.layers, self.headers = read_layers(root / "lib/README.md")
        self.errors = []

    def layer_of(self, path):
        """The layer of a file, given relative to the root; None if it is above all of them."""
        if path in self.headers:
            return self.headers[path]
        parts = path.split("/")
        folder = parts[2] if path.startswith("include/reel/") and len(parts) > 3 else None
        if path.startswith("lib/") and len(parts) > 2:
            folder = parts[1]
        if parts[0] == "cuda":
            return "cuda"
        if folder is None and path.startswith("include/reel/"):
            folder = Path(path).stem  # nn.h includes all of nn
        if folder == "reel":
            return None
        if folder not in self.layers and folder not in ("cpu", "pch"):
            self.errors.append(f"{path}: lib/README.md does not say which layer it belongs to")
        return folder

    def may_include(self, layer, other):
        if layer in (None, "pch"):
            return True
        if layer in ("cpu", "cuda"):
            return other in (layer, "core", "kernels")
        if other == "cpu":
            return layer == "dispatch"
        return other in self.layers and self.layers.index(other) <= self.layers.index(layer)

    def target_of(self, path, quoted, public):
        if public:
            return "include/" + public
        target = (path.parent / quoted).resolve()
        return str(target.relative_to(self.root)) if target.is_relative_to(self.root) else None

    def check(self, path):
        name = str(path.relative_to(self.root))
        layer = self.layer_of(name)
        for quoted, public in INCLUDE.findall(path.read_text()):
            target = self.target_of(path, quoted, public)
            if target is None or not (self.root / target).exists():
                continue
            other = self.layer_of(target)
            if other != layer and not self.may_include(layer, other):
                self.errors.append(f"{name} ({layer}) includes {target} ({other})")

    def check_folders(self):
        for top in ("include", "lib", "cuda", "tests", "samples", "tools"):
            for folder in [self.root / top, *(path for path in (self.root / top).rglob("*") if path.is_dir())]:
                count = sum(1 for path in folder.iterdir() if path.is_file())
                if count > MOST_FILES:
                    self.errors.append(f"{folder.relative_to(self.root)} holds {count} files, more than {MOST_FILES}")

    def check_figure(self):
        readme = self.root / "lib/README.md"
        layers, folders = read_figure(readme)
        if layers != self.layers:
            self.errors.append(f"the figure of lib/README.md shows the layers {', '.join(layers)}, not those of the list")
        listed = re.findall(r"'([^']+)'", DEBUG_FOLDERS.search((self.root / "lib/meson.build").read_text())[1])
        if sorted(folders) != sorted(listed):
            self.errors.append(f"the figure of lib/README.md shows {', '.join(folders)} in libreel_debug.so, not those of lib/meson.build")

    def run(self):
        files = [path for folder in ("include", "lib", "cuda") for path in sorted((self.root / folder).rglob("*"))
                 if path.suffix in SUFFIXES]
        for path in files:
            self.check(path)
        self.check_folders()
        self.check_figure()
        for error in self.errors:
            print(error)
        print(f"{len(files)} files in {len(self.layers)} layers, {len(self.errors)} errors: includes that point up, folders too full")
        return 1 if self.errors or not files else 0


if __name__ == "__main__":
    sys.exit(Check(Path(sys.argv[1]).resolve()).run())
