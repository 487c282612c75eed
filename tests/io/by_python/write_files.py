#!/usr/bin/env python3
"""Writes the files of this folder: what NumPy, Pillow, soundfile and gzip make of numbers that the tests know.

Usage: write_files.py, with numpy 2.4.6, pillow 13.0.0 and soundfile 0.14.0 (the files in the repository are never written anew)
"""

import gzip
import struct
import zlib
from pathlib import Path

import numpy
import soundfile
from PIL import Image

folder = Path(__file__).parent


def save(name, array, version=None):
    with open(folder / name, "wb") as file:
        numpy.lib.format.write_array(file, array, version=version, allow_pickle=True)


def write_arrays():
    for kind in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4"):
        save(f"{kind}.npy", (numpy.arange(6).reshape(2, 3) * 3).astype("<" + kind))
    save("b1.npy", numpy.array([[True, False, True]]))
    save("big_f4.npy", (numpy.arange(6).reshape(2, 3) * 3).astype(">f4"))
    save("big_i8.npy", (numpy.arange(6).reshape(2, 3) * 3).astype(">i8"))
    save("fortran.npy", numpy.asfortranarray((numpy.arange(24).reshape(2, 3, 4) * 3).astype("<f4")))
    save("scalar.npy", numpy.array(2.5))
    save("empty.npy", numpy.zeros((3, 0, 2), "<i4"))
    save("version_2.npy", (numpy.arange(6) * 3).astype("<f4"), (2, 0))
    save("version_3.npy", (numpy.arange(6) * 3).astype("<f4"), (3, 0))
    save("object.npy", numpy.array([None, {}], dtype=object))
    save("complex.npy", numpy.array([1 + 2j]))
    save("text.npy", numpy.array(["a", "bc"]))
    save("fields.npy", numpy.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")]))
    save("u8.npy", numpy.array([1, 2], "<u8"))
    arrays = {"weight": (numpy.arange(6).reshape(2, 3) * 3).astype("<f4"), "a/b.c": numpy.array([7, 8], "<i8"), "zeros": numpy.zeros(1000, "<f4")}
    numpy.savez(folder / "stored.npz", **arrays)
    numpy.savez_compressed(folder / "deflated.npz", **arrays)


def pixels(channels):
    y, x, c = numpy.meshgrid(numpy.arange(3), numpy.arange(4), numpy.arange(channels), indexing="ij")
    return ((y * 40 + x * 20 + c * 70) % 256).astype("u1")


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def write_interlaced(name):
    """Adam7, which Pillow does not write: the rows of seven passes, each with a filter byte."""
    image = pixels(3)
    rows = b""
    for y0, x0, dy, dx in ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)):
        part = image[y0::dy, x0::dx]
        if part.size:
            rows += b"".join(b"\0" + row.tobytes() for row in part)
    header = struct.pack(">IIBBBBB", 4, 3, 8, 2, 0, 0, 1)
    data = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    (folder / name).write_bytes(b"\x89PNG\r\n\x1a\n" + data)


def write_images():
    for name, mode, channels in (("grey", "L", 1), ("grey_alpha", "LA", 2), ("rgb", "RGB", 3), ("rgba", "RGBA", 4)):
        image = pixels(channels)
        Image.fromarray(image[:, :, 0] if channels == 1 else image, mode).save(folder / f"{name}.png")
    Image.fromarray(pixels(1)[:, :, 0].astype("u2") * 257).save(folder / "grey_16_bits.png")
    Image.fromarray(pixels(3), "RGB").quantize(12, dither=Image.Dither.NONE).save(folder / "palette.png")
    Image.fromarray(pixels(1)[:, :, 0] > 100).save(folder / "black_white.png")
    write_interlaced("interlaced.png")
    y, x = numpy.mgrid[0:16, 0:24]
    smooth = numpy.stack([y * 8, x * 8, 128 + 0 * x], 2).astype("u1")
    Image.fromarray(smooth, "RGB").save(folder / "rgb.jpg", quality=98, subsampling=0)
    Image.fromarray(smooth, "RGB").save(folder / "progressive.jpg", quality=98, subsampling=0, progressive=True)
    Image.fromarray(smooth[:, :, 0], "L").save(folder / "grey.jpg", quality=98)
    Image.fromarray(smooth, "RGB").convert("CMYK").save(folder / "cmyk.jpg")


def write_sound():
    phase = numpy.arange(1000) * 2 * numpy.pi * 440 / 16000
    samples = numpy.stack([numpy.sin(phase) * 0.5, numpy.cos(phase) * 0.25], 1)
    soundfile.write(folder / "tone.flac", numpy.round(samples * 32768).astype("i2"), 16000)


write_arrays()
write_images()
write_sound()
(folder / "text.gz").write_bytes(gzip.compress(b"one\n", mtime=0) + gzip.compress(b"two\n" * 1000, mtime=0))
