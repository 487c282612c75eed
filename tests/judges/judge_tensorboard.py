#!/usr/bin/env python3
"""Judges logs by TensorBoard's own reader: it finds every scalar, histogram, image, text and graph, also in a file that ends
within a record, as a killed process leaves it.

Usage: judge_tensorboard.py WRITE_LOG
"""

import csv
import io
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
from PIL import Image
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2

EVERYTHING = {kind: 0 for kind in (event_accumulator.SCALARS, event_accumulator.HISTOGRAMS, event_accumulator.IMAGES,
                                   event_accumulator.TENSORS, event_accumulator.GRAPH)}
# The logs described in the comment at the beginning of tests/logging/write_log.cpp.
LOSS = [(step, 1 / (step + 1)) for step in range(10)] + [(10, math.nan), (11, math.inf), (12, -math.inf)]
SCALARS = {"": {"loss": LOSS, "größe/π": [(-1, 0.25)], "faulty/not_finite": [(6, 2)], "final_loss": [(12, 0.1)]},
           "train": {"accuracy": [(step, step / 4) for step in (1, 2, 3)]},
           "validation": {"accuracy": [(step, step / 8) for step in (1, 2, 3)]}}


def read(folder):
    events = EventAccumulator(str(folder), size_guidance=EVERYTHING)
    events.Reload()
    return events


def is_same(found, wanted):
    return [step for step, _ in found] == [step for step, _ in wanted] and \
        numpy.allclose([value for _, value in found], [value for _, value in wanted], rtol=1e-6, equal_nan=True)


def judge_scalars(folder):
    for run, wanted in SCALARS.items():
        events = read(folder / run)
        assert set(events.Tags()["scalars"]) == set(wanted), events.Tags()
        for tag, values in wanted.items():
            assert is_same([(event.step, event.value) for event in events.Scalars(tag)], values), tag


def judge_histograms(events):
    assert set(events.Tags()["histograms"]) == {"weights", "faulty", "empty"}
    (weights,), (faulty,), (empty,) = (events.Histograms(tag) for tag in ("weights", "faulty", "empty"))
    values = numpy.arange(-500, 500) / 100
    found = weights.histogram_value
    assert (weights.step, found.num) == (5, 1000)
    assert numpy.allclose([found.min, found.max, found.sum, found.sum_squares],
                          [-5, 4.99, values.sum(), (values ** 2).sum()])
    assert sum(found.bucket) == 1000 and list(found.bucket_limit) == sorted(found.bucket_limit)
    # A bucket has the values up to its limit.
    reached = numpy.cumsum(found.bucket)
    for limit, count in zip(found.bucket_limit, reached):
        assert abs((values <= limit + 1e-9).sum() - count) <= 1, (limit, count)
    assert (faulty.step, faulty.histogram_value.num, faulty.histogram_value.min, faulty.histogram_value.max) == (6, 2, 1, 2)
    assert (empty.step, empty.histogram_value.num) == (6, 0)


def judge_images(events):
    assert set(events.Tags()["images"]) == {"picture", "grid", "line plot", "heat map"}
    sizes = {"picture": (8, 3, 2), "grid": (8, 16, 10), "line plot": (9, 640, 480), "heat map": (9, 640, 480)}
    for tag, (step, width, height) in sizes.items():
        (event,) = events.Images(tag)
        picture = Image.open(io.BytesIO(event.encoded_image_string))
        picture.load()
        assert (event.step, event.width, event.height) == (step, width, height), tag
        assert picture.size == (width, height), tag
        if tag == "picture":
            found = numpy.asarray(picture.convert("RGB"))
            wanted = [[[10 * (6 * c + 3 * y + x) for c in range(3)] for x in range(3)] for y in range(2)]
            assert (found == wanted).all(), found
        elif tag != "grid":
            assert len(picture.convert("RGB").getcolors(1 << 20)) > 2, f"{tag} is empty"


def judge_words(events):
    (notes,) = events.Tensors("notes")
    assert notes.step == 7
    assert [word.decode() for word in notes.tensor_proto.string_val] == ["# Notes\n\n*reel* & <b>π</b>"]
    content = plugin_data_pb2.HParamsPluginData.FromString(
        events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content)
    found = {name: getattr(value, value.WhichOneof("kind")) for name, value in content.session_start_info.hparams.items()}
    assert found == {"learning_rate": 0.01, "layers": 2, "cell": "lstm", "shuffled": True}, found


def judge_graph(events):
    nodes = {node.name: node for node in events.Graph().node}
    for part in ("matmul", "add", "tanh", "layer/weight", "layer/bias"):
        assert any(part in name for name in nodes), (part, list(nodes))
    for node in nodes.values():
        for name in node.input:
            assert name.lstrip("^").split(":")[0] in nodes, f"{node.name} has the input {name}, which is no node"


def judge_lines(folder):
    wanted = {(run, tag, step): value for run, tags in SCALARS.items() for tag, values in tags.items()
              for step, value in values}
    with open(folder / "log.jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    with open(folder / "scalars.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for name, found in (("log.jsonl", lines), ("scalars.csv", rows)):
        scalars = {(one["run"], one["tag"], int(one["step"])): one["value"] for one in found if "value" in one}
        assert wanted.keys() <= scalars.keys(), f"{name} lacks {wanted.keys() - scalars.keys()}"


def judge_cut(folder, other):
    """All records before the one that is cut are found."""
    (source,) = folder.glob("events.out.tfevents.*")
    data = source.read_bytes()
    last = 0
    for part in (0.2, 0.5, 0.9, 0.999):
        cut = other / f"{part}"
        cut.mkdir()
        (cut / source.name).write_bytes(data[:int(len(data) * part)])
        events = read(cut)
        found = [(event.step, event.value) for event in events.Scalars("loss")] if events.Tags()["scalars"] else []
        assert is_same(found, LOSS[:len(found)]) and len(found) >= last
        last = len(found)
    assert last == len(LOSS)


def main():
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        folder = Path(first) / "log"
        subprocess.run([sys.argv[1], folder], check=True)
        events = read(folder)
        judge_scalars(folder)
        judge_histograms(events)
        judge_images(events)
        judge_words(events)
        judge_graph(events)
        judge_lines(folder)
        judge_cut(folder, Path(second))


if __name__ == "__main__":
    main()
