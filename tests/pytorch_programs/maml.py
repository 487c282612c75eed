"""Learns weights from which two steps of gradient descent fit a sine wave that is known at ten points (MAML)."""

import math
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.stateless import functional_call


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(1, 40)
        self.second = nn.Linear(40, 40)
        self.last = nn.Linear(40, 1)

    def forward(self, x):
        return self.last(functional.relu(self.second(functional.relu(self.first(x)))))


def draw():
    """Points x, y (20, 1) of a wave of any amplitude and phase."""
    amplitude, phase = 0.5 + 4.5 * torch.rand(()), math.pi * torch.rand(())
    x = 10 * torch.rand(20, 1) - 5
    return x, amplitude * torch.sin(x - phase)


def loss_after(net, steps, waves):
    """The mean squared error at the last ten points of new waves, after gradient descent on the first ten."""
    losses = []
    for _ in range(waves):
        x, y = draw()
        weights = dict(net.named_parameters())
        for _ in range(steps):
            loss = functional.mse_loss(functional_call(net, weights, x[:10]), y[:10])
            gradients = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
            weights = {name: w - 0.02 * gradient for (name, w), gradient in zip(weights.items(), gradients)}
        losses.append(functional.mse_loss(functional_call(net, weights, x[10:]), y[10:]))
    return torch.stack(losses).mean()


def main():
    torch.manual_seed(1)
    net = Net()
    adam = torch.optim.Adam(net.parameters(), lr=3e-3)
    for step in range(300):
        loss = loss_after(net, 2, 10)
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    before, after = loss_after(net, 0, 200).item(), loss_after(net, 2, 200).item()
    print(f"the squared error is {before:.2f} before and {after:.2f} after two steps; half of it is required")
    return after > 0.5 * before


if __name__ == "__main__":
    sys.exit(main())
