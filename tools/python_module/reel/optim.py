"""Optimisers, which update parameters from their gradients."""

from ._reel._optim import *  # noqa: F403
