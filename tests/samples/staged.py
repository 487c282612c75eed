#!/usr/bin/env python3
"""staged.py PROGRAM ARGUMENT…: layers that are added to a loaded tagger leave the weights of the others as they were."""

import json
import os
import struct
import subprocess
import sys
import tempfile

COMMAND = sys.argv[1:]
FOLDER = tempfile.TemporaryDirectory()


def path(name):
    return os.path.join(FOLDER.name, name)


def run(*arguments):
    """Runs the command with other options, or others in the place of its own."""
    options = dict(zip(COMMAND[1::2], COMMAND[2::2])) | dict(zip(arguments[::2], arguments[1::2]))
    words = COMMAND[:1] + [word for option in options.items() for word in option]
    return subprocess.run(words, capture_output=True, text=True)


def train(*arguments):
    done = run(*arguments)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: exit status {done.returncode}: {done.stderr}")
    return done.stdout


def weights(name):
    """The shape and the bytes of each tensor of a file in the safetensors format."""
    with open(path(name), "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    header.pop("__metadata__")
    return {tensor: (about["shape"], data[slice(*about["data_offsets"])]) for tensor, about in header.items()}


def check(holds, what):
    if not holds:
        sys.exit(what)


def check_added(before, after, fresh):
    """All tensors of a file are in the other one, with their values unless their names begin with one of `fresh`."""
    old, new = weights(before), weights(after)
    check(len(new) > len(old), f"{after} has no more tensors than {before}")
    for name, values in old.items():
        check(name in new, f"{name} is missing in {after}")
        if not name.startswith(fresh):
            check(new[name] == values, f"{name} has changed in {after}")


train("--word-layers", "1", "--character-layers", "1", "--save", path("one"))
# Nothing is trained: what is saved is what was loaded, and the new layers.
train("--load", path("one"), "--epochs", "0", "--save", path("again"))
check(weights("again") == weights("one"), "without new layers the weights have changed")
train("--load", path("one"), "--epochs", "0", "--word-layers", "2", "--save", path("words"))
check_added("one", "words", ("nothing",))
train("--load", path("one"), "--epochs", "0", "--character-layers", "2", "--save", path("characters"))
check_added("one", "characters", ("nothing",))
# The layer that reads the first layer of a level has other sizes, and starts afresh.
train("--word-layers", "0", "--character-layers", "0", "--save", path("none"))
train("--load", path("none"), "--epochs", "0", "--word-layers", "1", "--save", path("first"))
check_added("none", "first", ("output.",))

shown = train("--load", path("one"), "--word-layers", "2", "--save", path("two"))
check("loaded weights" in shown, "the loaded weights are not evaluated")
check(weights("two").keys() == weights("words").keys(), "the new layers are not saved")
done = run("--load", path("two"), "--word-layers", "1")
check(done.returncode == 1 and "layers can only be added" in done.stderr and done.stderr.count("\n") == 1,
      f"fewer layers than the file has: exit status {done.returncode}: {done.stderr}")
