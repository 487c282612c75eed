"""Learns the direction of waves in noisy images, with convolutions and batch normalisation."""

import math
import sys

import torch
from torch import nn
from torch.nn import functional


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution_1 = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.convolution_2 = nn.Conv2d(8, 16, 3, padding=1, bias=False)
        self.normalisation_1 = nn.BatchNorm2d(8)
        self.normalisation_2 = nn.BatchNorm2d(16)
        self.output = nn.Linear(16 * 3 * 3, 4)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.normalisation_1(self.convolution_1(x))), 2)
        x = functional.max_pool2d(functional.relu(self.normalisation_2(self.convolution_2(x))), 2)
        return self.output(torch.flatten(x, 1))


def draw(count):
    """Images (count, 1, 12, 12) of waves in four directions, and the directions (count)."""
    direction = torch.randint(0, 4, (count,))
    angle = (math.pi / 4 * direction).reshape(-1, 1, 1, 1)
    phase = 2 * math.pi * torch.rand(count, 1, 1, 1)
    column = torch.arange(12.0)
    row = column.reshape(-1, 1)
    waves = torch.sin(torch.cos(angle) * column + torch.sin(angle) * row + phase)
    return waves + torch.randn(count, 1, 12, 12), direction


def main():
    torch.manual_seed(1)
    net = ConvNet()
    adam = torch.optim.Adam(net.parameters(), lr=3e-3)
    for step in range(100):
        images, directions = draw(32)
        loss = functional.cross_entropy(net(images), directions)
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % 25 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    net.eval()
    images, directions = draw(500)
    accuracy = (net(images).argmax(1) == directions).float().mean().item()
    print(f"{100 * accuracy:.1f} % of 500 images are classified correctly; 90 % are required")
    return accuracy < 0.9


if __name__ == "__main__":
    sys.exit(main())
