#!/usr/bin/env python3
"""Loads weights that reel has saved for PyTorch, strictly, and compares what the layers compute.

Usage: pytorch_loads.py PROGRAM
"""

import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

DTYPES = {"F32": torch.float32, "I64": torch.int64}


def load(path):
    """The tensors of a file of safetensors: Debian has no package of that name."""
    data = path.read_bytes()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:end])
    metadata = header.pop("__metadata__", {})

    def tensor(one):
        begin, stop = (end + offset for offset in one["data_offsets"])
        return torch.frombuffer(bytearray(data[begin:stop]), dtype=DTYPES[one["dtype"]]).reshape(one["shape"])
    return {name: tensor(one) for name, one in header.items()}, metadata


class Output(nn.Module):
    """The first result of a recurrent layer, under the names of the layer itself."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def load_state_dict(self, state):
        return self.layer.load_state_dict(state)

    def forward(self, x):
        return self.layer(x)[0]


MODELS = {
    "dense": nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3, bias=False)),
    "image": nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.ConvTranspose2d(4, 2, 3)),
    "lstm": Output(nn.LSTM(6, 5, 2, bidirectional=True)),
    "projected": Output(nn.LSTM(6, 5, proj_size=3)),
    "gru": Output(nn.GRU(6, 5, 2)),
    "rnn": Output(nn.RNN(6, 5)),
    "encoder": nn.TransformerEncoderLayer(6, 2, batch_first=True),
    "words": nn.Embedding(7, 6),
}


MODELS["tied"] = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6))
MODELS["tied"][1].weight = MODELS["tied"][0].weight


def main():
    problems = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.argv[1], name], check=True)
        for model_name, model in MODELS.items():
            weights, metadata = load(folder / f"{model_name}.weights.safetensors")
            data, _ = load(folder / f"{model_name}.data.safetensors")
            if metadata.get("format") != "pt":
                problems.append(f"{model_name}: the metadata are {metadata}")
            model.load_state_dict(weights)
            model.eval()
            with torch.no_grad():
                difference = (model(data["x"]) - data["y"]).abs().max().item()
            print(f"{model_name}: {len(weights)} tensors, largest difference {difference:.1e}")
            if not difference < 1e-5:
                problems.append(f"{model_name} differs by {difference}")
    sys.exit("\n".join(problems) or 0)


if __name__ == "__main__":
    main()
