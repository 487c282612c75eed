"""Writes a program of a Markdown file, by its number from 0, to another file: a C++ block with a main function."""
import re
import sys

source, number, target = sys.argv[1:]
with open(source, encoding="utf-8") as file:
    blocks = re.findall(r"^```cpp\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
programs = [block for block in blocks if "int main(" in block]
if len(programs) <= int(number):
    sys.exit(f"{source} has {len(programs)} programs")
with open(target, "w", encoding="utf-8") as file:
    file.write(programs[int(number)])
