#!/usr/bin/env python3
"""Judges files of tensors by the package safetensors.

Usage: judge_safetensors.py CONVERT CORPUS

Files that the package writes load in reel, and those that reel writes load there, for every dtype and many shapes. Both
accept and refuse the same files: those in the folder CORPUS, and random ones; but for REASONS.
"""

import json
import math
import random
import re
import struct
import sys
import tempfile
from pathlib import Path

import numpy
import safetensors

from converter import convert, differences, random_tensors

SEED = 7
MUTATIONS, CONSTRUCTIONS = 1000, 3000
NAMES = {"F32": "float32", "F64": "float64", "BF16": "bfloat16", "F16": "float16", "I32": "int32", "I64": "int64",
         "U8": "uint8", "I8": "int8", "I16": "int16", "BOOL": "bool"}

# Why reel refuses what the package accepts: a part of its sentence, and the reason.
REASONS = [
    (r"does not begin with \{", "the format says that a header begins with {: the package takes spaces before it"),
    (r"which reel has not", "the dtype is one that reel's tensors lack"),
    (r"more than 8 axes", "reel's tensors have at most 8 axes"),
    (r"two entries named|two fields|two words of the name", "a name twice is ambiguous: the package takes the last"),
    (r"a field '", "the format has no other fields: the package passes over them"),
    (r"null as its __metadata__", "the format says that metadata are an object: the package takes null for none"),
    (r"larger than any file", "sizes that overflow beside a 0: the package multiplies in another order"),
]


def write(path, tensors, metadata=None):
    # The package is passed addresses.
    kept = {name: numpy.frombuffer(data, numpy.uint8) for name, (_, _, data) in tensors.items()}
    described = {name: safetensors.TensorSpec(dtype=NAMES[dtype], shape=list(shape), data_ptr=kept[name].ctypes.data,
                                              data_len=len(data))
                 for name, (dtype, shape, data) in tensors.items()}
    path.write_bytes(safetensors.serialize(described, metadata))


def read(path):
    return {name: (found["dtype"], tuple(found["shape"]), bytes(found["data"]))
            for name, found in safetensors.deserialize(path.read_bytes())}


def is_accepted(data):
    try:
        safetensors.deserialize(data)
    except safetensors.SafetensorError:
        return False
    return True


def judge_contents(program, folder):
    tensors = random_tensors(SEED)
    write(folder / "theirs.safetensors", tensors, {"key": "größe"})
    lines = convert(program, [(folder / "theirs.safetensors", folder / "ours.safetensors")])
    if lines != ["ok"]:
        return lines
    with safetensors.safe_open(folder / "ours.safetensors", "numpy") as file:
        if file.metadata() != {"key": "größe"}:
            return [f"the metadata are {file.metadata()}"]
    return differences(tensors, read(folder / "ours.safetensors"))


def good_file():
    header = {"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
              "b": {"dtype": "BOOL", "shape": [], "data_offsets": [8, 9]},
              "c": {"dtype": "I64", "shape": [0, 3], "data_offsets": [9, 9]}}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(8) + b"\1"


def mutations(data):
    generator = random.Random(SEED)
    alphabet = b'{}[]",:0123456789-.eEFIUB_ \\nul\xff\xc3'
    for _ in range(MUTATIONS):
        header = bytearray(data[8:-9])
        for _ in range(generator.randint(1, 3)):
            at = generator.randrange(len(header))
            kind = generator.randrange(3)
            if kind == 0:
                header[at] = generator.choice(alphabet)
            elif kind == 1:
                del header[at:at + generator.randint(1, 4)]
            else:
                piece = header[(start := generator.randrange(len(header))):start + generator.randint(1, 40)]
                header[at:at] = piece
        # The length that says where the header ends is right in most files, or few would be read at all.
        length = len(header) if generator.randrange(20) else generator.randrange(300)
        yield struct.pack("<Q", length) + bytes(header) + data[-9:]


def constructed():
    """Files whose header is made of parts that are mostly right."""
    generator = random.Random(SEED)
    sizes = {"F32": 4, "F64": 8, "BF16": 2, "F16": 2, "I32": 4, "I64": 8, "U8": 1, "BOOL": 1, "I8": 1, "I16": 2, "U16": 2,
             "U32": 4, "U64": 8, "F8_E4M3": 1, "F4": 1, "C64": 8, "f32": 4, "": 1}

    def some(usual, *others):
        return usual if generator.random() < 0.9 else generator.choice(others)

    for _ in range(CONSTRUCTIONS):
        reached, entries = 0, []
        for i in range(generator.randrange(4)):
            dtype = generator.choice(list(sizes)[:8]) if generator.random() < 0.8 else generator.choice(list(sizes))
            shape = [some(generator.randrange(1, 4), 0, 2 ** 32, 2 ** 63, 2 ** 64) for _ in range(some(2, 0, 1, 8, 9, 11))]
            begin = some(reached, reached + 1, 0)
            reached = some(begin + sizes[dtype] * math.prod(shape), begin + 1, begin, 2 ** 64 - 1)
            fields = [f'"dtype":"{dtype}"', f'"shape":{shape}', f'"data_offsets":[{begin},{reached}]']
            fields = some(fields, fields[::-1], fields[:2], fields + ['"x":1'], fields + ['"shape":[]'], fields + ['"x":null'])
            entries.append(f'"{some(chr(97 + i), "a", "", "__metadata__", "é")}":{{{",".join(fields)}}}')
        metadata = some('{"format":"pt"}', "{}", "null", "[]", '{"a":1}', '{"a":"b","a":"c"}', '{"a":null}', '"x"')
        entries = some(entries, entries[::-1], entries + [f'"__metadata__":{metadata}'], [f'"__metadata__":{metadata}'] * 2)
        text = some("", " ", "\ufeff").join(("", some("{", "[", "{ \n") + ",".join(entries) + some("}", "} ", "},", "}\n", "}x"))).encode()
        yield struct.pack("<Q", some(len(text), len(text) + 1, len(text) - 1)) + text + bytes(min(some(reached, 0, reached + 1), 1000))


def judge_decisions(program, folder, corpus):
    files = sorted(path for path in corpus.iterdir() if path.is_file()) if corpus.is_dir() else []
    inputs = [(path.name, path.read_bytes()) for path in files]
    inputs += [(f"mutation {i}", data) for i, data in enumerate(mutations(good_file()))]
    inputs += [(f"construction {i}", data) for i, data in enumerate(constructed())]
    paths = []
    for i, (_, data) in enumerate(inputs):
        paths.append(folder / f"{i}.safetensors")
        paths[-1].write_bytes(data)
    problems, accepted, explained = [], 0, {reason: 0 for _, reason in REASONS}
    for (name, data), said in zip(inputs, convert(program, paths), strict=True):
        theirs, ours = is_accepted(data), said == "ok"
        accepted += ours
        if theirs == ours:
            continue
        reason = next((reason for part, reason in REASONS if theirs and re.search(part, said)), None)
        if reason:
            explained[reason] += 1
        else:
            problems.append(f"{name}: the package {'accepts' if theirs else 'refuses'} it, reel says {said}: {data[:300]}")
    print(f"{len(inputs)} files, {accepted} accepted by reel; seed {SEED}; refused by reel alone:")
    for reason, count in explained.items():
        print(f"  {count}: {reason}")
    if not 0 < accepted < len(inputs):
        problems.append("all files were decided in one way")
    return problems


def main():
    program, corpus = sys.argv[1], Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as name:
        problems = judge_contents(program, Path(name)) + judge_decisions(program, Path(name), corpus)
    sys.exit("\n".join(problems[:20]) or 0)


if __name__ == "__main__":
    main()
