"""Learns to make points near a circle, with a Wasserstein GAN and a penalty on the critic's gradient."""

import math
import sys

import torch
from torch import nn
from torch.nn import functional


class Network(nn.Module):
    def __init__(self, inputs, outputs, hidden=64):
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.output = nn.Linear(hidden, outputs)

    def forward(self, x):
        return self.output(functional.leaky_relu(self.second(functional.leaky_relu(self.first(x)))))


def penalty(critic, real, made):
    """The mean of (|critic's gradient| - 1)^2 between real and made points."""
    share = torch.rand(len(real), 1)
    between = (share * real + (1 - share) * made).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (slope.square().sum(1).add(1e-12).sqrt() - 1).square().mean()


def draw(count):
    """Points (count, 2) near the unit circle."""
    angle = 2 * math.pi * torch.rand(count)
    return torch.stack([torch.cos(angle), torch.sin(angle)], 1) + 0.05 * torch.randn(count, 2)


def main():
    torch.manual_seed(1)
    generator, critic = Network(2, 2), Network(2, 1)
    generator_adam = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
    critic_adam = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
    for step in range(300):
        for _ in range(5):
            real, made = draw(64), generator(torch.randn(64, 2)).detach()
            distance = critic(real).mean() - critic(made).mean()
            critic_adam.zero_grad()
            (penalty(critic, real, made) - distance).backward()
            critic_adam.step()
        loss = -critic(generator(torch.randn(64, 2))).mean()
        generator_adam.zero_grad()
        loss.backward()
        generator_adam.step()
        if step % 50 == 0:
            print(f"step {step}: distance {distance.item():.3f}")
    made = generator(torch.randn(1000, 2))
    near = ((made.norm(dim=1) - 1).abs() < 0.25).float().mean().item()
    centre = made.mean(0).norm().item()
    print(f"{100 * near:.1f} % of the points are near the circle, of 75 %; off by {centre:.2f} of 0.3")
    return near < 0.75 or centre > 0.3


if __name__ == "__main__":
    sys.exit(main())
