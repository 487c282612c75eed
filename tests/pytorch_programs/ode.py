"""Learns the law of a damped oscillation from noisy trajectories: a neural ordinary differential equation."""

import sys

import torch
from torch import nn


class Field(nn.Module):
    """dy/dt of a state y (N, 2)."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(2, 32)
        self.output = nn.Linear(32, 2)

    def forward(self, t, y):
        return self.output(torch.tanh(self.hidden(y)))


def odeint(f, y, times):
    """The states at all times, (T, ...), by the classical Runge-Kutta method: PyTorch has none of its own."""
    states = [y]
    for t, end in zip(times, times[1:]):
        h = end - t
        k_1 = f(t, y)
        k_2 = f(t + h / 2, y + h / 2 * k_1)
        k_3 = f(t + h / 2, y + h / 2 * k_2)
        k_4 = f(t + h, y + h * k_3)
        y = y + h / 6 * (k_1 + 2 * k_2 + 2 * k_3 + k_4)
        states.append(y)
    return torch.stack(states)


def oscillation(t, y):
    """The law that is to be found: y'' = -2 y - y' / 5, where y (N, 2) is the angle and its derivative."""
    angle, speed = y[:, 0], y[:, 1]
    return torch.stack([speed, -2 * angle - speed / 5], 1)


def main():
    torch.manual_seed(1)
    times = [0.2 * i for i in range(16)]
    start = 2 * torch.rand(32, 2) - 1
    observed = odeint(oscillation, start, times)
    observed = observed + 0.02 * torch.randn_like(observed)
    field = Field()
    adam = torch.optim.Adam(field.parameters(), lr=1e-2)
    for step in range(150):
        loss = (odeint(field, start, times) - observed).square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    start = 2 * torch.rand(32, 2) - 1
    error = odeint(field, start, times) - odeint(oscillation, start, times)
    deviation = error.square().mean().sqrt().item()
    print(f"new trajectories are predicted with an error of {deviation:.3f}; 0.1 is allowed")
    return deviation > 0.1


if __name__ == "__main__":
    sys.exit(main())
