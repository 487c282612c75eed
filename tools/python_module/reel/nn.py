"""Modules: parts of models, which own parameters."""

from ._reel._nn import *  # noqa: F403
from ._reel._nn import Module


class Sequential(Module):
    """Calls its parts one after the other: modules, which become its parts "0", "1", …, and functions of a tensor."""

    def __init__(self, *parts):
        super().__init__()
        self.parts = parts
        for i, part in enumerate(parts):
            if isinstance(part, Module):
                setattr(self, str(i), part)

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, i):
        return self.parts[i]
