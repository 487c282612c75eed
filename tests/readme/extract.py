"""Writes the C++ block of a Markdown file that contains a text to another file."""
import re
import sys

source, text, target = sys.argv[1:]
with open(source, encoding="utf-8") as file:
    blocks = re.findall(r"^```cpp\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
blocks = [block for block in blocks if text in block]
if len(blocks) != 1:
    sys.exit(f"{source} has {len(blocks)} blocks with '{text}'")
with open(target, "w", encoding="utf-8") as file:
    file.write(blocks[0])
