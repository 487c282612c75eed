"""reel in Python: eager tensors whose gradients a tape computes.

    x = reel.tensor([[1.0, 2.0]])
    line = reel.nn.Linear(2, 1)
    adam = reel.optim.Adam(line.parameters(), learning_rate=0.1)
    with reel.Tape() as tape:
        loss = (line(x) - 3).square().mean()
        tape.backward(loss)
    adam.step()
    adam.zero_grad()

Functions have the names, parameters and options of the C++ library, whose headers document them.
"""

from . import _reel
from ._reel import *  # noqa: F403
from ._reel import __version__, op_names
from . import nn, optim

__all__ = [name for name in dir(_reel) if not name.startswith("_")] + ["nn", "optim"]
