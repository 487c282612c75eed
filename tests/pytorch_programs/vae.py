"""Learns a code of two numbers for images of a spot, with a variational auto-encoder."""

import sys

import torch
from torch import nn
from torch.distributions import Bernoulli, Normal, kl_divergence
from torch.nn import functional


class VAE(nn.Module):
    def __init__(self, hidden=64, codes=2):
        super().__init__()
        self.encoder = nn.Linear(144, hidden)
        self.mean = nn.Linear(hidden, codes)
        self.log_deviation = nn.Linear(hidden, codes)
        self.decoder = nn.Linear(codes, hidden)
        self.pixels = nn.Linear(hidden, 144)

    def encode(self, x):
        h = functional.relu(self.encoder(x))
        return Normal(self.mean(h), torch.exp(self.log_deviation(h)))

    def decode(self, z):
        return Bernoulli(logits=self.pixels(functional.relu(self.decoder(z))))

    def forward(self, x):
        """The negative evidence lower bound of each image in nats, (N)."""
        q = self.encode(x)
        likelihood = self.decode(q.rsample()).log_prob(x)
        return kl_divergence(q, Normal(0, 1)).sum(1) - likelihood.sum(1)


def draw(count):
    """Images (count, 144) of a round spot anywhere, of black and white pixels."""
    centre_x, centre_y = 2 + 8 * torch.rand(2, count, 1, 1)
    column = torch.arange(12.0)
    row = column.reshape(-1, 1)
    distance = (column - centre_x) ** 2 + (row - centre_y) ** 2
    return torch.bernoulli(torch.exp(-distance / 8)).flatten(1)


def main():
    torch.manual_seed(1)
    model = VAE()
    adam = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(500):
        loss = model(draw(64)).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % 100 == 0:
            print(f"step {step}: -ELBO {loss.item():.2f} nats")
    images = draw(1000)
    bound = model(images).mean().item()
    baseline = -Bernoulli(images.mean(0).clamp(1e-3, 1 - 1e-3)).log_prob(images).sum(1).mean().item()
    print(f"-ELBO is {bound:.2f} nats, from the frequencies of pixels alone {baseline:.2f}; 80 % of it are required")
    return bound > 0.8 * baseline


if __name__ == "__main__":
    sys.exit(main())
