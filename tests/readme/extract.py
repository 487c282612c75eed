"""Writes the first C++ block of a Markdown file to another file."""
import re
import sys

source, target = sys.argv[1:]
with open(source, encoding="utf-8") as file:
    block = re.search(r"^```cpp\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
if not block:
    sys.exit(f"{source} has no C++ block")
with open(target, "w", encoding="utf-8") as file:
    file.write(block.group(1))
