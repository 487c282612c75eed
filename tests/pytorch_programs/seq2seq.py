"""Learns to write words of any lengths backwards: an encoder and a decoder with attention, over ragged batches."""

import sys

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence, pad_sequence

LETTERS, END, BEGIN = 8, 8, 9


class Translator(nn.Module):
    def __init__(self, size=32):
        super().__init__()
        self.letters = nn.Embedding(LETTERS + 2, size)
        self.encoder = nn.GRU(size, size, bidirectional=True)
        self.decoder = nn.GRUCell(3 * size, size)
        self.key = nn.Linear(2 * size, size, bias=False)
        self.query = nn.Linear(size, size)
        self.energy = nn.Linear(size, 1, bias=False)
        self.output = nn.Linear(3 * size, LETTERS + 1)

    def forward(self, words, targets=None, longest=8):
        """Logits (T, N, letters) of what is written: given the letters before it (T, N), or its own."""
        packed = pack_sequence([self.letters(word) for word in words], enforce_sorted=False)
        states, lengths = pad_packed_sequence(self.encoder(packed)[0])
        padding = torch.arange(len(states)).unsqueeze(1) >= lengths
        keys = self.key(states)
        h = torch.zeros(len(words), keys.shape[2])
        before = torch.full((len(words),), BEGIN)
        logits = []
        for t in range(longest if targets is None else len(targets)):
            energies = self.energy(torch.tanh(keys + self.query(h))).squeeze(2)
            weights = torch.softmax(energies.masked_fill(padding, float("-inf")), 0)
            context = (weights.unsqueeze(2) * states).sum(0)
            h = self.decoder(torch.cat([self.letters(before), context], 1), h)
            logits.append(self.output(torch.cat([h, context], 1)))
            before = logits[-1].argmax(1) if targets is None else targets[t]
        return torch.stack(logits)


def draw(count):
    """Words of three to six letters, each with the end mark, and their reversals (T, count), padded with end marks."""
    words, reversals = [], []
    for length in torch.randint(3, 7, (count,)).tolist():
        letters, end = torch.randint(0, LETTERS, (length,)), torch.tensor([END])
        words.append(torch.cat([letters, end]))
        reversals.append(torch.cat([letters.flip(0), end]))
    return words, pad_sequence(reversals, padding_value=END)


def main():
    torch.manual_seed(1)
    model = Translator()
    adam = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(400):
        words, targets = draw(32)
        loss = functional.cross_entropy(model(words, targets).flatten(0, 1), targets.flatten())
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1)
        adam.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    words, targets = draw(200)
    written = model(words, longest=len(targets)).argmax(2)
    exact = (written == targets).all(0).float().mean().item()
    print(f"{100 * exact:.1f} % of 200 new words are written backwards without a mistake; 70 % are required")
    return exact < 0.7


if __name__ == "__main__":
    sys.exit(main())
