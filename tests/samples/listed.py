#!/usr/bin/env python3
"""listed.py tools/run SAMPLE…: passes if --list prints each sample with a sentence of at most 110 characters."""

import subprocess
import sys

PROGRAM, *SAMPLES = sys.argv[1:]
MOST_CHARACTERS = 110

lines = subprocess.run([PROGRAM, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
names = [line.split("  ")[0] for line in lines]
if names != sorted(SAMPLES):
    sys.exit(f"listed are {names}, built are {sorted(SAMPLES)}; a header comment has a line '// Command: tools/run NAME …'")
for line in lines:
    name, _, sentence = line.partition("  ")
    sentence = sentence.strip()
    if not sentence.endswith(".") or len(sentence) > MOST_CHARACTERS:
        sys.exit(f"the first line of samples/{name}.cpp is no sentence of at most {MOST_CHARACTERS} characters: {sentence!r}")
