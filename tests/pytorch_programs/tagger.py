"""Learns to tag words by the word before and the word after; saves weights and tags, and loads them again.

Usage: tagger.py [FOLDER], which gets the files "weights" and "tagged"; default: the working directory.
"""

import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(8, 16)
        self.lstm = nn.LSTM(16, 16, bidirectional=True)
        self.output = nn.Linear(32, 3)

    def forward(self, words):
        return self.output(self.lstm(self.words(words))[0])


def draw(count):
    """Sentences (T, count) of ten words, and the tag of each word: how many of its neighbours are even."""
    words = torch.randint(0, 8, (10, count))
    even = (words % 2 == 0).long()
    outside = torch.zeros(1, count, dtype=torch.long)
    return words, torch.cat([outside, even[:-1]]) + torch.cat([even[1:], outside])


def train(tagger):
    adam = torch.optim.Adam(tagger.parameters(), lr=1e-2)
    for step in range(200):
        words, tags = draw(32)
        loss = functional.cross_entropy(tagger(words).flatten(0, 1), tags.flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


def save(folder):
    tagger = Tagger()
    train(tagger)
    words, tags = draw(100)
    torch.save(tagger.state_dict(), folder / "weights")
    torch.save({"words": words, "tags": tags, "found": tagger(words).argmax(2)}, folder / "tagged")


def main():
    torch.manual_seed(1)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    save(folder)
    tagger = Tagger()
    tagger.load_state_dict(torch.load(folder / "weights"))
    tagged = torch.load(folder / "tagged")
    found = tagger(tagged["words"]).argmax(2)
    accuracy = (found == tagged["tags"]).float().mean().item()
    different = (found != tagged["found"]).sum().item()
    print(f"{100 * accuracy:.1f} % of the tags are right, 95 % are required; {different} are not those that were saved")
    return accuracy < 0.95 or different > 0


if __name__ == "__main__":
    sys.exit(main())
