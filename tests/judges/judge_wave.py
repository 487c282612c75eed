#!/usr/bin/env python3
"""Judges sound files by Python's module wave: WAV files of either side have the samples that the other one reads.

Usage: judge_wave.py CONVERT
"""

import sys
import tempfile
import wave
from pathlib import Path

import numpy
import safetensors.numpy

from converter import convert

SEED = 7
RATE = 22050
CASES = [(channels, frames) for channels in (1, 2, 5) for frames in (0, 1, 1000, 40_000)]


def bytes_of(integers, width):
    """Integers in the order of the file: those of one byte have no sign, and those of three drop the highest of four."""
    if width == 1:
        return (integers + 128).astype("u1").tobytes()
    four = (integers << 8 * (4 - width)).astype("<i4").tobytes()
    return numpy.frombuffer(four, "u1").reshape(-1, 4)[:, 4 - width:].tobytes()


def write(path, integers, width):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(integers.shape[1])
        file.setsampwidth(width)
        file.setframerate(RATE)
        file.writeframes(bytes_of(integers, width))


def main():
    program, generator, cases = sys.argv[1], numpy.random.default_rng(SEED), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for channels, frames in CASES:
            for width in (1, 2, 3, 4):
                half = 2 ** (8 * width - 1)
                integers = generator.integers(-half, half, (frames, channels))
                path = folder / f"{len(cases)}.wav"
                write(path, integers, width)
                cases.append((path, integers, width))
        said = convert(program, [line for path, _, _ in cases for line in
                                 ((path, path.with_suffix(".safetensors")),
                                  (path.with_suffix(".safetensors"), path.with_suffix(".again.wav")))])
        if any("libreel_sound.so" in line for line in said):
            print("this build has no libsndfile")
            sys.exit(77)
        assert set(said) == {"ok"}, said
        for path, integers, width in cases:
            read = safetensors.numpy.load_file(path.with_suffix(".safetensors"))
            wanted = (integers.T / 2.0 ** (8 * width - 1)).astype("f4")
            assert read["sample_rate"].tolist() == [RATE] and numpy.array_equal(read["samples"], wanted), path
            with wave.open(str(path.with_suffix(".again.wav"))) as file:
                assert file.getparams()[:4] == (integers.shape[1], 2, RATE, len(integers)), file.getparams()
                found = numpy.frombuffer(file.readframes(len(integers)), "<i2").reshape(integers.shape)
            assert numpy.array_equal(found.T, numpy.clip(numpy.rint(wanted * 32768), -32768, 32767)), path
    print(f"{2 * len(cases)} files")


if __name__ == "__main__":
    main()
