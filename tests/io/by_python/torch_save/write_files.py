#!/usr/bin/env python3
"""Writes the files of this folder: what PyTorch makes of tensors that the tests know.

Usage: write_files.py, with PyTorch 1.13 (the files in the repository are never written anew)
"""

import collections
from pathlib import Path

import torch

folder = Path(__file__).parent


def save(name, value, **options):
    torch.save(value, folder / name, **options)


def write_views(base):
    model = collections.OrderedDict(
        base=base, transposed=base.t(), row=base[1], col=base[:, 2], expanded=torch.ones(1).expand(4),
        scalar=torch.tensor(7), empty=torch.zeros(0, 3))
    save("views.pt", {"epoch": 3, "loss": 0.5, "name": "x", "done": True, "model": model, "list": [base, (base + 1,)],
                      "none": None, "size": torch.Size([2, 3])})


def write_dtypes():
    dtypes = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "bool")
    save("dtypes.pt", {name: torch.tensor([0, 1, 2, 1]).to(getattr(torch, name)) for name in dtypes})


def write_optimiser():
    net = torch.nn.Sequential(collections.OrderedDict(hidden=torch.nn.Linear(2, 3), output=torch.nn.Linear(3, 2)))
    adam = torch.optim.Adam(net.parameters())
    net(torch.ones(1, 2)).sum().backward()
    adam.step()
    save("optim.pt", {"model": net.state_dict(), "optim": adam.state_dict()})
    save("old.pt", net.state_dict(), _use_new_zipfile_serialization=False)


torch.manual_seed(1)
base = torch.arange(12.0).reshape(3, 4)
write_views(base)
write_dtypes()
write_optimiser()
save("single.pt", base)
save("parameter.pt", {"p": torch.nn.Parameter(torch.ones(3))})
save("protocol4.pt", {"x": base}, pickle_protocol=4)
